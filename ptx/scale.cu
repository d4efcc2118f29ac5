/* SPDX-License-Identifier: MIT */
/*
 * scale: the power of two by which a bfloat16 operand becomes one of halves (convert.cuh): that of its largest finite
 * element, or of the largest one in a sample (args.h).
 *
 * Grid      Threads stand side by side along a row, 8 elements each, and rows below each other; blocks share the rows of
 *           a matrix, and all walk over the batch. blockIdx.z is the operand.
 * Result    The last block to arrive takes the largest of what all have left: which block that is does not matter. If that
 *           is far above what is usual, an outlier, the scale is one for the usual (args.h).
 */
#include "convert.cuh"
#include "operand.cuh"

/* Exponents, as below, count for what is usual but for those of zeros: 0 and 1. Of two that differ by one such the other
 * is the lower, and the higher. */
static DEVICE bool counts(u32 x) { return x > 1; }
static DEVICE u32 lower(u32 x, u32 y) { return min(x - 2, y - 2) + 2; }
static DEVICE u32 higher(u32 x, u32 y) { return max(counts(x) ? x : 0, counts(y) ? y : 0); }

/* The lower median of those of the warp that count, or 0. */
static DEVICE u32 usual_in_warp(u32 x)
{
    const u32 last = __popc(lanes_where(counts(x))) - 1;
    u32 median = 0;
#pragma unroll
    for (u32 bit = 128; bit > 0; bit /= 2)
        if ((u32)__popc(lanes_where(counts(x) && x < (median | bit))) * 2 <= last) median |= bit;
    return last == ~0u ? 0 : median;
}

/* The largest exponents seen so far at each of the eight places of a chunk: in bits 23 to 30, one more than they are. That
 * of infinities and NaN then is 0: they do not count. Bits below them are not looked at. */
struct exponents {
    u32 of[8];

    DEVICE void add(int i, u32 pair)
    {
        const u32 next = (pair & 0x7f807f80) + 0x00800080 & 0x7f807f80;
        of[i] = max(of[i], next << 16), of[i + 1] = max(of[i + 1], next);
    }
    DEVICE void add(const b128 &v) { add(0, v.x), add(2, v.y), add(4, v.z), add(6, v.w); }
    DEVICE u32 largest() const
    {
        u32 most = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) most = max(most, of[i]);
        return most >> 23;
    }
    /* Among them, leaving out one or two that are far above others. */
    DEVICE u32 usual() const
    {
        u32 x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) x[i] = lower(of[2 * i] >> 23, of[2 * i + 1] >> 23);
        return lower(higher(x[0], x[1]), higher(x[2], x[3]));
    }
};

/* The largest x of the block, for all threads. */
static DEVICE u32 largest_in_block(u32 x)
{
    constexpr u32 WARPS = HGEMM_SCALE_THREADS / 32;
#pragma unroll
    for (u32 lanes = 1; lanes < 32; lanes *= 2) x = max(x, from_across(x, lanes));
    const u32 thread = thread_index();
    barrier(); /* what was there before has been read */
    if (thread % 32 == 0) st_shared_word(shared_base() + thread / 32 * 4, x);
    barrier();
#pragma unroll
    for (u32 warp = 0; warp < WARPS; ++warp) {
        u32 other;
        ld_shared_word(other, shared_base() + warp * 4);
        x = max(x, other);
    }
    return x;
}

/* What is usual among those of which each thread has one: the lower median of the warps' lower medians. */
static DEVICE u32 usual_in_block(u32 x)
{
    constexpr u32 WARPS = HGEMM_SCALE_THREADS / 32;
    const u32 thread = thread_index(), lane = thread % 32;
    x = usual_in_warp(x);
    barrier(); /* what was there before has been read */
    if (lane == 0) st_shared_word(shared_base() + thread / 32 * 4, x);
    barrier();
    u32 of = 0;
    if (lane < WARPS) ld_shared_word(of, shared_base() + lane * 4);
    return usual_in_warp(of);
}

/* Says what both operands have, once both are through. */
static DEVICE void report(const scale_args_t &args, u32 operand, bool has_outlier)
{
    findings_t *const found = args.found;
    st_global_word((char *)&found->has_outlier[operand], has_outlier);
    if (atomic_add(args.finished, 1) + 1 < args.operands) return;
    u32 first, second = 0;
    ld_global_word(first, (const char *)&found->has_outlier[0], true);
    ld_global_word(second, (const char *)&found->has_outlier[1], args.operands > 1);
    const bool after = args.only_after != nullptr, any = (first | second) != 0;
    *args.finished = 0;
    if (!after) st_global_word((char *)&found->overflow, 0);
    st_global_word((char *)&found->again, after && !any);
    st_global_word((char *)&found->outlier, !args.is_sample && any);
}

/* Adds what a thread reads of a matrix. Chunks are IN_PLACE where the matrix consists of whole, aligned ones. */
template <bool IN_PLACE>
static DEVICE void add_matrix(exponents &most, const scale_operand_t &x, const char *from, u32 block)
{
    constexpr int TOGETHER = IN_PLACE ? 8 : 4; /* rows in flight */
    constexpr u32 CHUNKS = HGEMM_SCALE_SEGMENT / 8;
    const u32 across = 1u << x.log_across, rows = HGEMM_SCALE_THREADS >> x.log_across, step = x.blocks * rows;
    const u32 first = thread_index() & across - 1, below = thread_index() >> x.log_across;
    const u64 ld = x.ld * HALF_BYTES;
    const char *const end = from + (x.lines - 1) * ld + x.width * (u64)HALF_BYTES;
    const panel matrix = {from, from, end, ld, 0, 0, nullptr, false};
    /* Which of the segments of a row: no two of 2^log_every rows that follow each other have the same, and it is not
     * along a diagonal. */
    auto chosen = [&](u32 line) { return (line * 11 & (1u << x.log_every) - 1) * HGEMM_SCALE_SEGMENT; };
#pragma unroll 1
    for (u32 line = block * rows + below; line < x.lines; line += step * TOGETHER)
#pragma unroll 1
        for (u32 column = (first / CHUNKS << x.log_every) * HGEMM_SCALE_SEGMENT + first % CHUNKS * 8; column < x.width;
             column += across * 8 << x.log_every) {
            auto is_there = [&](u32 row, u32 at) { return row < x.lines && at < x.width; };
            if constexpr (IN_PLACE) {
                b128 v[TOGETHER] = {};
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) {
                    const u32 row = line + i * step, at = column + chosen(row);
                    ld_global(v[i], from + row * ld + at * (u64)HALF_BYTES, is_there(row, at));
                }
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) most.add(v[i]);
            } else {
                chunk<ANY> c[TOGETHER];
                u32 shift[TOGETHER];
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) {
                    const u32 row = line + i * step, at = column + chosen(row);
                    const char *const low = from + row * ld + at * (u64)HALF_BYTES;
                    shift[i] = (u32)(u64)low % 16;
                    const char *const aligned = low - shift[i];
                    const bool is_inside = aligned >= from && aligned + 32 <= end;
                    c[i].v = c[i].next = b128{};
                    ld_global(c[i].v, aligned, is_there(row, at) && is_inside);
                    ld_global(c[i].next, aligned + 16, is_there(row, at) && is_inside && shift[i]);
                    if (is_there(row, at) && !is_inside) c[i].load_inside(matrix, aligned);
                }
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i)
                    most.add(first_halves(c[i].extract(shift[i]), x.width - (int)(column + chosen(line + i * step))));
            }
        }
}

extern "C" __global__ void __launch_bounds__(HGEMM_SCALE_THREADS) HGEMM_VARIANT(const scale_args_t args)
{
    const scale_operand_t x = operand_index() == 0 ? args.operand[0] : args.operand[1];
    const u32 thread = thread_index();
    const bool in_place = (((u64)x.from | (x.ld | x.width | x.stride) * HALF_BYTES) & 15) == 0;
    if (is_unneeded(args.only_after)) return;
    exponents seen = {};
    const u32 first = block_index() / x.blocks, together = args.blocks / x.blocks; /* matrices */
#pragma unroll 1
    for (long long i = first; first < together && i < x.batch; i += together) {
        const char *const from = (const char *)x.from + i * x.stride * HALF_BYTES;
        if (in_place) add_matrix<true>(seen, x, from, block_index() - first * x.blocks);
        else add_matrix<false>(seen, x, from, block_index() - first * x.blocks);
    }
    u32 most = largest_in_block(seen.largest()), usual = args.found ? usual_in_block(seen.usual()) : 0;
    if (args.blocks > 1) {
        barrier();
        if (thread == 0) {
            st_global_word((char *)(x.partial + block_index()), most | usual << 8);
            st_shared_word(shared_base(), atomic_add(x.arrived, 1));
        }
        barrier();
        u32 before;
        ld_shared_word(before, shared_base());
        if (before + 1 < args.blocks) return;
        static_assert(HGEMM_SCALE_BLOCKS <= HGEMM_SCALE_THREADS, "a thread has one at most");
        u32 other = 0;
        ld_global_word(other, (const char *)(x.partial + thread), thread < args.blocks);
        most = largest_in_block(other & 0xff);
        if (args.found) usual = usual_in_block(other >> 8);
        if (thread == 0) *x.arrived = 0;
    }
    /* Elements of one exponent e are below 2^(e + 1 - 127); subnormal ones have that of 1. */
    const bool has_outlier = args.found && usual > 0 && most >= usual + HGEMM_SCALE_OUTLIER;
    const int exponent = max((int)(has_outlier ? usual : most) - 1, 1);
    const int log = 15 - (has_outlier ? HGEMM_SCALE_USUAL_ROOM : x.room) + 127 - exponent;
    if (thread > 0) return;
    *x.scale = power_of_two(min(max(log, HGEMM_LEAST_SCALE_LOG), HGEMM_MOST_SCALE_LOG));
    if (args.found) report(args, operand_index(), has_outlier);
}
