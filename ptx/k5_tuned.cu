/* SPDX-License-Identifier: MIT */
/*
 * k5_tuned: the same loop over tuned tiles, without a gap between k-tiles.
 *
 * Idea      The tensor cores never wait if everything else is slipped in between the mma's, also
 *           where a k-tile ends. And no tile suits every product: a family of them, each with a
 *           schedule of its own, from which a plan is chosen.
 * Changes   The barrier precedes the last slice, whose fragments are already in registers, so the
 *           first slice of the next k-tile is loaded right after it. Tiles, warps, schedule and
 *           rasterization are columns of the table. In smaller tiles warps share a tile of D and
 *           divide each k-tile among them (sliced-K): each then has a larger tile, and fewer
 *           fragments per mma. k-tiles are prefetched into L2 before they are loaded, so that a
 *           step waits for L2 at most, not for DRAM; not so for large tiles on a T4, whose steps
 *           outlast both. C is prefetched between the last k-tiles. Where whole tiles leave
 *           multiprocessors idle, k is split among blocks, too (split-K; T::store adds the parts
 *           up). Warps whose tile lies outside of D multiply nothing.
 * Limits    Wave quantization, that is tiles that do not fill the last wave; and the epilogue.
 */
#include "main_loop.cuh"
#include "tile.cuh"

/* An LDSM every LDS_GAP mma's of a slice, an STS and the LDG that refills its register where the row says; bfloat16
 * become halves before their STS, a pair at a time where chunks are aligned. The barrier precedes the last slice. */
template <class T> constexpr int PARTS_OF_A_CONVERSION = !T::CONVERTS ? 0 : T::ACCESS == X16 ? 4 : 1;

template <class T> constexpr auto k5_schedule()
{
    using row = typename T::schedule;
    constexpr int PAIRS = PARTS_OF_A_CONVERSION<T>;
    event_list<T::SLICES * (T::MMAS + T::LDSMS) + T::SLOTS * (2 + PAIRS) + 3> list;
    for (int kk = 0; kk < T::SLICES; ++kk) {
        if (kk == T::SLICES - 1) list.add(kk * T::MMAS, BARRIER);
        if (kk == T::SLICES / 2) list.add(kk * T::MMAS, PREFETCH);
        for (int h = 0; h < T::MMAS; ++h) {
            const int place = kk * T::MMAS + h;
            const int load = due(h, 0, row::LDS_GAP, T::LDSMS);
            if (load >= 0) list.add(place, LOAD, load, kk + 1);
            list.add(place, MULTIPLY, h, kk);
            for (int i = 0; i < PAIRS; ++i) {
                const int convert = due(place, row::STS_FIRST - row::CVT_LEAD + i * row::CVT_GAP, row::STS_GAP, T::SLOTS);
                if (convert >= 0) list.add(place, CONVERT, convert, i);
            }
            const int commit = due(place, row::STS_FIRST, row::STS_GAP, T::SLOTS);
            if (commit >= 0) list.add(place, COMMIT, commit);
            const int fetch = due(place, row::STS_FIRST + row::LDG_LAG, row::STS_GAP, T::SLOTS);
            if (fetch >= 0) list.add(place, FETCH, fetch);
        }
    }
    list.add(T::SLICES * T::MMAS, ADVANCE);
    return list;
}

/* Two sets of fragments, each of LDSMS loads; an mma needs one of B and one of A. */
template <class T> struct k5_fragments {
    static constexpr int REGISTERS = 2 * T::LDSMS, VALUES = T::SLICES * T::LDSMS;
    static constexpr fragment_use of(int slice, int load) { return {slice % 2 * T::LDSMS + load, slice * T::LDSMS + load}; }
    static constexpr fragment_use loaded(const event &e) { return e.kind == LOAD ? of(e.of, e.index) : fragment_use{-1, 0}; }
    static constexpr fragment_use needed(const event &e, int n)
    {
        if (e.kind != MULTIPLY || n > 1) return {-1, 0};
        return of(e.of, n == 0 ? mma_column<T>(e.index) / 4 : T::B_LDSMS + mma_row<T>(e.index) / 2);
    }
};

template <class T> struct k5_loop {
    static constexpr auto SCHEDULE = k5_schedule<T>();
    static constexpr bool HAS_BOTH_STAGES = false, IN_PAIRS = T::IN_PAIRS;
    static constexpr u32 STAGE = T::STAGE;
    static_assert(is_complete(SCHEDULE, T::SLICES, T::MMAS), "an mma is lost, or the order of places");
    static_assert(are_chunks_in_order(SCHEDULE, T::SLOTS, {PARTS_OF_A_CONVERSION<T>, 1, 1, true}), "a chunk is stored too late, or fetched too early");
    static_assert(are_fragments_met<k5_fragments<T>>(SCHEDULE), "an mma would meet other fragments");

    /* The smallest tiles prefetch C before the loop, for they have few steps. */
    static constexpr bool C_FIRST = T::BM * T::BN <= 32 * 32;
    static_assert(!C_FIRST || T::C_PARTS == 1, "a part of C is not prefetched");

    const arguments &args;
    const typename T::block &at;
    typename T::pipeline &pipe;
    typename T::sums &acc;
    typename T::fragments f[2];
    u32 left, until; /* k-tiles to come; how many there will be when a part of C is prefetched */

    DEVICE k5_loop(const arguments &arguments, const typename T::block &block, typename T::pipeline &pipeline, typename T::sums &sums)
        : args(arguments), at(block), pipe(pipeline), acc(sums), left(block.k_tiles)
    {
        until = !C_FIRST && args.beta != 0 ? T::C_PARTS * 2 : 0;
#pragma unroll
        for (int j = 0; j < T::LDSMS; ++j) pipe.load_one(f[0], j, 0, 0);
    }

    /* If registers are short, and in a T4's rows, ptxas gathers loads and stores in bunches, unless a barrier keeps
     * them apart. For the whole warp, which is converged here, it is compiled to a NOP. */
    static DEVICE void keep_apart()
    {
        if (T::ACC == f32 || T::spec::T4_ROW) warp_barrier();
    }

    template <event_kind KIND, int INDEX, int OF> DEVICE void on(const u32 here, const u32 there)
    {
        constexpr bool IS_NEXT = OF == T::SLICES; /* slice: the next k-tile's first */
        const bool second = IN_PAIRS && here > 0;
        if constexpr (KIND == BARRIER) barrier();
        if constexpr (KIND == PREFETCH) pipe.prefetch(left);
        if constexpr (KIND == LOAD) pipe.load_one(f[OF % 2], INDEX, IS_NEXT ? 0 : OF, IS_NEXT ? there : here);
        if constexpr (KIND == MULTIPLY) {
            constexpr int i = MMA_ROW<T, INDEX>, j = MMA_COLUMN<T, INDEX>;
            mma_m16n8k8(acc[i][j], f[OF % 2].a[i], f[OF % 2].b[j]);
        }
        if constexpr (KIND == CONVERT && T::ACCESS == X16) pipe.convert(INDEX, OF);
        if constexpr (KIND == CONVERT && T::ACCESS != X16) pipe.convert(INDEX);
        if constexpr (KIND == COMMIT) keep_apart(), pipe.commit(INDEX, there);
        if constexpr (KIND == FETCH) pipe.fetch(at, INDEX, left > 2, second), keep_apart();
        if constexpr (KIND == ADVANCE) pipe.advance(at, !IN_PAIRS ? 1 : second ? 2 : 0), --left;
    }

    /* C is prefetched between the last k-tiles, a part after every other one: all of it at one time, as all blocks
     * would do together, delays A and B. */
    DEVICE bool is_due() const { return IN_PAIRS ? left < until + 2 : left <= until; }
    DEVICE bool between(u32)
    {
#pragma unroll 1
        for (; until > 0 && is_due(); until -= 2) T::prefetch_c(args, at, until / 2 - 1);
        return !is_due();
    }
    DEVICE bool has_odd() const { return left > 0; }
};

template <class T> static DEVICE void k5_tuned(const arguments &args)
{
    if (T::is_unneeded(args)) return;
    const typename T::block at(args);
    if (!at.is_needed(args)) return;
    const typename T::warp w;
    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    typename T::sums acc;
    T::clear(acc);
    constexpr bool C_FIRST = k5_loop<T>::C_FIRST;
    if (C_FIRST && args.beta != 0) T::prefetch_c(args, at, 0);
    const bool idles = T::IDLES && T::is_outside(args, at, w);
    barrier(); /* k-tile 0 is complete */
    if (idles) { /* moves its part of the k-tiles, for the others */
#pragma unroll 1
        for (u32 left = at.k_tiles, to = T::STAGE; left > 0; --left, to = T::STAGE - to) {
#pragma unroll
            for (int q = 0; q < T::SLOTS; ++q) pipe.convert(q), pipe.commit(q, to);
            barrier();
#pragma unroll
            for (int q = 0; q < T::SLOTS; ++q) pipe.fetch(at, q, left > 2);
            pipe.prefetch(left);
            pipe.advance(at);
        }
        for (u32 i = 0; !C_FIRST && args.beta != 0 && i < T::C_PARTS; ++i) T::prefetch_c(args, at, i);
        return;
    }
    k5_loop<T> loop(args, at, pipe, acc);
    main_loop(loop);
    T::store(args, at, acc);
}

HGEMM_ENTRY(k5_tuned)
