/* SPDX-License-Identifier: MIT */
/*
 * planes: A and B in single precision, of which the kernel split (split.cu) has made halves beforehand, in the workspace.
 *
 * Idea      What single.cu does for every tile of D anew is done once for an element: the loop loads fragments, multiplies and
 *           adds up, and nothing else. k-tiles lie in the workspace as shared memory has them, a high plane and a low one, in
 *           the order in which a block reads them, padded with zeros: so the loop's addresses are constants, however A and B
 *           lie.
 * Sums      Tensor cores cut off what they add. High products leave them after two slices, that is 16 k's, and are added in
 *           single precision. Products with a low part are so much smaller that they may stay, for HGEMM_SPLIT_K k's.
 *             low    with a low part: 2^11 times what they are
 *             near   high ones: both of up to HGEMM_SPLIT_K k's, in units of the scales
 *             all    in units of D; in shared memory, for want of registers
 * Scales    A row of A and a column of B have one each for HGEMM_SPLIT_K k's. A block with a row or column that no scale holds,
 *           or that has an infinity or NaN, multiplies A and B themselves by FP32 units.
 * Order     A pair of slices is three phases: A's low parts by B's high ones, A's high by B's low, high by high. Fragments of
 *           the next pair are loaded where those of this one are no longer needed, so that there is one set of either.
 */
#define HGEMM_SPLITS_FIRST
#include "float_units.cuh"
#include "tile.cuh"

/* A row's or column's scale; 0: it has none. */
static DEVICE float scale_at(const float *scales, u32 i)
{
    u32 bits = 0;
    ld_global_word(bits, (const char *)(scales + i), true);
    return __uint_as_float(bits);
}

template <class V> struct float_tile {
    const float *scales_a, *scales_b; /* of the block's tile, for the k's of a k-tile */
    u32 pitch_a, pitch_b;             /* to those of the next HGEMM_SPLIT_K k's */

    DEVICE float_tile(const arguments &args, const block<V> &at, u32 k_tile)
    {
        pitch_a = at.tile_rows * V::BM, pitch_b = at.tile_columns * V::BN;
        const u32 panel = k_tile / (HGEMM_SPLIT_K / V::BK);
        scales_a = args.planes.scale_a + batch_index() * args.planes.scale_stride_a + panel * pitch_a + at.m0;
        scales_b = args.planes.scale_b + batch_index() * args.planes.scale_stride_b + panel * pitch_b + at.n0;
    }

    /* Whether all rows and columns have scales for `k` k's, which begin anywhere. All threads of the block ask. */
    DEVICE bool has_scales(u32 k0, u32 k) const
    {
        const u32 panels = (k0 % HGEMM_SPLIT_K + k + HGEMM_SPLIT_K - 1) / HGEMM_SPLIT_K;
        bool lacks = false;
        for (u32 i = thread_index(); i < V::BM + V::BN; i += V::THREADS)
#pragma unroll 4
            for (u32 t = 0; t < panels; ++t)
                lacks |= (i < V::BM ? scale_at(scales_a, t * pitch_a + i) : scale_at(scales_b, t * pitch_b + i - V::BM)) == 0;
        return !any_at_barrier(lacks);
    }

    /* Adds the sums of these k's to those in shared memory, in units of D, leaves all in `near`, and clears `low`. */
    DEVICE void join(typename V::sums &near, typename V::sums &low) const
    {
        const warp<V> w;
        int row[V::MT * 2], column[V::NT * 2]; /* logarithms of what to multiply by */
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) row[i] = -log2_of(scale_at(scales_a, w.m + i * 8 + w.lane / 4));
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) column[j] = -log2_of(scale_at(scales_b, w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2));
        int least_row = row[0], most_row = row[0], least_column = column[0], most_column = column[0];
#pragma unroll
        for (int i = 1; i < V::MT * 2; ++i) least_row = min(least_row, row[i]), most_row = max(most_row, row[i]);
#pragma unroll
        for (int j = 1; j < V::NT * 2; ++j) least_column = min(least_column, column[j]), most_column = max(most_column, column[j]);
        /* The factor may be no float, but its root is one. */
        const bool are_floats = all_lanes(least_row + least_column >= -126 && most_row + most_column <= 127);
#pragma unroll
        for (int i = 0; i < V::MT; ++i)
#pragma unroll
            for (int j = 0; j < V::NT; ++j) {
                b128 v;
                ld_shared(v, all_at(i * V::NT + j));
                float *const all[4] = {(float *)&v.x, (float *)&v.y, (float *)&v.z, (float *)&v.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int log = row[i * 2 + e / 2] + column[j * 2 + e % 2], half = are_floats ? 0 : log >> 1;
                    const float sum = __fmaf_rn(low[i][j][e], 1.0f / (1 << LOW_LOG), near[i][j][e]);
                    near[i][j][e] = __fmaf_rn(are_floats ? sum : __fmul_rn(sum, power_of_two(half)), power_of_two(log - half), *all[e]);
                    low[i][j][e] = 0;
                    *all[e] = near[i][j][e];
                }
                st_shared(all_at(i * V::NT + j), v);
            }
    }
    /* Where a thread keeps the sums of mma tile c of its warp's, beyond the stages. */
    static DEVICE u32 all_at(int c) { return shared_base() + V::MAIN_BYTES + (c * V::THREADS + thread_index()) * 16; }
    static DEVICE void clear()
    {
#pragma unroll
        for (int c = 0; c < V::MMAS; ++c) st_shared(all_at(c), b128{});
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
        const block<V> at(args);
#pragma unroll 1
        for (u32 l = 0; l < at.k;) {
            multiply_floats_at<V>(few, at, w, l, [](int, int) { return true; });
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
    /* Chunks that are on their way at one time. A T4's machine code is for the emulator alone, and has fewer registers. */
    static constexpr int FLYING = V::spec::T4_ROW ? 1 : LOADS / 2;
    static_assert(A_BYTES % ROUND == 0 && B_BYTES == A_BYTES && LOADS == 8, "threads do not share the chunks evenly");

    const arguments &args;
    u32 a, b; /* the thread's first chunk of the k-tile to fetch next, counted from the first of all planes: half of an address */
    b128 next[FLYING];
    u32 own, fragment_a, fragment_b; /* in the first stage: the thread's first chunk, the lane's row of the first ldmatrix */

    DEVICE plane_pipeline(const arguments &arguments, const block<V> &at, const warp<V> &w) : args(arguments)
    {
        const u32 base = shared_base(), thread = thread_index(), k_tiles = ((u32)args.k + V::BK - 1) / V::BK, first = at.k0 / V::BK;
        a = (u32)(batch_index() * args.planes.stride_a / 16) + (at.m0 / V::BM * k_tiles + first) * (A_BYTES / 16) + thread;
        b = (u32)(batch_index() * args.planes.stride_b / 16) + (at.n0 / V::BN * k_tiles + first) * (B_BYTES / 16) + thread;
        own = base + thread * 16;
        fragment_a = base + A::fragment_offset(w.m, w.lane_a(), 0, 0);
        fragment_b = base + A_BYTES + B::fragment_offset(w.n, w.lane_b(), 0, 0);
    }

    DEVICE const char *chunk_at(bool is_b) const { return (const char *)(is_b ? args.planes.b : args.planes.a) + (is_b ? b : a) * 16ull; }

    /* Chunk q, or chunk q - LOADS of the k-tile beyond, where there are `left` k-tiles. */
    DEVICE void fetch(int q, u32 left)
    {
        const int c = q % LOADS;
        const u32 beyond = q / LOADS * A_BYTES + c % A_LOADS * ROUND;
        ld_generic(next[q % FLYING], chunk_at(c >= A_LOADS) + beyond, left > q / LOADS);
    }
    DEVICE void advance() { a += A_BYTES / 16, b += B_BYTES / 16; }
    DEVICE void commit(int q, u32 stage) const { st_shared(own + q * ROUND + stage, next[q % FLYING]); }

    /* A line of the k-tile `ahead` ones beyond: 8 threads have chunks of it, and as many chunks each. */
    DEVICE void prefetch(u32 ahead) const
    {
        const u32 q = thread_index() % 8;
        prefetch_l2(chunk_at(q >= A_LOADS) + q % A_LOADS * ROUND + ahead * A_BYTES);
    }

    /* Fragments of slice kk: the i-th ldmatrix of A, all of B. Low ones lie a plane beyond. */
    DEVICE void load_a(fragments<V> &f, int i, int kk, bool low, u32 stage) const
    {
        ::load_one(f, V::B_LDSMS + i, (fragment_a ^ A::fragment_xor(i, kk)) + A::fragment_add(i, kk) + low * A::BYTES + stage);
    }
    DEVICE void load_b(u32 (&to)[V::NT], int kk, bool low, u32 stage) const
    {
        fragments<V> f;
#pragma unroll
        for (int i = 0; i < V::B_LDSMS; ++i)
            ::load_one(f, i, (fragment_b ^ B::fragment_xor(i, kk)) + B::fragment_add(i, kk) + low * B::BYTES + stage);
#pragma unroll
        for (int j = 0; j < V::NT; ++j) to[j] = f.b[j];
    }
};

template <class T> static DEVICE void planes(const arguments &args)
{
    using V = typename T::variant;
    using pipeline = plane_pipeline<V>;
    constexpr int PHASE = 2 * T::MMAS, PAIR = 3 * PHASE; /* in mma's */
    constexpr int BEFORE = T::SLICES / 2 * PAIR - PHASE; /* those of a step before its barrier */
    /* In mma's from the begin of a step: a chunk of the next k-tile is committed, and the next to lie in its registers
     * fetched. High products are added so many mma's after the last one of a row of them. */
    constexpr int STS_GAP = BEFORE / pipeline::LOADS, LDG_LAG = 2, ADD_LAG = T::spec::T4_ROW ? 0 : 2;
    /* The first fragments of a pair are loaded in the last phase of the one before. Not in a T4's machine code, which runs in
     * the emulator alone: there ptxas puts off additions and spills the products. So it loads late, and has each row of
     * products depend on the sums of the one before. */
    constexpr bool EARLY = !T::spec::T4_ROW;
    constexpr u32 PANEL = HGEMM_SPLIT_K / T::BK;
    const typename T::block at(args);
    typename T::sums near, low;
    T::clear(near), T::clear(low);
    if (!float_tile<V>(args, at, at.k0 / T::BK).has_scales(at.k0, at.k)) {
        float_tile<V>::multiply_floats(near, low, args, typename T::warp());
        T::store(args, typename T::block(args), near);
        return;
    }
    pipeline pipe(args, at, typename T::warp());
    typename T::fragments f[2]; /* of a pair's slices: A's low parts, then its high ones; and B's high parts */
    u32 low_b[2][T::NT];
    float part[2][T::NT][4];
    u32 t = at.k0 / T::BK; /* the k-tile to multiply, and the one past the last */
    const u32 end = t + at.k_tiles, first = t % 2 * T::STAGE;
    float_tile<V>::clear();
#pragma unroll
    for (int q = 0; q < pipeline::FLYING; ++q) pipe.fetch(q, at.k_tiles);
#pragma unroll
    for (int q = 0; q < pipeline::LOADS; ++q) pipe.commit(q, first), pipe.fetch(q + pipeline::FLYING, at.k_tiles);
    pipe.advance();
    barrier(); /* k-tile 0 is complete */

    /* What is loaded for pair p before its mma h; before its first one, h counts from there. */
    auto load = [&](int h, int p, u32 from) {
        constexpr int S = T::MMAS, HALF = T::MMAS / 2;
        auto is_due = [h](int due) { return h == (EARLY ? due : max(due, 0)); };
        if (is_due(-PHASE + 2)) pipe.load_b(f[0].b, 2 * p, false, from);
        if (is_due(-PHASE + 6)) pipe.load_b(f[1].b, 2 * p + 1, false, from);
        if (is_due(-S + 1)) pipe.load_a(f[0], 0, 2 * p, true, from);
        if (is_due(-S + 3)) pipe.load_a(f[0], 1, 2 * p, true, from);
        if (is_due(0)) pipe.load_a(f[1], 0, 2 * p + 1, true, from);
        if (is_due(2)) pipe.load_a(f[1], 1, 2 * p + 1, true, from);
        if (is_due(S)) pipe.load_a(f[0], 0, 2 * p, false, from);
        if (is_due(S + 2)) pipe.load_a(f[0], 1, 2 * p, false, from);
        if (is_due(S + HALF)) pipe.load_a(f[1], 0, 2 * p + 1, false, from);
        if (is_due(PHASE)) pipe.load_a(f[1], 1, 2 * p + 1, false, from);
        if (is_due(PHASE + S)) pipe.load_b(low_b[0], 2 * p, true, from);
        if (is_due(PHASE + S + 4)) pipe.load_b(low_b[1], 2 * p + 1, true, from);
    };
#pragma unroll
    for (int h = EARLY ? -PHASE : 0; h < 0; ++h) load(h, 0, first);

#pragma unroll 1
    for (;;) {
        const u32 stage = t % 2 * T::STAGE, there = T::STAGE - stage, left = end - t;
        auto move = [&](int h) { /* what is due after so many mma's */
            const int sts = h - 1, ldg = sts - LDG_LAG;
            auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < pipeline::LOADS; };
            if (due(sts)) pipe.commit(sts / STS_GAP, there);
            if (due(ldg)) pipe.fetch(ldg / STS_GAP + pipeline::FLYING, left - 1);
            if (T::spec::PREFETCH && h == PHASE && left > T::spec::PREFETCH + 1) pipe.prefetch(T::spec::PREFETCH);
        };
#pragma unroll
        for (int p = 0; p < T::SLICES / 2; ++p) {
            const bool is_last = p + 1 == T::SLICES / 2;
#pragma unroll
            for (int h = 0; h < PAIR; ++h) {
                if (h == 2 * PHASE && is_last) barrier(); /* the next k-tile is complete, and every warp has read this one */
                load(h, p, stage);
                if (EARLY) load(h - PAIR, is_last ? 0 : p + 1, is_last ? there : stage);
                const int g = h % T::MMAS;
                if (h / PHASE != 1) {
                    const int s = h / T::MMAS % 2, i = g / T::NT, j = i % 2 ? T::NT - 1 - g % T::NT : g % T::NT;
                    mma_m16n8k8(low[i][j], f[s].a[i], h < PHASE ? f[s].b[j] : low_b[s][j]);
                } else {
                    const int s = h / T::NT % 2, i = (h - PHASE) / T::NT / 2, j = h % T::NT;
                    if (s == 0 && !EARLY && i > 0) {
                        const u32 zero = args.groups; /* which the compiler does not know */
#pragma unroll
                        for (int e = 0; e < 4; ++e)
                            part[i % 2][j][e] = __uint_as_float(__float_as_uint(near[i - 1][(j + T::NT - 1) % T::NT][e]) & zero);
                        mma_m16n8k8(part[i % 2][j], f[0].a[i], f[0].b[j]);
                    } else if (s == 0) {
                        mma_m16n8k8_from_zero(part[i % 2][j], f[0].a[i], f[0].b[j]);
                    } else {
                        mma_m16n8k8(part[i % 2][j], f[1].a[i], f[1].b[j]);
                    }
                }
                const int add = h - PHASE - 2 * T::NT - ADD_LAG, i = add / (2 * T::NT), j = add % (2 * T::NT);
                if (add >= 0 && i < T::MT && j < T::NT)
#pragma unroll
                    for (int e = 0; e < 4; ++e) near[i][j][e] = __fadd_rn(near[i][j][e], part[i % 2][j][e]);
                move(p * PAIR + h);
                if (h % 8 == 7) warp_barrier(); /* compiled to a NOP: it keeps loads and stores from being gathered */
            }
        }
        pipe.advance();
        ++t;
        if (t % PANEL == 0 || t == end) {
            const typename T::block where(args); /* computed anew: the loop has no registers for it */
            float_tile<V>(args, where, t - 1).join(near, low);
            if (t == end) break;
            T::clear(near);
        }
    }
    T::store(args, typename T::block(args), near);
}

HGEMM_ENTRY_OF(planes, OF_FLOATS)
