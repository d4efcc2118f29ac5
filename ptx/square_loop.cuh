/* SPDX-License-Identifier: MIT */
/*
 * Products of floats by warps of 64x32 and 64x64 (single.cu): a k-tile is one pair of slices, and an ldmatrix loads
 * squares of 16 x 16. Two mma tiles at a time are multiplied from zero, and what came out for the two before is added
 * up. A place is such two tiles by three mma's each or, of two products, by two: high parts of all 16 k's first, then
 * what stands in the place of low ones, so that a warp has registers for fragments of one part.
 */
#pragma once

#include "main_loop.cuh"
#include "short_sums.cuh"

template <class T> struct square_facts {
    static constexpr bool THREE = T::spec::ACCURACY == TO_F32; /* products, else two */
    static constexpr int MT = T::MT, NT = T::NT, ROW = NT / 2, TWOS = MT * ROW, PLACES = 2 * TWOS;
    static constexpr int MMAS = THREE ? 6 : 4; /* of each mma tile of two, in a k-tile */
    static constexpr int HELD = THREE ? 2 : 1; /* parts whose fragments a warp holds */
    static constexpr u32 TILES = (THREE ? 1024 : 2048) / T::BK; /* k-tiles whose sums stay together: for 16 bits they may be twice as long */
    /* Of two products: places of a row, and of a part, where fragments of the next one are loaded. */
    static constexpr int NEXT_A = 2, NEXT_B = 13;
    static_assert(T::SLICES == 2 && MT % 2 == 0 && T::ACCESS == X16 && (!THREE || NT == 4), "the order of loads is for these");
};

/* Loads of A's squares have numbers from 0, those of B's from MT on; `of` is a part, 1 the low one, or 2 more for
 * the next k-tile's. An mma of two tiles, `index` % 2, has the number `of`. Steps of a pair's split are two places
 * apart, or as given. */
template <class T> constexpr auto square_schedule()
{
    using facts = square_facts<T>;
    constexpr int MT = T::MT, ROW = facts::ROW, TWOS = facts::TWOS, PLACES = facts::PLACES, SLOTS = T::SLOTS;
    constexpr bool THREE = facts::THREE;
    constexpr int BARRIER_PLACE = THREE ? 12 : 28, TO_REST = THREE ? 2 : 1, TO_LOW = THREE ? 4 : 3;
    event_list<PLACES * (THREE ? 9 : 7) + SLOTS * 9 + 2 * (MT + ROW) * 2 + 3> list;
    for (int place = 0; place < PLACES; ++place) {
        const int two = THREE ? place / 2 : place % TWOS, i = two / ROW, j = two % ROW;
        if (place == BARRIER_PLACE) list.add(place, BARRIER);
        if (THREE) {
            if (i < MT - 1 && j == 0) list.add(place, LOAD, i + 1, place % 2 == 0);
            if (place == BARRIER_PLACE || place == BARRIER_PLACE + 1) list.add(place, LOAD, 0, 2 + (place == BARRIER_PLACE));
            if (place == PLACES - 2) list.add(place, LOAD, MT, 2), list.add(place, LOAD, MT, 3);
            if (place == 0) list.add(place, LOAD, MT + 1, 0), list.add(place, LOAD, MT + 1, 1);
        } else {
            const bool is_low = place >= TWOS;
            if (j == facts::NEXT_A) list.add(place, LOAD, (i + 1) % MT, i < MT - 1 ? is_low : is_low ? 2 : 1);
            for (int c = 0; c < ROW; ++c)
                if (two == (facts::NEXT_B + c) % TWOS) list.add(place, LOAD, MT + c, two < facts::NEXT_B ? is_low : is_low ? 2 : 1);
        }
        for (int s = 0; s < facts::MMAS / 2; ++s)
            for (int q = 0; q < 2; ++q) list.add(place, MULTIPLY, two * 2 + q, (THREE ? place % 2 : place / TWOS) * (facts::MMAS / 2) + s);
        if (!THREE || place % 2) list.add(place, ADD, (two + TWOS - 1) % TWOS);
        for (int r = 0; r < 2 * SLOTS; ++r) {
            const int q = r / 2, p = r % 2, at = THREE ? r : 2 * r + r / SLOTS;
            if (place == at) list.add(place, CONVERT, q, p * 3);
            if (place == at && p) list.add(place, FETCH, q);
            if (place == at + TO_REST) list.add(place, CONVERT, q, p * 3 + 1);
            if (place == at + TO_REST && p) list.add(place, COMMIT, q, 0);
            if (place == at + TO_LOW) list.add(place, CONVERT, q, p * 3 + 2);
            if (place == at + TO_LOW && p) list.add(place, COMMIT, q, 1);
        }
        if (T::spec::T4_ROW && (THREE ? place % 2 == 0 : place % 4 == 1)) list.add(place, APART);
    }
    list.add(PLACES, ADVANCE);
    return list;
}

/* Fragments of two rows of mma tiles and of all columns, for each part that is held. */
template <class T> struct square_rules {
    using facts = square_facts<T>;
    static constexpr int SQUARES = T::MT + facts::ROW, REGISTERS = SQUARES * 2, VALUES = SQUARES * 2;
    static constexpr fragment_use of(int square, int part)
    {
        const int place = square < T::MT ? square % 2 : square;
        return {place * facts::HELD + part % facts::HELD, part * SQUARES + square};
    }
    static constexpr fragment_use loaded(const event &e) { return e.kind == LOAD ? of(e.index, e.of) : fragment_use{-1, 0}; }
    static constexpr fragment_use needed(const event &e, int n)
    {
        if (e.kind != MULTIPLY || n > 1) return {-1, 0};
        const int square = n == 0 ? e.index / 2 / facts::ROW : T::MT + e.index / 2 % facts::ROW;
        const bool is_low = facts::THREE ? (n == 0 ? e.of < 2 : e.of == 3 || e.of == 5) : e.of >= 2;
        return of(square, is_low);
    }
};

template <class T> struct square_loop {
    using V = typename T::variant;
    using A = typename V::A;
    using B = typename V::B;
    using pipeline = float_pipeline<V>;
    using facts = square_facts<T>;
    using rules = square_rules<T>;
    static constexpr auto SCHEDULE = square_schedule<T>();
    static constexpr bool IN_PAIRS = false, THREE = facts::THREE, HAS_BOTH_STAGES = THREE;
    static constexpr u32 STAGE = T::STAGE;
    static constexpr int MT = T::MT, ROW = facts::ROW, TWOS = facts::TWOS;
    static_assert(are_chunks_in_order(SCHEDULE, T::SLOTS, {2, 3, 2, false}), "a chunk is stored too late, or fetched too early");
    static_assert(are_fragments_met<rules>(SCHEDULE), "an mma would meet other fragments");
    static_assert(SCHEDULE.number_of(MULTIPLY) == 2 * TWOS * facts::MMAS, "an mma is lost");

    /* Of a square: matrices of the first slice, and of the second. */
    struct row_fragments { u32 part[facts::HELD][2][2]; };
    struct column_fragments { u32 part[facts::HELD][2]; };
    /* Of two mma tiles, and of the two before: 2^11 times what they are; high ones, or those of either product. */
    struct parts { float low[2][2][4], high[2][2][4]; };

    const arguments &args;
    const typename T::warp &w;
    pipeline &pipe;
    short_sums<V> &sums;
    row_fragments (&a)[2];
    column_fragments (&b)[T::NT];
    parts &part;
    typename pipeline::pairs &pairs;
    u32 fragment_a, fragment_b;
    const u32 k_tiles;
    const bool low_a, low_b;
    u32 t;
    bool unsettled; /* scales of k-tile t are to be found */

    template <int SQUARE, int PART> DEVICE void load()
    {
        constexpr int P = PART % facts::HELD;
        if constexpr (SQUARE < MT) {
            u32 (&r)[2][2] = a[SQUARE % 2].part[P];
            A::matrices(r[0][0], r[0][1], r[1][0], r[1][1], (fragment_a ^ A::square_xor(SQUARE)) + A::square_add(SQUARE) + PART * A::BYTES);
        } else {
            constexpr int j = SQUARE - MT;
            u32 (&r)[2] = b[2 * j].part[P], (&s)[2] = b[2 * j + 1].part[P];
            B::matrices(r[0], s[0], r[1], s[1], (fragment_b ^ B::square_xor(j)) + B::square_add(j) + PART * B::BYTES);
        }
    }
    template <int TILE, int S> DEVICE void multiply()
    {
        constexpr int two = TILE / 2, q = TILE % 2;
        const row_fragments &x = a[two / ROW % 2];
        const column_fragments &y = b[two % ROW * 2 + q];
        float (&l)[4] = part.low[two % 2][q], (&h)[4] = part.high[two % 2][q];
        constexpr int L = facts::HELD - 1; /* where low parts are held */
        if constexpr (!THREE) {
            if constexpr (S % 2 == 0) mma_m16n8k8_from_zero(h, x.part[0][0], y.part[0][0]);
            else mma_m16n8k8(h, x.part[0][1], y.part[0][1]);
        } else {
            if constexpr (S == 0) mma_m16n8k8_from_zero(l, x.part[L][0], y.part[0][0]);
            if constexpr (S == 1) mma_m16n8k8(l, x.part[L][1], y.part[0][1], low_a);
            if constexpr (S == 2) mma_m16n8k8_from_zero(h, x.part[0][0], y.part[0][0]);
            if constexpr (S == 3) mma_m16n8k8(l, x.part[0][0], y.part[L][0], low_b);
            if constexpr (S == 4) mma_m16n8k8(h, x.part[0][1], y.part[0][1]);
            if constexpr (S == 5) mma_m16n8k8(l, x.part[0][1], y.part[L][1], low_b);
        }
    }
    template <int TWO> DEVICE void add()
    {
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float &sum = sums.near[TWO / ROW][TWO % ROW * 2 + q][e];
                const float high = part.high[TWO % 2][q][e];
                sum = __fadd_rn(sum, THREE ? __fmaf_rn(part.low[TWO % 2][q][e], 1.0f / (1 << LOW_LOG), high) : high);
            }
    }
    template <event_kind KIND, int INDEX, int OF> DEVICE void on(const u32 here, const u32 there)
    {
        if constexpr (KIND == BARRIER) {
            unsettled = any_at_barrier(pipe.seen.failed(pipeline::split::LEAST_LOG)) && t + 1 < k_tiles;
            fragment_a += there - here, fragment_b += there - here;
        }
        if constexpr (KIND == LOAD) load<INDEX, OF % 2>();
        if constexpr (KIND == MULTIPLY) multiply<INDEX, OF>();
        if constexpr (KIND == ADD) add<INDEX>();
        if constexpr (KIND == CONVERT && OF % 3 == 0) pipe.split_high(pairs, INDEX, OF / 3);
        if constexpr (KIND == CONVERT && OF % 3 == 1) pipe.split_rest(pairs, INDEX, OF / 3);
        if constexpr (KIND == CONVERT && OF % 3 == 2) pipe.split_low(pairs, INDEX, OF / 3);
        if constexpr (KIND == COMMIT) pipe.commit_plane(pairs, INDEX, OF, there);
        if constexpr (KIND == FETCH) pipe.fetch(args, t + 2, INDEX, t + 2 < k_tiles);
        if constexpr (KIND == ADVANCE) pipe.seen = split_check(), pipe.advance(args), ++t;
    }

    /* The last two tiles of the k-tile before are added up. */
    DEVICE void end_part()
    {
        add<TWOS - 1>();
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int e = 0; e < 4; ++e) part.low[(TWOS - 1) % 2][q][e] = part.high[(TWOS - 1) % 2][q][e] = 0;
    }
    DEVICE void settle(u32 stage)
    {
        if (short_sums<V>::YIELDS) sums.put_aside();
        pipe.settle(sums, args, THREE ? w : typename T::warp(), t, stage); /* else there are no registers to keep it */
        if (short_sums<V>::YIELDS) sums.take_back();
        if constexpr (THREE) {
            load<0, 1>(), load<0, 0>(), load<MT, 0>(), load<MT, 1>();
        } else {
            load<0, 0>(), load<MT, 0>(), load<MT + 1, 0>(), load<MT + 2, 0>();
            static_assert(THREE || TWOS - facts::NEXT_B == 3, "the columns that the last k-tile's end loads");
        }
    }
    DEVICE bool is_due() const { return THREE || unsettled || t == k_tiles || t % facts::TILES == 0; }
    DEVICE bool between(u32 stage)
    {
        if (!THREE || (t > 0 && (unsettled || t % facts::TILES == 0 || t == k_tiles))) end_part();
        if (unsettled) settle(stage);
        if (t >= k_tiles) return false;
        if (t > 0 && t % facts::TILES == 0) sums.to_far();
        return true;
    }
};

/* Writes a D of floats that is nothing but the sums, in aligned pairs, from registers: a warp's store is a sector of
 * each of eight rows. That keeps the load/store unit busy for less time than to bring them to shared memory, to read
 * them and to store whole lines. False where D is more. The bits are those of store_plain (output.cuh). */
template <class V> static DEVICE bool store_pairs(const arguments &args, short_sums<V> &sums)
{
    const bool is_more = V::INDIRECT || args.beta != 0 || args.alpha_pointer || args.beta_pointer || args.bias || args.gate || args.scatter_d ||
                         args.fused & HGEMM_FUSED_ACTIVATION_MASK << HGEMM_FUSED_ACTIVATION;
    char *const d = (char *)args.d + batch_index() * args.stride_d * 4;
    if (is_more || (args.fused >> HGEMM_FUSED_TYPE_D & HGEMM_FUSED_TYPE_MASK) != F32 || (u64)d & 7 || (args.ldd | args.n) & 1) return false;
    if (!add_parts<V>(args, sums.near)) return true;
    const block<V> at(args);
    const warp<V> w;
    const u32 row = at.m0 + w.m + w.lane / 4, column = at.n0 + w.n + w.lane % 4 * 2;
    char *to = d + (row * (u64)args.ldd + column) * 4;
    auto scaled = [&](float x) { return __float_as_uint(__fmaf_rn(x, args.alpha, 0.0f)); };
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) {
#pragma unroll
        for (int j = 0; j < V::NT; ++j) {
            const float *const x = &sums.near[i / 2][j][i % 2 * 2];
            st_global(to + j * 32, scaled(x[0]), scaled(x[1]), row + i * 8 < args.m && column + j * 8 < args.n);
        }
        to += args.ldd * 32;
    }
    return true;
}

template <class T> static DEVICE void squares(const arguments &args)
{
    using V = typename T::variant;
    using loop_type = square_loop<T>;
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<V> pipe(first, w);
    typename short_sums<V>::memory memory;
    short_sums<V> sums(memory, args);
    typename loop_type::row_fragments a[2];
    typename loop_type::column_fragments b[T::NT];
    typename loop_type::parts part = {};
    typename float_pipeline<V>::pairs pairs;
    u32 fragment_a, fragment_b;
    {
        fragment_a = shared_base() + V::A::square_offset(w.m, w.lane, 0, 0);
        fragment_b = shared_base() + V::PARTS * V::A::BYTES + V::B::square_offset(w.n, w.lane, 0, 0);
    }
    loop_type loop{args, w, pipe, sums, a, b, part, pairs, fragment_a, fragment_b, k_tiles,
                   !(args.indirect & HGEMM_FLOATS_EXACT_A), !(args.indirect & HGEMM_FLOATS_EXACT_B), 0, k_tiles > 0};
    main_loop(loop);
    if constexpr (loop_type::THREE) sums.template drain<true>(typename T::warp());
    else drain_at_end(sums, typename T::warp());
    if constexpr (!loop_type::THREE && T::spec::T4_ROW)
        if (store_pairs(args, sums)) return;
    T::store(args, typename T::block(args), sums.near);
}
