/* SPDX-License-Identifier: MIT */
/*
 * An operand of floats: how a k-tile of A or B comes from global memory into a thread's registers, and becomes halves.
 *
 * A float has 24 significant bits and a half 11. So it becomes two halves, by a power of two that its row of A, or column
 * of B, has: its high part is the half next to x * scale, its low part the half next to 2^11 times what that leaves. Where
 * 2^-14 <= |x * scale| < 65520, they differ from x by 2^-22 |x| at most, and by 2^-23 |x| from 2^-13 on. Scales are found
 * in the loop (single.cu), which also knows what no scale can hold.
 *
 *   unit      4 neighbours, on their way through a thread's registers
 */
#pragma once
#include "shared.cuh"
#include "source.cuh"

constexpr int LOW_LOG = 11; /* a low part is 2^LOW_LOG times what it stands for */

/* The exponent of a float that is not zero, from its bits without the sign. */
static DEVICE int exponent_of(u32 bits) { return bits >> 23 ? (int)(bits >> 23) - 127 : 31 - __clz(bits) - 149; }

/* What was seen of the elements that a thread has split. */
struct split_check {
    u32 least = 0xffffffff; /* twice the bits, less 1, of the smallest one; of zero that is the largest number */
    u32 finite = 0;         /* a pair of halves: zero, or NaN if a high part was not finite */

    /* Whether an element was below 2^least_log, or too large. */
    DEVICE bool failed(int least_log) const { return least < 2 * ((u32)(127 + least_log) << 23) - 1 || (finite & 0x7fff7fff) != 0; }

    /* Of a pair of elements, and their high parts. */
    DEVICE void add(float y0, float y1, u32 high)
    {
        least = min(least, min(2 * __float_as_uint(y0) - 1, 2 * __float_as_uint(y1) - 1));
        finite = fma_halves(high, 0, finite);
    }
};

/* From here on a float becomes an infinite half. */
constexpr float LEAST_INFINITE = 65520;

/* The high parts of a pair of floats, multiplied by their scales, and their low parts. */
static DEVICE void split_pair(u32 &high, u32 &low, u32 x0, u32 x1, float s0, float s1, split_check &seen)
{
    const float y0 = __fmul_rn(__uint_as_float(x0), s0), y1 = __fmul_rn(__uint_as_float(x1), s1);
    high = pack_halves(y0, y1);
    const float r0 = __fadd_rn(y0, -half_to_float(high)), r1 = __fadd_rn(y1, -half_to_float(high >> 16));
    low = pack_halves(__fmul_rn(r0, 1 << LOW_LOG), __fmul_rn(r1, 1 << LOW_LOG));
    seen.add(y0, y1, high);
}

/* What a kernel promises, as hgemm_accuracy_t. */
enum accuracy { TO_F32, TO_16_BITS, TO_11_BITS };

/* What a float becomes for that, as a pair of floats that are multiplied by their scales: and the least magnitude then. */
template <accuracy> struct split_of {
    static constexpr int LEAST_LOG = -14;
    static DEVICE float low(float y, float h) { return __fmul_rn(__fadd_rn(y, -h), 1 << LOW_LOG); } /* before it is rounded */
    static DEVICE void pair(u32 &high, u32 &low, u32 x0, u32 x1, float s0, float s1, split_check &seen)
    {
        split_pair(high, low, x0, x1, s0, s1, seen);
    }
};

/* For two products: its high part h, and in the place of a low one the half next to (h + 65 r) / 8, where r is what h leaves.
 * For both operands' h and r, h h' + (h + 65 r)(h' + 65 r') / 64 is 65 / 64 of (h + r)(h' + r') + 64 r r': as a difference
 * quotient has it, r is known to 2^-6 of a half's rounding, which is 2^-17. */
template <> struct split_of<TO_16_BITS> {
    static constexpr int LEAST_LOG = -11; /* so that an eighth has all its bits */
    static constexpr int STEP = 64;
    static DEVICE float low(float y, float h) { return __fmaf_rn(h, -8, __fmul_rn(y, (STEP + 1) / 8.0f)); }
    static DEVICE void pair(u32 &high, u32 &low, u32 x0, u32 x1, float s0, float s1, split_check &seen)
    {
        const float y0 = __fmul_rn(__uint_as_float(x0), s0), y1 = __fmul_rn(__uint_as_float(x1), s1);
        high = pack_halves(y0, y1);
        low = pack_halves(split_of::low(y0, half_to_float(high)), split_of::low(y1, half_to_float(high >> 16)));
        seen.add(y0, y1, high);
    }
};

/* For one product: its high part. */
template <> struct split_of<TO_11_BITS> {
    static constexpr int LEAST_LOG = -14;
    static DEVICE void pair(u32 &high, u32 &, u32 x0, u32 x1, float s0, float s1, split_check &seen)
    {
        const float y0 = __fmul_rn(__uint_as_float(x0), s0), y1 = __fmul_rn(__uint_as_float(x1), s1);
        high = pack_halves(y0, y1);
        seen.add(y0, y1, high);
    }
};

template <int X, int BK, bool K_CONTIGUOUS, int THREADS, access ACCESS, bool GATHERS>
struct float_operand : shared_tile<X, BK, K_CONTIGUOUS>, source<X, BK, K_CONTIGUOUS, ACCESS == FAR ? ANY_BYTES : 4, GATHERS> {
    using tile = shared_tile<X, BK, K_CONTIGUOUS>;
    using from = source<X, BK, K_CONTIGUOUS, ACCESS == FAR ? ANY_BYTES : 4, GATHERS>;
    using from::row_clamped, from::start;
    using tile::offset, tile::phase;
    static constexpr int ROWS = tile::ROWS, COLS = tile::COLS, ELEMENT = from::ELEMENT;

    /* LANES threads have a row of units, STEP rows stand below each other, and a thread has every STEP-th. */
    static constexpr int UNIT = 4, LANES = COLS / UNIT, STEP = THREADS / LANES, LOADS = ROWS / STEP;
    static_assert(THREADS % LANES == 0 && ROWS % STEP == 0, "threads do not divide the tile");
    static DEVICE u32 row(u32 thread) { return thread / LANES; }
    static DEVICE u32 col(u32 thread) { return thread % LANES * UNIT; }
    static DEVICE constexpr int below(int i) { return i * STEP; }

    /* x and k, within the k-tile, of element e of unit i. */
    static DEVICE u32 x_of(u32 thread, int i, int e) { return K_CONTIGUOUS ? row(thread) + below(i) : col(thread) + e; }
    static DEVICE u32 k_of(u32 thread, int i, int e) { return K_CONTIGUOUS ? col(thread) + e : row(thread) + below(i); }

    /* Scales of a thread: of its rows, or of its columns; and which one is that of element e of unit i. */
    static constexpr int SCALES = K_CONTIGUOUS ? LOADS : UNIT;
    static DEVICE constexpr int scale_of(int i, int e) { return K_CONTIGUOUS ? i : e; }

    /* Where the element is at x, of the block's, and k, of its part. Beyond the matrix x is the last one. */
    static DEVICE const char *element(const panel &src, u32 x, u32 k)
    {
        const u32 inside = minimum(x, src.x_size - src.x0 - 1);
        return start(src, k) + row_clamped(src, K_CONTIGUOUS ? inside : 0, K_CONTIGUOUS ? 0 : inside);
    }

    /* The same element as a float, unchanged where not `when`. With FAR it may lie as a half or a bfloat16. */
    static DEVICE void load(u32 &v, const panel &src, u32 x, u32 k, bool when)
    {
        const char *const p = element(src, x, k);
        if (from::IS_ANY_TYPE && src.type != F32) {
            u32 bits = 0;
            ld_global_half(bits, p, when);
            if (when) v = src.type == F16 ? __float_as_uint(half_to_float(bits)) : bits << 16;
        } else {
            ld_global_word(v, p, when);
        }
    }

    /* Unit i of the k-tile from k0 on, of which `live` k's are there; the others are zero. Any i, any k-tile. */
    static DEVICE b128 unit_at(const panel &src, u32 k0, u32 live, u32 thread, int i)
    {
        if (ACCESS == X16) { /* whole or not there, along k or not */
            b128 whole = {};
            const u32 x = x_of(thread, i, 0), last = src.x_size - src.x0 - 1, k = k_of(thread, i, 0);
            ld_global(whole, element(src, K_CONTIGUOUS ? x : minimum(x, last / UNIT * UNIT), k0 + k), k < live);
            return whole;
        }
        u32 v[UNIT] = {};
#pragma unroll
        for (int e = 0; e < UNIT; ++e)
            load(v[e], src, x_of(thread, i, e), k0 + k_of(thread, i, e), k_of(thread, i, e) < live);
        return b128{v[0], v[1], v[2], v[3]};
    }

    /* X16: where a thread's units of the next k-tile are, as offsets from a base that all threads share. */
    struct addresses {
        const char *base;
        u32 offset[LOADS];

        DEVICE void locate(const panel &src, u32 k0, u32 thread)
        {
            base = start(src, k0);
            const u32 last = src.x_size - src.x0 - 1;
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                offset[i] = (u32)row_clamped(src, row(thread) + below(i), K_CONTIGUOUS ? col(thread) : minimum(col(thread), last / UNIT * UNIT));
        }
        DEVICE void advance(u64 bytes) { base += bytes; }

        /* Unit i of a whole k-tile; undefined unless `more`. */
        DEVICE void fetch(b128 &v, int i, bool more) const { ld_generic(v, base + offset[i], more); }
    };

    /* Shared memory: where a thread commits unit i of high parts, split as operand.cuh has it. Low parts lie BYTES beyond. */
    static DEVICE u32 commit_offset(u32 thread)
    {
        return offset(row(thread), col(thread) / 8) + col(thread) / UNIT % 2 * 8;
    }
    static DEVICE u32 commit_xor(int i) { return phase(below(i)) << 4; }
    static DEVICE u32 commit_add(int i) { return below(i) * COLS * HALF_BYTES; }
};
