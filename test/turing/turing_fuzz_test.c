/* SPDX-License-Identifier: MIT */
/*
 * turing_fuzz_test CUBIN [ROUNDS [SEED]] - random machine code never takes the
 * executor down.  Bits of real kernels are flipped, instructions copied over
 * others; whatever still decodes must run to an end: a result, violations or an
 * error.  Built with sanitizers this also shows that it stays within bounds.
 */
#include "turing_test.h"

static uint64_t state = 1;

/* Changes one to three instructions; false when the decoder refuses one. */
static bool scramble(const turing_kernel_t *k, turing_insn_t *copy)
{
    for (uint32_t n = 1 + random_word(&state) % 3; n > 0; n--) {
        const uint32_t at = random_word(&state) % k->n_insns, bit = random_word(&state) % 128;
        uint64_t raw[2] = {copy[at].raw[0], copy[at].raw[1]};
        raw[bit / 64] ^= UINT64_C(1) << bit % 64;
        if (random_word(&state) % 4 == 0)
            memcpy(raw, k->insns[random_word(&state) % k->n_insns].raw, sizeof raw);
        if (!turing_decode(&copy[at], raw[0], raw[1], at * TURING_INSN_BYTES, NULL))
            return false;
    }
    return true;
}

static bool run(const turing_kernel_t *k, unsigned round)
{
    enum { BYTES = 8192 };
    uint16_t data[BYTES / 2];
    uint8_t params[256] = {0};
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    for (int i = 0; i < BYTES / 2; i++)
        data[i] = (uint16_t)random_word(&state);
    for (uint32_t i = 0; i < k->n_params; i++) {
        const uint64_t value = k->params[i].size == 8 ? upload(mem, i & 1 ? NULL : data, BYTES) : 64;
        memcpy(params + k->params[i].offset, &value, k->params[i].size);
    }
    found_t found = {{0}, ""};
    turing_counters_t counters;
    turing_error_t err;
    turing_launch_t l = {.grid = {1, 2, 1},
                         .block = {128, 1, 1},
                         .params = params,
                         .param_bytes = k->param_bytes,
                         .checks = round & 1 ? TURING_CHECK_ALL : 0,
                         .report = note,
                         .user = &found,
                         .max_warp_instructions = 20000,
                         .counters = round & 2 ? &counters : NULL};
    const bool ok = turing_launch(k, mem, &l, NULL, &err);
    CHECK(ok || err.text[0], "an error without a text");
    if (ok && l.counters)
        turing_counters_free(&counters);
    turing_memory_destroy(mem);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
    state = argc > 3 ? strtoull(argv[3], NULL, 0) * 2 + 1 : 1;
    turing_module_t *module = open_or_die(argv[1]);
    unsigned refused = 0, ran = 0, failed = 0;
    const turing_kernel_t *k;
    for (size_t i = 0; (k = turing_module_kernel(module, i)); i++) {
        turing_insn_t *copy = malloc(k->n_insns * sizeof *copy);
        if (!copy)
            return 1;
        for (unsigned round = 0; round < rounds; round++) {
            memcpy(copy, k->insns, k->n_insns * sizeof *copy);
            turing_kernel_t wrong = *k;
            wrong.insns = copy;
            if (!scramble(k, copy))
                refused++;
            else if (run(&wrong, round))
                ran++;
            else
                failed++;
        }
        free(copy);
    }
    turing_module_close(module);
    printf("%u refused, %u ran to the end, %u ended in an error\n", refused, ran, failed);
    CHECK(ran && failed, "all ended alike");
    return failures != 0;
}
