/* SPDX-License-Identifier: MIT */
/*
 * A schedule: what happens in a k-tile, in order. It is data, made of a row's columns at compile time; main_loop.cuh
 * walks it. This file knows no CUDA: tools/schedule.cc prints schedules as pictures.
 *
 * A place is the gap before an mma, counted from the begin of the k-tile. Events of one place happen in the order of
 * the list. A k-tile is multiplied from one stage of shared memory, `here`, while the next one is written to the other,
 * `there`.
 */
#pragma once

/* An event's index and `of` count what stands there; events without such words have none. */
enum event_kind {
    BARRIER,  /* the next k-tile is complete, and every warp has read the last of this one */
    LOAD,     /* ldmatrix `index`, for slice `of`: shared memory -> fragments. Slice SLICES is the next k-tile's first */
    MULTIPLY, /* mma `index` of slice `of` */
    FETCH,    /* chunk `index` of the k-tile after the next: global memory -> registers */
    CONVERT,  /* chunk `index`: step `of % steps` of part `of / steps` of it */
    COMMIT,   /* chunk `index` of the next k-tile, or its plane `of`: registers -> shared memory */
    ADD,      /* sums of mma tiles `index` leave the tensor cores' accumulators */
    APART,    /* instructions before it stay before it, those behind it behind */
    PREFETCH, /* a cache line of a later k-tile, to L2 */
    ADVANCE,  /* on to the next k-tile: addresses, counters */
};

struct event {
    short place;
    event_kind kind;
    short index, of;
};

/* A list of up to MOST events. */
template <int MOST> struct event_list {
    event events[MOST] = {};
    int count = 0;
    constexpr void add(int place, event_kind kind, int index = 0, int of = 0)
    {
        events[count++] = event{(short)place, kind, (short)index, (short)of};
    }
    constexpr int number_of(event_kind kind, int index = -1, int of = -1) const
    {
        int n = 0;
        for (int i = 0; i < count; ++i)
            n += events[i].kind == kind && (index < 0 || events[i].index == index) && (of < 0 || events[i].of == of);
        return n;
    }
};

/* Of `number` things, the first due after `first` places and then one every `gap`: which one is due at a place; -1:
 * none. */
constexpr int due(int place, int first, int gap, int number)
{
    const int past = place - first;
    return past >= 0 && past % gap == 0 && past / gap < number ? past / gap : -1;
}

/* ---- The proof of a schedule, at compile time
 * ------------------------------------------------------------------------ */

/* A chunk's way from its registers to shared memory: parts that are converted apart, each in so many steps; planes
 * that are stored apart, of which the last needs the last step, the one before the step before it. IN_PLACE: in the
 * registers that it came in, which are free when all is stored; else after the first step. */
struct chunk_way { int parts, steps, planes; bool in_place; };

/* Whether a chunk goes that way, before the barrier, and its registers are filled again when they are free. */
template <class LIST> constexpr bool is_chunk_in_order(const LIST &list, int chunk, const chunk_way &way)
{
    int done[16] = {}, stored = 0, fetched = 0; /* steps of each part, planes */
    bool past = false;
    for (int i = 0; i < list.count; ++i) {
        const event &e = list.events[i];
        past |= e.kind == BARRIER;
        if (e.index != chunk) continue;
        if (e.kind == CONVERT && (e.of % way.steps != done[e.of / way.steps]++ || e.of / way.steps >= way.parts)) return false;
        if (e.kind == COMMIT && (past || e.of != stored++)) return false;
        if (e.kind == FETCH && (fetched++ > 0 || (way.in_place && stored != way.planes))) return false;
        for (int part = 0; part < way.parts; ++part) {
            if (e.kind == COMMIT && done[part] < way.steps - way.planes + stored) return false;
            if (e.kind == FETCH && done[part] < 1) return false;
        }
    }
    return stored == way.planes && fetched == 1;
}
template <class LIST> constexpr bool are_chunks_in_order(const LIST &list, int chunks, const chunk_way &way)
{
    for (int q = 0; q < chunks; ++q)
        if (!is_chunk_in_order(list, q, way)) return false;
    return list.number_of(BARRIER) == 1 && list.number_of(FETCH) == chunks && list.number_of(COMMIT) == chunks * way.planes &&
           list.number_of(CONVERT) == chunks * way.parts * way.steps;
}

/* A fragment: its register, and which part of which slice it holds, counted through all k-tiles. */
struct fragment_use { int place, value; };

/* Whether each mma meets the fragments that it means. RULES says of an event which fragment it loads, loaded(e), and
 * which ones it needs, needed(e, i) for i = 0, 1 ..; a negative place ends both. Values of the next k-tile are
 * VALUES more. Loads of the k-tile `here` must precede the barrier, those of `there` follow it. The first walk fills
 * registers, two more are checked. */
template <class RULES, class LIST> constexpr bool are_fragments_met(const LIST &list)
{
    int held[RULES::REGISTERS] = {};
    for (int t = 0; t < 3; ++t) {
        bool past = false;
        for (int i = 0; i < list.count; ++i) {
            const event &e = list.events[i];
            if (e.kind == BARRIER) past = true;
            for (int n = 0; t > 0; ++n) {
                const fragment_use use = RULES::needed(e, n);
                if (use.place < 0) break;
                if (held[use.place] != t * RULES::VALUES + use.value) return false;
            }
            const fragment_use load = RULES::loaded(e);
            if (load.place < 0) continue;
            if (past != (load.value >= RULES::VALUES)) return false;
            held[load.place] = t * RULES::VALUES + load.value;
        }
    }
    return true;
}

/* Whether events stand in the order of their places, and each of `products` mma's of each slice is there once. */
template <class LIST> constexpr bool is_complete(const LIST &list, int slices, int products)
{
    for (int i = 1; i < list.count; ++i)
        if (list.events[i].place < list.events[i - 1].place) return false;
    for (int s = 0; s < slices; ++s)
        for (int h = 0; h < products; ++h)
            if (list.number_of(MULTIPLY, h, s) != 1) return false;
    return list.number_of(MULTIPLY) == slices * products && list.events[list.count - 1].kind == ADVANCE;
}
