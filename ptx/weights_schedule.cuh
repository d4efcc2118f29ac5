/* SPDX-License-Identifier: MIT */
/*
 * The schedule of a loop over packed weights, and the proof that it adds up what it should.
 *
 * Groups    A part ends with the warp's last k-tile of a group, or with every one where k-tiles are as deep as most groups;
 *           where groups are smaller than a k-tile, with each 16 k's. Its sums are added while the next part's first
 *           products replace them. Scales and zeros are loaded a k-tile or a group ahead, and nothing waits for them before that.
 * Tables    Kernels for codes by tables alone have registers for what takes longest there, of one kind (note 373): a group's
 *           end where a slice has many mma's (SCALES_AHEAD), halves where it has few (HALVES_AHEAD).
 */
#pragma once
#include "packed.cuh"
#include "schedule.cuh"

/* A product by packed weights: of a tile T, a kind of codes, groups that have offsets or not, and M_TILES mma tiles along m:
 * of others D has no rows. */
template <class TILE, code_kind CODES, bool HAS_OFFSETS = false, int M_TILES = TILE::MT> struct packed_product {
    using T = TILE;
    using own = typename T::schedule; /* of a row that has one; the others spread their stores evenly */
    static constexpr code_kind KIND = CODES;
    static constexpr bool OFFSETS = HAS_OFFSETS, IS_FOR_TABLES = T::spec::TABLES;
    static constexpr int MT = M_TILES, NT = T::NT, MMAS = MT * NT, SLICES = T::SLICES, LDSMS = T::LDSMS;
    static constexpr bool IS_SHORT = MT < T::MT && !T::TEAMS; /* the tile: what D has not is not in shared memory either */
    static constexpr int SLOTS = IS_SHORT ? T::SLOTS * MT / T::MT : T::SLOTS;
    static constexpr int UNIT_SLICES = is_of_8_bits(KIND) ? 2 : 4, UNITS = SLICES / UNIT_SLICES;
    static constexpr bool MAY_BE_FINE = HGEMM_TAKES_ALL(T::WM, IS_FOR_TABLES);
    static constexpr int PARTS = MAY_BE_FINE ? SLICES / 2 : 1; /* of a k-tile */
    static_assert(T::WN == HGEMM_PACKED_STRIP && HGEMM_PACKED_K % T::BK == 0, "packed weights are for other tiles");

    static constexpr bool SCALES_AHEAD = IS_FOR_TABLES && T::WM > 32 && !IS_SHORT, HALVES_AHEAD = IS_FOR_TABLES && T::WM <= 32;
    static constexpr bool AMONG_MMAS = SCALES_AHEAD && T::TEAMS; /* these scales are found; else before all of a slice's */
    static constexpr bool ALONG_N = SCALES_AHEAD && !AMONG_MMAS;
    static constexpr bool HAS_SPARE = !T::CONVERTS || T::WM <= 32; /* registers: of the table, and of a unit's copy */
    static constexpr bool COPIES_UNIT = !HALVES_AHEAD && (!SCALES_AHEAD || T::TEAMS || HAS_SPARE);

    /* Chunks that become halves are waited for (LATER): what keeps apart has that stay in its place. A row's own schedule
     * converts them a pair at a time (PACES), and keeps ptxas from doing so for all chunks at once, with no mma between. */
    static constexpr bool IS_OWN = own::LDS_GAP > 0, PACES = IS_OWN && T::CONVERTS, LATER = T::CONVERTS && MMAS >= 16;
    static constexpr int CONVERSIONS = PACES ? 4 : T::CONVERTS ? 1 : 0; /* of a chunk */
    static constexpr int LDS_GAP = IS_OWN ? own::LDS_GAP : MMAS / 2 / LDSMS > 0 ? MMAS / 2 / LDSMS : 1;
    static constexpr int STS_FIRST = IS_OWN ? own::STS_FIRST : LATER ? MMAS * 3 / 2 : MMAS / 2;
    static constexpr int STS_SPREAD = ((SLICES - 1) * MMAS - STS_FIRST - 1) / SLOTS / (HALVES_AHEAD ? 2 : 1);
    static constexpr int STS_GAP = IS_OWN ? own::STS_GAP : STS_SPREAD;

    /* Where mma h of a slice is: tile by tile along m; with ALONG_N along n, of halves there and back. */
    static constexpr int row_of(int h) { return ALONG_N ? h / NT : h % MT; }
    static constexpr int column_of(int h)
    {
        if (!ALONG_N) return h / MT;
        return !T::CONVERTS && h / NT % 2 ? NT - 1 - h % NT : h % NT;
    }
};
template <class P, int H> constexpr int ROW_OF = P::row_of(H);
template <class P, int H> constexpr int COLUMN_OF = P::column_of(H);

template <class P, class LIST> constexpr void schedule_sum(LIST &list, int place, int h, int when)
{
    if (!P::SCALES_AHEAD && P::row_of(h) == 0) list.add(place, FIND_SCALES, P::column_of(h), 0, when);
    list.add(place, ADD, h, 0, when);
}

/* The mma's of a slice and what comes between them, where a part begins with it or not. */
template <class P, class LIST> constexpr void schedule_slice(LIST &list, int slice, bool is_first, int when)
{
    for (int h = 0; h < P::MMAS; ++h) {
        const int place = slice * P::MMAS + h, load = due(h, 0, P::LDS_GAP, P::LDSMS);
        if (load >= 0) list.add(place, LOAD, load, slice + 1, when);
        if (P::AMONG_MMAS && slice == P::SLICES - 1 && h > 0 && h % 2 == 0 && h / 2 <= P::NT)
            list.add(place, FIND_SCALES, h / 2 - 1, 0, when);
        if (is_first) schedule_sum<P>(list, place, h, when);
        list.add(place, is_first ? MULTIPLY_FIRST : MULTIPLY, h, slice, when);
        for (int e = 0; P::PACES && e < P::CONVERSIONS; ++e) {
            const int convert = due(place, P::STS_FIRST - P::own::CVT_LEAD + e * P::own::CVT_GAP, P::STS_GAP, P::SLOTS);
            if (convert >= 0) list.add(place, CONVERT, convert, e, when);
        }
        const int commit = due(place, P::STS_FIRST, P::STS_GAP, P::SLOTS);
        if (commit >= 0 && P::PACES) list.add(place, KEEP_APART, 0, 0, when);
        if (commit >= 0 && P::CONVERSIONS == 1) list.add(place, CONVERT, commit, 0, when);
        if (commit >= 0) list.add(place, COMMIT, commit, 0, when);
        const int fetch = due(place, P::STS_FIRST + P::own::LDG_LAG, P::STS_GAP, P::SLOTS);
        if (fetch >= 0) list.add(place, FETCH, fetch, 0, when);
    }
    const int last = slice * P::MMAS + P::MMAS - 1;
    for (int i = 0; P::OFFSETS && i < P::MT; ++i) list.add(last, is_first ? SUM_ROWS_FIRST : SUM_ROWS, i, slice, when);
}

/* A slice's codes become halves; a unit's registers are filled again as soon as they are free. */
template <class P, class LIST> constexpr void schedule_codes(LIST &list, int slice)
{
    constexpr int OF = P::UNIT_SLICES;
    const int place = slice * P::MMAS, decoded = slice + P::HALVES_AHEAD, unit = decoded % P::SLICES / OF;
    if (P::COPIES_UNIT && slice % OF == 0) list.add(place, COPY_CODES, unit), list.add(place, LOAD_CODES, unit);
    if (P::HALVES_AHEAD) list.add(place, TAKE_HALVES, 0, slice);
    list.add(place, DECODE, unit, decoded);
    if (!P::COPIES_UNIT && decoded % OF == OF - 1) list.add(place, LOAD_CODES, unit);
}

template <class P> constexpr auto weights_schedule()
{
    event_list<P::SLICES * (P::MMAS * 7 + 12) + P::SLOTS * 8> list;
    for (int kk = 0; kk < P::SLICES; ++kk) {
        const bool last = kk == P::SLICES - 1;
        const int place = kk * P::MMAS;
        if (kk == 0) list.add(place, BEGIN);
        if (kk == 0 && P::T::TEAMS && !P::IS_FOR_TABLES) list.add(place, LOCATE);
        if (P::PACES ? kk > 0 && kk % 2 == 0 : P::LATER && kk == P::SLICES / 2) list.add(place, KEEP_APART);
        for (int j = 0; P::ALONG_N && last && j < P::NT; ++j) list.add(place, FIND_SCALES, j);
        if (last) list.add(place, BARRIER);
        if (kk == 0) list.add(place, SET_ZEROS, 0, 0, GROUP_BEGINS);
        if (P::MAY_BE_FINE && kk > 0 && kk % 2 == 0) {
            for (int h = 0; h < P::MMAS; ++h) schedule_sum<P>(list, place, h, IS_FINE);
            list.add(place, CLEAR, 0, 0, IS_FINE);
            list.add(place, SET_ZEROS, kk / 2, 0, IS_FINE);
            list.add(place, TAKE_FACTS, kk / 2, 0, IS_FINE);
            list.add(place, LOAD_FACTS, kk / 2, 0, IS_FINE);
        }
        schedule_codes<P>(list, kk);
        if (kk > 0) {
            schedule_slice<P>(list, kk, false, ALWAYS);
        } else {
            schedule_slice<P>(list, kk, true, GROUP_BEGINS);
            list.add(P::MMAS - 1, TAKE_FACTS, 0, 0, GROUP_BEGINS);
            schedule_slice<P>(list, kk, false, -GROUP_BEGINS);
            list.add(P::MMAS, FIND_GROUP);
            list.add(P::MMAS, LOAD_FACTS, 0, 0, NEXT_BEGINS);
        }
    }
    list.add(P::SLICES * P::MMAS, ADVANCE);
    return list;
}

/* ---- Its proof ------------------------------------------------------------------------------------------------------- */

/* Fragments of A in two sets, units of codes, and halves of one slice and, HALVES_AHEAD, of the next. */
template <class P> struct packed_rules {
    static constexpr int UNITS = 2 * P::LDSMS, COPY = UNITS + P::UNITS, AHEAD = COPY + 1, HALVES = AHEAD + 1;
    static constexpr int REGISTERS = HALVES + 1, VALUES = P::SLICES * P::LDSMS;
    static constexpr fragment_use fragment(int slice, int load) { return {slice % 2 * P::LDSMS + load, slice * P::LDSMS + load}; }
    static constexpr fragment_use codes(const event &e) /* those that e decodes */
    {
        const int next = e.of == P::SLICES ? VALUES : 0, unit = e.of % P::SLICES / P::UNIT_SLICES;
        return {P::COPIES_UNIT ? COPY : UNITS + e.index, next + unit};
    }
    static constexpr fragment_use halves(int slice) { return {HALVES, slice}; }
    static constexpr fragment_use ahead(int slice) { return {AHEAD, slice == P::SLICES ? VALUES : slice}; }
    static constexpr fragment_use loaded(const event &e)
    {
        if (e.kind == LOAD) return fragment(e.of, e.index);
        if (e.kind == LOAD_CODES) return {UNITS + e.index, VALUES + e.index};
        if (e.kind == COPY_CODES) return {COPY, e.index};
        if (e.kind == DECODE) return P::HALVES_AHEAD ? ahead(e.of) : halves(e.of);
        if (e.kind == TAKE_HALVES) return halves(e.of);
        return {-1, 0};
    }
    static constexpr fragment_use needed(const event &e, int n)
    {
        const bool is_mma = e.kind == MULTIPLY || e.kind == MULTIPLY_FIRST;
        if (is_mma && n < 2) return n == 0 ? halves(e.of) : fragment(e.of, P::row_of(e.index) / 2);
        if (n > 0) return {-1, 0};
        if (e.kind == SUM_ROWS || e.kind == SUM_ROWS_FIRST) return fragment(e.of, e.index / 2);
        if (e.kind == COPY_CODES) return {UNITS + e.index, e.index};
        if (e.kind == DECODE) return codes(e);
        if (e.kind == TAKE_HALVES) return ahead(e.of);
        return {-1, 0};
    }
};

/* Which group's the facts in registers are, and whose sums those of each mma: numbers of parts, NONE where it is 0. */
template <class P> struct sums_proof {
    static constexpr int NONE = -2;
    int then[P::PARTS] = {}, zeros = -1, now = -1, scale[P::NT] = {}, part[P::MMAS] = {}, rows[P::MT] = {};
    bool added[P::MMAS] = {};

    constexpr sums_proof()
    {
        for (int p = 0; p < P::PARTS; ++p) then[p] = p; /* k-tile 0's */
        for (int &x : scale) x = -1;
        for (int &x : part) x = -1; /* 0, times scales of 0 */
        for (int &x : rows) x = -1;
    }
    /* Whether e finds what it needs, in a slice of part `own`; `next` is where the next k-tile begins. */
    constexpr bool meets(const event &e, int own, int next)
    {
        const int h = e.index, i = P::row_of(h), j = P::column_of(h);
        if (e.kind == LOAD_FACTS) then[h] = next + h;
        if (e.kind == SET_ZEROS) zeros = then[h];
        if (e.kind == TAKE_FACTS) now = then[h];
        if (e.kind == FIND_SCALES) scale[h] = now;
        if (e.kind == DECODE) return P::HALVES_AHEAD || zeros == own; /* codes by tables have none */
        if (e.kind == ADD) {
            if (added[h] || scale[j] != part[h] || (P::OFFSETS && rows[i] != part[h])) return false;
            added[h] = true;
        }
        if (e.kind == CLEAR || e.kind == MULTIPLY_FIRST)
            for (int x = 0; x < P::MMAS; ++x) {
                if (e.kind == MULTIPLY_FIRST && x != h) continue;
                if (!added[x]) return false;
                part[x] = NONE, added[x] = false;
            }
        if (e.kind == CLEAR)
            for (int &x : rows) x = NONE;
        if (e.kind == MULTIPLY || e.kind == MULTIPLY_FIRST) {
            if (added[h] || (part[h] != NONE && part[h] != own)) return false;
            part[h] = own;
        }
        if (e.kind == SUM_ROWS || e.kind == SUM_ROWS_FIRST) {
            if (e.kind == SUM_ROWS && rows[h] != NONE && rows[h] != own) return false;
            for (int x = 0; x < P::MMAS; ++x)
                if (P::row_of(x) == h && part[x] != own) return false; /* the part before is added */
            rows[h] = own;
        }
        return true;
    }
};

/* Whether each group's sums are added once, by its own scales, over k-tiles with which a group begins where `begins` has a bit. */
template <class P, class LIST> constexpr bool are_sums_added_of(const LIST &list, unsigned begins, bool is_fine)
{
    sums_proof<P> proof;
    int first = 0; /* k-tile of the group */
    for (int t = 0; begins >> t > 1; ++t) {
        if (begins >> t & 1) first = t;
        const bool next_begins = begins >> (t + 1) & 1;
        const unsigned holding = (begins >> t & 1) << GROUP_BEGINS | next_begins << NEXT_BEGINS | is_fine << IS_FINE;
        for (int i = 0; i < list.count; ++i) {
            const event &e = list.events[i];
            const int slice = e.place / P::MMAS, own = is_fine ? t * P::PARTS + slice / 2 : first * P::PARTS;
            if (happens(e, holding) && !proof.meets(e, own, (t + 1) * P::PARTS)) return false;
        }
    }
    for (int h = 0; h < P::MMAS; ++h) /* end() adds the last part by scales that it finds */
        if (proof.added[h] || proof.part[h] != proof.now) return false;
    return true;
}

template <class P, class LIST> constexpr bool are_sums_added(const LIST &list)
{
    for (unsigned begins = 17; begins < 32; begins += 2)
        if (!are_sums_added_of<P>(list, begins, false)) return false;
    return !P::MAY_BE_FINE || are_sums_added_of<P>(list, 31, true);
}

/* Whether, under all conditions, each mma is there and meets its operands, and chunks go their way. */
template <class P, class LIST> constexpr bool are_operands_met(const LIST &list)
{
    for (unsigned holding = 0; holding < 2 << IS_FINE; holding += 2) {
        const auto path = where(list, holding);
        if (!is_complete(path, P::SLICES, P::MMAS) || !are_fragments_met<packed_rules<P>>(path)) return false;
        if (!are_chunks_in_order(path, P::SLOTS, {P::CONVERSIONS, 1, 1, true})) return false;
    }
    return true;
}
