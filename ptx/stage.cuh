/* SPDX-License-Identifier: MIT */
/*
 * Sums on their way through shared memory, from the layout of mma's to that of rows.
 *
 * 16 * GROUPS rows of each warp pass at a time: the lanes then hold 8 consecutive columns, so that D is written, and C
 * read, in full 32-byte sectors. Warps that stand side by side join their rows there. A pitch of 8 elements more than a
 * row keeps the fragments' writes, 8 rows by 4 lanes, free of bank conflicts.
 */
#pragma once
#include "row.cuh"

/* How sums are staged: as accumulators are, or f32 sums that are already rounded to elements of D. */
enum format { HALVES, FLOATS, ROUNDED };
template <class V> constexpr format FORMAT = V::ACC == f32 ? FLOATS : HALVES;

/* What is staged of one mma. */
typedef u32 halves_of_mma[2];
typedef float floats_of_mma[4];
static DEVICE float sum_of_mma(const halves_of_mma &x, int e) { return half_to_float_here(x[e / 2] >> e % 2 * 16); }
static DEVICE float sum_of_mma(const floats_of_mma &x, int e) { return x[e]; }

/* Eight consecutive sums of a row. */
template <format F> struct eight_sums {
    static constexpr int BYTES = F == FLOATS ? 4 : 2; /* of a sum */
    u32 v[2 * BYTES];

    DEVICE float at(int e) const
    {
        return F == FLOATS ? __uint_as_float(v[e % (2 * BYTES)]) : half_to_float(v[e / 2] >> e % 2 * 16);
    }
};

template <class V, format F> struct stage {
    static constexpr int SUM_BYTES = eight_sums<F>::BYTES, PITCH = HGEMM_SUMS_PITCH(V::BN, SUM_BYTES);
    static constexpr int FITTING_GROUPS = V::MAIN_BYTES / (V::BM / V::OWN_M) / (HGEMM_STAGED_ROWS * PITCH);
    static constexpr int GROUPS = FITTING_GROUPS < 2 || V::OWN_MT < 2 || V::MMAS >= 32 ? 1 : 2;
    static constexpr int ROWS = GROUPS * HGEMM_STAGED_ROWS, TURNS = V::OWN_MT / GROUPS;

    /* Where a warp's rows begin, whose tile begins at m, n of the block's. */
    static DEVICE u32 buffer(u32 m, u32 n) { return shared_base() + m / V::OWN_M * (ROWS * PITCH) + n * SUM_BYTES; }

    /* Writes the sums of mma tile j of a row of them. */
    static DEVICE void put_one(u32 to, const halves_of_mma &x, int j)
    {
        st_shared_word(to + j * 16, x[0]);
        st_shared_word(to + j * 16 + 8 * PITCH, x[1]);
    }
    static DEVICE void put_one(u32 to, const floats_of_mma &x, int j)
    {
        st_shared(to + j * 32, x[0], x[1]);
        st_shared(to + j * 32 + 8 * PITCH, x[2], x[3]);
    }

    /* Writes the rows of a turn, LOW <= turn < HIGH: a search, for registers have no index. */
    template <int LOW = 0, int HIGH = TURNS, class S>
    static DEVICE void put(u32 to, const S (&sums)[V::MT][V::NT], int turn)
    {
        if constexpr (HIGH - LOW > 1) {
            constexpr int MIDDLE = (LOW + HIGH) / 2;
            if (turn < MIDDLE) put<LOW, MIDDLE>(to, sums, turn);
            else put<MIDDLE, HIGH>(to, sums, turn);
        } else {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i)
#pragma unroll
                for (int j = 0; j < V::NT; ++j) put_one(to + i * 16 * PITCH, sums[LOW * GROUPS + i][j], j);
        }
    }

    /* Reads eight sums of the row at `row`, from column c on: a multiple of 8, or ANYWHERE in a row of `columns`, where
     * those past the end of the row are undefined. */
    template <bool ANYWHERE> static DEVICE eight_sums<F> get(u32 row, int c, u32 columns)
    {
        eight_sums<F> x;
        if constexpr (F == FLOATS && ANYWHERE) {
#pragma unroll
            for (int e = 0; e < 8; ++e) ld_shared_word(x.v[e], row + minimum(c + e, columns - 1) * SUM_BYTES);
        } else if constexpr (F == FLOATS) {
            b128 v, w;
            ld_shared(v, row + c * SUM_BYTES);
            ld_shared(w, row + c * SUM_BYTES + 16);
            x = eight_sums<F>{{v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}};
        } else {
            b128 v;
            if constexpr (ANYWHERE) {
                chunk<ANY> w;
                const u32 at = c * SUM_BYTES & ~15;
                ld_shared(w.v, row + minimum(at, columns * SUM_BYTES - 16));
                ld_shared(w.next, row + minimum(at + 16, columns * SUM_BYTES - 16));
                v = w.extract(c * SUM_BYTES & 15);
            } else {
                ld_shared(v, row + c * SUM_BYTES);
            }
            x = eight_sums<F>{{v.x, v.y, v.z, v.w}};
        }
        return x;
    }
};
