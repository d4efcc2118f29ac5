/* SPDX-License-Identifier: MIT */
/*
 * weights: B is packed weights of 4 or 8 bits (packed.cuh).
 *
 * Idea      A lane loads 16 bytes of codes, which are its operands of 16 or 8 mma's: no shared memory, no ldmatrix. Codes
 *           become halves by two instructions for a pair. The group's scale multiplies the group's sums, not the weight:
 *           so nothing is rounded before it is added, and no weight overflows.
 * Loop      main_loop.cuh, by the schedule in weights_schedule.cuh; what its events are, weights_loop.cuh has. Kernels for codes
 *           by tables alone have loops for few rows of D: teams where a tile has 48 or fewer (note 467), large tiles without
 *           teams where the last row of tiles is short (short_tiles.cuh).
 * Limits    Shared memory's round trip of A, where D has few rows; offsets take a further mma for each 16 rows.
 */
#include "weights_loop.cuh"

template <class T> static DEVICE void multiply_tables(typename T::sums &all, const arguments &args)
{
    constexpr int FEW = T::TEAMS ? 3 : HGEMM_SHORT_ROWS / 16; /* mma tiles along m, of 4 */
    const u32 m0 = typename T::block(args).m0;
    if constexpr (T::WM <= 32) multiply_packed<packed_product<T, CODES_TABLE>>(all, args);
    else if (args.m - m0 > FEW * 16) multiply_packed<packed_product<T, CODES_TABLE>>(all, args);
    else multiply_packed<packed_product<T, CODES_TABLE, false, FEW>>(all, args);
}

template <class T> static DEVICE void weights(const arguments &args)
{
    if (T::is_unneeded(args)) return;
    if (!typename T::block(args).is_needed(args)) return;
    const packed_form_t &form = args.packed;
    constexpr bool TAKES_ALL = HGEMM_TAKES_ALL(T::WM, T::spec::TABLES);
    typename T::sums all;
    if constexpr (T::spec::TABLES) {
        multiply_tables<T>(all, args);
    } else if (packed_bits(&form) == 4) {
        if (TAKES_ALL && form.zero == PACKED_OFFSETS) multiply_packed<packed_product<T, CODES_4, TAKES_ALL>>(all, args);
        else if (TAKES_ALL && form.code == PACKED_TABLE16) multiply_packed<packed_product<T, CODES_TABLE>>(all, args);
        else multiply_packed<packed_product<T, CODES_4>>(all, args);
    } else {
        if (TAKES_ALL && form.zero == PACKED_OFFSETS) multiply_packed<packed_product<T, CODES_8, TAKES_ALL>>(all, args);
        else if (form.code == PACKED_E4M3) multiply_packed<packed_product<T, CODES_E4M3>>(all, args);
        else multiply_packed<packed_product<T, CODES_8>>(all, args);
    }
    T::store(args, typename T::block(args), all);
}

HGEMM_ENTRY(weights)
