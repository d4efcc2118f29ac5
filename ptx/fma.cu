/* SPDX-License-Identifier: MIT */
/*
 * fma: A and B in single precision, multiplied by FP32 units, where tensor cores have little to gain: k is short, matrices
 * are small, or rows are not aligned.
 *
 * Idea      Floats go to shared memory as they are, k by k, and each thread multiplies some rows by four columns: no scales,
 *           no halves, no waits but one for each k-tile.
 * Loads     A k-tile is read while that before the last one is multiplied, in units of four floats, or where these are not aligned
 *           float by float. Threads stand side by side along memory, and the same code serves both transposes.
 * Shared    Element x of k is word k * X + (x ^ swizzle(k)). Four x's of a k are 16 bytes, which a thread reads at once, and
 *           what neighbours along k write lies in different banks.
 * Sums      near of 32 k's, fused multiply-adds in the order of k; all, to which they are added, of up to HGEMM_FP32_KEPT_K
 *           k's; and those of so many k's add up in shared memory. Blocks that share k (split-K) add up as those of k5.
 * Limits    Operands of any alignment, but not by pointers or indices.
 */
#include "fma_block.cuh"

/* What k does to the place of an x: linear in the bits of k, and so are places, so that the addresses of a thread differ by constants. */
static DEVICE constexpr u32 fma_swizzle(u32 k) { return k / 4 * 8 + k % 2 * 4; }

/* Where an element of a k-tile is, of X rows or columns. */
template <int X> static DEVICE u32 fma_at(u32 x, u32 k) { return (k * X + (x ^ fma_swizzle(k))) * 4; }

/* A k-tile of an operand on its way from global to shared memory. */
template <class V, int X> struct fma_floats { u32 v[X * V::BK / V::THREADS] = {}; };

/* Who brings which elements of an operand, of X rows or columns: units of UNIT floats beside each other in memory, which runs ALONG_K or
 * not; of a thread, each STEP lines after the one before. */
template <class V, int X, bool IS_ALIGNED, bool IS_ALONG_K> struct fma_share {
    static constexpr bool ALONG_K = IS_ALONG_K;
    static constexpr u32 UNIT = IS_ALIGNED ? 4 : 1, SIDE = (ALONG_K ? V::BK : X) / UNIT, STEP = V::THREADS / SIDE;
    static constexpr int UNITS = X * V::BK / UNIT / V::THREADS;
    static_assert(STEP * SIDE == V::THREADS && UNITS * UNIT * V::THREADS == X * V::BK, "threads do not share a k-tile evenly");
    static DEVICE u32 x() { return ALONG_K ? thread_index() / SIDE : thread_index() % SIDE * UNIT; }
    static DEVICE u32 k() { return ALONG_K ? thread_index() % SIDE * UNIT : thread_index() / SIDE; }

    /* What changes a thread's first address in shared memory, for element e of its unit q: exclusive or, then a sum. */
    static DEVICE constexpr u32 flip(int q, int e) { return (ALONG_K ? (q * STEP % 32) ^ fma_swizzle(e) : fma_swizzle(q * STEP)) * 4; }
    static DEVICE constexpr u32 down(int q, int e) { return (ALONG_K ? q * STEP / 32 * 32 + e * X : q * STEP * X) * 4; }
};

template <class V, int X> struct fma_mover {
    typedef typename fma_block<V>::operand operand;
    const char *p; /* a thread's first unit of the next k-tile */
    u32 to;        /* where it goes, in the first stage */
    int x_left, k; /* rows or columns there are from the unit's on; its first k in a k-tile */

    /* Calls `go` with the operand's share. */
    template <class GO> static DEVICE void as(const operand &from, const GO &go)
    {
        if (from.is_aligned) {
            if (from.is_along_k) go(fma_share<V, X, true, true>());
            else go(fma_share<V, X, true, false>());
        } else {
            if (from.is_along_k) go(fma_share<V, X, false, true>());
            else go(fma_share<V, X, false, false>());
        }
    }

    DEVICE fma_mover(const operand &from, u32 base)
    {
        as(from, [&](auto share) {
            const u32 x = share.x();
            k = share.k(), x_left = (int)(from.extent - x), to = base + fma_at<X>(x, k);
            p = from.base + (share.ALONG_K ? x * from.line + k * 4 : k * from.line + x * 4);
        });
    }

    /* Of k's that are not there, the values become zeros; of rows or columns, they stay: nobody looks at their sums. */
    DEVICE void load(fma_floats<V, X> &to, const operand &from, int k_left)
    {
        if (k_left < V::BK) to = fma_floats<V, X>();
        as(from, [&](auto share) {
#pragma unroll
            for (int q = 0; q < share.UNITS; ++q) {
                const int below = q * share.STEP;
                const char *const at = p + below * from.line;
                const bool when = share.ALONG_K ? below < x_left && k < k_left : 0 < x_left && k + below < k_left;
                if (share.UNIT == 1) {
                    ld_global_word(to.v[q], at, when);
                } else {
                    b128 v = {to.v[q * 4], to.v[q * 4 + 1], to.v[q * 4 + 2], to.v[q * 4 + 3]};
                    ld_global(v, at, when);
                    to.v[q * 4] = v.x, to.v[q * 4 + 1] = v.y, to.v[q * 4 + 2] = v.z, to.v[q * 4 + 3] = v.w;
                }
            }
        });
        p += from.is_along_k ? V::BK * 4 : V::BK * from.line;
    }
    DEVICE void store(const fma_floats<V, X> &f, const operand &from, u32 stage) const
    {
        as(from, [&](auto share) {
#pragma unroll
            for (int q = 0; q < share.UNITS; ++q) {
                if (share.UNIT == 4 && !share.ALONG_K) {
                    st_shared((to ^ share.flip(q, 0)) + share.down(q, 0) + stage, b128{f.v[q * 4], f.v[q * 4 + 1], f.v[q * 4 + 2], f.v[q * 4 + 3]});
                } else {
#pragma unroll
                    for (u32 e = 0; e < share.UNIT; ++e)
                        st_shared_word((to ^ share.flip(q, e)) + share.down(q, e) + stage, f.v[q * share.UNIT + e]);
                }
            }
        });
    }
};

/* A lane's rows of A and columns of B for a k. */
template <class V> struct fma_lines {
    float a[V::TM], b[V::TN];

    DEVICE void load(u32 a_at, u32 b_at, int k)
    {
        const u32 flip = k % 2 * 16, at_a = (a_at ^ flip) + k * (V::BM * 4), at_b = (b_at ^ flip) + k * (V::BN * 4);
        b128 v;
#pragma unroll
        for (int i = 0; i < V::TM; i += 4) {
            ld_shared(v, at_a ^ i * V::LANES_M * 4);
            a[i] = __uint_as_float(v.x), a[i + 1] = __uint_as_float(v.y), a[i + 2] = __uint_as_float(v.z), a[i + 3] = __uint_as_float(v.w);
        }
#pragma unroll
        for (int j = 0; j < V::TN; j += 4) {
            ld_shared(v, at_b + j * V::LANES_N * 4);
            b[j] = __uint_as_float(v.x), b[j + 1] = __uint_as_float(v.y), b[j + 2] = __uint_as_float(v.z), b[j + 3] = __uint_as_float(v.w);
        }
    }
};

template <class V> static DEVICE void fold(typename V::sums &into, typename V::sums &from)
{
#pragma unroll
    for (int i = 0; i < V::TM; ++i)
#pragma unroll
        for (int j = 0; j < V::TN; ++j) {
            float &x = into[i][j / 4][j % 4], &y = from[i][j / 4][j % 4];
            x = __fadd_rn(x, y), y = 0;
        }
}

template <class V> static DEVICE void clear_sums(typename V::sums &sums)
{
#pragma unroll
    for (int i = 0; i < V::TM * V::TN; ++i) sums[i / V::TN][i % V::TN / 4][i % 4] = 0;
}

/* The thread's sums of the last HGEMM_FP32_KEPT_K k's are added to those of the k's before, which are in shared memory, and
 * leave its registers, or, at the end, stay there. */
template <class V, bool AT_END> static DEVICE void join(typename V::sums &sums, u32 kept, bool is_first)
{
    using chunks = sum_chunks<V>;
#pragma unroll
    for (int c = 0; c < chunks::COUNT; ++c) {
        const u32 at = kept + (c * V::THREADS + thread_index()) * 16;
        b128 x = {};
        if (AT_END || !is_first) ld_shared(x, at);
        const u32 before[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int e = 0; e < 4; ++e) chunks::put_word(sums, c * 4 + e, chunks::add_words(before[e], chunks::get_word(sums, c * 4 + e)));
        if (!AT_END) st_shared(at, chunks::get(sums, c));
    }
}

/* D from a thread's sums, where it is of floats and nothing but the sums times alpha. False where it is more. */
template <class V> static DEVICE bool store_sums(const arguments &args, const fma_block<V> &at, const typename V::sums &sums)
{
    constexpr u32 PLAIN = HGEMM_FUSED | F32 << HGEMM_FUSED_TYPE_D, MASK = HGEMM_FUSED_TYPE_MASK << HGEMM_FUSED_TYPE_D | HGEMM_FUSED | HGEMM_FUSED_ACTIVATION_MASK << HGEMM_FUSED_ACTIVATION;
    if ((args.fused & MASK) != PLAIN || args.beta != 0 || args.alpha_pointer || args.beta_pointer || args.bias || args.gate || args.scatter_d) return false;
    const u32 row = V::row(0), column = V::column();
    const int count = (int)at.lines - (int)column;
    const u64 ldd = (u64)args.ldd * 4;
    char *const d = (char *)args.d + (batch_index() * args.stride_d + at.n0 + column) * 4 + (at.m0 + row) * ldd;
    const bool is_aligned = (((u64)d | ldd) & 15) == 0;
#pragma unroll
    for (int i = 0; i < V::TM; ++i) {
        const u32 below = i / 4 * (4 * V::LANES_M) + i % 4;
        char *const to = d + below * ldd;
        const bool live = row + below < at.columns;
#pragma unroll
        for (int j = 0; j < V::TN / 4; ++j) {
            const int left = count - j * 4 * V::LANES_N;
            u32 x[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) x[e] = __float_as_uint(__fmaf_rn(args.alpha, sums[i][j][e], 0.0f));
            if (is_aligned && left >= 4) {
                st_global(to + j * 16 * V::LANES_N, b128{x[0], x[1], x[2], x[3]}, live);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (live && e < left) st_global_word(to + j * 16 * V::LANES_N + e * 4, x[e]);
            }
        }
    }
    return true;
}

template <class V> static DEVICE void multiply_tiles(const arguments &args)
{
    constexpr u32 A_BYTES = V::BM * V::BK * 4, STAGE = A_BYTES + V::BN * V::BK * 4, NEAR_TILES = 32 / V::BK, KEPT_TILES = HGEMM_FP32_KEPT_K / V::BK;
    const fma_block<V> at(args);
    const u32 base = shared_base(), a_at = base + fma_at<V::BM>(V::row(0), 0), b_at = base + A_BYTES + fma_at<V::BN>(V::column(), 0);
    fma_mover<V, V::BM> move_a(at.a, base);
    fma_mover<V, V::BN> move_b(at.b, base + A_BYTES);
    fma_floats<V, V::BM> a, first_a;
    fma_floats<V, V::BN> b, first_b;
    move_a.load(first_a, at.a, at.k), move_b.load(first_b, at.b, at.k);
    move_a.load(a, at.a, (int)at.k - V::BK), move_b.load(b, at.b, (int)at.k - V::BK);
    move_a.store(first_a, at.a, 0), move_b.store(first_b, at.b, 0);
    typename V::sums near = {}, all = {};
    u32 stage = 0, tile = 0;
    barrier();
#pragma unroll 1
    for (u32 k = 0; k < at.k; k += V::BK) {
        if (k + V::BK < at.k) {
            move_a.store(a, at.a, STAGE - stage), move_b.store(b, at.b, STAGE - stage);
            move_a.load(a, at.a, (int)(at.k - k) - 2 * V::BK), move_b.load(b, at.b, (int)(at.k - k) - 2 * V::BK);
        }
        const u32 groups = minimum((at.k - k + 3) / 4, V::BK / 4);
        fma_lines<V> f[2];
        u32 from_a = a_at + stage, from_b = b_at + stage;
        f[0].load(from_a, from_b, 0);
#pragma unroll 1
        for (u32 group = 0; group < groups; ++group) {
            const u32 next = (group + 1) % (V::BK / 4); /* after the last one: in vain */
            const u32 next_a = (a_at ^ next * 32) + stage + next * (V::BM * 16), next_b = (b_at ^ next * 32) + stage + next * (V::BN * 16);
#pragma unroll
            for (int kk = 0; kk < 4; ++kk) {
                if (kk < 3) f[(kk + 1) % 2].load(from_a, from_b, kk + 1);
                else f[0].load(next_a, next_b, 0);
#pragma unroll
                for (int i = 0; i < V::TM; ++i)
#pragma unroll
                    for (int j = 0; j < V::TN; ++j) near[i][j / 4][j % 4] = __fmaf_rn(f[kk % 2].a[i], f[kk % 2].b[j], near[i][j / 4][j % 4]);
            }
            from_a = next_a, from_b = next_b;
        }
        stage = STAGE - stage;
        if (++tile % NEAR_TILES == 0) fold<V>(all, near);
        if (tile % KEPT_TILES == 0 && k + V::BK < at.k) {
            join<V, false>(all, base + 2 * STAGE, tile == KEPT_TILES);
            clear_sums<V>(all);
        }
        barrier();
    }
    fold<V>(all, near);
    if (at.k > HGEMM_FP32_KEPT_K) join<V, true>(all, base + 2 * STAGE, false);
    if (!add_parts<V>(args, all)) return;
    if (store_sums<V>(args, at, all)) return;
    barrier();
#pragma unroll
    for (int i = 0; i < V::TM; ++i)
#pragma unroll
        for (int j = 0; j < V::TN / 4; ++j)
            st_shared(base + (V::row(i) * V::BN + V::column() + j * 4 * V::LANES_N) * 4, sum_chunks<V>::get(all, i * (V::TN / 4) + j));
    barrier();
    if (args.fused) store_fused(args, at);
    else store_plain(args, at);
}

#define HGEMM_ROW_TYPE(name) row_##name
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
using built = fma_variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW)>;
extern "C" __global__ void __launch_bounds__(built::THREADS, HGEMM_ROW_TYPE_OF(HGEMM_ROW)::NEWER_BLOCKS) HGEMM_VARIANT(const arguments args)
{
    multiply_tiles<built>(args);
}
