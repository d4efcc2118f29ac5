/* SPDX-License-Identifier: MIT */
/*
 * k-tiles of floats on their way: from memory to registers, by scales to halves in shared memory, to fragments. And sums that
 * leave the tensor cores (single.cu).
 */
#pragma once

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
     * they leave; low parts. Then a unit's high parts, or low ones, are written. */
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
    DEVICE void split_rest(pairs &of, int q, int p)
    {
        const int e = p * 2;
        of.high[q][p] = pair_of(of.half[q][e], of.half[q][e + 1]);
        seen.add(of.y[q][e], of.y[q][e + 1], of.high[q][p]);
        of.half[q][e] = to_half(split::low(of.y[q][e], to_float(of.half[q][e])));
        of.half[q][e + 1] = to_half(split::low(of.y[q][e + 1], to_float(of.half[q][e + 1])));
    }
    DEVICE void split_low(pairs &of, int q, int p) const { of.low[q][p] = pair_of(of.half[q][p * 2], of.half[q][p * 2 + 1]); }
    DEVICE void commit_plane(const pairs &of, int q, bool is_low, u32 stage) const
    {
        const u32 (&words)[2] = is_low ? of.low[q] : of.high[q];
        st_shared_words(commit_to(q) + stage + (!is_low ? 0 : q < A::LOADS ? A::BYTES : B::BYTES), words[0], words[1]);
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
        const bool is_wide = most >= 0x7f800000 || bottom + log < LEAST_LOG;
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
