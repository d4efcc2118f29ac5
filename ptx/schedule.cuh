/* SPDX-License-Identifier: MIT */
/*
 * A schedule: what happens in a k-tile, in order. It is data, made of a row's columns at compile time; main_loop.cuh walks
 * it. This file knows no CUDA: tools/schedule.cc prints schedules as pictures.
 *
 * A place is the gap before an mma, counted from the begin of the k-tile. Events of one place happen in the order of the
 * list. A k-tile is multiplied from one stage of shared memory, `here`, while the next one is written to the other, `there`.
 */
#pragma once

/* An event's index and `of` count what stands there; events without such words have none. */
enum event_kind {
    BARRIER,  /* the next k-tile is complete, and every warp has read the last of this one */
    LOAD,     /* ldmatrix `index`, for slice `of`: shared memory -> fragments. Slice SLICES is the next k-tile's first */
    MULTIPLY, /* mma `index` of slice `of` */
    FETCH,    /* chunk `index` of the k-tile after the next: global memory -> registers */
    CONVERT,  /* part `of` of chunk `index`, in its registers */
    COMMIT,   /* chunk `index` of the next k-tile: registers -> shared memory */
    PREFETCH, /* a cache line of a later k-tile, to L2 */
    ADVANCE,  /* on to the next k-tile: addresses, counters */
};

struct event {
    short place;
    event_kind kind;
    short index, of;
};

/* A list of up to MOST events, and what it is to be complete for. */
template <int MOST> struct event_list {
    event events[MOST] = {};
    int count = 0;
    constexpr void add(int place, event_kind kind, int index = 0, int of = 0)
    {
        events[count++] = event{(short)place, kind, (short)index, (short)of};
    }
    /* Where that event is in the list, or -1; the first one from there on. */
    constexpr int find(event_kind kind, int index = 0, int of = 0, int from = 0) const
    {
        for (int i = from; i < count; ++i)
            if (events[i].kind == kind && events[i].index == index && events[i].of == of) return i;
        return -1;
    }
    constexpr int number_of(event_kind kind) const
    {
        int n = 0;
        for (int i = 0; i < count; ++i) n += events[i].kind == kind;
        return n;
    }
};

/* Of so many things, the first due after `first` places and then one every `gap`: the number of the one that is due at a place; -1
 * where none is. */
constexpr int due(int place, int first, int gap, int number)
{
    const int past = place - first;
    return past >= 0 && past % gap == 0 && past / gap < number ? past / gap : -1;
}
