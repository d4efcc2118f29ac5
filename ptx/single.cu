/* SPDX-License-Identifier: MIT */
/*
 * single: A and B in single precision, on tensor cores that multiply halves.
 *
 * Idea      A float is a high and a low half (floats.cuh), so a product of floats is three of halves: high * high, and high *
 *           low twice. The fourth is below 2^-22 of it.
 * Sums      Tensor cores cut off what they add: the more, the longer a sum stays there. High products leave after 16 k's and
 *           are added in single precision; those with a low part are so much smaller that they may stay.
 *             high  of 16 k's            low  with a low part: 2^11 times what they are
 *             near  of up to 512 k's     all three in units of the scales
 *             all   in units of D
 *           Tiles whose warps have 64x32 take neither sum further than 16 k's in the tensor cores, for then a warp has registers
 *           for one set of sums (short_sums). So do those of 64x64, for 16 bits (two_products).
 * Scales    A row of A, or a column of B, keeps its power of two until an element does not fit: then all threads settle the
 *           k-tile that it is in. They read it again, choose scales, and write it anew. A row or a column that spans more
 *           there than two halves can hold, or has infinities, is multiplied by FP32 units, and left out as zeros.
 * Rows      What becomes of a row of D depends on that row of A and on B, with short_sums; with others if sums are added up after
 *           every k-tile: for batch invariance the host asks for that.
 * Levels    Rows of the table that promise less multiply less, at the end of this file.
 * Limits    An element of A or B is split by every block that loads it.
 */
#include "ragged.cuh"
#include "two_products.cuh"

template <class T> static DEVICE void single(const arguments &args)
{
    constexpr int MMAS = 3 * T::MMAS, LDSMS = 2 * T::LDSMS; /* of a slice */
    constexpr int LDS_GAP = MMAS / 2 / LDSMS, STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr u32 NEAR_TILES = 512 / T::BK;
    constexpr int STS_FIRST = 2, STS_GAP = (STEP_MMAS - STS_FIRST - 1) / T::SLOTS, LDG_LAG = 2;
    using V = typename T::variant;
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<V> pipe(first, w);
    split_sums<V> sums;
    constexpr bool AHEAD = T::ACCESS == X16; /* fragments are loaded a slice ahead, if there are registers */
    split_fragments<V> f[AHEAD ? 2 : 1];
    T::clear(sums.high), T::clear(sums.low), T::clear(sums.near), T::clear(sums.all);

    /* If registers are short, ptxas gathers loads and stores in bunches, unless a barrier keeps them apart. For the whole
     * warp, which is converged here, it is compiled to a NOP. */
    auto keep_apart = [] { if (!AHEAD) warp_barrier(); };

    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
    const bool low_a = !(args.indirect & HGEMM_FLOATS_EXACT_A), low_b = !(args.indirect & HGEMM_FLOATS_EXACT_B);
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % NEAR_TILES == 0 || t == k_tiles || args.indirect & HGEMM_FLOATS_EACH_STEP)) float_pipeline<V>::drain(sums, w);
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
#pragma unroll
            for (int j = 0; AHEAD && j < LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
        }
        if (t >= k_tiles) break;
        const u32 there = T::STAGE - stage;
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
#pragma unroll
            for (int j = 0; !AHEAD && j < LDSMS; ++j) pipe.load_one(f[0], j, kk, stage);
            /* The next k-tile is complete, and every warp has read the last of this one. */
            if (last) unsettled = any_at_barrier(pipe.seen.failed(float_pipeline<V>::split::LEAST_LOG)) && t + 1 < k_tiles;
#pragma unroll
            for (int h = 0; h < MMAS; ++h) {
                const int sts = kk * MMAS + h - STS_FIRST, ldg = sts - LDG_LAG, i = h % T::MMAS / T::NT;
                const int j = i % 2 ? T::NT - 1 - h % T::NT : h % T::NT;
                auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < T::SLOTS; };
                if (AHEAD && h % LDS_GAP == 0 && h / LDS_GAP < LDSMS)
                    pipe.load_one(f[(kk + AHEAD) % 2], h / LDS_GAP, last ? 0 : kk + 1, last ? there : stage);
                const split_fragments<V> &now = f[AHEAD ? kk % 2 : 0];
                if (h < T::MMAS) {
                    mma_m16n8k8(sums.low[i][j], now.low.a[i], now.high.b[j], low_a);
                } else if (h < 2 * T::MMAS) {
                    mma_m16n8k8(sums.low[i][j], now.high.a[i], now.low.b[j], low_b);
                } else if (kk % 2) {
                    mma_m16n8k8(sums.high[i][j], now.high.a[i], now.high.b[j]);
                } else {
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums.near[i][j][e] = __fadd_rn(sums.near[i][j][e], sums.high[i][j][e]);
                    mma_m16n8k8_from_zero(sums.high[i][j], now.high.a[i], now.high.b[j]);
                }
                if (due(sts)) keep_apart(), pipe.template commit<float_pipeline<V>::KEEPS>(sts / STS_GAP, pipe.next[sts / STS_GAP], there);
                if (due(ldg)) pipe.fetch(args, t + 2, ldg / STS_GAP, t + 2 < k_tiles), keep_apart();
            }
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
    if constexpr (T::ACCESS == FAR) store_floats(args, typename T::block(args), sums.all);
    else T::store(args, typename T::block(args), sums.all); /* a ragged D is rare here, and the question costs a T4 1% */
}

/*
 * For 11 bits: one product, of high parts. Its sums stay in the tensor cores for 512 k's, so a warp has registers for a
 * larger tile. What they cut off meanwhile is far less than the low parts that are left out.
 */
template <class T> static DEVICE void rounded(const arguments &args)
{
    constexpr int MMAS = T::MMAS, LDSMS = T::LDSMS; /* of a slice */
    constexpr int LDS_GAP = MMAS / LDSMS, STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr u32 NEAR_TILES = 512 / T::BK;
    constexpr int STS_FIRST = 2, STS_GAP = (STEP_MMAS - STS_FIRST - 1) / T::SLOTS, LDG_LAG = 2;
    using V = typename T::variant;
    const typename T::block first(args);
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<V> pipe(first, w);
    split_sums<V> sums;
    split_fragments<V> f[2];
    T::clear(sums.high), T::clear(sums.all);

    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % NEAR_TILES == 0 || t == k_tiles)) float_pipeline<V>::drain(sums, w);
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
#pragma unroll
            for (int j = 0; j < LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
        }
        if (t >= k_tiles) break;
        const u32 there = T::STAGE - stage;
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
            /* The next k-tile is complete, and every warp has read the last of this one. */
            if (last) unsettled = any_at_barrier(pipe.seen.failed(float_pipeline<V>::split::LEAST_LOG)) && t + 1 < k_tiles;
#pragma unroll
            for (int h = 0; h < MMAS; ++h) {
                const int sts = kk * MMAS + h - STS_FIRST, ldg = sts - LDG_LAG;
                auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < T::SLOTS; };
                if (h % LDS_GAP == 0 && h / LDS_GAP < LDSMS) pipe.load_one(f[(kk + 1) % 2], h / LDS_GAP, last ? 0 : kk + 1, last ? there : stage);
                T::multiply_one(sums.high, f[kk % 2].high, h);
                if (due(sts)) pipe.template commit<true>(sts / STS_GAP, pipe.next[sts / STS_GAP], there);
                if (due(ldg)) pipe.fetch(args, t + 2, ldg / STS_GAP, t + 2 < k_tiles);
            }
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
    T::store(args, typename T::block(args), sums.all);
}

template <class T> static DEVICE void floats(const arguments &args)
{
    if constexpr (T::spec::ACCURACY == TO_16_BITS) two_products<T>(args);
    else if constexpr (T::spec::ACCURACY == TO_F32 && T::WM == 64) summed<T>(args);
    else if constexpr (T::spec::ACCURACY == TO_F32) single<T>(args);
    else rounded<T>(args);
}

HGEMM_ENTRY_OF(floats, OF_FLOATS)
