/* SPDX-License-Identifier: MIT */
/* Two products of halves for one of floats, by warps of 64x64 (single.cu): a loop whose order is given place by place. */
#pragma once

#include "short_sums.cuh"

/* What short_sums::drain does at the end, by fewer instructions: powers of a lane's rows and columns are halved once,
 * their products are found by adding exponents, and other sums are asked for once. No branch chooses between two ways:
 * the loop's order of instructions suffers. The exponent of a product is -127 at least: 0 as of a subnormal number, and
 * then D is 0. */
template <class V> static DEVICE void drain_at_end(short_sums<V> &sums, const warp<V> &w)
{
    using pipe = typename short_sums<V>::pipe;
    constexpr int ALL = V::MMAS * 4;
    u32 first[V::MT * 2], second[V::MT * 2];
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) {
        const int log = -pipe::log_at(w.m + i * 8 + w.lane / 4), half = log >> 1;
        first[i] = __float_as_uint(__fmul_rn(power_of_two(half), 64.0f / 65)),
        second[i] = __float_as_uint(power_of_two(log - half));
    }
    if (sums.has_far)
#pragma unroll
        for (int c = 0; c < ALL; ++c)
            sums.of(c) = __fadd_rn(sums.far[c], sums.of(c));
#pragma unroll
    for (int j = 0; j < V::NT * 2; ++j) {
        const int log = -pipe::log_at(V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2), half = log >> 1;
        const u32 to_first = (u32)half << 23, to_second = (u32)(log - half) << 23;
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) {
            float &x = sums.of((i / 2 * V::NT + j / 2) * 4 + i % 2 * 2 + j % 2);
            x = __fmul_rn(__fmul_rn(x, __uint_as_float(first[i] + to_first)), __uint_as_float(second[i] + to_second));
        }
    }
    if (sums.has_all) /* a zero there may be due to others' scales, and -0 stays */
#pragma unroll
        for (int c = 0; c < ALL; ++c) {
            const float x = sums.of(c), other = sums.all[c];
            sums.of(c) = other == 0 ? x : __fadd_rn(x, other);
        }
}

/* Writes a D of floats that is nothing but the sums, in aligned pairs, from registers: a warp's store is a sector of each of
 * eight rows. That keeps the load/store unit busy for less time than to bring them to shared memory, to read them and to store
 * whole lines. False where D is more. The bits are those of store_plain (output.cuh). */
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

/*
 * A k-tile is one pair of slices. High parts of its 16 k's are multiplied, then those that stand in the place of low ones: so a warp
 * has registers for fragments of one part. A place is two mma tiles of one part: they start from zero, and what came out
 * for the two before is added up.
 */
template <class T> static DEVICE void two_products(const arguments &args)
{
    using V = typename T::variant;
    using A = typename V::A;
    using B = typename V::B;
    using pipeline = float_pipeline<V>;
    constexpr int MT = T::MT, NT = T::NT, ROW = NT / 2, TWOS = MT * ROW, PLACES = 2 * TWOS;
    constexpr int BARRIER = 28, TO_REST = 1, TO_LOW = 3; /* places: that of the barrier; from the first step of a pair's split to others */
    constexpr int NEXT_A = 2, NEXT_B = 13; /* places of a row, and of a part, where fragments of the next one are loaded */
    constexpr u32 TILES = 2048 / V::BK; /* for 16 bits sums may be twice as long as short_sums has them */
    static_assert(T::SLICES == 2 && MT % 2 == 0 && T::ACCESS == X16, "the order of loads is for these");
    static_assert(4 * T::SLOTS - 1 + TO_LOW < BARRIER, "the k-tile is written after the barrier");
    static_assert(NEXT_A + PLACES - 2 * ROW < BARRIER && NEXT_A + PLACES - ROW >= BARRIER, "fragments of A are of another k-tile");
    static_assert(NEXT_B > TWOS - ROW && NEXT_B + TWOS >= BARRIER, "fragments of B are needed yet, or not there yet");
    const typename T::block first(args);
    const u32 k_tiles = first.k_tiles;
    pipeline pipe(first, typename T::warp());
    typename short_sums<V>::memory memory;
    short_sums<V> sums(memory, args);
    u32 a[2][2][2];           /* fragments of a row of mma tiles, and of the next one, by slices */
    u32 b[NT][2];             /* those of columns */
    float part[2][2][4] = {}; /* of two mma tiles, and of the two before */
    u32 fragment_a, fragment_b;
    {
        const typename T::warp w;
        fragment_a = shared_base() + A::square_offset(w.m, w.lane, 0, 0);
        fragment_b = shared_base() + V::PARTS * A::BYTES + B::square_offset(w.n, w.lane, 0, 0);
    }

    auto load_a = [&](int i, bool is_low) {
        u32 (&r)[2][2] = a[i % 2];
        A::matrices(r[0][0], r[0][1], r[1][0], r[1][1], (fragment_a ^ A::square_xor(i)) + A::square_add(i) + is_low * A::BYTES);
    };
    auto load_b = [&](int j, bool is_low) {
        u32 (&r)[2] = b[2 * j], (&s)[2] = b[2 * j + 1];
        B::matrices(r[0], s[0], r[1], s[1], (fragment_b ^ B::square_xor(j)) + B::square_add(j) + is_low * B::BYTES);
    };
    auto add = [&](int two) {
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float &sum = sums.near[two / ROW][two % ROW * 2 + q][e];
                sum = __fadd_rn(sum, part[two % 2][q][e]);
            }
    };

    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0, is_due = true; /* other than to multiply k-tile t */
#pragma unroll 1
    for (;;) {
        if (is_due) {
            if (t > 0) {
                add(TWOS - 1);
#pragma unroll
                for (int q = 0; q < 2; ++q)
#pragma unroll
                    for (int e = 0; e < 4; ++e) part[(TWOS - 1) % 2][q][e] = 0;
            }
            if (unsettled) {
                if (t > 0) sums.put_aside();
                pipe.settle(sums, args, typename T::warp(), t, stage);
                if (t > 0) sums.take_back();
                else clear<V>(sums.near);
                load_a(0, false);
#pragma unroll
                for (int j = 0; j < TWOS - NEXT_B; ++j) load_b(j, false);
            }
            if (t >= k_tiles) break;
            if (t > 0 && t % TILES == 0) sums.to_far();
        }
        const u32 there = T::STAGE - stage;
        typename pipeline::pairs pairs;
#pragma unroll
        for (int place = 0; place < PLACES; ++place) {
            const int two = place % TWOS, i = two / ROW, j = two % ROW;
            const bool is_low = place >= TWOS;
            if (place == BARRIER) { /* the next k-tile is complete, and every warp has read the last rows of this one */
                unsettled = any_at_barrier(pipe.seen.failed(pipeline::split::LEAST_LOG)) && t + 1 < k_tiles;
                is_due = unsettled || t + 1 == k_tiles || (t + 1) % TILES == 0;
                fragment_a += there - stage, fragment_b += there - stage;
            }
            if (j == NEXT_A) load_a((i + 1) % MT, is_low != (i == MT - 1));
#pragma unroll
            for (int c = 0; c < ROW; ++c)
                if (two == (NEXT_B + c) % TWOS) load_b(c, is_low != (two >= NEXT_B));
#pragma unroll
            for (int s = 0; s < 2; ++s)
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    float (&sum)[4] = part[two % 2][q];
                    if (s == 0) mma_m16n8k8_from_zero(sum, a[i % 2][0], b[j * 2 + q][0]);
                    if (s == 1) mma_m16n8k8(sum, a[i % 2][1], b[j * 2 + q][1]);
                }
            add((two + TWOS - 1) % TWOS);
#pragma unroll
            for (int r = 0; r < 2 * T::SLOTS; ++r) {
                const int q = r / 2, p = r % 2, at = 2 * r + r / T::SLOTS;
                if (place == at) pipe.split_high(pairs, q, p);
                if (place == at && p) pipe.fetch(args, t + 2, q, t + 2 < k_tiles);
                if (place == at + TO_REST) pipe.split_rest(pairs, q, p, there);
                if (place == at + TO_LOW) pipe.split_low(pairs, q, p, there);
            }
            /* A branch ends a block of instructions, as in short_sums.cuh. */
            if (T::spec::T4_ROW && place % 4 == 1 && is_past_all<T>(t, place)) goto end;
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
end:
    drain_at_end(sums, typename T::warp());
    if constexpr (T::spec::T4_ROW)
        if (store_pairs(args, sums)) return;
    T::store(args, typename T::block(args), sums.near);
}
