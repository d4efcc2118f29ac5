/* SPDX-License-Identifier: MIT */
/*
 * turing_random CUBIN LIBRARY FORMS - the kernels of one batch of kernels.py, as the emulator executes their machine
 * code, beside the same C in the host's arithmetic: the same bits in every result and in memory, and no check finds
 * anything. FORMS gets a line for each form of an instruction that was executed in a kernel whose results are right.
 * Kernels that ptxas compiled wrongly are left out, and counted.
 */
#include "prelude.h"
#undef kept

#include "../turing_test.h"

#include <dlfcn.h>

typedef void kernel_fn(PARAMETERS);

enum { ROUNDS = 4, CELL_BYTES = 8 * CELLS, ALL_BYTES = MEM_BYTES * IN_COUNT + CELL_BYTES };

typedef struct data {
    in_t in[IN_COUNT];
    u64 out[IN_COUNT * OUT_WORDS];
    u8 mem[ALL_BYTES];
    u64 a, b;
    s64 p;
    u32 x, y;
    s32 q;
    f32 f, g;
    f64 d;
    u16 h;
    s16 j;
    u8 c;
    s8 n;
    h16 s;
    h32 v;
} data_t;

static data_t host, device;

/* Words that carries, signs, shifts and comparisons turn on. */
static u64 word(uint64_t *state)
{
    const u64 r = (u64)random_word(state) << 32 | random_word(state);
    switch (r % 9) {
    case 0: return 0;
    case 1: return ~0ull - (r >> 8) % 3;
    case 2: return (r >> 8) % 70;
    case 3: return 1ull << (r >> 8) % 64;
    case 4: return r << 32;
    case 5: return (1ull << 32) - (r >> 8) % 2;
    case 6: return (u32)(r >> 16);
    case 7: return 0ull - (r >> 8) % 1000;
    default: return r * 0x9e3779b97f4a7c15ull;
    }
}

static f64 number(uint64_t *state)
{
    const u32 r = random_word(state);
    switch (r % 8) {
    case 0: return d_of(word(state));
    case 1: return (f64)f_of((u32)word(state));
    case 2: return (s32)random_word(state);
    case 3: return (f64)(s64)word(state);
    case 4: return ((s32)random_word(state) >> 24) * 0.5;
    case 5: return r >> 4 & 1 ? -0.0 : 0.0;
    default: return (s32)random_word(state) * 0x1p-24;
    }
}

static h16 half(uint64_t *state)
{
    return random_word(state) % 4 ? to_half((s32)random_word(state) * 0x1p-26, 'n') : (h16)word(state);
}

static f32 single(uint64_t *state)
{
    return random_word(state) % 3 ? (f32)number(state) : f_of((u32)word(state));
}

static void fill(data_t *x, uint64_t *state)
{
    memset(x, 0, sizeof *x);
    for (int i = 0; i < IN_COUNT; i++) {
        in_t *v = &x->in[i];
        v->a = word(state), v->b = word(state), v->p = (s64)word(state), v->r = (s64)word(state);
        v->d = number(state), v->e = number(state);
        v->x = (u32)word(state), v->y = (u32)word(state), v->z = random_word(state);
        v->q = (s32)word(state), v->m = (s32)random_word(state);
        v->f = single(state), v->g = single(state), v->o = single(state);
        v->v = both(half(state), half(state)), v->w = both(half(state), half(state));
        v->h = (u16)word(state), v->i = (u16)random_word(state), v->j = (s16)word(state),
        v->k = (s16)random_word(state);
        v->s = half(state), v->t = half(state);
        v->c = (u8)word(state), v->l = (u8)random_word(state), v->n = (s8)word(state), v->u = (s8)random_word(state);
        for (size_t k = 0; k < sizeof v->more; k++)
            v->more[k] = (u8)random_word(state);
    }
    x->a = word(state), x->b = word(state), x->p = (s64)word(state), x->x = (u32)word(state), x->y = random_word(state);
    x->q = (s32)word(state), x->f = single(state), x->g = single(state), x->d = number(state);
    x->h = (u16)word(state), x->j = (s16)word(state), x->c = (u8)word(state), x->n = (s8)word(state);
    x->s = half(state), x->v = both(half(state), half(state));
}

/* Launches on the emulator, with what `x` holds; its results and memory come back. False: refused, or an alarm. */
static bool launch(const turing_module_t *module, const turing_kernel_t *k, data_t *x, unsigned checks,
                   turing_counters_t *counters, char *why, size_t size)
{
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    const uint64_t out = upload(mem, x->out, sizeof x->out), in = upload(mem, x->in, sizeof x->in),
                   own = upload(mem, x->mem, sizeof x->mem);
    const void *const argument[] = {&out,  &in,   &own,  &x->a, &x->b, &x->p, &x->x, &x->y, &x->q,
                                    &x->f, &x->g, &x->d, &x->h, &x->j, &x->c, &x->n, &x->s, &x->v};
    uint8_t params[256] = {0};
    for (uint32_t i = 0; i < k->n_params && i < sizeof argument / sizeof *argument; i++)
        memcpy(params + k->params[i].offset, argument[i], k->params[i].size);
    found_t found = {{0}, ""};
    uint64_t violations = 0;
    turing_error_t err = {""};
    const turing_launch_t l = {.grid = {BLOCKS, 1, 1},
                               .block = {THREADS, 1, 1},
                               .params = params,
                               .param_bytes = k->param_bytes,
                               .threads = 1,
                               .max_warp_instructions = 10000000,
                               .checks = checks,
                               .report = note,
                               .user = &found,
                               .counters = counters};
    bool ok = turing_module_map(module, mem, &err) && turing_launch(k, mem, &l, &violations, &err);
    snprintf(why, size, "%s", ok ? found.first : err.text);
    if (ok)
        ok = turing_memory_read(mem, out, x->out, sizeof x->out, &err) &&
             turing_memory_read(mem, own, x->mem, sizeof x->mem, &err) && !violations;
    turing_module_unmap(module, mem);
    turing_memory_destroy(mem);
    return ok;
}

/* Compares; says the first difference. */
static bool same(const char *name, int round)
{
    for (int i = 0; i < IN_COUNT * OUT_WORDS; i++)
        if (host.out[i] != device.out[i]) {
            printf("%s, round %d: thread %d, word %d is 0x%llx, not 0x%llx\n", name, round, i / OUT_WORDS,
                   i % OUT_WORDS, (unsigned long long)device.out[i], (unsigned long long)host.out[i]);
            return false;
        }
    for (int i = 0; i < ALL_BYTES; i++)
        if (host.mem[i] != device.mem[i]) {
            printf("%s, round %d: byte %d of memory is 0x%x, not 0x%x\n", name, round, i, device.mem[i], host.mem[i]);
            return false;
        }
    return true;
}

static void note_forms(FILE *f, const turing_kernel_t *k, const turing_counters_t *counters)
{
    char form[TURING_TEXT_MAX];
    for (uint32_t i = 0; i < k->n_insns; i++)
        if (counters->insn[i].lanes) {
            turing_form(&k->insns[i], form);
            fprintf(f, "%s\n", form);
        }
}

static int print_forms(char **files)
{
    char form[TURING_TEXT_MAX];
    for (; *files; files++) {
        turing_module_t *module = open_or_die(*files);
        const turing_kernel_t *k;
        for (size_t i = 0; (k = turing_module_kernel(module, i)); i++) {
            turing_error_t why;
            const uint32_t count = turing_unsupported(k, &why) ? 0 : k->n_insns;
            for (uint32_t n = 0; n < count; n++) {
                turing_form(&k->insns[n], form);
                printf("%s\n", form);
            }
        }
        turing_module_close(module);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--forms"))
        return print_forms(argv + 2);
    if (argc != 4)
        return 2;
    turing_module_t *module = open_or_die(argv[1]);
    void *library = dlopen(argv[2], RTLD_NOW);
    kernel_fn *const *batch = library ? (kernel_fn *const *)dlsym(library, "batch") : NULL;
    if (!batch) {
        printf("%s\n", dlerror());
        return 1;
    }
    FILE *forms = fopen(argv[3], "w");
    CHECK(forms, "cannot write %s", argv[3]);
    unsigned kernels = 0, wrong = 0, refused = 0, left_out = 0;
    for (; batch[kernels]; kernels++) {
        char name[16], why[1024];
        snprintf(name, sizeof name, "k%u", kernels);
        const turing_kernel_t *k = find_or_die(module, name);
        uint64_t state = kernels + 88172645463325252ull;
        bool right = !complements_shifted(k);
        left_out += !right;
        for (int round = 0; round < ROUNDS && right; round++) {
            turing_counters_t counters;
            fill(&host, &state);
            device = host;
            batch[kernels](host.out, host.in, host.mem, host.a, host.b, host.p, host.x, host.y, host.q, host.f, host.g,
                           host.d, host.h, host.j, host.c, host.n, host.s, host.v);
            right =
                launch(module, k, &device, round & 1 ? 0 : TURING_CHECK_ALL, forms ? &counters : NULL, why, sizeof why);
            if (!right) {
                printf("%s, round %d: %s\n", name, round, why);
                refused++;
                break;
            }
            right = same(name, round);
            wrong += !right;
            if (forms && right)
                note_forms(forms, k, &counters);
            if (forms)
                turing_counters_free(&counters);
        }
    }
    if (forms)
        fclose(forms);
    printf("%u kernels, %u wrong, %u refused, %u left out\n", kernels, wrong, refused, left_out);
    turing_module_close(module);
    return wrong || refused || failures;
}
