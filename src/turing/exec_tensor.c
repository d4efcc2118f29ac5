/* SPDX-License-Identifier: MIT */
/*
 * exec_tensor.c - what tensor cores execute: products of small matrices that a warp
 * holds together.  Lane l = 4 g + t.
 *
 *   HMMA.1688   16x8x8 halves: hmma.h
 *   HMMA.884    8x8x4 halves, once for each quad pair: lanes 4p to 4p+3 and 16 later.  A row
 *               (.ROW) or column (.COL) of an operand is two registers.  Its two or four steps
 *               write two registers of the sum each; they round as HMMA.1688 does.
 *   IMMA, BMMA  8x8 by 16 bytes, 32 nibbles or 128 bits: lane l has word t of row g of A and of
 *               column g of B, and elements (g, 2t) and (g, 2t+1) of the sum
 */
#include "exec.h"

#include <string.h>

/* False after a fault: an instruction of a whole warp. */
static bool whole(warp_t *w, const op_t *o, uint32_t on)
{
    if (on == ALL_LANES)
        return true;
    if (!(w->block->worker->m->checks & TURING_CHECK_CONVERGENCE)) {
        emu_fault(w, o, "%s with lanes 0x%08x only", turing_op_name((turing_op_t)o->in->op), on);
        return false;
    }
    emu_report(w, o, TURING_DIVERGENT, (site_t){.lane = TURING_NO_LANE}, "%.4s is executed by lanes 0x%08x only",
               turing_op_name((turing_op_t)o->in->op), on);
    return true;
}

static void op_hmma(warp_t *w, const op_t *o, uint32_t on)
{
    const machine_t *m = w->block->worker->m;
    if (whole(w, o, on))
        m->hmma(o->in->m.f32, m->fraction, (const uint32_t(*)[32]) & w->r[o->src[0]], w->r[o->src[1]],
                (const uint32_t(*)[32]) & w->r[o->src[2]], &w->r[o->d]);
}

/* ---- HMMA.884 ------------------------------------------------------------------------- */

/* The 8x4 halves that a quad pair holds, by their long side: A's rows, B's columns. */
static void gather(const row_t *r, int p, bool crosswise, uint16_t to[16][8])
{
    for (int i = 0; i < 8; i++) {
        const int l = 4 * p + i % 4 + i / 4 * 16;
        for (int k = 0; k < 4; k++) {
            const uint16_t h = (uint16_t)(r[k / 2][l] >> k % 2 * 16);
            if (crosswise) /* lane i % 4 holds element i % 4 of the short side, for four of the long one */
                to[i / 4 * 4 + k][i % 4] = h;
            else
                to[i][k] = h;
        }
    }
}

/* Where lane `l` of a quad pair has word `q` of a step: row and column of the sum, of two halves the first. */
static void sum_place(bool f32, int step, int l, int q, int *row, int *column)
{
    const int i = 2 * step + q; /* of f32 */
    *row = f32 ? (l & 1) + (i & 2) + (l >= 16 ? 4 : 0) : (l & 3) + (l >= 16 ? 4 : 0);
    *column = f32 ? (i & 4) + (l & 2) + (i & 1) : 4 * step + 2 * q;
}

static void op_hmma_884(warp_t *w, const op_t *o, uint32_t on)
{
    const machine_t *m = w->block->worker->m;
    const turing_mods_t *mods = &o->in->m;
    const bool f32 = mods->f32;
    if (!whole(w, o, on))
        return;
    uint32_t d[2][LANES];
    for (int p = 0; p < 4; p++) {
        uint16_t a[16][8] = {{0}}, b[16][8] = {{0}};
        uint32_t ra[2][32], rb[2][32], sum[4][32] = {{0}};
        gather((const row_t *)(w->r + o->src[0]), p, mods->right, a);
        gather((const row_t *)(w->r + o->src[1]), p, !mods->wrap, b);
        memcpy(ra, a, sizeof ra);
        memcpy(rb, b, sizeof rb);
        for (int store = 0; store < 2; store++) {
            for (int half = 0; half < 2; half++)
                for (int j = 0; j < 4; j++)
                    for (int q = 0; q < 2; q++) {
                        const int l = 4 * p + j + half * 16;
                        int row, column;
                        sum_place(f32, mods->func, l, q, &row, &column);
                        uint32_t *at = f32 ? &sum[column % 2][row * 4 + column / 2] : &sum[0][row * 4 + column / 2];
                        if (store)
                            d[q][l] = *at;
                        else
                            *at = w->r[o->src[2] + q][l];
                    }
            if (!store)
                turing_hmma_portable(f32, m->fraction, (const uint32_t(*)[32])ra, rb[0], (const uint32_t(*)[32])sum,
                                     sum);
        }
    }
    put(w, o->d, d[0], on);
    put(w, o->d + 1u, d[1], on);
}

/* ---- IMMA, BMMA ------------------------------------------------------------------------- */

static int element(uint32_t word, unsigned type, int k)
{
    switch (type) {
    case TURING_U4: return word >> 4 * k & 15;
    case TURING_S4: return (int)((word >> 4 * k & 15) ^ 8) - 8;
    case TURING_U8: return word >> 8 * k & 255;
    default: return (int8_t)(word >> 8 * k);
    }
}

static int64_t product_of_words(const op_t *o, uint32_t a, uint32_t b)
{
    if (o->in->op == TURING_BMMA)
        return __builtin_popcount(a ^ b);
    const int n = o->in->m.type == TURING_U4 || o->in->m.type == TURING_S4 ? 8 : 4;
    int64_t sum = 0;
    for (int k = 0; k < n; k++)
        sum += element(a, o->in->m.type, k) * element(b, o->in->m.stype, k);
    return sum;
}

static void op_imma(warp_t *w, const op_t *o, uint32_t on)
{
    const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]];
    uint32_t d[2][LANES];
    if (!whole(w, o, on))
        return;
    for (int l = 0; l < LANES; l++)
        for (int j = 0; j < 2; j++) {
            const int row = l / 4, column = l % 4 * 2 + j;
            int64_t sum = (int32_t)w->r[o->src[2] == ROW_ZERO ? ROW_ZERO : o->src[2] + j][l];
            for (int q = 0; q < 4; q++)
                sum += product_of_words(o, a[4 * row + q], b[4 * column + q]);
            if (o->in->m.sat && o->in->op == TURING_IMMA)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            d[j][l] = (uint32_t)sum;
        }
    put(w, o->d, d[0], on);
    put(w, o->d + 1u, d[1], on);
}

void emu_select_tensor(op_t *o)
{
    const turing_insn_t *in = o->in;
    const bool plain = !in->m.sat && !in->src[0].neg && !in->src[1].neg;
    switch (in->op) {
    case TURING_HMMA_1688: o->fn = plain ? op_hmma : NULL; break;
    case TURING_HMMA_884: /* sums in one type */ o->fn = plain && in->m.aux == in->m.f32 ? op_hmma_884 : NULL; break;
    case TURING_IMMA:
    case TURING_BMMA: o->fn = op_imma; break;
    default: return;
    }
    o->flow = FLOW_STOPPING;
}
