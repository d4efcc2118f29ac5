/* SPDX-License-Identifier: MIT */
/*
 * count.c - what a kernel did, in the units that a T4's hardware works in, and
 * what its main loop costs at least.
 */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, WAVE = 128, BANKS = 32 };

bool emu_count_open(machine_t *m)
{
    alloc_t *allocs;
    const size_t n = emu_memory_allocs(m->mem, &allocs);
    m->sector_seen = calloc(n ? n : 1, sizeof *m->sector_seen);
    for (size_t i = 0; m->sector_seen && i < n; i++) {
        m->sector_seen[i] = calloc(allocs[i].size / SECTOR + 2, 1);
        if (!m->sector_seen[i])
            return false;
    }
    return m->sector_seen;
}

void emu_count_close(machine_t *m)
{
    if (!m->sector_seen)
        return;
    alloc_t *allocs;
    const size_t n = emu_memory_allocs(m->mem, &allocs);
    for (size_t i = 0; i < n; i++)
        free((void *)m->sector_seen[i]);
    free(m->sector_seen);
    m->sector_seen = NULL;
}

static turing_count_t *slot(const warp_t *w, const op_t *o)
{
    const worker_t *worker = w->block->worker;
    return &worker->count[o - worker->m->ops];
}

static uint32_t bits(uint32_t x)
{
    return (uint32_t)__builtin_popcount(x);
}

void emu_count_issue(warp_t *w, const op_t *o, uint32_t on)
{
    turing_count_t *c = slot(w, o);
    c->issued++;
    c->predicated_off += on == 0;
    c->lanes += bits(on);
}

void emu_count_global(warp_t *w, const op_t *o, uint32_t on, access_t kind, const uint64_t address[LANES],
                      uint32_t bytes)
{
    turing_count_t *c = slot(w, o);
    machine_t *m = w->block->worker->m;
    uint64_t sector[LANES], at[LANES];
    uint32_t filled[LANES], n = 0, distinct = 0;
    for (int l = 0; l < LANES; l++) {
        if (!(on >> l & 1))
            continue;
        bool seen = false;
        for (uint32_t i = distinct; i-- > 0 && !seen;)
            seen = at[i] == address[l];
        if (seen)
            continue;
        at[distinct++] = address[l];
        uint64_t s = address[l] / SECTOR;
        uint32_t i = n;
        while (i-- > 0 && sector[i] != s) {
        }
        if (i == UINT32_MAX) {
            i = n++;
            sector[i] = s;
            filled[i] = 0;
            alloc_t *allocs, *a = emu_memory_find(m->mem, address[l]);
            emu_memory_allocs(m->mem, &allocs);
            if (a)
                m->sector_seen[a - allocs][s - a->base / SECTOR] = 1;
        }
        filled[i] += bytes;
    }
    c->global_requests++;
    c->global_sectors += n;
    c->global_ideal += (distinct * bytes + SECTOR - 1) / SECTOR;
    c->global_bytes += (uint64_t)bits(on) * bytes;
    if (kind != ACCESS_READ) {
        c->global_stores++;
        c->store_sectors += n;
        for (uint32_t i = 0; i < n; i++)
            c->partial_sectors += filled[i] < SECTOR;
    }
}

/* Each bank gives one word at a time. 64-bit accesses go by half warps, 128-bit
 * ones (and rows of LDSM) by quarters, so that a lane's words, which are aligned,
 * lie in as many banks and count as one unit of a wider bank. */
static inline uint32_t waves_of(uint32_t on, const uint64_t address[LANES], uint32_t unit, uint32_t *words)
{
    const uint32_t banks = WAVE / unit, group = banks;
    uint32_t waves = 0;
    for (uint32_t first = 0; first < LANES; first += group) {
        uint32_t used = 0;
        const uint32_t here = on >> first & (uint32_t)((UINT64_C(1) << group) - 1);
        for (uint32_t l = 0; l < group; l++)
            used |= (here >> l & 1) << (uint32_t)(address[first + l] / unit) % banks;
        if (bits(used) == bits(here)) { /* each lane has a bank to itself */
            waves += here != 0;
            *words += bits(here) * (unit / 4);
            continue;
        }
        uint32_t held[BANKS][LANES], depth[BANKS] = {0}, most = 0;
        for (uint32_t l = first; l < first + group; l++) {
            if (!(on >> l & 1))
                continue;
            const uint32_t x = (uint32_t)(address[l] / unit), bank = x % banks;
            uint32_t i = 0;
            while (i < depth[bank] && held[bank][i] != x)
                i++;
            if (i < depth[bank])
                continue;
            held[bank][depth[bank]++] = x;
            *words += unit / 4;
            if (depth[bank] > most)
                most = depth[bank];
        }
        waves += most;
    }
    return waves;
}

uint32_t emu_shared_waves(uint32_t on, const uint64_t address[LANES], uint32_t bytes, uint32_t *words)
{
    *words = 0;
    return bytes == 16  ? waves_of(on, address, 16, words)
           : bytes == 8 ? waves_of(on, address, 8, words)
                        : waves_of(on, address, 4, words);
}

void emu_count_shared(warp_t *w, const op_t *o, uint32_t waves, uint32_t words)
{
    turing_count_t *c = slot(w, o);
    c->shared_waves += waves;
    c->shared_ideal += (words * 4 + WAVE - 1) / WAVE;
}

/* ---- sums --------------------------------------------------------------------------- */

static void add(turing_count_t *to, const turing_count_t *from)
{
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
}

bool emu_count_finish(machine_t *m, worker_t *workers, unsigned n)
{
    turing_counters_t *c = m->launch->counters;
    memset(c, 0, sizeof *c);
    c->insn = calloc(m->n_ops ? m->n_ops : 1, sizeof *c->insn);
    if (!c->insn)
        return false;
    c->n_insns = m->n_ops;
    for (uint32_t i = 0; i < m->n_ops; i++) {
        const turing_op_t op = (turing_op_t)m->ops[i].in->op;
        for (unsigned j = 0; j < n; j++)
            add(&c->insn[i], &workers[j].count[i]);
        add(&c->total, &c->insn[i]);
        c->op[op] += c->insn[i].issued;
        c->pipe[turing_op_pipe(op)] += c->insn[i].issued;
    }
    c->blocks = m->n_blocks;
    c->warps = m->n_blocks * m->n_warps;
    c->l1_requests = c->total.global_requests;
    c->l2_bytes = c->total.global_sectors * SECTOR;
    alloc_t *allocs;
    const size_t n_allocs = emu_memory_allocs(m->mem, &allocs);
    for (size_t i = 0; i < n_allocs; i++)
        for (uint64_t s = 0; s < allocs[i].size / SECTOR + 2; s++)
            c->dram_bytes += m->sector_seen[i][s] ? SECTOR : 0;
    c->flops = c->op[TURING_HMMA_1688] * 2 * 16 * 8 * 8;
    c->intensity = c->dram_bytes ? (double)c->flops / (double)c->dram_bytes : 0;
    c->occupancy = turing_occupancy(m->kernel, m->threads, turing_resident_shared(m->kernel, m->launch));
    c->loop = turing_main_loop(m->kernel, c);
    return true;
}

void turing_counters_free(turing_counters_t *counters)
{
    free(counters->insn);
    memset(counters, 0, sizeof *counters);
}

static bool same_line(turing_line_t a, turing_line_t b)
{
    return a.line == b.line && (a.file == b.file || (a.file && b.file && !strcmp(a.file, b.file)));
}

void turing_counters_lines(const turing_counters_t *counters, const turing_kernel_t *kernel,
                           void (*each)(void *user, turing_line_t line, const turing_count_t *count), void *user)
{
    for (uint32_t i = 0; kernel->lines && i < counters->n_insns; i++) {
        bool first = counters->insn[i].issued != 0;
        for (uint32_t j = 0; j < i && first; j++)
            first = !counters->insn[j].issued || !same_line(kernel->lines[i], kernel->lines[j]);
        if (!first)
            continue;
        turing_count_t sum = {0};
        for (uint32_t j = i; j < counters->n_insns; j++)
            if (same_line(kernel->lines[i], kernel->lines[j]))
                add(&sum, &counters->insn[j]);
        each(user, kernel->lines[i], &sum);
    }
}

/* ---- occupancy -------------------------------------------------------------------------- */

static uint32_t round_up(uint32_t x, uint32_t to)
{
    return (x + to - 1) / to * to;
}

/* Registers are given to warps in units of 256, shared memory to blocks in
 * units of 256 bytes, and a block's warps are spread over four sub-cores. */
uint32_t turing_resident_shared(const turing_kernel_t *kernel, const turing_launch_t *launch)
{
    const uint32_t most = TURING_T4_SHARED - kernel->shared_bytes;
    return launch->shared_bytes < most ? launch->shared_bytes : most;
}

turing_occupancy_t turing_occupancy(const turing_kernel_t *kernel, uint32_t threads, uint32_t dynamic_shared)
{
    const uint32_t warps = (threads + LANES - 1) / LANES;
    turing_occupancy_t o = {.blocks = TURING_T4_BLOCKS, .limit = "blocks"};
    if (!warps)
        return (turing_occupancy_t){.limit = "warps"};
    if (TURING_T4_WARPS / warps < o.blocks) {
        o.blocks = TURING_T4_WARPS / warps;
        o.limit = "warps";
    }
    const uint32_t per_warp = round_up((kernel->registers ? kernel->registers : 1) * LANES, 256);
    const uint32_t fitting = TURING_T4_REGISTERS / per_warp / 4 * 4;
    if (fitting / warps < o.blocks) {
        o.blocks = fitting / warps;
        o.limit = "registers";
    }
    const uint32_t shared = round_up(kernel->shared_bytes + dynamic_shared, 256);
    if (shared && TURING_T4_SHARED / shared < o.blocks) {
        o.blocks = TURING_T4_SHARED / shared;
        o.limit = "shared";
    }
    o.warps = o.blocks * warps;
    return o;
}

/* ---- main loop ---------------------------------------------------------------------------- */

/* Cycles of a unit per warp instruction.  Published: HMMA.1688 8 on a sub-core,
 * 16-lane ALU and FMA pipes 2, packed half 2, the uniform datapath 2,
 * shared memory 2 per wavefront of 128 bytes for the SM as a whole. */
enum { TENSOR_CYCLES = 8, ALU_CYCLES = 2, FMA_CYCLES = 2, HALF_CYCLES = 2, UNIFORM_CYCLES = 2, WAVE_CYCLES = 2 };

static uint32_t count_op(const turing_kernel_t *k, uint32_t first, uint32_t last, turing_op_t op)
{
    uint32_t n = 0;
    for (uint32_t i = first; i <= last; i++)
        n += k->insns[i].op == op;
    return n;
}

static double ideal_waves(const turing_insn_t *in)
{
    if (in->op == TURING_LDSM)
        return in->m.count;
    if (in->op == TURING_LDS || in->op == TURING_STS || in->op == TURING_ATOMS)
        return in->mem.bytes > 4 ? in->mem.bytes / 4 : 1;
    return 0;
}

turing_loop_t turing_main_loop(const turing_kernel_t *kernel, const turing_counters_t *counters)
{
    turing_loop_t loop = {0};
    uint32_t first = 0, last = 0, best = 0;
    for (uint32_t i = 0; i < kernel->n_insns; i++) {
        const turing_insn_t *in = &kernel->insns[i];
        if (in->op != TURING_BRA || in->target < 0 || in->target > in->addr)
            continue;
        const uint32_t start = (uint32_t)(in->target / TURING_INSN_BYTES);
        const uint32_t n = count_op(kernel, start, i, TURING_HMMA_1688);
        /* innermost: of loops with the same HMMA count, the shorter */
        if (n && (n > best || (n == best && i - start < last - first)) && !(best && start <= first && i >= last)) {
            best = n;
            first = start;
            last = i;
        }
    }
    if (!best)
        return loop;
    loop.found = true;
    loop.first = kernel->insns[first].addr;
    loop.last = kernel->insns[last].addr;
    loop.insns = last - first + 1;
    double waves = 0;
    for (uint32_t i = first; i <= last; i++) {
        const turing_insn_t *in = &kernel->insns[i];
        loop.pipe[turing_op_pipe((turing_op_t)in->op)]++;
        loop.stall_cycles += in->ctl.stall;
        const turing_count_t *c = counters ? &counters->insn[i] : NULL;
        waves += c && c->issued && c->shared_waves ? (double)c->shared_waves / (double)c->issued : ideal_waves(in);
    }
    loop.tensor_cycles = (double)TENSOR_CYCLES * loop.pipe[TURING_PIPE_TENSOR];
    loop.alu_cycles = (double)ALU_CYCLES * loop.pipe[TURING_PIPE_ALU];
    loop.fma_cycles = (double)FMA_CYCLES * loop.pipe[TURING_PIPE_FMA];
    loop.half_cycles = (double)HALF_CYCLES * loop.pipe[TURING_PIPE_HALF];
    loop.uniform_cycles = (double)UNIFORM_CYCLES * loop.pipe[TURING_PIPE_UNIFORM];
    loop.issue_cycles = loop.insns;
    loop.lsu_cycles = WAVE_CYCLES * waves;
    return loop;
}
