/* SPDX-License-Identifier: MIT */
/*
 * turing_count_test IMAGE:SYMBOL... - what the ladder of kernels claims, counted
 * on the emulator: who has bank conflicts, how few integer instructions stand
 * beside the multiplications, that sectors are read and written whole.
 */
#include "turing_gemm.h"
#include "turing_test.h"

static turing_counters_t count(const turing_kernel_t *k, const kernel_t *t)
{
    const uint32_t m = 2 * t->info.block_m, n = 2 * t->info.block_n, depth = 128;
    const size_t bytes[4] = {(size_t)m * depth * 2, (size_t)depth * n * 2, (size_t)m * n * 2, (size_t)m * n * 2};
    turing_memory_t *mem = turing_memory_create(0);
    kernel_args_t args = {
        .lda = depth, .ldb = n, .ldc = n, .ldd = n, .m = (int)m, .n = (int)n, .k = (int)depth, .alpha = 1, .beta = 1};
    take_whole_tiles(&args, t);
    uint64_t at[4];
    for (int i = 0; i < 4; i++)
        at[i] = upload(mem, NULL, bytes[i]);
    memcpy(&args, at, sizeof at);
    turing_counters_t c = {0};
    turing_error_t err = {""};
    turing_launch_t l = {.grid = {4, 1, 1},
                         .block = {t->info.threads, 1, 1},
                         .shared_bytes = t->info.shared_bytes,
                         .params = &args,
                         .param_bytes = k->param_bytes,
                         .counters = &c};
    CHECK(turing_launch(k, mem, &l, NULL, &err), "%s", err.text);
    turing_memory_destroy(mem);
    CHECK(c.dram_bytes == bytes[0] + bytes[1] + bytes[2] + bytes[3], "%s touches %llu bytes", k->name,
          (unsigned long long)c.dram_bytes);
    CHECK(c.flops == 2ull * m * n * depth, "%s: %llu flops", k->name, (unsigned long long)c.flops);
    return c;
}

/* The most HMMA's of the loop, turn after turn, with no ldmatrix among them. */
static uint32_t longest_run(const turing_kernel_t *k, const turing_loop_t *loop)
{
    uint32_t run = 0, longest = 0;
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t j = loop->first / TURING_INSN_BYTES; loop->found && j <= loop->last / TURING_INSN_BYTES; j++) {
            run = k->insns[j].op == TURING_LDSM ? 0 : run + (k->insns[j].op == TURING_HMMA_1688);
            longest = run > longest ? run : longest;
        }
    return longest;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    printf("%-18s %9s %9s %8s %8s %8s %8s %7s\n", "emulated", "wavefront", "ideal", "int/HMMA", "tensor", "lsu*warp",
           "sectors", "blocks");
    for (int i = 1; i < argc; i++) {
        char path[1024];
        const char *symbol = split_image(argv[i], path, sizeof path);
        const kernel_t *t = symbol ? kernel_of(symbol) : NULL;
        if (!t)
            return 2;
        turing_module_t *module = open_or_die(path);
        const turing_kernel_t *k = find_or_die(module, symbol);
        turing_counters_t c = count(k, t);
        const turing_loop_t *loop = &c.loop;
        CHECK(loop->found, "%s has no main loop", symbol);
        uint64_t waves = 0, ideal = 0;
        for (uint32_t j = loop->first / TURING_INSN_BYTES; loop->found && j <= loop->last / TURING_INSN_BYTES; j++) {
            waves += c.insn[j].shared_waves;
            ideal += c.insn[j].shared_ideal;
        }
        const double integer =
            loop->pipe[TURING_PIPE_ALU] + loop->pipe[TURING_PIPE_FMA] + loop->pipe[TURING_PIPE_UNIFORM];
        const double per_hmma = loop->pipe[TURING_PIPE_TENSOR] ? integer / loop->pipe[TURING_PIPE_TENSOR] : 0;
        printf("%-18s %9llu %9llu %8.2f %8.0f %8.0f %8llu %4u %s\n", symbol, (unsigned long long)waves,
               (unsigned long long)ideal, per_hmma, loop->tensor_cycles, loop->lsu_cycles,
               (unsigned long long)c.total.global_sectors, c.occupancy.blocks, c.occupancy.limit);
        if (!strncmp(symbol, "k1", 2))
            CHECK(waves >= 2 * ideal, "%s is said to suffer from bank conflicts", symbol);
        else
            CHECK(waves == ideal && waves, "%s has bank conflicts", symbol);
        if (!strncmp(symbol, "k4", 2) || !strncmp(symbol, "k5", 2))
            CHECK(per_hmma <= (t->info.block_m * t->info.block_n >= 128 * 128 ? 0.35 : 0.9),
                  "%s: %.2f integer instructions per HMMA", symbol, per_hmma);
        /* On a Turing multiprocessor nothing takes longer than the tensor cores of its four sub-cores,
         * each of which has all other units but the one for loads and stores to itself. */
        if (!strncmp(symbol, "k5", 2) && t->info.block_m * t->info.block_n >= 128 * 128)
            CHECK(loop->tensor_cycles >= 4 * loop->lsu_cycles && loop->tensor_cycles >= loop->issue_cycles &&
                      loop->tensor_cycles >= loop->alu_cycles && loop->tensor_cycles >= loop->fma_cycles &&
                      loop->tensor_cycles >= loop->half_cycles && loop->tensor_cycles >= loop->uniform_cycles,
                  "%s is not bound by its tensor cores", symbol);
        /* Nor do fragments come in one bunch, late, as where ptxas sinks what follows the loop's barrier. */
        if (!strncmp(symbol, "k5", 2) && t->info.block_m * t->info.block_n >= 128 * 128)
            CHECK(longest_run(k, loop) <= 40, "%s: %u HMMA's without an ldmatrix", symbol, longest_run(k, loop));
        CHECK(c.total.partial_sectors == 0, "%s stores %llu sectors in part", symbol,
              (unsigned long long)c.total.partial_sectors);
        CHECK(c.total.global_sectors == c.total.global_ideal, "%s moves %llu sectors for %llu", symbol,
              (unsigned long long)c.total.global_sectors, (unsigned long long)c.total.global_ideal);
        turing_counters_free(&c);
        turing_module_close(module);
    }
    return failures != 0;
}
