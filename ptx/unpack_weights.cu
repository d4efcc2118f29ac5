/* SPDX-License-Identifier: MIT */
/*
 * unpack_weights: columns of a matrix of numbers, from packed weights (src/table/packed.h).
 *
 * Idea      What bounds it is the memory that the matrix takes. So a lane writes eight numbers of a row at once. They are the
 *           codes of a slice of k, which the four lanes of a row of mma tiles have pairs of: it reads that word of all four. Codes
 *           become halves as in a product, exactly; a half times its scale is rounded once, in FP32.
 * Grid      A warp has a unit; blockIdx.x counts those along k, blockIdx.y strips, of which a block walks over some.
 */
#include "packed.cuh"

/* Eight numbers of a row as they are stored, the first two or four, and so on. */
template <int TYPE> static DEVICE void store(char *to, const float (&x)[8])
{
    if constexpr (TYPE == PACKED_F32) {
        st_global(to, b128{__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])});
        st_global(to + 16, b128{__float_as_uint(x[4]), __float_as_uint(x[5]), __float_as_uint(x[6]), __float_as_uint(x[7])});
    } else {
        u32 pair[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            pair[i] = TYPE == PACKED_F16 ? pack_halves(x[2 * i], x[2 * i + 1])
                                         : bfloat_of_float(x[2 * i]) | bfloat_of_float(x[2 * i + 1]) << 16;
        st_global(to, b128{pair[0], pair[1], pair[2], pair[3]});
    }
}

/* The numbers that a lane has of a unit: a slice of k in the rows of four mma tiles, or of two where codes have 8 bits. */
template <code_kind KIND> static DEVICE void unpack(const pack_args_t &args, u64 strip, u32 unit)
{
    constexpr bool IS_8 = is_of_8_bits(KIND);
    const packed_form_t &form = args.form;
    const u32 lane = thread_index() % 32, g = lane / 4, t = lane % 4;
    const u32 half = IS_8 ? t % 2 : 0, k = unit * (IS_8 ? 16 : 32) + (IS_8 ? t / 2 : t) * 8; /* the first of eight */
    const char *const packed = (const char *)args.packed;
    const char *const codes = packed + (strip * packed_units(&form) + unit) * HGEMM_PACKED_UNIT + g * 64 + t * 4;
    const u64 facts = (strip * form.slots + (k >> form.log_group)) * HGEMM_PACKED_STRIP; /* the group's first scale */

    u32 words[4], zero = packed_bias(&form) * 0x01010101;
#pragma unroll
    for (int i = 0; i < 4; ++i) ld_global_word(words[i], codes + i * 16, true);
    ld_global_word(zero, packed + form.zeros_at + facts + g * 4, form.zero == PACKED_ZERO_CODES);
    zeros_of_tiles<KIND> zeros;
    zeros.set(zero);
    const lookup table(form, 0);
    u32 pairs[4][4]; /* of a tile, k's 2 i and 2 i + 1 */
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        u32 b[4];
        halves_of_codes<KIND>(b, b128{words[i], words[i], words[i], words[i]}, 0, zeros, table);
#pragma unroll
        for (int j = 0; j < 4; ++j) pairs[j][i] = b[j];
    }
#pragma unroll
    for (int tile = 0; tile < (IS_8 ? 2 : 4); ++tile) {
        const u32 in_strip = (half * 2 + tile) * 8 + g;
        const long long row = strip * HGEMM_PACKED_STRIP + in_strip;
        if (row >= form.n) continue;
        const u32 element = args.type == PACKED_F32 ? 4 : 2, skipped = k - args.first;
        char *const to = (char *)args.matrix + (row * args.ld + (int)skipped) * (long long)element;
        if ((int)k < args.first || (int)k + 8 > args.first + args.count || (u64)to % 16 != 0) {
            for (int at = k < (u32)args.first ? args.first : (int)k; at < (int)k + 8 && at < args.first + args.count; ++at)
                unpack_element(&args, row, at);
            continue;
        }
        const long long place = facts + packed_scale_place((int)in_strip);
        const float scale = packed_float(&form, packed + form.scales_at, place);
        float x[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const u32 pair = IS_8 && half ? pairs[tile + 2][i] : pairs[tile][i];
            x[2 * i] = scale * half_to_float(pair), x[2 * i + 1] = scale * half_to_float(pair >> 16);
        }
        if (form.zero == PACKED_OFFSETS) {
            const float offset = packed_float(&form, packed + form.zeros_at, place);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const u32 pair = IS_8 && half ? pairs[tile + 2][i] : pairs[tile][i];
                x[2 * i] = __fmaf_rn(scale, half_to_float(pair), offset), x[2 * i + 1] = __fmaf_rn(scale, half_to_float(pair >> 16), offset);
            }
        }
        if (args.type == PACKED_F32) store<PACKED_F32>(to, x);
        else if (args.type == PACKED_F16) store<PACKED_F16>(to, x);
        else store<PACKED_BF16>(to, x);
    }
}

extern "C" __global__ void __launch_bounds__(HGEMM_PACK_THREADS) HGEMM_VARIANT(const pack_args_t args)
{
    const u32 index = block_index() * (HGEMM_PACK_THREADS / 32) + thread_index() / 32;
    if (index >= unpacked_units(&args)) return;
    const u32 unit = args.first / packed_depth(&args.form) + index;
    for (u64 strip = batch_index(); strip < (u64)packed_strips(&args.form); strip += HGEMM_UNPACK_STRIPS) {
        if (args.form.code == PACKED_TABLE16) unpack<CODES_TABLE>(args, strip, unit);
        else if (args.form.code == PACKED_E4M3) unpack<CODES_E4M3>(args, strip, unit);
        else if (packed_bits(&args.form) == 8) unpack<CODES_8>(args, strip, unit);
        else unpack<CODES_4>(args, strip, unit);
    }
}
