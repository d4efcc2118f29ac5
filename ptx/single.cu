/* SPDX-License-Identifier: MIT */
/*
 * single: A and B in single precision, on tensor cores that multiply halves.
 *
 * Idea      A float is a high and a low half (floats.cuh), so a product of floats is three of halves: high * high, and
 * high *
 *           low twice. The fourth is below 2^-22 of it.
 * Sums      Tensor cores cut off what they add: the more, the longer a sum stays there. High products leave after 16
 * k's and
 *           are added in single precision; those with a low part are so much smaller that they may stay.
 *             high  of 16 k's            low  with a low part: 2^11 times what they are
 *             near  of up to 512 k's     all three in units of the scales
 *             all   in units of D
 *           Tiles whose warps have 64x32 take neither sum further than 16 k's in the tensor cores, for then a warp has registers
 *           for one set of sums (square_loop.cuh). So do those of 64x64, for 16 bits.
 * Scales    A row of A, or a column of B, keeps its power of two until an element does not fit: then all threads settle
 * the
 *           k-tile that it is in. They read it again, choose scales, and write it anew. A row or a column that spans more
 *           there than two halves can hold, or has infinities, is multiplied by FP32 units, and left out as zeros.
 * Rows      What becomes of a row of D depends on that row of A and on B, with short_sums; with others if sums are
 * added up after
 *           every k-tile: for batch invariance the host asks for that.
 * Levels    Rows of the table that promise less multiply less, at the end of this file.
 * Limits    An element of A or B is split by every block that loads it.
 */
#include "main_loop.cuh"
#include "ragged.cuh"
#include "square_loop.cuh"

/* The mma's of a slice are products one after the other: low by high, high by low, high by high; or the last alone. */
template <class T> struct split_facts {
    static constexpr int PRODUCTS = T::PARTS == 1 ? 1 : 3, MMAS = PRODUCTS * T::MMAS, LDSMS = T::PARTS * T::LDSMS; /* of a slice */
    static constexpr bool AHEAD = T::ACCESS == X16; /* fragments are loaded a slice ahead, if there are registers */
};

template <class T> constexpr auto split_schedule()
{
    using facts = split_facts<T>;
    constexpr int MMAS = facts::MMAS, LDSMS = facts::LDSMS, LDS_GAP = MMAS / (T::PARTS == 1 ? 1 : 2) / LDSMS;
    constexpr int STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr int STS_FIRST = 2, STS_GAP = (STEP_MMAS - STS_FIRST - 1) / T::SLOTS, LDG_LAG = 2;
    event_list<T::SLICES * (MMAS + LDSMS) + 2 * T::SLOTS + 2> list;
    for (int kk = 0; kk < T::SLICES; ++kk) {
        for (int j = 0; !facts::AHEAD && j < LDSMS; ++j) list.add(kk * MMAS, LOAD, j, kk);
        if (kk == T::SLICES - 1) list.add(kk * MMAS, BARRIER);
        for (int h = 0; h < MMAS; ++h) {
            const int place = kk * MMAS + h, load = due(h, 0, LDS_GAP, LDSMS);
            if (facts::AHEAD && load >= 0) list.add(place, LOAD, load, kk + 1);
            list.add(place, MULTIPLY, h, kk);
            const int commit = due(place, STS_FIRST, STS_GAP, T::SLOTS), fetch = due(place, STS_FIRST + LDG_LAG, STS_GAP, T::SLOTS);
            if (commit >= 0) list.add(place, COMMIT, commit);
            if (fetch >= 0) list.add(place, FETCH, fetch);
        }
    }
    list.add(T::SLICES * MMAS, ADVANCE);
    return list;
}

/* Sets of fragments, of high parts and then of low ones. */
template <class T> struct split_fragment_rules {
    using facts = split_facts<T>;
    static constexpr int SETS = facts::AHEAD ? 2 : 1, LDSMS = facts::LDSMS, REGISTERS = SETS * LDSMS, VALUES = T::SLICES * LDSMS;
    static constexpr fragment_use of(int slice, int load) { return {slice % SETS * LDSMS + load, slice * LDSMS + load}; }
    static constexpr fragment_use loaded(const event &e) { return e.kind == LOAD ? of(e.of, e.index) : fragment_use{-1, 0}; }
    static constexpr fragment_use needed(const event &e, int n)
    {
        if (e.kind != MULTIPLY || n > 1) return {-1, 0};
        const int product = facts::PRODUCTS == 1 ? 2 : e.index / T::MMAS, h = e.index % T::MMAS;
        const bool is_low = product == (n == 0 ? 1 : 0); /* B's, A's */
        return of(e.of, is_low * T::LDSMS + (n == 0 ? mma_column<T>(h) / 4 : T::B_LDSMS + mma_row<T>(h) / 2));
    }
};

template <class T> struct split_loop {
    using V = typename T::variant;
    using facts = split_facts<T>;
    static constexpr auto SCHEDULE = split_schedule<T>();
    static constexpr bool HAS_BOTH_STAGES = false, IN_PAIRS = false, AHEAD = facts::AHEAD;
    static constexpr u32 STAGE = T::STAGE, NEAR_TILES = 512 / T::BK;
    static_assert(is_complete(SCHEDULE, T::SLICES, facts::MMAS), "an mma is lost, or the order of places");
    static_assert(are_chunks_in_order(SCHEDULE, T::SLOTS, {0, 1, 1, true}), "a chunk is stored too late, or fetched too early");
    static_assert(are_fragments_met<split_fragment_rules<T>>(SCHEDULE), "an mma would meet other fragments");

    using fragments_of_slices = split_fragments<V>[AHEAD ? 2 : 1];

    const arguments &args;
    const typename T::warp &w;
    float_pipeline<V> &pipe;
    split_sums<V> &sums;
    fragments_of_slices &f;
    const u32 k_tiles;
    const bool low_a, low_b;
    u32 t;
    bool unsettled; /* scales of k-tile t are to be found */

    /* If registers are short, ptxas gathers loads and stores in bunches, unless a barrier keeps them apart. For the
     * whole warp, which is converged here, it is compiled to a NOP. */
    static DEVICE void keep_apart()
    {
        if (!AHEAD) warp_barrier();
    }

    template <int H, int KK> DEVICE void multiply()
    {
        constexpr int PRODUCT = facts::PRODUCTS == 1 ? 2 : H / T::MMAS, i = MMA_ROW<T, H % T::MMAS>, j = MMA_COLUMN<T, H % T::MMAS>;
        const split_fragments<V> &now = f[AHEAD ? KK % 2 : 0];
        if constexpr (PRODUCT == 0) mma_m16n8k8(sums.low[i][j], now.low.a[i], now.high.b[j], low_a);
        else if constexpr (PRODUCT == 1) mma_m16n8k8(sums.low[i][j], now.high.a[i], now.low.b[j], low_b);
        else if constexpr (T::PARTS == 1 || KK % 2) mma_m16n8k8(sums.high[i][j], now.high.a[i], now.high.b[j]);
        else {
#pragma unroll
            for (int e = 0; e < 4; ++e) sums.near[i][j][e] = __fadd_rn(sums.near[i][j][e], sums.high[i][j][e]);
            mma_m16n8k8_from_zero(sums.high[i][j], now.high.a[i], now.high.b[j]);
        }
    }
    template <event_kind KIND, int INDEX, int OF> DEVICE void on(const u32 here, const u32 there)
    {
        constexpr bool IS_NEXT = OF == T::SLICES; /* slice: the next k-tile's first */
        if constexpr (KIND == BARRIER) unsettled = any_at_barrier(pipe.seen.failed(float_pipeline<V>::split::LEAST_LOG)) && t + 1 < k_tiles;
        if constexpr (KIND == LOAD) pipe.load_one(f[AHEAD ? OF % 2 : 0], INDEX, IS_NEXT ? 0 : OF, IS_NEXT ? there : here);
        if constexpr (KIND == MULTIPLY) multiply<INDEX, OF>();
        if constexpr (KIND == COMMIT) keep_apart(), pipe.template commit<float_pipeline<V>::KEEPS>(INDEX, pipe.next[INDEX], there);
        if constexpr (KIND == FETCH) pipe.fetch(args, t + 2, INDEX, t + 2 < k_tiles), keep_apart();
        if constexpr (KIND == ADVANCE) pipe.seen = split_check(), pipe.advance(args), ++t;
    }

    DEVICE bool is_due() const { return true; } /* to ask below takes no longer */
    DEVICE bool between(u32 stage)
    {
        const bool each = T::PARTS > 1 && args.indirect & HGEMM_FLOATS_EACH_STEP;
        if (t > 0 && (unsettled || t % NEAR_TILES == 0 || t == k_tiles || each)) float_pipeline<V>::drain(sums, w);
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
#pragma unroll
            for (int j = 0; AHEAD && j < facts::LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
        }
        return t < k_tiles;
    }
};

template <class T> static DEVICE void split(const arguments &args)
{
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<typename T::variant> pipe(first, w);
    split_sums<typename T::variant> sums;
    typename split_loop<T>::fragments_of_slices f;
    T::clear(sums.high), T::clear(sums.low), T::clear(sums.near), T::clear(sums.all);
    split_loop<T> loop{args, w, pipe, sums, f, k_tiles, !(args.indirect & HGEMM_FLOATS_EXACT_A), !(args.indirect & HGEMM_FLOATS_EXACT_B), 0, k_tiles > 0};
    main_loop(loop);
    if constexpr (T::ACCESS == FAR) store_floats(args, typename T::block(args), sums.all);
    else T::store(args, typename T::block(args), sums.all); /* a ragged D is rare here, and the question costs a T4 1% */
}

template <class T> static DEVICE void floats(const arguments &args)
{
    if constexpr (T::spec::ACCURACY == TO_16_BITS || (T::spec::ACCURACY == TO_F32 && T::WM == 64)) squares<T>(args);
    else split<T>(args);
}

HGEMM_ENTRY_OF(floats, OF_FLOATS)
