/* SPDX-License-Identifier: MIT */
/*
 * Where the elements of A and B are in global memory: panels, accesses, edges. Of elements of any width; what they become
 * in shared memory is not known here.
 */
#pragma once
#include "typed.cuh"

static DEVICE u32 minimum(u32 a, u32 b) { return a < b ? a : b; }

/* n / d by the reciprocal HGEMM_RECIPROCAL(d) = floor((2^32 - 1) / d): the high word of n * reciprocal is the
 * quotient or one less. A hardware division is a chain of 20 dependent instructions. */
static DEVICE u32 divide(u32 n, u32 d, u32 reciprocal)
{
    const u32 q = __umulhi(n, reciprocal);
    return q + (n - q * d >= d);
}

/*
 * How a variant reads A and B (the column `align` of the table). The unit is a chunk: 8 contiguous halves.
 *   X16  Chunks are 16-byte aligned and whole: one load.
 *   X8   Groups of 4 halves are 8-byte aligned and whole: two loads for a chunk.
 *   ANY  Chunks are 2-byte aligned. Two aligned 16-byte loads cover one, which is extracted when it is
 *        committed. Close to either end of the matrix these loads would reach outside; this concerns the
 *        first two k-tiles only, which load such chunks piece by piece.
 *   FAR  Offsets within a tile exceed 32 bits: each half is loaded by itself. So do k1 to k3 with ANY.
 */
enum access { X16, X8, ANY, FAR };

/* Row number `index` of a list of them, 32 or 64 bits each. */
static DEVICE long long listed_row(const void *list, bool are_64, u32 index)
{
    u32 low, high;
    if (are_64) {
        ld_global(low, high, (const char *)list + index * 8ull, true);
        return (long long)((u64)high << 32 | low);
    }
    ld_global_word(low, (const char *)list + index * 4ull, true);
    return (int)low;
}

/* The panel of an operand from which a block reads its k-tiles. Pointers and `ld` are in bytes. */
struct panel {
    const char *base;        /* first k of the block, x = 0 */
    const char *begin, *end; /* the whole matrix */
    u64 ld;
    u32 x0, x_size;          /* first x of the block; extent of x in the matrix */
    const void *list;        /* GATHERS: where each x is in the matrix; NULL: in its place */
    bool is_list_64;
    u32 type;                /* ANY_BYTES: of its elements */
};

/* The words from p on, where they reach outside of the matrix: loads those inside, and a lone half at either end of
 * them. What is outside is zero. */
template <int WORDS> static DEVICE void load_words_inside(u32 (&w)[WORDS], const panel &src, const char *p)
{
    constexpr int BYTES = WORDS * 4;
    const int begin = src.begin > p ? (int)(src.begin - p) : 0, end = src.end - p < BYTES ? (int)(src.end - p) : BYTES;
    u32 low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) w[i] = 0, ld_global_word(w[i], p + i * 4, i * 4 >= begin && i * 4 + 4 <= end);
    ld_global_half(low, p + end - 2, end % 4 == 2 && end > begin);
    ld_global_half(high, p + begin, begin % 4 == 2 && begin < end);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) w[i] |= (end - 2 == i * 4 ? low : 0) | (begin - 2 == i * 4 ? high << 16 : 0);
}

/* Where the element's bytes should be known: they are those of the panel's type. */
constexpr int ANY_BYTES = 0;

/* A k-tile of X x BK elements of ELEMENT bytes, in memory (shared.cuh tells of x and of rows). */
template <int X, int BK, bool K_CONTIGUOUS, int ELEMENT_BYTES, bool GATHERS> struct source {
    static constexpr int ELEMENT = ELEMENT_BYTES;
    static constexpr bool IS_ANY_TYPE = ELEMENT_BYTES == ANY_BYTES;

    /* Bytes of an element of a type, and of a panel's. */
    static DEVICE u32 bytes_of(u32 type) { return IS_ANY_TYPE ? ::bytes_of(type) : ELEMENT; }
    static DEVICE u32 bytes_in(const panel &src) { return bytes_of(src.type); }

    /* The panel from x0 on of a matrix of k_size k's. */
    static DEVICE panel panel_at(const char *base, u64 ld, u32 x0, u32 x_size, u32 k_size, u32 type)
    {
        const u32 rows = K_CONTIGUOUS ? x_size : k_size, cols = K_CONTIGUOUS ? k_size : x_size;
        return panel{base, base, base + (rows - 1) * ld + cols * bytes_of(type), ld, x0, x_size, nullptr, false, type};
    }

    /* Global memory: bytes that k k's are apart, and the address at which the block's k-tile from k0 on begins. */
    static DEVICE u64 k_bytes(const panel &src, u32 k) { return K_CONTIGUOUS ? (u64)k * bytes_in(src) : k * src.ld; }
    static DEVICE const char *start(const panel &src, u32 k0)
    {
        if (GATHERS && src.list) return src.base + k_bytes(src, k0);
        return src.base + (K_CONTIGUOUS ? src.x0 * src.ld : (u64)src.x0 * bytes_in(src)) + k_bytes(src, k0);
    }

    /* Byte offset from there of column c of row r. Rows past the last one are that one. Clamped, columns past the
     * last `width` ones are these: an access of that many halves stays inside. (Rows of a realigned copy end in
     * zeros, so that its last whole chunk may be read.) */
    static DEVICE u64 row_clamped(const panel &src, u32 r, u32 c)
    {
        if constexpr (GATHERS)
            if (src.list) {
                const u32 x = K_CONTIGUOUS ? minimum(r, src.x_size - src.x0 - 1) : c;
                const long long listed = listed_row(src.list, src.is_list_64, src.x0 + x);
                return K_CONTIGUOUS ? listed * src.ld + c * bytes_in(src) : r * src.ld + listed * bytes_in(src);
            }
        return (K_CONTIGUOUS ? minimum(r, src.x_size - src.x0 - 1) : r) * src.ld + c * bytes_in(src);
    }
    static DEVICE u64 clamped(const panel &src, u32 r, u32 c, u32 width)
    {
        return row_clamped(src, r, K_CONTIGUOUS ? c : minimum(c, (src.x_size - src.x0 - 1) / width * width));
    }

    /* Cache lines of 128 bytes in a k-tile, for the prefetch, and the byte offset of each from the k-tile's start. */
    static constexpr u32 ROW_LINES = (X * ELEMENT + 127) / 128;
    static constexpr u32 LINES = K_CONTIGUOUS ? X * ((BK * ELEMENT + 127) / 128) : BK * ROW_LINES;
    static DEVICE u32 line_offset(const panel &src, u32 i)
    {
        return (u32)(K_CONTIGUOUS ? clamped(src, i % X, i / X * (128 / ELEMENT), 1)
                                  : clamped(src, i / ROW_LINES, i % ROW_LINES * (128 / ELEMENT), 1));
    }
};
