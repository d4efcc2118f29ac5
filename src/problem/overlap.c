/* SPDX-License-Identifier: MIT */
/* All is counted in bytes: a checked operand spans at most 2^62 of them, so that any distance within it, and between
 * two operands that meet, fits 64 bits. */
#include "problem/overlap.h"

/* Bytes from the first to the last of one matrix. */
static int64_t span_of(const area_t *area)
{
    return (area->lines - 1) * area->ld + area->width - 1;
}

area_t area_of(const view_t *view)
{
    const int is_batch = view->batch > 1 && view->stride != 0;
    area_t area = {.first = (uintptr_t)view->data,
                   .lines = view->lines,
                   .width = view->width * view->bytes,
                   .ld = view->lines > 1 ? view->ld * view->bytes : 0,
                   .batch = is_batch ? view->batch : 1,
                   .stride = is_batch ? view->stride * view->bytes : 0};
    const int64_t travel = (area.batch - 1) * area.stride;
    area.begin = area.first + (uintptr_t)(travel < 0 ? travel : 0);
    area.end = area.first + (uintptr_t)(travel > 0 ? travel : 0) + (uintptr_t)span_of(&area) + 1;
    return area;
}

/* Whether step * x % ld is in low .. high for an x of 0 .. most, where 0 < low <= high < ld and step < ld. The
 * multiples of step that lie in that range, without % ld, are seen at once; else x passes ld so and so often, y, and
 * comes into the range where -ld * y % step does: a smaller problem of the same kind, as in Euclid's algorithm. */
static int comes_into(uint64_t step, uint64_t ld, uint64_t low, uint64_t high, uint64_t most)
{
    for (;;) {
        if (step > ld / 2) { /* backwards the steps are smaller */
            uint64_t last = ld - low;
            step = ld - step, low = ld - high, high = last;
        }
        if (low > step * most)
            return 0;
        if (high - high % step >= low)
            return 1;
        most = (step * most - low) / ld;
        uint64_t past = ld % step;
        ld = step, low %= step, high %= step;
        step = past ? ld - past : 0;
    }
}

/*
 * Whether a matrix of `one` and one of `other` share a byte, if the first of them begins
 * offset + jump * step bytes after the second for a jump of from .. to; step >= 0. Both have that leading dimension.
 *
 * They do where that distance is line * ld + column with -width of one < column < width of other, and lies
 * between those of their outermost bytes: the line then is that of both matrices. (Nor does it matter if the line of
 * a matrix that has no other is longer than ld: every distance then is such a one.)
 */
static int matrices_meet(const area_t *one, const area_t *other, int64_t ld, int64_t offset, int64_t step, int64_t from,
                         int64_t to)
{
    int64_t lowest = -span_of(one), highest = span_of(other), around = one->width + other->width - 2;
    if (step == 0) {
        if (from > to || offset < lowest || offset > highest)
            return 0;
        from = to;
    } else {
        int64_t begin = (lowest - offset) / step, end = (highest - offset) / step;
        begin += offset + begin * step < lowest;
        end -= offset + end * step > highest;
        from = from > begin ? from : begin;
        to = to < end ? to : end;
    }
    if (from > to || around >= ld - 1)
        return from <= to;
    int64_t column = (offset + from * step + one->width - 1) % ld; /* from where they begin to meet */
    column += column < 0 ? ld : 0;
    return column <= around || comes_into((uint64_t)(step % ld), (uint64_t)ld, (uint64_t)(ld - column),
                                          (uint64_t)(ld - column + around), (uint64_t)(to - from));
}

/* The leading dimension that both areas have or, if they are of one line, could have; 0 if there is none. */
static int64_t common_ld(const area_t *one, const area_t *other)
{
    int64_t widest = one->width > other->width ? one->width : other->width;
    int64_t ld = one->ld ? one->ld : other->ld ? other->ld : widest;
    return one->ld && other->ld && one->ld != other->ld ? 0 : ld;
}

int areas_meet(const area_t *one, const area_t *other)
{
    if (one->end <= other->begin || other->end <= one->begin)
        return 0;
    int64_t ld = common_ld(one, other), stride = one->stride ? one->stride : other->stride;
    if (!ld || (one->stride && other->stride && one->stride != other->stride))
        return 1;
    int64_t offset = (int64_t)(one->first - other->first);
    int64_t back = 1 - other->batch, forth = one->batch - 1; /* jumps of `stride` between two matrices */
    if (stride < 0)
        return matrices_meet(one, other, ld, offset, -stride, -forth, -back);
    return matrices_meet(one, other, ld, offset, stride, back, forth);
}

int batch_meets_itself(const view_t *view, const area_t *area)
{
    if (area->batch == 1)
        return view->batch > 1; /* a stride of 0 */
    int64_t step = area->stride < 0 ? -area->stride : area->stride;
    return matrices_meet(area, area, common_ld(area, area), 0, step, 1, area->batch - 1);
}
