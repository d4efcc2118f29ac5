/* SPDX-License-Identifier: MIT */
/*
 * single: A and B in single precision, on tensor cores that multiply halves.
 *
 * Idea      A float is a high and a low half (floats.cuh), so a product of floats is three of halves: high * high, and high *
 *           low twice. The fourth is below 2^-22 of it.
 * Sums      Tensor cores cut off what they add: the more, the longer a sum stays there. High products leave after 16 k's and
 *           are added in single precision; those with a low part are so much smaller that they may stay.
 *             high  of 16 k's            low  with a low part: 2^11 times what they are
 *             near  of up to 512 k's     all three in units of the scales
 *             all   in units of D
 *           Tiles whose warps have 64x32 take neither sum further than 16 k's in the tensor cores, for then a warp has registers
 *           for one set of sums (short_sums).
 * Scales    A row of A, or a column of B, keeps its power of two until an element does not fit: then all threads settle the
 *           k-tile that it is in. They read it again, choose scales, and write it anew. A row or a column that spans more
 *           there than two halves can hold, or has infinities, is multiplied by FP32 units, and left out as zeros.
 * Rows      What becomes of a row of D depends on that row of A and on B, with short_sums; with others if sums are added up after
 *           every k-tile: for batch invariance the host asks for that.
 * Levels    Rows of the table that promise less multiply less, at the end of this file.
 * Limits    An element of A or B is split by every block that loads it.
 */
#include "convert.cuh"
#include "float_units.cuh"

/* Fragments of a slice: high parts, and low ones. */
template <class V> struct split_fragments { fragments<V> high, low; };

template <class V> struct split_sums {
    typename V::sums high, low, near, all;
    DEVICE void move(const warp<V> &) {} /* they were drained before */
    template <class F> DEVICE void multiply(const F &f)
    {
        f(high); /* zero here */
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            float &x = high[c / 4 / V::NT][c / 4 % V::NT][c % 4], &sum = all[c / 4 / V::NT][c / 4 % V::NT][c % 4];
            sum = __fadd_rn(sum, x), x = 0;
        }
    }
};

template <class V> struct float_pipeline {
    using A = typename V::A;
    using B = typename V::B;
    static constexpr int SLOTS = V::SLOTS, SIDES = V::BM + V::BN;
    static constexpr bool KEEPS = V::ACCESS == X16; /* scales in registers: where there are enough */
    using split = split_of<V::spec::ACCURACY>;

    /* Beyond the stages in shared memory, words for each row of A's tile and each column of B's: their scales, and, while a k-tile is settled, the largest and smallest element there, then whether FP32 units have it, and the scale that was. Then one word: what does not fit. */
    static constexpr u32 SCALES = V::MAIN_BYTES, MOST = SCALES + SIDES * 4, LEAST = MOST + SIDES * 4, WIDE = LEAST + SIDES * 4;

    typename A::addresses a; /* of the k-tile to fetch next */
    typename B::addresses b;
    b128 next[SLOTS];
    float scale_a[A::SCALES], scale_b[B::SCALES];
    u32 commit_a, commit_b, fragment_a, fragment_b;
    split_check seen;

    /* Where k-tile t begins, and how many of its k's are there (position.cuh). */
    static DEVICE u32 first_k(const block<V> &at, u32 t)
    {
        return t == 0 ? at.k - at.tail : t == 1 ? 0 : at.head + (t - 2) * V::BK;
    }
    static DEVICE u32 live_k(const block<V> &at, u32 t)
    {
        return t >= at.k_tiles ? 0 : t == 0 ? at.tail : t == 1 ? at.head : V::BK;
    }

    DEVICE float_pipeline(const block<V> &at, const warp<V> &w)
    {
        const u32 base = shared_base(), thread = thread_index();
        commit_a = base + A::commit_offset(thread);
        commit_b = base + V::PARTS * A::BYTES + B::commit_offset(thread);
        fragment_a = base + A::fragment_offset(w.m, w.lane_a(), 0, w.k_warp * V::SLICES);
        fragment_b = base + V::PARTS * A::BYTES + B::fragment_offset(w.n, w.lane_b(), 0, w.k_warp * V::SLICES);
        if (V::ACCESS == X16) a.locate(at.a, first_k(at, 1), thread), b.locate(at.b, first_k(at, 1), thread);
        for (u32 i = thread; i < SIDES; i += V::THREADS) st_shared_word(base + SCALES + i * 4, __float_as_uint(1));
        a.advance(A::k_bytes(at.a, at.head)), b.advance(B::k_bytes(at.b, at.head));
    }

    static DEVICE b128 unit(const block<V> &at, u32 t, int q)
    {
        const u32 thread = thread_index(), k0 = first_k(at, t), live = live_k(at, t);
        return q < A::LOADS ? A::unit_at(at.a, k0, live, thread, q) : B::unit_at(at.b, k0, live, thread, q - A::LOADS);
    }

    DEVICE void fetch(const arguments &args, u32 t, int q, bool more)
    {
        if (V::ACCESS != X16) next[q] = unit(block<V>(args), t, q);
        else if (q < A::LOADS) a.fetch(next[q], q, more);
        else b.fetch(next[q], q - A::LOADS, more);
    }
    DEVICE void advance(const arguments &args)
    {
        a.advance(V::BK * A::ELEMENT * (V::A_K_CONTIGUOUS ? 1 : (u64)args.lda));
        b.advance(V::BK * B::ELEMENT * (V::B_K_CONTIGUOUS ? 1 : (u64)args.ldb));
    }

    /* Splits unit q, and writes both parts. Where scales are not in registers, q is any number. */
    template <bool HAS_SCALES> DEVICE void commit(int q, const b128 &v, u32 stage)
    {
        const int j = q - A::LOADS;
        auto scale = [&](int e) { return HAS_SCALES ? kept_scale(q, e) : read_scale(q, e); };
        u32 high[2], low[2];
        split::pair(high[0], low[0], v.x, v.y, scale(0), scale(1), seen);
        split::pair(high[1], low[1], v.z, v.w, scale(2), scale(3), seen);
        const u32 to = q < A::LOADS ? (commit_a ^ A::commit_xor(q)) + A::commit_add(q) : (commit_b ^ B::commit_xor(j)) + B::commit_add(j);
        st_shared_words(to + stage, high[0], high[1]);
        if (V::PARTS > 1) st_shared_words(to + stage + (q < A::LOADS ? A::BYTES : B::BYTES), low[0], low[1]);
    }

    /* The same of pair p of unit q's elements in three steps, between which there is time for conversions: high parts; what
     * they leave; low parts. Whoever has the last pair of a unit writes. */
    struct pairs { float y[SLOTS][4]; u16 half[SLOTS][4]; u32 high[SLOTS][2], low[SLOTS][2]; };
    DEVICE u32 commit_to(int q) const
    {
        const int j = q - A::LOADS;
        return q < A::LOADS ? (commit_a ^ A::commit_xor(q)) + A::commit_add(q) : (commit_b ^ B::commit_xor(j)) + B::commit_add(j);
    }
    DEVICE void split_high(pairs &of, int q, int p) const
    {
        const u32 x[4] = {next[q].x, next[q].y, next[q].z, next[q].w};
#pragma unroll
        for (int e = p * 2; e < p * 2 + 2; ++e) {
            of.y[q][e] = __fmul_rn(__uint_as_float(x[e]), kept_scale(q, e));
            of.half[q][e] = to_half(of.y[q][e]);
        }
    }
    DEVICE void split_rest(pairs &of, int q, int p, u32 stage)
    {
        const int e = p * 2;
        of.high[q][p] = pair_of(of.half[q][e], of.half[q][e + 1]);
        seen.add(of.y[q][e], of.y[q][e + 1], of.high[q][p]);
        of.half[q][e] = to_half(split::low(of.y[q][e], to_float(of.half[q][e])));
        of.half[q][e + 1] = to_half(split::low(of.y[q][e + 1], to_float(of.half[q][e + 1])));
        if (p) st_shared_words(commit_to(q) + stage, of.high[q][0], of.high[q][1]);
    }
    DEVICE void split_low(pairs &of, int q, int p, u32 stage) const
    {
        of.low[q][p] = pair_of(of.half[q][p * 2], of.half[q][p * 2 + 1]);
        if (p) st_shared_words(commit_to(q) + stage + (q < A::LOADS ? A::BYTES : B::BYTES), of.low[q][0], of.low[q][1]);
    }

    /* The j-th ldmatrix of a slice: of high parts, then of low ones. */
    DEVICE void load_one(split_fragments<V> &f, int j, int kk, u32 stage) const
    {
        const bool is_low = j >= V::LDSMS;
        const int l = is_low ? j - V::LDSMS : j, i = l - V::B_LDSMS;
        fragments<V> &to = is_low ? f.low : f.high;
        ::load_one(to, l, l < V::B_LDSMS ? (fragment_b ^ B::fragment_xor(l, kk)) + B::fragment_add(l, kk) + stage + (is_low ? B::BYTES : 0)
                                         : (fragment_a ^ A::fragment_xor(i, kk)) + A::fragment_add(i, kk) + stage + (is_low ? A::BYTES : 0));
    }

    static DEVICE float scale_at(u32 side)
    {
        u32 bits;
        ld_shared_word(bits, shared_base() + SCALES + side * 4);
        return __uint_as_float(bits);
    }
    static DEVICE int log_at(u32 side) { return log2_of(scale_at(side)); }
    static DEVICE float read_scale_a(int i)
    {
        const u32 thread = thread_index();
        return scale_at(V::A_K_CONTIGUOUS ? A::x_of(thread, i, 0) : A::x_of(thread, 0, i));
    }
    static DEVICE float read_scale_b(int i)
    {
        const u32 thread = thread_index();
        return scale_at(V::BM + (V::B_K_CONTIGUOUS ? B::x_of(thread, i, 0) : B::x_of(thread, 0, i)));
    }
    static DEVICE float read_scale(int q, int e)
    {
        return q < A::LOADS ? read_scale_a(A::scale_of(q, e)) : read_scale_b(B::scale_of(q - A::LOADS, e));
    }
    DEVICE float kept_scale(int q, int e) const
    {
        return q < A::LOADS ? scale_a[A::scale_of(q, e)] : scale_b[B::scale_of(q - A::LOADS, e)];
    }
    DEVICE void load_scales()
    {
#pragma unroll
        for (int i = 0; i < A::SCALES; ++i) scale_a[i] = read_scale_a(i);
#pragma unroll
        for (int i = 0; i < B::SCALES; ++i) scale_b[i] = read_scale_b(i);
    }

    /* Takes the sums of an element that are in units of the scales. */
    static DEVICE float take(split_sums<V> &sums, int i, int j, int e)
    {
        float &high = sums.high[i][j][e], &low = sums.low[i][j][e], &near = sums.near[i][j][e];
        float x = high;
        if (V::spec::ACCURACY == TO_F32) x = __fadd_rn(near, __fmaf_rn(low, 1.0f / (1 << LOW_LOG), high)), near = low = 0;
        if (V::spec::ACCURACY == TO_16_BITS) x = __fmul_rn(__fadd_rn(near, high), 64.0f / 65), near = 0;
        high = 0;
        return x;
    }

    /* Adds what is in units of the scales to `all`. The factor may be no float, but its root is one. */
    static DEVICE void drain(split_sums<V> &sums, const warp<V> &w)
    {
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) {
            const int column = log_at(V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2);
#pragma unroll
            for (int i = 0; i < V::MT * 2; ++i) { /* read again each time, for want of registers */
                const int log = -(log_at(w.m + i * 8 + w.lane / 4) + column), half = log >> 1, e = i % 2 * 2 + j % 2;
                float &all = sums.all[i / 2][j / 2][e];
                all = __fmaf_rn(__fmul_rn(take(sums, i / 2, j / 2, e), power_of_two(half)), power_of_two(log - half), all);
            }
        }
    }

    /* Notes the largest and the smallest magnitude, from their bits, of each row or column of an operand's k-tile, which is
     * in `next` from unit `FIRST` on: the smallest less 1, so that 0 is the largest number. Along k threads beside each other
     * have a row, else those below each other have columns. */
    template <class X, bool ALONG_K, int FIRST> DEVICE void note(u32 first_side) const
    {
        const u32 at = shared_base() + first_side * 4, thread = thread_index();
        u32 most[4] = {}, least[4] = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
#pragma unroll
        for (int i = 0; i < X::LOADS; ++i) {
            const u32 bits[4] = {next[FIRST + i].x, next[FIRST + i].y, next[FIRST + i].z, next[FIRST + i].w};
            if (ALONG_K) most[0] = 0, least[0] = 0xffffffff;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const u32 x = bits[e] & 0x7fffffff;
                most[ALONG_K ? 0 : e] = max(most[ALONG_K ? 0 : e], x), least[ALONG_K ? 0 : e] = min(least[ALONG_K ? 0 : e], x - 1);
            }
            if constexpr (ALONG_K) {
#pragma unroll
                for (u32 across = 1; across < X::LANES; across *= 2)
                    most[0] = max(most[0], from_across(most[0], across)), least[0] = min(least[0], from_across(least[0], across));
                if (thread % X::LANES == 0) {
                    st_shared_word(at + MOST + X::x_of(thread, i, 0) * 4, most[0]);
                    st_shared_word(at + LEAST + X::x_of(thread, i, 0) * 4, least[0]);
                }
            }
        }
#pragma unroll
        for (int e = 0; e < 4 && !ALONG_K; ++e)
            max_shared(at + MOST + X::x_of(thread, 0, e) * 4, most[e]), min_shared(at + LEAST + X::x_of(thread, 0, e) * 4, least[e]);
    }

    /* The scale of a row or column, and whether none holds its elements, from the largest and smallest that are not 0. */
    static DEVICE void choose(int side, bool anew)
    {
        const u32 base = shared_base() + side * 4;
        u32 most, least;
        ld_shared_word(most, base + MOST), ld_shared_word(least, base + LEAST);
        int log = log_at(side);
        st_shared_word(base + LEAST, __float_as_uint(power_of_two(log))); /* what it was */
        if (most == 0) return; /* which says that it is not wide */
        constexpr int LEAST_LOG = split::LEAST_LOG;
        const int top = exponent_of(most), bottom = exponent_of(least + 1);
        /* With room for larger ones to come, if it is not needed for the smallest. It is kept if split_check finds nothing,
         * so that it does not depend on other rows and columns. */
        const int best = max(12 - top, min(14 - top, LEAST_LOG - bottom));
        const bool fits = __fmul_rn(__uint_as_float(most), power_of_two(log)) < LEAST_INFINITE && bottom + log >= LEAST_LOG;
        if (anew || !fits) log = min(best, HGEMM_MOST_SCALE_LOG);
        const bool is_wide = most >= 0x7f800000 || (bottom + log < LEAST_LOG && log < HGEMM_MOST_SCALE_LOG);
        st_shared_word(base + SCALES, __float_as_uint(power_of_two(log)));
        st_shared_word(base + MOST, is_wide);
        if (is_wide) max_shared(shared_base() + WIDE, 1);
    }

    /* After that: whether FP32 units multiply a row or column of the k-tile. */
    static DEVICE bool is_wide(u32 side)
    {
        u32 wide;
        ld_shared_word(wide, shared_base() + MOST + side * 4);
        return wide != 0;
    }

    /* Makes zeros of such rows and columns. */
    DEVICE void leave_out()
    {
        const u32 thread = thread_index();
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            u32 *const bits[4] = {&next[q].x, &next[q].y, &next[q].z, &next[q].w};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (is_wide(q < A::LOADS ? A::x_of(thread, q, e) : V::BM + B::x_of(thread, q - A::LOADS, e))) *bits[e] = 0;
        }
    }

    /* Multiplies rows and columns of k-tile t by FP32 units. */
    static DEVICE void multiply_wide(typename V::sums &few, const block<V> &at, const warp<V> &w, u32 t)
    {
        const u32 k0 = first_k(at, t), live = w.k_warp == 0 ? live_k(at, t) : 0;
        u32 rows = 0, columns = 0; /* bits of those that are wide */
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) rows |= is_wide(w.m + i * 8 + w.lane / 4) << i;
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) columns |= is_wide(V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2) << j;
        /* A chain for this k-tile alone, in sums that are zero here: one for all k's would err by as many roundings. */
#pragma unroll 1
        for (u32 k = k0; k < k0 + live; ++k)
            multiply_floats_at<V>(few, at, w, k, [&](int i, int j) { return (rows >> i & 1) || (columns >> j & 1); });
    }

    /* Finds scales for k-tile t, writes it, and reads the next one. What was multiplied before has been drained, or is when
     * sums.move() is called; sums.multiply() calls its argument for sums that are zero, and adds them to those
     * in units of D. */
    template <class SUMS> DEVICE void settle(SUMS &sums, const arguments &args, const warp<V> &w, u32 t, u32 stage)
    {
        const block<V> at(args); /* computed anew: the loop has no registers for it */
        const u32 base = shared_base(), thread = thread_index();
        for (u32 i = thread; i < SIDES; i += V::THREADS) st_shared_word(base + MOST + i * 4, 0), st_shared_word(base + LEAST + i * 4, 0xffffffff);
        if (thread == 0) st_shared_word(base + WIDE, 0);
        barrier(); /* and every warp has drained, by the scales that were */
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) next[q] = unit(at, t, q);
        note<A, V::A_K_CONTIGUOUS, 0>(0), note<B, V::B_K_CONTIGUOUS, A::LOADS>(V::BM);
        barrier();
        for (u32 i = thread; i < SIDES; i += V::THREADS) choose(i, t == 0);
        barrier();
        if (t > 0) sums.move(w);
        u32 wide;
        ld_shared_word(wide, base + WIDE);
        if (wide) leave_out();
        if (KEEPS) load_scales();
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) commit<KEEPS>(q, next[q], stage);
        if (wide) sums.multiply([&](typename V::sums &few) { multiply_wide(few, at, w, t); });
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) next[q] = unit(at, t + 1, q); /* read again, rather than kept meanwhile */
        seen = split_check();
        barrier();
    }
};

/* Sums that leave the tensor cores after 16 k's, in units of the scales, for 1,024 k's; then they go to others, in local memory for
 * want of registers, for the more are added up one after the other, the less exact they are. And, once a scale has changed, in
 * units of D: an element goes there when the scale of its own row or column changes. */
template <class V> struct short_sums {
    using pipe = float_pipeline<V>;
    static constexpr u32 TILES = 1024 / V::BK;
    typename V::sums near;
    float *const far, *const all, *const aside;
    bool has_far = false, has_all = false;

    /* In local memory; where it begins the compiler shall not know, or it takes some of it for registers. */
    struct memory { float of[3 * V::MMAS * 4 + 4]; };
    DEVICE short_sums(memory &to, const arguments &args) : far(to.of + ((u32)args.k >> 31)), all(far + V::MMAS * 4), aside(all + V::MMAS * 4)
    {
        clear<V>(near);
    }
    DEVICE float &of(int c) { return near[c / 4 / V::NT][c / 4 % V::NT][c % 4]; }
    DEVICE void to_far()
    {
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            float sum = of(c);
            if (has_far) sum = __fadd_rn(far[c], sum);
            far[c] = sum, of(c) = 0;
        }
        has_far = true;
    }

    static DEVICE int old_log(u32 side)
    {
        u32 bits;
        ld_shared_word(bits, shared_base() + pipe::LEAST + side * 4);
        return log2_of(__uint_as_float(bits));
    }

    /* Adds what is in units of the scales to `all`: of elements whose scales are no longer what they were; else of all, to
     * whom `near` is given. The factor may be no float, but its root is one. */
    template <bool AT_END> DEVICE void drain(const warp<V> &w)
    {
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) {
            const u32 column_side = V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2;
            const int column = AT_END ? pipe::log_at(column_side) : old_log(column_side);
            const bool other_column = !AT_END && column != pipe::log_at(column_side);
#pragma unroll
            for (int i = 0; i < V::MT * 2; ++i) { /* read again each time, for want of registers */
                const u32 side = w.m + i * 8 + w.lane / 4;
                const int row = AT_END ? pipe::log_at(side) : old_log(side), log = -(row + column), half = log >> 1;
                const int e = i % 2 * 2 + j % 2, c = (i / 2 * V::NT + j / 2) * 4 + e;
                float &x = of(c), sum = 0;
                if (has_all) sum = all[c];
                if (AT_END || other_column || row != pipe::log_at(side)) {
                    if (has_far) x = __fadd_rn(far[c], x), far[c] = 0;
                    sum = __fmaf_rn(__fmul_rn(taken(x), power_of_two(half)), power_of_two(log - half), sum);
                    x = 0;
                }
                if (AT_END) x = sum;
                else all[c] = sum;
            }
        }
        has_all = true;
    }
    static DEVICE float taken(float x) { return V::spec::ACCURACY == TO_16_BITS ? __fmul_rn(x, 64.0f / 65) : x; }

    DEVICE void move(const warp<V> &w) { drain<false>(w); }
    template <class F> DEVICE void multiply(const F &f)
    {
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) aside[c] = of(c), of(c) = 0;
        f(near);
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            float sum = of(c);
            if (has_all) sum = __fadd_rn(all[c], sum);
            all[c] = sum, of(c) = aside[c];
        }
        has_all = true;
    }
};

/* Two slices, 16 k's: fragments of a row of mma tiles, and of a column of them. */
struct row_fragments { u32 high[2][2], low[2][2]; };
struct column_fragments { u32 high[2], low[2]; };

/* Never, which the compiler cannot know: t is not that large. */
template <class T> static DEVICE bool is_past_all(u32 t, int number)
{
    u32 same;
    asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(t));
    return same == ~(u32)number;
}

/*
 * The loop of tiles whose warps have 64x32: a k-tile is one pair of slices. Two mma tiles at a time are multiplied, and what
 * came out for the two before is added up. All that is due meanwhile has a place, counted in threes of products for both.
 */
template <class T> static DEVICE void summed(const arguments &args)
{
    using V = typename T::variant;
    using A = typename V::A;
    using B = typename V::B;
    using pipeline = float_pipeline<V>;
    constexpr int MT = T::MT, NT = T::NT, TWOS = MT * NT / 2, PLACES = 2 * TWOS;
    constexpr int BARRIER = 12, LAG = 2; /* places: that of the barrier; between two steps of a pair's split */
    constexpr u32 TILES = short_sums<V>::TILES;
    static_assert(T::SLICES == 2 && NT == 4 && MT % 2 == 0, "the order of loads is for these");
    static_assert(T::ACCESS == X16 && 2 * T::SLOTS - 1 + 2 * LAG < BARRIER, "the k-tile is written after the barrier");
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    pipeline pipe(first, w);
    typename short_sums<V>::memory memory;
    short_sums<V> sums(memory, args);
    row_fragments a[2]; /* of a row of mma tiles, and of the next one */
    column_fragments b[NT];
    float low[2][2][4] = {}, high[2][2][4] = {}; /* of two mma tiles, and of the two before: 2^11 times what they are; high ones */
    u32 fragment_a = shared_base() + A::square_offset(w.m, w.lane, 0, 0);
    u32 fragment_b = shared_base() + V::PARTS * A::BYTES + B::square_offset(w.n, w.lane, 0, 0);

    auto load_a = [&](int i, bool is_low) {
        row_fragments &x = a[i % 2];
        u32 (&r)[2][2] = is_low ? x.low : x.high;
        A::matrices(r[0][0], r[0][1], r[1][0], r[1][1], (fragment_a ^ A::square_xor(i)) + A::square_add(i) + is_low * A::BYTES);
    };
    auto load_b = [&](int j, bool is_low) {
        column_fragments &x = b[2 * j], &y = b[2 * j + 1];
        u32 (&r)[2] = is_low ? x.low : x.high, (&s)[2] = is_low ? y.low : y.high;
        B::matrices(r[0], s[0], r[1], s[1], (fragment_b ^ B::square_xor(j)) + B::square_add(j) + is_low * B::BYTES);
    };
    auto add = [&](int two) {
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float &sum = sums.near[two / (NT / 2)][two % (NT / 2) * 2 + q][e];
                sum = __fadd_rn(sum, __fmaf_rn(low[two % 2][q][e], 1.0f / (1 << LOW_LOG), high[two % 2][q][e]));
            }
    };

    const bool low_a = !(args.indirect & HGEMM_FLOATS_EXACT_A), low_b = !(args.indirect & HGEMM_FLOATS_EXACT_B);
    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % TILES == 0 || t == k_tiles)) {
            add(TWOS - 1);
#pragma unroll
            for (int q = 0; q < 2; ++q) {
#pragma unroll
                for (int e = 0; e < 4; ++e) low[(TWOS - 1) % 2][q][e] = high[(TWOS - 1) % 2][q][e] = 0;
            }
        }
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
            load_a(0, true), load_a(0, false), load_b(0, false), load_b(0, true);
        }
        if (t >= k_tiles) break;
        if (t > 0 && t % TILES == 0) sums.to_far();
        const u32 there = T::STAGE - stage;
        typename pipeline::pairs pairs;
#pragma unroll
        for (int place = 0; place < PLACES; ++place) {
            const int two = place / 2, i = two / (NT / 2), j = two % (NT / 2);
            if (place == BARRIER) { /* the next k-tile is complete, and every warp has read the last rows of this one */
                unsettled = any_at_barrier(pipe.seen.failed(pipeline::split::LEAST_LOG)) && t + 1 < k_tiles;
                fragment_a += there - stage, fragment_b += there - stage;
            }
            if (i < MT - 1 && j == 0) load_a(i + 1, place % 2 == 0);
            if (place == BARRIER || place == BARRIER + 1) load_a(0, place == BARRIER);
            if (place == PLACES - 2) load_b(0, false), load_b(0, true);
            if (place == 0) load_b(1, false), load_b(1, true);
            const row_fragments &x = a[i % 2];
#pragma unroll
            for (int s = place % 2 * 3; s < place % 2 * 3 + 3; ++s)
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    const column_fragments &y = b[j * 2 + q];
                    float (&l)[4] = low[two % 2][q], (&h)[4] = high[two % 2][q];
                    if (s == 0) mma_m16n8k8_from_zero(l, x.low[0], y.high[0]);
                    if (s == 1) mma_m16n8k8(l, x.low[1], y.high[1], low_a);
                    if (s == 2) mma_m16n8k8_from_zero(h, x.high[0], y.high[0]);
                    if (s == 3) mma_m16n8k8(l, x.high[0], y.low[0], low_b);
                    if (s == 4) mma_m16n8k8(h, x.high[1], y.high[1]);
                    if (s == 5) mma_m16n8k8(l, x.high[1], y.low[1], low_b);
                }
            if (place % 2) add((two + TWOS - 1) % TWOS);
#pragma unroll
            for (int r = 0; r < 2 * T::SLOTS; ++r) {
                const int q = r / 2, p = r % 2;
                if (place == r) pipe.split_high(pairs, q, p);
                if (place == r && p) pipe.fetch(args, t + 2, q, t + 2 < k_tiles);
                if (place == r + LAG) pipe.split_rest(pairs, q, p, there);
                if (place == r + 2 * LAG) pipe.split_low(pairs, q, p, there);
            }
            /* A branch ends a block of instructions that ptxas orders. Else it puts additions off, for there are registers, and
             * then has the tensor cores wait. Where it goes sums are needed, or they would be added up at the end of the loop. */
            if (T::spec::T4_ROW && place % 2 == 0 && is_past_all<T>(t, place)) goto end;
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
end:
    sums.template drain<true>(w);
    T::store(args, typename T::block(args), sums.near);
}

template <class T> static DEVICE void single(const arguments &args)
{
    constexpr int MMAS = 3 * T::MMAS, LDSMS = 2 * T::LDSMS; /* of a slice */
    constexpr int LDS_GAP = MMAS / 2 / LDSMS, STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr u32 NEAR_TILES = 512 / T::BK;
    constexpr int STS_FIRST = 2, STS_GAP = (STEP_MMAS - STS_FIRST - 1) / T::SLOTS, LDG_LAG = 2;
    using V = typename T::variant;
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<V> pipe(first, w);
    split_sums<V> sums;
    constexpr bool AHEAD = T::ACCESS == X16; /* fragments are loaded a slice ahead, if there are registers */
    split_fragments<V> f[AHEAD ? 2 : 1];
    T::clear(sums.high), T::clear(sums.low), T::clear(sums.near), T::clear(sums.all);

    /* If registers are short, ptxas gathers loads and stores in bunches, unless a barrier keeps them apart. For the whole
     * warp, which is converged here, it is compiled to a NOP. */
    auto keep_apart = [] { if (!AHEAD) warp_barrier(); };

    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
    const bool low_a = !(args.indirect & HGEMM_FLOATS_EXACT_A), low_b = !(args.indirect & HGEMM_FLOATS_EXACT_B);
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % NEAR_TILES == 0 || t == k_tiles || args.indirect & HGEMM_FLOATS_EACH_STEP)) float_pipeline<V>::drain(sums, w);
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
#pragma unroll
            for (int j = 0; AHEAD && j < LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
        }
        if (t >= k_tiles) break;
        const u32 there = T::STAGE - stage;
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
#pragma unroll
            for (int j = 0; !AHEAD && j < LDSMS; ++j) pipe.load_one(f[0], j, kk, stage);
            /* The next k-tile is complete, and every warp has read the last of this one. */
            if (last) unsettled = any_at_barrier(pipe.seen.failed(float_pipeline<V>::split::LEAST_LOG)) && t + 1 < k_tiles;
#pragma unroll
            for (int h = 0; h < MMAS; ++h) {
                const int sts = kk * MMAS + h - STS_FIRST, ldg = sts - LDG_LAG, i = h % T::MMAS / T::NT;
                const int j = i % 2 ? T::NT - 1 - h % T::NT : h % T::NT;
                auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < T::SLOTS; };
                if (AHEAD && h % LDS_GAP == 0 && h / LDS_GAP < LDSMS)
                    pipe.load_one(f[(kk + AHEAD) % 2], h / LDS_GAP, last ? 0 : kk + 1, last ? there : stage);
                const split_fragments<V> &now = f[AHEAD ? kk % 2 : 0];
                if (h < T::MMAS) {
                    mma_m16n8k8(sums.low[i][j], now.low.a[i], now.high.b[j], low_a);
                } else if (h < 2 * T::MMAS) {
                    mma_m16n8k8(sums.low[i][j], now.high.a[i], now.low.b[j], low_b);
                } else if (kk % 2) {
                    mma_m16n8k8(sums.high[i][j], now.high.a[i], now.high.b[j]);
                } else {
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums.near[i][j][e] = __fadd_rn(sums.near[i][j][e], sums.high[i][j][e]);
                    mma_m16n8k8_from_zero(sums.high[i][j], now.high.a[i], now.high.b[j]);
                }
                if (due(sts)) keep_apart(), pipe.template commit<float_pipeline<V>::KEEPS>(sts / STS_GAP, pipe.next[sts / STS_GAP], there);
                if (due(ldg)) pipe.fetch(args, t + 2, ldg / STS_GAP, t + 2 < k_tiles), keep_apart();
            }
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
    T::store(args, typename T::block(args), sums.all);
}

/*
 * For less than FP32's accuracy: one product of the parts of an element, or two (floats.cuh), which add up in one sum. Of one
 * product it stays in the tensor cores for 512 k's, and a warp has registers for a larger tile; of two it leaves them after
 * every k-tile. What they cut off meanwhile is far less than the parts leave out.
 */
template <class T> static DEVICE void rounded(const arguments &args)
{
    constexpr int MMAS = T::PARTS * T::MMAS, LDSMS = T::PARTS * T::LDSMS; /* of a slice */
    constexpr int LDS_GAP = MMAS / LDSMS, STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr bool IS_NEAR = T::spec::ACCURACY == TO_16_BITS;
    constexpr u32 NEAR_TILES = 512 / T::BK;
    constexpr int STS_FIRST = 2, STS_GAP = (STEP_MMAS - STS_FIRST - 1) / T::SLOTS, LDG_LAG = 2;
    using V = typename T::variant;
    const typename T::block first(args);
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    float_pipeline<V> pipe(first, w);
    split_sums<V> sums;
    split_fragments<V> f[2];
    T::clear(sums.high), T::clear(sums.near), T::clear(sums.all);

    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % NEAR_TILES == 0 || t == k_tiles)) float_pipeline<V>::drain(sums, w);
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
#pragma unroll
            for (int j = 0; j < LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
        }
        if (t >= k_tiles) break;
        const u32 there = T::STAGE - stage;
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
            /* The next k-tile is complete, and every warp has read the last of this one. */
            if (last) unsettled = any_at_barrier(pipe.seen.failed(float_pipeline<V>::split::LEAST_LOG)) && t + 1 < k_tiles;
#pragma unroll
            for (int h = 0; h < MMAS; ++h) {
                const int sts = kk * MMAS + h - STS_FIRST, ldg = sts - LDG_LAG;
                auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < T::SLOTS; };
                if (h % LDS_GAP == 0 && h / LDS_GAP < LDSMS) pipe.load_one(f[(kk + 1) % 2], h / LDS_GAP, last ? 0 : kk + 1, last ? there : stage);
                const fragments<V> &now = h < T::MMAS ? f[kk % 2].high : f[kk % 2].low;
                if (IS_NEAR && kk == 0 && h < T::MMAS) {
                    const int i = h / T::NT, j = i % 2 ? T::NT - 1 - h % T::NT : h % T::NT;
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums.near[i][j][e] = __fadd_rn(sums.near[i][j][e], sums.high[i][j][e]);
                    mma_m16n8k8_from_zero(sums.high[i][j], now.a[i], now.b[j]);
                } else {
                    T::multiply_one(sums.high, now, h % T::MMAS);
                }
                if (due(sts)) pipe.template commit<true>(sts / STS_GAP, pipe.next[sts / STS_GAP], there);
                if (due(ldg)) pipe.fetch(args, t + 2, ldg / STS_GAP, t + 2 < k_tiles);
            }
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
    T::store(args, typename T::block(args), sums.all);
}

template <class T> static DEVICE void floats(const arguments &args)
{
    if constexpr (T::spec::ACCURACY == TO_F32 && T::WM == 64) summed<T>(args);
    else if constexpr (T::spec::ACCURACY == TO_F32) single<T>(args);
    else rounded<T>(args);
}

HGEMM_ENTRY_OF(floats, OF_FLOATS)
