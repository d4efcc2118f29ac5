/* SPDX-License-Identifier: MIT */
/*
 * turing_dry_test IMAGE... - of every kernel of the images a dry launch can tell where its warps go: no branch,
 * barrier or access stands under a predicate that is thought to come from sums, and no HMMA is thought to decide
 * one. So it is for any parameters, or else for those of each kind of product. Nothing is executed.
 *
 * Of kernels that scatter rows in code without a loop, HMMAs seem to decide addresses as long as parameters are not
 * known: the next row's number is loaded as 32 or as 64 bits, each under its own copy of a uniform predicate. dry.c
 * does not know that one of the two loads happens, so that the registers, which had sums of the row before, seem to be
 * kept. A launch has parameters, and the copies then are known.
 */
#include "turing_test.h"

#include "table/args.h"
#include "exec.h"

typedef struct seen {
    int analyses, branches, hmma;
} seen_t;

/* Sums decide which case of an activation an element is, and what is reported of their range by a strong store. */
static bool may_depend_on_sums(const turing_insn_t *in)
{
    const bool jumps = in->op == TURING_BRX || in->op == TURING_BRXU;
    const bool reports = in->op == TURING_STG && in->m.order == TURING_ORDER_STRONG;
    return jumps || reports || (turing_op_pipe((turing_op_t)in->op) != TURING_PIPE_CONTROL && !in->mem.present);
}

/* Returns the HMMAs that are not left out. */
static int look(const machine_t *m, uint32_t indirect, seen_t *seen)
{
    int computed = 0;
    for (uint32_t i = 0; i < m->n_ops; i++) {
        const op_t *o = &m->ops[i];
        if (o->flow == FLOW_BLOCKED && !may_depend_on_sums(o->in)) {
            char text[TURING_TEXT_MAX];
            turing_disasm(o->in, text);
            CHECK(false, "%s+0x%x (%s) ends dry launches (indirect %u)", m->kernel->name, o->in->addr, text, indirect);
        }
        computed += o->in->op == TURING_HMMA_1688 && !o->idle;
        seen->branches += o->in->op == TURING_BRA && o->flow != FLOW_UNFORESEEN;
        seen->hmma += o->in->op == TURING_HMMA_1688 && o->idle && o->flow != FLOW_UNFORESEEN;
    }
    return computed;
}

/* Kernels for bfloat16 have parameters beside these, which are zeros. */
static int analyse(const turing_kernel_t *k, const kernel_args_t *args, seen_t *seen)
{
    turing_error_t err = {""};
    const turing_launch_t launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = args};
    machine_t m = {.kernel = k, .launch = &launch, .n_warps = 1};
    memcpy(m.bank, k->bank, sizeof m.bank);
    if (m.bank[0].size < k->param_base + k->param_bytes)
        m.bank[0].size = k->param_base + k->param_bytes;
    m.bank0 = calloc(1, m.bank[0].size);
    m.bank[0].data = m.bank0;
    if (args && m.bank0)
        memcpy(m.bank0 + k->param_base, args, sizeof *args);
    const bool ok = m.bank0 && emu_lower_kernel(&m, &err) && emu_dry_open(&m);
    CHECK(ok && m.dry, "%s is not known at all: %s", k->name, err.text);
    const int computed = ok ? look(&m, args ? args->indirect : 0, seen) : 0;
    seen->analyses++;
    emu_lower_free(&m);
    free(m.bank0);
    return computed;
}

/* A kernel that is timed by launches which compute: dry.c takes some of its HMMAs for needed. */
static bool computes(const turing_kernel_t *k)
{
    return strcmp(k->name, "weights_table_64x128_nt_packed") == 0 ||
           strcmp(k->name, "weights_table_teams_64x128_nt_packed") == 0 ||
           strcmp(k->name, "single16_256x128_nn_f32") == 0;
}

/* For parameters of each kind. */
static void analyse_kinds(const turing_kernel_t *k, bool is_indirect, seen_t *seen)
{
    static const unsigned kinds[] = {0, HGEMM_INDIRECT_POINTERS, HGEMM_INDIRECT_GROUPED,
                                     HGEMM_INDIRECT_GROUPED | HGEMM_INDIRECT_BY_COLUMNS};
    enum { FUSED = HGEMM_FUSED | HGEMM_FUSED_ANYHOW };
    static const struct {
        unsigned fused;
        const void *scatter_d; /* not NULL: somewhere */
    } ways[] = {{0, NULL}, {FUSED, NULL}, {FUSED, ways}, {FUSED | HGEMM_FUSED_INDEX_64, ways}};
    kernel_args_t args = {.lda = 400, .ldb = 400, .ldc = 400, .ldd = 400, .m = 333, .n = 333, .k = 333};
    args.alpha = 2, args.beta = 1, args.splits = 1, args.whole_tiles = 36, args.groups = 3;
    CHECK(k->param_bytes >= sizeof args, "%s takes %u bytes of parameters", k->name, k->param_bytes);
    for (size_t i = 0; k->param_bytes >= sizeof args && i < (is_indirect ? sizeof kinds / sizeof *kinds : 1); i++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            args.indirect = kinds[i], args.fused = ways[way].fused, args.scatter_d = ways[way].scatter_d;
            const int computed = analyse(k, &args, seen);
            CHECK(computes(k) == (computed > 0), "%s: %d HMMAs are not left out (indirect %u, fused %u, scattered %d)",
                  k->name, computed, args.indirect, args.fused, args.scatter_d != NULL);
        }
}

int main(int argc, char **argv)
{
    seen_t seen = {0};
    for (int i = 1; i < argc; i++) {
        turing_module_t *module = open_or_die(argv[i]);
        const turing_kernel_t *k;
        for (size_t j = 0; (k = turing_module_kernel(module, j)); j++)
            if (strstr(k->name, "_indirect"))
                analyse_kinds(k, true, &seen);
            else if (analyse(k, NULL, &seen))
                analyse_kinds(k, false, &seen);
        turing_module_close(module);
    }
    CHECK(seen.analyses >= argc - 1 && seen.branches && seen.hmma, "%d analyses of %d branches and %d HMMAs",
          seen.analyses, seen.branches, seen.hmma);
    printf("%d analyses of %d branches and %d HMMAs\n", seen.analyses, seen.branches, seen.hmma);
    return failures != 0;
}
