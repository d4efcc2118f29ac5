/* SPDX-License-Identifier: MIT */
/*
 * planes: A and B in single precision, of which the kernel split (split.cu) has made halves beforehand, in the workspace.
 *
 * Idea      What single.cu does for every tile of D anew is done once for an element: the loop loads fragments, multiplies and
 *           adds up, and nothing else. k-tiles lie in the workspace as shared memory has them, a high plane and a low one, in
 *           the order in which a block reads them, padded with zeros: so the loop's addresses are constants, however A and B
 *           lie.
 * Sums      High products leave the tensor cores after a k-tile, that is 32 k's, and are added in single precision. They are
 *           multiplied last, a chain of four mma's for each tile of sums, which needs registers only until its end. Products
 *           with a low part are so much smaller that they may stay.
 *             low    with a low part: 2^11 times what they are
 *             near   high ones, and at the end all: in units of the scales
 * Scales    A row of A and a column of B have one each. A block with a row or column that no scale holds, or that has an
 *           infinity or NaN, multiplies A and B themselves by FP32 units.
 */
#define HGEMM_SPLITS_FIRST
#include "tile.cuh"

/* Scale number i of a row or column; past the last one, that. 0: it has none. */
static DEVICE float scale_at(const float *scales, u32 i, u32 count)
{
    u32 bits = 0;
    ld_global_word(bits, (const char *)(scales + minimum(i, count - 1)), true);
    return __uint_as_float(bits);
}

template <class V> struct float_tile {
    const float *scales_a, *scales_b; /* of the block's matrix */
    u32 m0, n0;

    DEVICE float_tile(const arguments &args, const block<V> &at)
    {
        scales_a = args.planes.scale_a + batch_index() * args.planes.scale_stride_a;
        scales_b = args.planes.scale_b + batch_index() * args.planes.scale_stride_b;
        m0 = at.m0, n0 = at.n0;
    }

    /* Whether every row and column has a scale. All threads of the block ask. */
    DEVICE bool has_scales(const arguments &args) const
    {
        bool lacks = false;
        for (u32 i = thread_index(); i < V::BM + V::BN; i += V::THREADS)
            lacks |= (i < V::BM ? scale_at(scales_a, m0 + i, args.m) : scale_at(scales_b, n0 + i - V::BM, args.n)) == 0;
        return !any_at_barrier(lacks);
    }

    /* Joins the sums, in units of D. The factor may be no float, but its root is one. */
    DEVICE void join(typename V::sums &near, const typename V::sums &low, const arguments &args, const warp<V> &w) const
    {
        int row[V::MT * 2];
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) row[i] = log2_of(scale_at(scales_a, m0 + w.m + i * 8 + w.lane / 4, args.m));
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) {
            const int column = log2_of(scale_at(scales_b, n0 + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2, args.n));
#pragma unroll
            for (int i = 0; i < V::MT * 2; ++i) {
                const int log = -(row[i] + column), half = log >> 1, e = i % 2 * 2 + j % 2;
                float &sum = near[i / 2][j / 2][e];
                sum = __fmaf_rn(low[i / 2][j / 2][e], 1.0f / (1 << LOW_LOG), sum);
                sum = __fmul_rn(__fmul_rn(sum, power_of_two(half)), power_of_two(log - half));
            }
        }
    }

    /* Adds sums to those of more k's. */
    static DEVICE void add(typename V::sums &all, typename V::sums &few)
    {
#pragma unroll
        for (int i = 0; i < V::MT; ++i)
#pragma unroll
            for (int j = 0; j < V::NT; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) all[i][j][e] = __fadd_rn(all[i][j][e], few[i][j][e]), few[i][j][e] = 0;
    }

    /* The tile by FP32 units, 32 k's at a time, of A and B themselves. */
    static DEVICE void multiply_floats(typename V::sums &sums, typename V::sums &few, const arguments &args, const warp<V> &w)
    {
        using A = typename V::A;
        using B = typename V::B;
        const block<V> at(args);
#pragma unroll 1
        for (u32 l = 0; l < at.k;) {
            panel a = at.a, b = at.b;
            a.ld = in_place(a.ld), b.ld = in_place(b.ld); /* or all addresses are computed before the loop, to lie in registers */
            u32 x[V::MT * 2], y;
#pragma unroll
            for (int i = 0; i < V::MT * 2; ++i) ld_global_word(x[i], A::element(a, w.m + i * 8 + w.lane / 4, l), true);
#pragma unroll
            for (int j = 0; j < V::NT * 2; ++j) {
                ld_global_word(y, B::element(b, w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2, l), true);
#pragma unroll
                for (int i = 0; i < V::MT * 2; ++i) {
                    float &sum = few[i / 2][j / 2][i % 2 * 2 + j % 2];
                    sum = __fmaf_rn(__uint_as_float(x[i]), __uint_as_float(y), sum);
                }
            }
            if (++l % V::BK == 0 || l == at.k) add(sums, few);
        }
    }
};

/* k-tiles of both operands on their way: from where split left them, as shared memory has them, to fragments. */
template <class V> struct plane_pipeline {
    using A = typename V::A;
    using B = typename V::B;
    static constexpr u32 A_BYTES = A::BYTES * V::PARTS, B_BYTES = B::BYTES * V::PARTS, ROUND = V::THREADS * 16;
    static constexpr int A_LOADS = A_BYTES / ROUND, LOADS = A_LOADS + B_BYTES / ROUND; /* chunks of a thread */
    static_assert(A_BYTES % ROUND == 0 && B_BYTES % ROUND == 0, "threads do not share the chunks evenly");

    const char *a, *b; /* the thread's first chunk of the k-tile to fetch next */
    b128 next[LOADS];
    u32 own, fragment_a, fragment_b; /* in the first stage: the thread's first chunk, the lane's row of the first ldmatrix */

    DEVICE plane_pipeline(const arguments &args, const block<V> &at, const warp<V> &w)
    {
        const u32 base = shared_base(), thread = thread_index(), k_tiles = ((u32)args.k + V::BK - 1) / V::BK;
        const assignment<V> mine(args, at.tile_rows * at.tile_columns);
        const u32 first = mine.part * ((u32)args.k_split / V::BK);
        a = (const char *)args.planes.a + batch_index() * args.planes.stride_a + thread * 16;
        b = (const char *)args.planes.b + batch_index() * args.planes.stride_b + thread * 16;
        a += (at.m0 / V::BM * (u64)k_tiles + first) * A_BYTES, b += (at.n0 / V::BN * (u64)k_tiles + first) * B_BYTES;
        own = base + thread * 16;
        fragment_a = base + A::fragment_offset(w.m, w.lane_a(), 0, 0);
        fragment_b = base + A_BYTES + B::fragment_offset(w.n, w.lane_b(), 0, 0);
    }

    DEVICE void fetch(int q, bool more)
    {
        if (q < A_LOADS) ld_generic(next[q], a + q * ROUND, more);
        else ld_generic(next[q], b + (q - A_LOADS) * ROUND, more);
    }
    DEVICE void commit(int q, u32 stage) const { st_shared(own + q * ROUND + stage, next[q]); }
    DEVICE void advance() { a += A_BYTES, b += B_BYTES; }

    /* All of a k-tile, and on to the next one. */
    DEVICE void fetch(bool more)
    {
#pragma unroll
        for (int q = 0; q < LOADS; ++q) fetch(q, more);
        advance();
    }

    /* Fragments of slice kk, of A only the i-th ldmatrix; low ones lie a plane beyond. */
    DEVICE void load_a(fragments<V> &f, int i, int kk, bool low, u32 stage) const
    {
        ::load_one(f, V::B_LDSMS + i, (fragment_a ^ A::fragment_xor(i, kk)) + A::fragment_add(i, kk) + low * A::BYTES + stage);
    }
    DEVICE void load_a(fragments<V> &f, int kk, bool low, u32 stage) const
    {
#pragma unroll
        for (int i = 0; i < V::LDSMS - V::B_LDSMS; ++i) load_a(f, i, kk, low, stage);
    }
    DEVICE void load_b(fragments<V> &f, int kk, bool low, u32 stage) const
    {
#pragma unroll
        for (int i = 0; i < V::B_LDSMS; ++i)
            ::load_one(f, i, (fragment_b ^ B::fragment_xor(i, kk)) + B::fragment_add(i, kk) + low * B::BYTES + stage);
    }
};

template <class T> static DEVICE void planes(const arguments &args)
{
    using V = typename T::variant;
    using pipeline = plane_pipeline<V>;
    constexpr int SLICES = T::SLICES, LOW_MMAS = 2 * T::MMAS, MMAS = SLICES * LOW_MMAS; /* of a slice, of a step before its barrier */
    /* In mma's from the begin of a step: a chunk of the next k-tile is committed, and that of the one after it fetched at
     * once, so that it has a whole step to come. */
    constexpr int GAP = 4, LAG = 2, COMMIT = MMAS - GAP * pipeline::LOADS;
    static_assert(COMMIT >= 0, "a chunk is committed before the barrier");
    constexpr int CHAIN = 2; /* mma's, after which high products leave the tensor cores */
    constexpr u32 NEAR_TILES = 512 / T::BK;
    const typename T::warp w;
    typename T::sums near, low, all;
    T::clear(near), T::clear(low), T::clear(all);
    const typename T::block at(args);
    if (!float_tile<V>(args, at).has_scales(args)) {
        float_tile<V>::multiply_floats(near, low, args, w);
        T::store(args, typename T::block(args), near);
        return;
    }
    pipeline pipe(args, at, w);
    typename T::fragments high[SLICES], rest;
    float part[T::NT][4];
    u32 left = at.k_tiles, stage = 0;
    pipe.fetch(left > 0);
#pragma unroll
    for (int q = 0; q < pipeline::LOADS; ++q) pipe.commit(q, 0);
    pipe.fetch(left > 1);
    barrier(); /* k-tile 0 is complete */
    pipe.load_a(high[0], 0, false, 0), pipe.load_b(rest, 0, true, 0);

#pragma unroll 1
    for (; left > 0; --left) {
        const u32 there = T::STAGE - stage;
        auto move = [&](int h) { /* what is due after so many mma's */
            const int sts = h - COMMIT, ldg = sts - LAG;
            auto due = [](int mmas) { return mmas >= 0 && mmas % GAP == 0 && mmas / GAP < pipeline::LOADS; };
            if (due(sts)) warp_barrier(), pipe.commit(sts / GAP, there);
            if (due(ldg)) pipe.fetch(ldg / GAP, left > 2), warp_barrier();
        };
#pragma unroll
        for (int s = 0; s < SLICES; ++s)
#pragma unroll
            for (int h = 0; h < LOW_MMAS; ++h) {
                const int g = h % T::MMAS, i = g / T::NT, j = i % 2 ? T::NT - 1 - g % T::NT : g % T::NT;
                /* High fragments of A and low ones of B are there already. */
                if (h == 0) pipe.load_b(high[s], s, false, stage), pipe.load_a(rest, s, true, stage);
                if (h == T::MMAS && s + 1 < SLICES) pipe.load_a(high[s + 1], s + 1, false, stage), pipe.load_b(rest, s + 1, true, stage);
                if (h < T::MMAS) mma_m16n8k8(low[i][j], high[s].a[i], rest.b[j]);
                else mma_m16n8k8(low[i][j], rest.a[i], high[s].b[j]);
                move(s * LOW_MMAS + h);
            }
        barrier(); /* the next k-tile is complete, and every warp has read this one */
#pragma unroll
        for (int c = 0; c < T::MT * SLICES; ++c) { /* a row of mma tiles, and a slice */
            const int i = c / SLICES, k = c % SLICES;
#pragma unroll
            for (int j = 0; j < T::NT; ++j) {
                if (k % CHAIN == 0) mma_m16n8k8_from_zero(part[j], high[k].a[i], high[k].b[j]);
                else mma_m16n8k8(part[j], high[k].a[i], high[k].b[j]);
                move(MMAS + c * T::NT + j);
            }
            if (c == SLICES - 1) pipe.load_b(rest, 0, true, there);
            if (i % 2 && k == SLICES - 1) pipe.load_a(high[0], i / 2, 0, false, there);
            if (k % CHAIN < CHAIN - 1) continue;
#pragma unroll
            for (int j = 0; j < T::NT; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) near[i][j][e] = __fadd_rn(near[i][j][e], part[j][e]);
        }
        pipe.advance();
        stage = there;
        if (left % NEAR_TILES == 1) float_tile<V>::add(all, near);
    }
    /* Computed anew: the loop has no registers for it. */
    const typename T::block where(args);
    float_tile<V>(args, where).join(all, low, args, w);
    T::store(args, where, all);
}

HGEMM_ENTRY_OF(planes, OF_FLOATS)
