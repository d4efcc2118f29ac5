/* SPDX-License-Identifier: MIT */
/* The loop of packed weights (main_loop.cuh): what the events of its schedule are. */
#pragma once
#include "lookup.cuh"
#include "main_loop.cuh"
#include "tile.cuh"
#include "weights_schedule.cuh"

/* A warp's strip of weights, from its first k on. */
template <class P> struct strip_of_warp {
    using T = typename P::T;
    static constexpr u32 K_BYTES = HGEMM_PACKED_UNIT / (P::UNIT_SLICES * 8);
    const packed_form_t &form;
    const u32 lane, strip, first_k, before_k, k_tiles;
    const char *const codes;
    const groups_of_strip<P::OFFSETS> groups;
    const bool is_fine; /* groups are smaller than a warp's k-tile */

    DEVICE strip_of_warp(const packed_form_t &packed, const typename T::block &at, const typename T::warp &w)
        : form(packed), lane(w.lane), strip(minimum((at.n0 + w.n) / HGEMM_PACKED_STRIP, (u32)packed_strips(&packed) - 1)),
          first_k(at.k0 + (T::TEAMS ? 0 : w.k_warp * T::WK)), before_k(first_k - T::BK), k_tiles(at.k_tiles),
          codes(at.b.base + (u64)strip * packed_units(&packed) * HGEMM_PACKED_UNIT + lane * 16 + (u64)first_k * K_BYTES),
          groups(packed, at.b.base, strip, lane), is_fine(P::MAY_BE_FINE && 1u << packed.log_group < (u32)T::WK)
    {
    }
    /* Where k-tile t begins, of the block's k's and of the matrix's: the last one in memory comes first. Of it: unit u of codes,
     * and facts of part p. */
    DEVICE u32 own_k_of(u32 t) const { return (t == 0 ? k_tiles - 1 : t - 1) * T::BK; }
    DEVICE u32 k_of(u32 t) const { return (t == 0 ? k_tiles : t) * T::BK + before_k; }
    DEVICE void load(b128 &to, int u, u32 t) const
    {
        ld_global(to, codes + (u64)own_k_of(t) * K_BYTES + u * HGEMM_PACKED_UNIT, t < k_tiles);
    }
    DEVICE void load(group_facts &to, int p, u32 t, bool when = true) const
    {
        groups.load(to, form, k_of(t) + p * 16, when && t < k_tiles);
    }
};

/* What a lane has in registers. */
template <class P> struct packed_registers {
    b128 units[P::UNITS], unit; /* codes on their way; COPIES_UNIT: those that are decoded */
    u32 b[4], next_b[4];        /* operands of mma's; HALVES_AHEAD: the next slice's */
    typename P::T::fragments f[2];
    zeros_of_tiles<P::KIND> zeros;
    typename P::T::sums part;                   /* of k's of one group, since it was added last */
    float rows[P::MT][4] = {};                  /* OFFSETS: sums of A's rows, over the k's of `part` */
    float scale[P::NT][2] = {}, offset[2] = {}; /* of a lane's columns in an mma tile */
};

template <class P> struct weights_loop {
    using T = typename P::T;
    static constexpr auto SCHEDULE = weights_schedule<P>();
    static constexpr bool IN_PAIRS = false, PAUSES = false;
    static constexpr u32 STAGE = T::STAGE;
    static_assert(are_operands_met<P>(SCHEDULE), "an mma is lost or would meet other operands, or a chunk goes another way");
    static_assert(are_sums_added<P>(SCHEDULE), "a group's sums would not be added once, by its own scales");

    const typename T::block &at;
    const strip_of_warp<P> &from;
    const typename lookup_for<P::IS_FOR_TABLES, P::HAS_SPARE>::type &table;
    typename T::pipeline &pipe;
    packed_registers<P> &r;
    typename T::sums &all; /* of the groups before, in units of D */
    group_facts &now, (&then)[P::PARTS]; /* of the sums in `part`; of the next parts */
    const u32 team;
    u32 &t;                /* k-tile */
    bool &begins;          /* a group, with it */
    bool &more;            /* k-tiles to fetch */

    DEVICE void wait_for_team() const { team_barrier<T>(T::CONVERTS ? team_index<T>() : team); } /* halves leave no register for it */
    DEVICE void decode(u32 (&to)[4], int slice) const
    {
        halves_of_codes<P::KIND>(to, P::COPIES_UNIT ? r.unit : r.units[slice / P::UNIT_SLICES], slice % P::UNIT_SLICES, r.zeros, table);
    }
    DEVICE void find_scales(int j) const
    {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            r.scale[j][e] = now.of(now.scale, from.lane, j, e);
            if (P::OFFSETS) r.offset[e] = now.of(now.offset, from.lane, j, e);
        }
    }
    DEVICE void take_facts(int p) const
    {
        now = then[p];
        now.scale = number_of(now.scale, from.lane, from.form.type_scale);
        if (P::OFFSETS) now.offset = number_of(now.offset, from.lane, from.form.type_scale);
    }
    DEVICE void add(int i, int j) const
    {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            all[i][j][e] = __fmaf_rn(r.part[i][j][e], r.scale[j][e % 2], all[i][j][e]);
            if (P::OFFSETS) all[i][j][e] = __fmaf_rn(r.rows[i][e], r.offset[e % 2], all[i][j][e]);
        }
    }
    DEVICE void clear() const
    {
        T::clear(r.part);
#pragma unroll
        for (int i = 0; i < P::MT * 4; ++i) r.rows[i / 4][i % 4] = 0;
    }
    DEVICE void find_group()
    {
        const u32 log = from.form.log_group;
        begins = T::BK == HGEMM_PACKED_K || from.is_fine || from.k_of(t) >> log != from.k_of(t + 1) >> log;
    }

    template <int CONDITION> DEVICE bool holds() const { return CONDITION == IS_FINE ? from.is_fine : begins; }
    template <event_kind KIND, int INDEX, int OF> DEVICE void on(const u32 here, const u32 there)
    {
        constexpr bool IS_NEXT = OF == T::SLICES; /* slice: the next k-tile's first */
        if constexpr (KIND == BARRIER) wait_for_team();
        if constexpr (KIND == KEEP_APART) warp_barrier();
        if constexpr (KIND == BEGIN) more = t + 2 < from.k_tiles;
        if constexpr (KIND == LOCATE) asm volatile("" : "+r"(pipe.fragment_a));
        if constexpr (KIND == LOAD) pipe.load_one(r.f[OF % 2], INDEX, IS_NEXT ? 0 : OF, IS_NEXT ? there : here);
        if constexpr (KIND == CONVERT && P::PACES) pipe.convert(INDEX, OF);
        if constexpr (KIND == CONVERT && !P::PACES) pipe.convert(INDEX);
        if constexpr (KIND == COMMIT) pipe.commit(INDEX, there);
        if constexpr (KIND == FETCH) pipe.fetch(at, INDEX, more);
        if constexpr (KIND == ADVANCE) pipe.advance(at), ++t;
        on_codes<KIND, INDEX, OF>();
        on_sums<KIND, INDEX, OF>();
    }
    template <event_kind KIND, int INDEX, int OF> DEVICE void on_codes()
    {
        if constexpr (KIND == LOAD_CODES) from.load(r.units[INDEX], INDEX, t + 1);
        if constexpr (KIND == COPY_CODES) r.unit = r.units[INDEX];
        if constexpr (KIND == DECODE) decode(P::HALVES_AHEAD ? r.next_b : r.b, OF % T::SLICES);
        if constexpr (KIND == SET_ZEROS) r.zeros.set(then[INDEX].zero);
        if constexpr (KIND == TAKE_HALVES)
#pragma unroll
            for (int j = 0; j < 4; ++j) r.b[j] = r.next_b[j];
    }
    template <event_kind KIND, int INDEX, int OF> DEVICE void on_sums()
    {
        constexpr int i = ROW_OF<P, INDEX>, j = COLUMN_OF<P, INDEX>;
        const u32(&a)[2] = r.f[OF % 2].a[KIND == SUM_ROWS || KIND == SUM_ROWS_FIRST ? INDEX : i];
        if constexpr (KIND == LOAD_FACTS) begins = true, from.load(then[INDEX], INDEX, t + 1);
        if constexpr (KIND == TAKE_FACTS) take_facts(INDEX);
        if constexpr (KIND == FIND_SCALES) find_scales(INDEX);
        if constexpr (KIND == FIND_GROUP) find_group();
        if constexpr (KIND == CLEAR) clear();
        if constexpr (KIND == ADD) add(i, j);
        if constexpr (KIND == MULTIPLY) mma_m16n8k8(r.part[i][j], a, r.b[j]);
        if constexpr (KIND == MULTIPLY_FIRST) mma_m16n8k8_from_zero(r.part[i][j], a, r.b[j]);
        if constexpr (KIND == SUM_ROWS) mma_m16n8k8(r.rows[INDEX], a, PAIR_OF_1);
        if constexpr (KIND == SUM_ROWS_FIRST) mma_m16n8k8_from_zero(r.rows[INDEX], a, PAIR_OF_1);
    }
    DEVICE bool goes_on() const { return t < from.k_tiles; }

    DEVICE void begin() const
    {
        wait_for_team(); /* k-tile 0 is complete */
        T::clear(r.part), T::clear(all);
#pragma unroll
        for (int j = 0; j < T::LDSMS; ++j) pipe.load_one(r.f[0], j, 0, 0);
        if (P::HALVES_AHEAD) decode(r.next_b, 0);
    }
    /* Adds the last part. */
    DEVICE void end() const
    {
#pragma unroll
        for (int j = 0; j < P::NT; ++j) {
            find_scales(j);
#pragma unroll
            for (int i = 0; i < P::MT; ++i) add(i, j);
        }
    }
};

template <class P> static DEVICE void multiply_packed(typename P::T::sums &all, const arguments &args)
{
    using T = typename P::T;
    typename T::block at(args);
    const u32 team = team_index<T>();
    take_share(at, team);
    const typename T::warp w;
    const strip_of_warp<P> from(args.packed, at, w);
    const typename lookup_for<P::IS_FOR_TABLES, P::HAS_SPARE>::type table(args.packed, w.lane);
    packed_registers<P> r;
    group_facts now = {}, then[P::PARTS];
#pragma unroll
    for (int u = 0; u < P::UNITS; ++u) r.units[u] = b128{}, from.load(r.units[u], u, 0);
#pragma unroll
    for (int p = 0; p < P::PARTS; ++p) from.load(then[p], p, 0, p == 0 || from.is_fine);
    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    if (P::IS_SHORT && P::MT == 1) pipe.fragment_a = from_lane(pipe.fragment_a, w.lane % 16); /* of an ldmatrix's second mma tile no row is written */
    u32 t = 0;
    bool begins = true, more;
    weights_loop<P> loop{at, from, table, pipe, r, all, now, then, team, t, begins, more};
    loop.begin();
    main_loop(loop);
    loop.end();
}
