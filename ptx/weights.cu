/* SPDX-License-Identifier: MIT */
/*
 * weights: B is packed weights of 4 or 8 bits (packed.cuh).
 *
 * Idea      A lane loads 16 bytes of codes, which are its operands of 16 or 8 mma's: no shared memory, no ldmatrix. Codes
 *           become halves by two instructions for a pair. The group's scale multiplies the group's sums, not the weight:
 *           so nothing is rounded before it is added, and no weight overflows.
 * Sums      part  of k's of one group, since it was added last
 *           all   of the groups before, in units of D
 * Groups    A part ends with the warp's last k-tile of a group, or with every one where k-tiles are as deep as most groups;
 *           where groups are smaller than a k-tile, with each 16 k's. Its sums are added while the next part's first
 *           products replace them. Scales and zeros are loaded a k-tile or a group ahead, and nothing waits for them before that.
 * Tables    Kernels for codes by a table alone have registers to begin earlier what takes longest there (note 373). Their teams
 *           have a loop of their own for tiles of which D has 48 rows or fewer (note 467), and large tiles without teams one
 *           for short tiles (short_tiles.cuh).
 * Limits    Shared memory's round trip of A, where D has few rows; offsets take a further mma for each 16 rows.
 */
#include "convert.cuh"
#include "lookup.cuh"
#include "short_tiles.cuh"
#include "teams.cuh"

/* MT: mma tiles along m that are multiplied; the others' sums are 0. */
template <class T, code_kind KIND, bool ADDS = false, int MT = T::MT>
static DEVICE void multiply_packed(typename T::sums &all, const arguments &args)
{
    typename T::block at(args);
    const u32 team = team_index<T>();
    take_share(at, team);
    auto wait_for_team = [&] { team_barrier<T>(T::CONVERTS ? team_index<T>() : team); }; /* halves leave no register for it */
    constexpr int MMAS = MT * T::NT; /* of a slice */
    constexpr bool IS_SHORT = MT < T::MT && !HAS_TEAMS; /* the tile; the rows that D has not are not in shared memory either */
    constexpr int SLOTS = IS_SHORT ? T::SLOTS * MT / T::MT : T::SLOTS;
    constexpr int UNIT_SLICES = is_of_8_bits(KIND) ? 2 : 4, UNITS = T::SLICES / UNIT_SLICES;
    constexpr int PARTS = T::SLICES / 2; /* of a k-tile, where groups are small */
    static_assert(T::WN == HGEMM_PACKED_STRIP && HGEMM_PACKED_K % T::BK == 0, "packed weights are for other tiles");
    using own = typename T::schedule; /* of a row that has one; the others spread their stores evenly */
    constexpr bool IS_OWN = own::LDS_GAP > 0, PACES = IS_OWN && T::CONVERTS;
    constexpr int LDS_GAP = IS_OWN ? own::LDS_GAP : MMAS / 2 / T::LDSMS > 0 ? MMAS / 2 / T::LDSMS : 1;
    constexpr bool LATER = T::CONVERTS && MMAS >= 16; /* chunks that become halves are waited for; a warp barrier keeps that in its place */
    /* Kernels for codes by tables alone have registers for what takes longest there, of one kind: a group's end where a
     * slice has many mma's, halves where it has few. */
    constexpr bool SCALES_AHEAD = T::spec::TABLES && T::WM > 32 && !IS_SHORT, HALVES_AHEAD = T::spec::TABLES && T::WM <= 32;
    constexpr bool AMONG_MMAS = SCALES_AHEAD && HAS_TEAMS; /* these scales are found; else before all of a slice's */
    constexpr bool ALONG_N = SCALES_AHEAD && !AMONG_MMAS;
    constexpr bool HAS_SPARE = !T::CONVERTS || T::WM <= 32; /* registers: of the table, and of a unit's copy for the next one's load */
    constexpr bool COPIES_UNIT = !HALVES_AHEAD && (!SCALES_AHEAD || HAS_TEAMS || HAS_SPARE);
    constexpr int STEP_MMAS = (T::SLICES - 1) * MMAS; /* those before the barrier */
    constexpr int STS_FIRST = IS_OWN ? own::STS_FIRST : LATER ? MMAS * 3 / 2 : MMAS / 2;
    constexpr int STS_GAP = IS_OWN ? own::STS_GAP : (STEP_MMAS - STS_FIRST - 1) / SLOTS / (HALVES_AHEAD ? 2 : 1);
    constexpr int LAST_STS = STS_FIRST + (SLOTS - 1) * STS_GAP;
    static_assert((T::LDSMS - 1) * LDS_GAP < MMAS && STS_GAP > 0 && LAST_STS < STEP_MMAS, "a k-tile has too few mma's");
    static_assert(LAST_STS + own::LDG_LAG < T::SLICES * MMAS, "a load comes after the k-tile's last mma");
    auto due = [](int mmas) { return mmas >= 0 && mmas % STS_GAP == 0 && mmas / STS_GAP < SLOTS; }; /* a chunk, so many after the first */

    const typename T::warp w;
    const packed_form_t &form = args.packed;
    const u32 strip = minimum((at.n0 + w.n) / HGEMM_PACKED_STRIP, (u32)packed_strips(&form) - 1);
    constexpr u32 K_BYTES = HGEMM_PACKED_UNIT / (UNIT_SLICES * 8);
    const u32 first_k = at.k0 + (HAS_TEAMS ? 0 : w.k_warp * T::WK);
    const char *codes = at.b.base + (u64)strip * packed_units(&form) * HGEMM_PACKED_UNIT + w.lane * 16 + (u64)first_k * K_BYTES;
    const groups_of_strip<ADDS> groups(form, at.b.base, strip, w.lane);
    const typename lookup_for<T::spec::TABLES, HAS_SPARE>::type table(form, w.lane);
    constexpr bool MAY_BE_FINE = HGEMM_TAKES_ALL(T::WM, T::spec::TABLES);
    const bool is_fine = MAY_BE_FINE && 1u << form.log_group < (u32)T::WK; /* groups are smaller than a warp's k-tile */

    /* Where k-tile t begins: the last one in memory comes first. */
    const u32 k_tiles = at.k_tiles;
    auto k_of = [&](u32 t) { return (t == 0 ? k_tiles - 1 : t - 1) * T::BK; };
    b128 units[UNITS], unit; /* on their way; the one that is multiplied by, so that the next k-tile's comes early */
    auto load_unit = [&](int u, u32 t) {
        ld_global(units[u], codes + (u64)k_of(t) * K_BYTES + u * HGEMM_PACKED_UNIT, t < k_tiles);
    };
#pragma unroll
    for (int u = 0; u < UNITS; ++u) units[u] = b128{}, load_unit(u, 0);
    /* Of the sums in `part`; and of the next part or, where groups are small, of the next parts of as many k's as a k-tile
     * has. */
    group_facts now = {}, then[MAY_BE_FINE ? PARTS : 1];
    auto load_facts = [&](int p, u32 t, bool when) { groups.load(then[p], form, first_k + k_of(t) + p * 16, when && t < k_tiles); };
#pragma unroll
    for (int p = 0; p < (MAY_BE_FINE ? PARTS : 1); ++p) load_facts(p, 0, p == 0 || is_fine);

    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    if (IS_SHORT && MT == 1) pipe.fragment_a = from_lane(pipe.fragment_a, w.lane % 16); /* of an ldmatrix's second mma tile no row is written */
    typename T::sums part;
    typename T::fragments f[2];
    zeros_of_tiles<KIND> zeros;

    float rows[MT][4] = {}; /* ADDS: sums of A's rows, over the k's of `part` */
    float scale[T::NT][2] = {}, offset[2]; /* of a lane's columns in an mma tile */
    auto find_scales = [&](int j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            scale[j][e] = now.of(now.scale, w.lane, j, e);
            if (ADDS) offset[e] = now.of(now.offset, w.lane, j, e);
        }
    };
    auto find_all_scales = [&] {
#pragma unroll
        for (int j = 0; j < T::NT; ++j) find_scales(j);
    };
    /* Where mma h of a slice is: tile by tile along m; with ALONG_N along n, of halves there and back. */
    auto row_of = [](int h) { return ALONG_N ? h / T::NT : h % MT; };
    auto column_of = [](int h) {
        if (!ALONG_N) return h / MT;
        return !T::CONVERTS && h / T::NT % 2 ? T::NT - 1 - h % T::NT : h % T::NT;
    };
    auto add_one = [&](int h) {
        const int i = row_of(h), j = column_of(h);
        if (!SCALES_AHEAD && i == 0) find_scales(j);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            all[i][j][e] = __fmaf_rn(part[i][j][e], scale[j][e % 2], all[i][j][e]);
            if (ADDS) all[i][j][e] = __fmaf_rn(rows[i][e], offset[e % 2], all[i][j][e]);
        }
    };
    auto next_group = [&](int p) {
        now = then[p];
        now.scale = number_of(now.scale, w.lane, form.type_scale);
        if (ADDS) now.offset = number_of(now.offset, w.lane, form.type_scale);
    };
    wait_for_team(); /* k-tile 0 is complete */
    T::clear(part), T::clear(all);
#pragma unroll
    for (int j = 0; j < T::LDSMS; ++j) pipe.load_one(f[0], j, 0, 0);

    u32 stage = 0;
    bool begins = true; /* a group, with the k-tile */
    u32 b[4], next_b[4];
    if (HALVES_AHEAD) halves_of_codes<KIND>(next_b, units[0], 0, zeros, table);
#pragma unroll 1
    for (u32 t = 0; t < k_tiles; ++t) {
        const u32 there = T::STAGE - stage;
        const bool more = t + 2 < k_tiles;
        if (!T::spec::TABLES) find_anew(pipe.fragment_a); /* the addresses of all slices */
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
            const typename T::fragments &fragments = f[kk % 2];
            if (PACES ? kk > 0 && kk % 2 == 0 : LATER && kk == T::SLICES / 2) warp_barrier();
            if (SCALES_AHEAD && last && !AMONG_MMAS) find_all_scales();
            if (last) wait_for_team(); /* the next k-tile is complete, and every warp is done with this one */
            if (kk == 0 && begins) zeros.set(then[0].zero);
            if (kk > 0 && kk % 2 == 0 && is_fine) {
                const int p = MAY_BE_FINE ? kk / 2 : 0;
#pragma unroll
                for (int h = 0; h < MMAS; ++h) add_one(h);
                T::clear(part);
#pragma unroll
                for (int i = 0; i < MT * 4; ++i) rows[i / 4][i % 4] = 0;
                zeros.set(then[p].zero);
                next_group(p);
                load_facts(p, t + 1, true);
            }
            if constexpr (COPIES_UNIT) {
                if (kk % UNIT_SLICES == 0) unit = units[kk / UNIT_SLICES], load_unit(kk / UNIT_SLICES, t + 1);
                halves_of_codes<KIND>(b, unit, kk % UNIT_SLICES, zeros, table);
            } else {
#pragma unroll
                for (int j = 0; j < 4 && HALVES_AHEAD; ++j) b[j] = next_b[j];
                const int s = HALVES_AHEAD ? (kk + 1) % T::SLICES : kk; /* whose codes become halves */
                halves_of_codes<KIND>(HALVES_AHEAD ? next_b : b, units[s / UNIT_SLICES], s % UNIT_SLICES, zeros, table);
                if (s % UNIT_SLICES == UNIT_SLICES - 1) load_unit(s / UNIT_SLICES, t + 1);
            }
            auto multiply = [&](bool is_fresh) {
#pragma unroll
                for (int h = 0; h < MMAS; ++h) {
                    const int i = row_of(h), j = column_of(h);
                    const int sts = kk * MMAS + h - STS_FIRST, ldg = sts - own::LDG_LAG;
                    if (h % LDS_GAP == 0 && h / LDS_GAP < T::LDSMS)
                        pipe.load_one(f[(kk + 1) % 2], h / LDS_GAP, last ? 0 : kk + 1, last ? there : stage);
                    if (AMONG_MMAS && last && h > 0 && h % 2 == 0 && h / 2 <= T::NT) find_scales(h / 2 - 1);
                    if (is_fresh) {
                        add_one(h);
                        mma_m16n8k8_from_zero(part[i][j], fragments.a[i], b[j]);
                    } else {
                        mma_m16n8k8(part[i][j], fragments.a[i], b[j]);
                    }
#pragma unroll
                    for (int e = 0; PACES && e < 4; ++e) { /* pairs of a chunk */
                        const int cvt = sts + own::CVT_LEAD - e * own::CVT_GAP;
                        if (due(cvt)) pipe.convert(cvt / STS_GAP, e);
                    }
                    if (due(sts)) {
                        if (PACES) warp_barrier(); /* or ptxas makes halves of all chunks at once, with no mma in between */
                        else pipe.convert(sts / STS_GAP);
                        pipe.commit(sts / STS_GAP, there);
                    }
                    if (due(ldg)) pipe.fetch(at, ldg / STS_GAP, more);
                }
#pragma unroll
                for (int i = 0; i < MT && ADDS; ++i) {
                    if (is_fresh) mma_m16n8k8_from_zero(rows[i], fragments.a[i], PAIR_OF_1);
                    else mma_m16n8k8(rows[i], fragments.a[i], PAIR_OF_1);
                }
            };
            if (kk == 0 && begins) {
                multiply(true);
                next_group(0);
            } else {
                multiply(false);
            }
            if (kk == 0) {
                const u32 k = k_of(t), next_k = k_of(t + 1);
                begins = T::BK == HGEMM_PACKED_K || is_fine || (first_k + k) >> form.log_group != (first_k + next_k) >> form.log_group;
                if (begins) load_facts(0, t + 1, true);
            }
        }
        pipe.advance(at);
        stage = there;
    }
    if (SCALES_AHEAD) find_all_scales();
#pragma unroll
    for (int h = 0; h < MMAS; ++h) add_one(h);
}

template <class T> static DEVICE void weights(const arguments &args)
{
    if (T::is_unneeded(args)) return;
    if (!typename T::block(args).is_needed(args)) return;
    const packed_form_t &form = args.packed;
    constexpr bool TAKES_ALL = HGEMM_TAKES_ALL(T::WM, T::spec::TABLES);
    using L = tile<typename loop_variant<HAS_TEAMS, typename T::variant>::type>;
    typename T::sums all;
    if constexpr (T::spec::TABLES && HAS_TEAMS) {
        constexpr int FEW = 3; /* mma tiles along m, of 4 */
        if (args.m - typename T::block(args).m0 > FEW * 16) multiply_packed<L, CODES_TABLE>(all, args);
        else multiply_packed<L, CODES_TABLE, false, FEW>(all, args);
    } else if constexpr (T::spec::TABLES && T::WM > 32) {
        using S = tile<short_last<typename T::variant>>;
        if (is_short(args, typename S::block(args).m0)) multiply_packed<S, CODES_TABLE, false, HGEMM_SHORT_ROWS / 16>(all, args);
        else multiply_packed<S, CODES_TABLE>(all, args);
        S::store(args, typename S::block(args), all);
        return;
    } else if constexpr (T::spec::TABLES) {
        multiply_packed<L, CODES_TABLE>(all, args);
    } else if (packed_bits(&form) == 4) {
        if (TAKES_ALL && form.zero == PACKED_OFFSETS) multiply_packed<L, CODES_4, TAKES_ALL>(all, args);
        else if (TAKES_ALL && form.code == PACKED_TABLE16) multiply_packed<L, CODES_TABLE>(all, args);
        else multiply_packed<L, CODES_4>(all, args);
    } else {
        if (TAKES_ALL && form.zero == PACKED_OFFSETS) multiply_packed<L, CODES_8, TAKES_ALL>(all, args);
        else if (form.code == PACKED_E4M3) multiply_packed<L, CODES_E4M3>(all, args);
        else multiply_packed<L, CODES_8>(all, args);
    }
    L::store(args, typename L::block(args), all);
}

HGEMM_ENTRY(weights)
