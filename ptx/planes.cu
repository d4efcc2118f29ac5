/* SPDX-License-Identifier: MIT */
/*
 * planes: A and B in single precision, of which the kernel split (split.cu) has made halves beforehand, in the workspace.
 *
 * Idea      What single.cu does for every tile of D anew is done once for an element: the loop loads fragments, multiplies and
 *           adds up, and nothing else. k-tiles lie in the workspace as shared memory has them, a plane for each part of an
 *           element, in the order in which a block reads them, padded with zeros: so the loop's addresses are constants,
 *           however A and B lie.
 * Planes    Chunks of 8 k's of a row of op(A), or column of op(B); those of the same k's follow each other. So ldmatrix, which
 *           takes a chunk from each of 8 neighbours, meets each bank once, and an address is a lane's and a constant.
 * Sums      Tensor cores cut off what they add. High products leave them after 16 k's, and are added in single precision.
 *           Products with a low part are so much smaller that they may stay, for HGEMM_SPLIT_K k's.
 *             low    with a low part: 2^11 times what they are
 *             near   high ones: both of up to HGEMM_SPLIT_K k's, in units of the scales
 *             all    in units of D; in shared memory, for want of registers
 * Scales    A row of A and a column of B have one each for HGEMM_SPLIT_K k's. Where none holds all elements, or there is an
 *           infinity or NaN, planes have zeros, and FP32 units multiply that row or column by B or A themselves. So may the
 *           whole tile be, where that is true of many.
 * Order     A pair of slices, 16 k's, is three phases: A's low parts by B's high ones, high by high, A's high by B's low.
 *           Fragments of the next pair are loaded where those of this one are no longer needed, so that there is one set of
 *           either.
 * Levels    Rows of the table that promise less multiply less, at the end of this file.
 * Newer     These rows are for newer GPUs. Their machine code for a T4 is there for the emulator.
 */
#define HGEMM_SPLITS_FIRST
#include "planes_floats.cuh"
#include "ragged.cuh"

/* k-tiles of both operands on their way: from where split left them, as shared memory has them, to fragments. */
template <class V> struct plane_pipeline {
    using A = typename V::A;
    using B = typename V::B;
    static constexpr u32 A_BYTES = A::BYTES * V::PARTS, B_BYTES = B::BYTES * V::PARTS, ROUND = V::THREADS * 16;
    static constexpr int A_LOADS = A_BYTES / ROUND, LOADS = A_LOADS + B_BYTES / ROUND; /* chunks of a thread */
    /* Chunks that are on their way at one time, the longer the more there are; and the places from one of them to the next,
     * counted in twos of mma's. A T4's machine code is for the emulator alone, and has fewer registers. */
    static constexpr int FLYING = V::spec::T4_ROW ? 1 : V::spec::ACCURACY == TO_F32 ? LOADS / 2 : LOADS;
    static constexpr int GAP = V::spec::T4_ROW ? 1 : V::spec::ACCURACY == TO_16_BITS ? 6 : 1;
    static_assert(V::MT % 2 == 0 && V::NT % 4 == 0, "an ldmatrix has less than 32 rows or columns");
    static_assert(A_BYTES % ROUND == 0 && B_BYTES % ROUND == 0 && LOADS <= 8, "threads do not share the chunks evenly");

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
        fragment_a = base + (w.m + w.lane) * 16;
        fragment_b = base + A_BYTES + (w.n + w.lane) * 16;
    }

    /* Where chunk q of a thread is, of the k-tile that is `ahead` ones beyond the next. */
    DEVICE const char *chunk_at(u32 q, u32 ahead) const
    {
        const bool is_b = q >= A_LOADS;
        const char *const first = (const char *)(is_b ? args.planes.b : args.planes.a) + (is_b ? b : a) * 16ull;
        return first + ((is_b ? q - A_LOADS : q) * ROUND + ahead * (is_b ? B_BYTES : A_BYTES));
    }

    /* Chunk q of the k-tile to fetch next, or q - LOADS of the one beyond; of `left` that there are from that on. */
    DEVICE void fetch(int q, u32 left) { ld_generic(next[q % FLYING], chunk_at(q % LOADS, q / LOADS), left > q / LOADS); }
    DEVICE void commit(int q, u32 stage) const { st_shared(own + q * ROUND + stage, next[q % FLYING]); }
    DEVICE void advance() { a += A_BYTES / 16, b += B_BYTES / 16; }

    /* The first k-tiles, of so many. */
    DEVICE void begin(u32 k_tiles, u32 stage)
    {
#pragma unroll
        for (int q = 0; q < FLYING; ++q) fetch(q, k_tiles);
#pragma unroll
        for (int q = 0; q < LOADS; ++q) commit(q, stage), fetch(q + FLYING, k_tiles);
        advance();
        barrier();
    }

    /* What of the k-tile after the one in `stage` is due at place h of STEP ones, of which BEFORE are before a step's barrier;
     * `left` k-tiles are left. Rounds of chunks are apart evenly, so that each is on its way as long as another. */
    template <int BEFORE, int STEP> DEVICE void move(int h, u32 stage, u32 left)
    {
        constexpr int LDG_LAG = V::spec::T4_ROW ? 0 : GAP < 3 ? 1 : 2, ROUNDS = LOADS / FLYING;
        constexpr int SPAN = V::spec::T4_ROW ? (BEFORE - 1) / ROUNDS : STEP / ROUNDS; /* from round to round */
        static_assert(LOADS % FLYING == 0 && SPAN >= FLYING * GAP, "a round follows too soon");
        static_assert((ROUNDS - 1) * SPAN + (FLYING - 1) * GAP + 1 + LDG_LAG < BEFORE, "it comes too late");
        auto due = [](int h) { return h >= 0 && h / SPAN < ROUNDS && h % SPAN % GAP == 0 && h % SPAN / GAP < FLYING; };
        auto number = [](int h) { return h / SPAN * FLYING + h % SPAN / GAP; };
        const int sts = h - 1, ldg = sts - LDG_LAG;
        if (due(sts)) commit(number(sts), V::STAGE - stage);
        if (due(ldg)) fetch(number(ldg) + FLYING, left - 1);
        if (V::spec::PREFETCH && h == 8 && left > V::spec::PREFETCH + 1) prefetch(V::spec::PREFETCH);
    }

    /* A line of the k-tile `ahead` ones beyond: 8 threads have chunks of it, and as many chunks each, or fewer. */
    DEVICE void prefetch(u32 ahead) const
    {
        const u32 q = thread_index() % 8;
        if (q < LOADS) prefetch_l2(chunk_at(q, ahead));
    }

    /* Fragments of slice kk: the i-th ldmatrix of A, all of B. Low ones lie a plane beyond. */
    DEVICE void load_a(fragments<V> &f, int i, int kk, bool low, u32 stage) const
    {
        ::load_one(f, V::B_LDSMS + i, fragment_a + (kk * V::BM + i * 32) * 16 + low * A::BYTES + stage);
    }
    DEVICE void load_b(u32 (&to)[V::NT], int kk, bool low, u32 stage) const
    {
        fragments<V> f;
#pragma unroll
        for (int i = 0; i < V::B_LDSMS; ++i)
            ::load_one(f, i, fragment_b + (kk * V::BN + i * 32) * 16 + low * B::BYTES + stage);
#pragma unroll
        for (int j = 0; j < V::NT; ++j) to[j] = f.b[j];
    }
};

/* The mma of a row of NT tiles that is the x-th: first those of a pair's one slice, then of its other, so that no two that
 * follow each other add to the same sums. A T4's machine code, for want of registers, has both slices of a tile together. */
template <class T> struct turn {
    int s, j;
    DEVICE constexpr turn(int x) : s(T::spec::T4_ROW ? x % 2 : x / T::NT), j(T::spec::T4_ROW ? x / 2 : x % T::NT) {}
};

/* Zero, which ptxas cannot know before it has x: this kernel is compiled for no groups. */
static DEVICE float zero_after(const arguments &args, float x) { return __uint_as_float(__float_as_uint(x) & (u32)(u64)args.group_ends); }

/* Adds the sums of the k-tiles up to t to those in shared memory. */
template <class T> static DEVICE void join(const arguments &args, u32 t, bool lacks, typename T::sums &near, typename T::sums &low)
{
    using V = typename T::variant;
    const typename T::block at(args); /* computed anew: the loop has no registers for it */
    const float_tile<V> tile(args, at, t - 1);
    if (lacks) {
        const u32 first = (t - 1) * T::BK / HGEMM_SPLIT_K * HGEMM_SPLIT_K, begin = first < at.k0 ? 0 : first - at.k0;
        float_tile<V>::multiply_lines(tile, args, at, begin, min(at.k, first + HGEMM_SPLIT_K - at.k0));
    }
    tile.join(near, low);
}

/* The sums of a tile, of whose rows and columns some lack scales if `lacks`. */
template <class T> static DEVICE void planes(const arguments &args, const typename T::block &at, bool lacks, typename T::sums &near)
{
    using V = typename T::variant;
    using pipeline = plane_pipeline<V>;
    constexpr int PHASE = T::MMAS, PAIR = 3 * PHASE; /* in twos of mma's */
    constexpr int BEFORE = T::SLICES / 2 * PAIR - PHASE; /* those of a step before its barrier */
    constexpr int ADD_LAG = T::spec::T4_ROW ? 0 : 1; /* high products are added so many after the last one of a row of them */
    /* The first fragments of a pair are loaded in the last phase of the one before. Not in a T4's machine code: there
     * ptxas puts off additions and spills the products. So it loads late, and has each row of products depend on the sums of
     * the one before. */
    constexpr bool EARLY = !T::spec::T4_ROW;
    constexpr u32 PANEL = HGEMM_SPLIT_K / T::BK;
    typename T::sums low;
    T::clear(low);
    pipeline pipe(args, at, typename T::warp());
    /* Where one ldmatrix has all rows of a warp's, there is no second one for whose products the first would wait: then A's
     * low parts have registers of their own. */
    constexpr bool APART = T::MT == 2;
    typename T::fragments f[2]; /* of a pair's slices: A's low parts, then its high ones; and B's high parts */
    typename T::fragments low_a[2];
    u32 low_b[2][T::NT];
    float part[2][T::NT][4];
    u32 t = at.k0 / T::BK; /* the k-tile to multiply, and the one past the last */
    const u32 end = t + at.k_tiles, first = t % 2 * T::STAGE;
    pipe.begin(at.k_tiles, first);

    /* What is loaded for pair p before its product h; before its first one, h counts from there. */
    auto load = [&](int h, int p, u32 from) {
        constexpr int HALF = PHASE / 2;
        auto is_due = [h](int due) { return h == (EARLY ? due : max(due, 0)); };
        if (is_due(1 - PHASE)) pipe.load_b(f[0].b, 2 * p, false, from);
        if (is_due(3 - PHASE)) pipe.load_b(f[1].b, 2 * p + 1, false, from);
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            if (APART) {
                if (is_due(s - HALF + 1)) pipe.load_a(low_a[s], 0, 2 * p + s, true, from);
                if (is_due(2 * s)) pipe.load_a(f[s], 0, 2 * p + s, false, from);
                if (is_due(2 * s + HALF)) pipe.load_b(low_b[s], 2 * p + s, true, from);
                continue;
            }
            if (is_due(2 * s - HALF)) pipe.load_a(f[s], 0, 2 * p + s, true, from);
            if (is_due(2 * s)) pipe.load_a(f[s], 1, 2 * p + s, true, from);
            if (is_due(2 * s + HALF)) pipe.load_a(f[s], 0, 2 * p + s, false, from);
            if (is_due(2 * s + PHASE)) pipe.load_a(f[s], 1, 2 * p + s, false, from);
            if (is_due(2 * s + PHASE + HALF)) pipe.load_b(low_b[s], 2 * p + s, true, from);
        }
    };
#pragma unroll
    for (int h = EARLY ? -PHASE : 0; h < 0; ++h) load(h, 0, first);

#pragma unroll 1
    for (;;) {
        T::clear(near);
#pragma unroll 1
        do {
            const u32 stage = t % 2 * T::STAGE, there = T::STAGE - stage, left = end - t;
#pragma unroll
            for (int p = 0; p < T::SLICES / 2; ++p) {
                const bool is_last = p + 1 == T::SLICES / 2;
#pragma unroll
                for (int h = 0; h < PAIR; ++h) {
                    if (h == 2 * PHASE && is_last) barrier(); /* the next k-tile is complete, and every warp has read this one */
                    load(h, p, stage);
                    if (EARLY) load(h - PAIR, is_last ? 0 : p + 1, is_last ? there : stage);
                    const int g = h % PHASE, i = g / T::NT;
#pragma unroll
                    for (int x = g % T::NT * 2, end = x + 2; x < end; ++x) {
                        const int S = turn<T>(x).s, j = turn<T>(x).j;
                        if (h / PHASE != 1) {
                            const int J = i % 2 ? T::NT - 1 - j : j;
                            mma_m16n8k8(low[i][J], (APART && h < PHASE ? low_a : f)[S].a[i], h < PHASE ? f[S].b[J] : low_b[S][J]);
                            continue;
                        }
                        float(&d)[4] = part[i % 2][j];
#pragma unroll
                        for (int e = 0; !EARLY && S == 0 && i > 0 && e < 4; ++e) d[e] = zero_after(args, near[i - 1][(j + T::NT - 1) % T::NT][e]);
                        if (S == 0 && (EARLY || i == 0)) mma_m16n8k8_from_zero(d, f[S].a[i], f[S].b[j]);
                        else mma_m16n8k8(d, f[S].a[i], f[S].b[j]);
                    }
                    const int add = h - PHASE - T::NT - ADD_LAG, r = add / T::NT, j = add % T::NT;
                    if (add >= 0 && r < T::MT)
#pragma unroll
                        for (int e = 0; e < 4; ++e) near[r][j][e] = __fadd_rn(near[r][j][e], part[r % 2][j][e]);
                    pipe.template move<BEFORE, T::SLICES / 2 * PAIR>(p * PAIR + h, stage, left);
                    if (h % 4 == 3) warp_barrier(); /* compiled to a NOP: it keeps loads and stores from being gathered */
                }
            }
            pipe.advance();
            ++t;
        } while (t % PANEL != 0 && t != end);
        join<T>(args, t, lacks, near, low);
        if (t == end) break;
    }
}

/*
 * For less than FP32's accuracy: one product of the parts of an element, or two (floats.cuh), which add up in one sum. Of one
 * product it stays in the tensor cores for HGEMM_SPLIT_K k's, of two it leaves them after every k-tile. A phase is a product
 * of a pair of slices: while it runs, B's fragments of the next one are loaded, and A's where they are no longer needed.
 */
template <class T> static DEVICE void rounded_planes(const arguments &args, const typename T::block &at, bool lacks, typename T::sums &all)
{
    using V = typename T::variant;
    using pipeline = plane_pipeline<V>;
    constexpr int PHASE = T::MMAS, PHASES = T::SLICES / 2 * T::PARTS, HALF = PHASE / 2; /* in twos of mma's; of a step */
    constexpr bool EARLY = !T::spec::T4_ROW; /* loads, for which a T4 has too few registers, as above */
    constexpr int COMPLETE = 3, BEFORE = (PHASES - 1) * PHASE + COMPLETE; /* a step's barrier is before that of its last phase */
    constexpr bool IS_NEAR = T::spec::ACCURACY == TO_16_BITS;
    constexpr u32 PANEL = HGEMM_SPLIT_K / T::BK;
    typename T::sums few; /* of one product `all` is the sum that the tensor cores have */
    typename T::sums &sum = IS_NEAR ? few : all;
    if (IS_NEAR) T::clear(sum);
    pipeline pipe(args, at, typename T::warp());
    typename T::fragments f[2]; /* A's, of a phase's slices */
    u32 b[1 + EARLY][2][T::NT]; /* B's, of this phase and the next one */
    u32 t = at.k0 / T::BK;
    const u32 end = t + at.k_tiles, first = t % 2 * T::STAGE;
    pipe.begin(at.k_tiles, first);

    /* What is loaded for phase p before its product h; before its first one, h counts from there. */
    auto load = [&](int h, int p, u32 from) {
        const int kk = p / T::PARTS * 2;
        const bool low = p % T::PARTS > 0;
        auto is_due = [h](int due) { return h == (EARLY ? due : max(due, 0)); };
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            if (is_due(COMPLETE + 2 * s - PHASE)) pipe.load_b(b[p % (1 + EARLY)][s], kk + s, low, from);
            if (is_due(1 + 2 * s - HALF)) pipe.load_a(f[s], 0, kk + s, low, from);
            if (is_due(s)) pipe.load_a(f[s], 1, kk + s, low, from);
        }
    };
#pragma unroll
    for (int h = EARLY ? -PHASE : 0; h < 0; ++h) load(h, 0, first);

#pragma unroll 1
    for (;;) {
        T::clear(all);
#pragma unroll 1
        do {
            const u32 stage = t % 2 * T::STAGE, there = T::STAGE - stage, left = end - t;
#pragma unroll
            for (int p = 0; p < PHASES; ++p) {
                const bool is_last = p + 1 == PHASES;
#pragma unroll
                for (int h = 0; h < PHASE; ++h) {
                    if (h == COMPLETE && is_last) barrier();
                    load(h, p, stage);
                    if (EARLY) load(h - PHASE, is_last ? 0 : p + 1, is_last ? there : stage);
                    const int i = h / T::NT;
                    const bool leaves = IS_NEAR && p == 0;
#pragma unroll
                    for (int x = h % T::NT * 2, end = x + 2; x < end; ++x) {
                        const int S = turn<T>(x).s, j = i % 2 ? T::NT - 1 - turn<T>(x).j : turn<T>(x).j;
#pragma unroll
                        for (int e = 0; leaves && S == 0 && e < 4; ++e) {
                            all[i][j][e] = __fadd_rn(all[i][j][e], sum[i][j][e]);
                            if (!EARLY) sum[i][j][e] = zero_after(args, all[i][j][e]);
                        }
                        if (EARLY && leaves && S == 0) mma_m16n8k8_from_zero(sum[i][j], f[S].a[i], b[p % (1 + EARLY)][S][j]);
                        else mma_m16n8k8(sum[i][j], f[S].a[i], b[p % (1 + EARLY)][S][j]);
                    }
                    pipe.template move<BEFORE, PHASES * PHASE>(p * PHASE + h, stage, left);
                    if ((T::spec::T4_ROW && !IS_NEAR) || h % 4 == 3) warp_barrier(); /* compiled to a NOP: it keeps loads and stores from being gathered */
                }
            }
            pipe.advance();
            ++t;
        } while (t % PANEL != 0 && t != end);
        join<T>(args, t, lacks, all, sum);
        if (t == end) break;
    }
}

template <class T> static DEVICE void floats(const arguments &args)
{
    using tile = float_tile<typename T::variant>;
    typename T::sums sums;
    {
        const typename T::block at(args);
        tile::clear();
        const u32 panels = panels_of(at.k0, at.k), lacking = tile(args, at, at.k0 / T::BK).lacking(panels);
        if (lacking > MOST_LACKING * panels) tile::multiply_floats(sums, args, typename T::warp());
        else if constexpr (T::spec::ACCURACY == TO_F32) planes<T>(args, at, lacking > 0, sums);
        else rounded_planes<T>(args, at, lacking > 0, sums);
    }
    store_floats(args, typename T::block(args), sums);
}

HGEMM_ENTRY_OF(floats, OF_FLOATS)
