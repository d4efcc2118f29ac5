/* SPDX-License-Identifier: MIT */
/*
 * exec_mem.c - loads, stores, atomics and LDSM.
 *
 * Every access goes the same way: addresses of all lanes, then observe(), which
 * feeds checkers and counters and may veto lanes, then the transfer itself.
 * Without checkers an access that no memory backs is a fault and ends the
 * launch; with them it is reported, loads read as zero and stores vanish.
 */
#include "define.h"
#include "trace.h"
#include "transpose.h"

#include <string.h>

#define EACH_ON                     \
    for (int l = 0; l < LANES; l++) \
        if (on >> l & 1)

/* A block that has polled this often lets others run; one that is timed does each time, for each takes time. One whose
 * races are looked for does so after 1, 2, 4 and more polls, so that blocks meet between their first atomics; each time
 * would let all but one thread of the grid fail in each round of compare-and-swaps. */
enum { POLLS = 64 };

static void addresses(const warp_t *w, const op_t *o, uint64_t address[LANES])
{
    const turing_mem_t *m = &o->in->mem;
    const uint32_t *lo = w->r[o->addr_base], *hi = w->r[o->addr_base + 1], *u = w->r[o->addr_uniform];
    uint64_t add = (uint64_t)(int64_t)m->offset;
    if (m->uniform_words)
        add += u[0];
    if (m->uniform_words == 2)
        add += (uint64_t)w->r[o->addr_uniform + 1][0] << 32;
    if (m->base_words == 2)
        EACH
            address[l] = ((uint64_t)hi[l] << 32 | lo[l]) + add;
    else
        EACH
            address[l] = ((uint64_t)lo[l] << m->scale) + add;
}

/* Shared and local addresses have 32 bits. */
static void addresses_32(const warp_t *w, const op_t *o, uint64_t address[LANES])
{
    addresses(w, o, address);
    EACH
        address[l] = (uint32_t)address[l];
}

static uint32_t observe(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                        const uint64_t address[LANES], uint32_t bytes)
{
    if (!watched(w))
        return on;
    const worker_t *worker = w->block->worker;
    const unsigned checks = worker->m->checks;
    if (checks & TURING_CHECK_MEMORY)
        on = emu_check_memory(w, o, on, space, kind, address, bytes);
    if (!on)
        return 0;
    w->stored |= kind != ACCESS_READ && space != TURING_SPACE_LOCAL;
    if (checks & TURING_CHECK_RACE && space != TURING_SPACE_LOCAL)
        emu_race_access(w, o, on, space, kind, address, bytes);
    if (worker->count && space == TURING_SPACE_GLOBAL)
        emu_count_global(w, o, on, kind, address, bytes);
    if (space == TURING_SPACE_SHARED && (worker->count || w->trace)) {
        uint32_t words, waves = emu_shared_waves(on, address, bytes, &words);
        if (worker->count)
            emu_count_shared(w, o, waves, words);
        if (w->trace)
            emu_time_shared(w, waves);
    }
    if (w->trace && space == TURING_SPACE_GLOBAL)
        emu_time_global(w, on, address, kind == ACCESS_WRITE ? bytes : 0);
    return on;
}

static const char *space_name(turing_space_t space)
{
    return space == TURING_SPACE_GLOBAL ? "global" : space == TURING_SPACE_SHARED ? "shared" : "local";
}

/* Host storage of an access, or NULL after a fault. */
static uint8_t *locate(warp_t *w, const op_t *o, turing_space_t space, int lane, uint64_t address, uint32_t bytes)
{
    const machine_t *m = w->block->worker->m;
    if (address & (bytes - 1)) {
        emu_fault_as(w, o, TURING_FAILED_MISALIGNED, "lane %d: misaligned %s address 0x%llx for %u bytes", lane,
                     space_name(space), (unsigned long long)address, bytes);
        return NULL;
    }
    if (space == TURING_SPACE_SHARED && address + bytes <= m->shared_bytes)
        return w->block->shared + address;
    if (space == TURING_SPACE_LOCAL && address + bytes <= m->local_bytes) {
        emu_local_reach(w, (uint32_t)address);
        return w->local + (uint64_t)lane * m->local_bytes + address;
    }
    if (space == TURING_SPACE_GLOBAL) {
        alloc_t *a = w->hit;
        if (!a || address < a->base || address - a->base >= a->size)
            a = emu_memory_find(m->mem, address);
        if (a &&
            (bytes <= a->size - (address - a->base) || (bytes == 4 && m->checks & TURING_CHECK_MEMORY && a->owned))) {
            w->hit = a; /* words that reach over the end were looked at by the check */
            return a->host + (address - a->base);
        }
    }
    emu_fault_as(w, o, TURING_FAILED_ADDRESS, "lane %d: %s address 0x%llx, %u bytes, is out of bounds%s", lane,
                 space_name(space), (unsigned long long)address, bytes,
                 space == TURING_SPACE_LOCAL && m->has_stack ? "; is the stack too small (cudaLimitStackSize)?" : "");
    return NULL;
}

/* Which bytes a dry launch left out, from an access's first on; NULL: none. */
static uint8_t *absent(const warp_t *w, turing_space_t space, const uint8_t *p)
{
    if (space == TURING_SPACE_SHARED)
        return w->block->shared_absent ? w->block->shared_absent + (p - w->block->shared) : NULL;
    if (space == TURING_SPACE_LOCAL)
        return w->local_absent ? w->local_absent + (p - w->local) : NULL;
    return w->hit->absent ? w->hit->absent + (p - w->hit->host) : NULL;
}

/* False after a fault: what is read was left out. */
static bool present(warp_t *w, const op_t *o, turing_space_t space, int lane, const uint8_t *p, uint32_t bytes)
{
    const uint8_t *a = absent(w, space, p);
    if (!a || !memchr(a, 1, bytes))
        return true;
    emu_fault(w, o, "lane %d needs %s memory that a dry launch did not compute", lane, space_name(space));
    return false;
}

static void load(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES])
{
    const uint32_t bytes = o->in->mem.bytes, allowed = observe(w, o, on, space, ACCESS_READ, address, bytes);
    row_t *d = w->r + o->d;
    if (o->idle)
        return;
    EACH_ON {
        uint32_t v[4] = {0};
        if (allowed >> l & 1) {
            const uint8_t *p = locate(w, o, space, l, address[l], bytes);
            if (!p || !present(w, o, space, l, p, bytes))
                return;
            switch (bytes) {
            case 1: v[0] = o->in->mem.is_signed ? (uint32_t)(int8_t)*p : *p; break;
            case 2: {
                uint16_t h;
                memcpy(&h, p, 2);
                v[0] = o->in->mem.is_signed ? (uint32_t)(int16_t)h : h;
                break;
            }
            case 4: memcpy(v, p, 4); break;
            case 8: memcpy(v, p, 8); break;
            default: memcpy(v, p, 16); break;
            }
        }
        d[0][l] = v[0];
        if (bytes >= 8)
            d[1][l] = v[1];
        if (bytes == 16) {
            d[2][l] = v[2];
            d[3][l] = v[3];
        }
    }
    if (w->define && o->d != ROW_SINK)
        emu_define_load(w, o, allowed & on, space, address);
}

/* Bytes have a value now. */
static void mark(const warp_t *w, turing_space_t space, const uint8_t *p, uint32_t bytes)
{
    uint8_t *a = absent(w, space, p);
    if (a)
        memset(a, 0, bytes);
    if (space == TURING_SPACE_GLOBAL && w->hit->valid)
        memset(w->hit->valid + (p - w->hit->host), 1, bytes);
}

/* A store that is left out. */
static void leave_out(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES])
{
    const uint32_t bytes = o->in->mem.bytes;
    EACH_ON {
        const uint8_t *p = locate(w, o, space, l, address[l], bytes);
        if (!p)
            return;
        if (space == TURING_SPACE_SHARED && bytes == 16)
            memset(w->block->shared_absent + address[l], 1, 16);
        else if (space == TURING_SPACE_SHARED)
            memset(w->block->shared_absent + address[l], 1, bytes);
        else if (space == TURING_SPACE_LOCAL)
            memset(w->local_absent + (p - w->local), 1, bytes);
        else if (!emu_memory_absent(w->hit, address[l] - w->hit->base, bytes, true)) {
            emu_fault(w, o, "out of memory to leave out this store");
            return;
        }
    }
}

static void store(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES])
{
    const uint32_t bytes = o->in->mem.bytes;
    const row_t *s = (const row_t *)(w->r + o->src[0]);
    on = observe(w, o, on, space, ACCESS_WRITE, address, bytes);
    if (o->idle) {
        leave_out(w, o, on, space, address);
        return;
    }
    if (w->define)
        emu_define_store(w, o, on, space, address);
    EACH_ON {
        uint8_t *p = locate(w, o, space, l, address[l], bytes);
        if (!p)
            return;
        uint32_t v[4] = {s[0][l]};
        switch (bytes) {
        case 1: *p = (uint8_t)v[0]; break;
        case 2: memcpy(p, v, 2); break; /* little-endian hosts only: exec.c sees to it */
        case 4: memcpy(p, v, 4); break;
        case 8:
            v[1] = s[1][l];
            memcpy(p, v, 8);
            break;
        default:
            v[1] = s[1][l];
            v[2] = s[2][l];
            v[3] = s[3][l];
            memcpy(p, v, 16);
            break;
        }
        mark(w, space, p, bytes);
    }
}

/* Strong accesses order blocks, and a block that repeats them is waiting. */
static void strong(warp_t *w, uint32_t on, access_t kind, const uint64_t address[LANES])
{
    block_t *b = w->block;
    const uint32_t most = w->trace ? 1 : b->worker->m->checks & TURING_CHECK_RACE ? b->patience : POLLS;
    if (kind != ACCESS_WRITE && ++b->polls >= most) {
        b->polls = 0;
        if (b->patience < POLLS)
            b->patience *= 2;
        if (w->stop == RUNNING)
            w->stop = STOP_YIELD;
    }
    if (kind == ACCESS_WRITE)
        b->worker->changes++;
    if (b->worker->m->checks & TURING_CHECK_RACE)
        emu_race_strong(w, on, kind, address);
}

static void op_ldg(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses(w, o, address);
    load(w, o, on, TURING_SPACE_GLOBAL, address);
    if (o->in->m.order == TURING_ORDER_STRONG)
        strong(w, on, ACCESS_READ, address);
}

static void op_stg(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses(w, o, address);
    if (o->in->m.order == TURING_ORDER_STRONG)
        strong(w, on, ACCESS_WRITE, address);
    store(w, o, on, TURING_SPACE_GLOBAL, address);
}

/* LDS, LDL. */
static void op_load_near(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses_32(w, o, address);
    load(w, o, on, o->in->op == TURING_LDL ? TURING_SPACE_LOCAL : TURING_SPACE_SHARED, address);
}

/* STS, STL. */
static void op_store_near(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses_32(w, o, address);
    store(w, o, on, o->in->op == TURING_STL ? TURING_SPACE_LOCAL : TURING_SPACE_SHARED, address);
}

/* ---- generic addresses ---------------------------------------------------------------- */

/* Lanes whose address lies in a window, their addresses rebased. */
static uint32_t in_window(uint32_t on, const uint64_t address[LANES], uint64_t window, uint64_t rebased[LANES])
{
    uint32_t in = 0;
    EACH_ON
        if (address[l] - window < WINDOW_BYTES) {
            in |= 1u << l;
            rebased[l] = address[l] - window;
        }
    return in;
}

static void generic(warp_t *w, const op_t *o, uint32_t on,
                    void (*transfer)(warp_t *, const op_t *, uint32_t, turing_space_t, const uint64_t[LANES]))
{
    uint64_t address[LANES], rebased[LANES] = {0};
    addresses(w, o, address);
    uint32_t shared = in_window(on, address, SHARED_WINDOW, rebased),
             local = in_window(on, address, LOCAL_WINDOW, rebased);
    uint32_t global = on & ~shared & ~local;
    if (shared)
        transfer(w, o, shared, TURING_SPACE_SHARED, rebased);
    if (local && w->stop != STOP_FAULT)
        transfer(w, o, local, TURING_SPACE_LOCAL, rebased);
    const bool is_strong = global && o->in->m.order == TURING_ORDER_STRONG;
    if (is_strong && transfer == store)
        strong(w, global, ACCESS_WRITE, address);
    if (global && w->stop != STOP_FAULT)
        transfer(w, o, global, TURING_SPACE_GLOBAL, address);
    if (is_strong && transfer == load)
        strong(w, global, ACCESS_READ, address);
}

static void op_ld(warp_t *w, const op_t *o, uint32_t on)
{
    generic(w, o, on, load);
}

static void op_st(warp_t *w, const op_t *o, uint32_t on)
{
    generic(w, o, on, store);
}

static void op_qspc(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES], rebased[LANES];
    addresses(w, o, address);
    uint32_t shared = in_window(on, address, SHARED_WINDOW, rebased),
             local = in_window(on, address, LOCAL_WINDOW, rebased);
    uint32_t hit = o->in->m.func == 0 ? on & ~shared & ~local : o->in->m.func == 1 ? local : shared, t[LANES];
    EACH
        t[l] = hit >> l & 1;
    put(w, o->d, t, on);
    put_pred(w, o->pdst[0], hit, on);
}

/* ---- matrices ----------------------------------------------------------------------------- */

#if defined(__SSE2__)
static void transpose(const uint8_t *const row[8], uint32_t out[LANES])
{
    __m128i r[8];
    for (int i = 0; i < 8; i++)
        r[i] = _mm_loadu_si128((const __m128i *)row[i]);
    emu_transpose_8x8(r);
    for (int i = 0; i < 8; i++)
        _mm_storeu_si128((__m128i *)(out + 4 * i), r[i]);
}
#else
static void transpose(const uint8_t *const row[8], uint32_t out[LANES])
{
    uint16_t in[8][8];
    for (int i = 0; i < 8; i++)
        memcpy(in[i], row[i], 16);
    EACH
        out[l] = in[2 * (l & 3)][l >> 2] | (uint32_t)in[2 * (l & 3) + 1][l >> 2] << 16;
}
#endif

/* What was undefined in shared memory is so in the registers. */
static void undefined_matrices(warp_t *w, const op_t *o, uint32_t allowed, const uint64_t address[LANES])
{
    for (int i = 0; i < o->in->m.count; i++) {
        uint8_t bits[8][16] = {{0}};
        const uint8_t *row[8];
        uint32_t d[LANES], first = LANES;
        for (int j = 0; j < 8; j++) {
            const uint32_t l = 8u * (uint32_t)i + (uint32_t)j;
            row[j] = bits[j];
            if (allowed >> l & 1 && emu_define_bytes(w, TURING_SPACE_SHARED, l, address[l], 16, bits[j]) &&
                first == LANES)
                first = l;
        }
        if (first == LANES)
            continue;
        if (o->in->m.trans)
            transpose(row, d);
        else
            memcpy(d, bits, sizeof d);
        emu_define_put(w, o, o->d + (unsigned)i, d, ALL_LANES,
                       (site_t){.space = TURING_SPACE_SHARED, .address = address[first], .lane = first, .bytes = 16});
    }
}

/* Lane 8 i + j holds the address of row j of matrix i; lane 4 g + t gets
 * elements 2t and 2t+1 of row g (transposed: of column g). */
static void op_ldsm(warp_t *w, const op_t *o, uint32_t on)
{
    const int count = o->in->m.count;
    const machine_t *m = w->block->worker->m;
    if (on != ALL_LANES) {
        if (!(m->checks & TURING_CHECK_CONVERGENCE)) {
            emu_fault(w, o, "LDSM with lanes 0x%08x only", on);
            return;
        }
        emu_report(w, o, TURING_DIVERGENT, (site_t){.lane = TURING_NO_LANE}, "LDSM is executed by lanes 0x%08x only",
                   on);
    }
    uint64_t address[LANES];
    addresses_32(w, o, address);
    const uint32_t rows = count == 4 ? ALL_LANES : (1u << 8 * count) - 1;
    /* Lanes whose row is not wanted: on sm_75 they must pass valid addresses, too (PTX ISA, ldmatrix). */
    for (int l = 8 * count; l < LANES; l++)
        if (!locate(w, o, TURING_SPACE_SHARED, l, address[l], 16))
            return;
    const uint32_t allowed = observe(w, o, rows, TURING_SPACE_SHARED, ACCESS_READ, address, 16);
    if (o->idle)
        return;
    static const uint8_t zeros[16];
    const uint8_t *row[LANES];
    for (int l = 0; l < 8 * count; l++) {
        row[l] = zeros;
        if (allowed >> l & 1) {
            if ((address[l] & 15) == 0 && address[l] + 16 <= m->shared_bytes)
                row[l] = w->block->shared + address[l];
            else if (!locate(w, o, TURING_SPACE_SHARED, l, address[l], 16))
                return;
            if (!present(w, o, TURING_SPACE_SHARED, l, row[l], 16))
                return;
        }
    }
    for (int i = 0; i < count; i++) {
        uint32_t *d = w->r[o->d + i];
        if (o->in->m.trans)
            transpose(row + 8 * i, d);
        else
            for (int j = 0; j < 8; j++)
                memcpy(d + 4 * j, row[8 * i + j], 16);
    }
    if (w->define)
        undefined_matrices(w, o, allowed, address);
}

/* ---- constants ------------------------------------------------------------------------------- */

static void op_ldc(warp_t *w, const op_t *o, uint32_t on)
{
    static const uint8_t sizes[TURING_TYPE_COUNT] = {
        [TURING_U8] = 1, [TURING_S8] = 1, [TURING_U16] = 2, [TURING_S16] = 2, [TURING_B32] = 4, [TURING_B64] = 8};
    const machine_t *m = w->block->worker->m;
    const turing_operand_t *s = &o->in->src[0];
    const uint8_t *data = s->bank < TURING_BANKS ? m->bank[s->bank].data : NULL;
    const uint32_t limit = s->bank < TURING_BANKS ? m->bank[s->bank].size : 0;
    const uint32_t bytes = sizes[o->in->m.type];
    uint32_t t[2][LANES] = {{0}};
    EACH_ON {
        const uint32_t at = s->kind == TURING_CONST ? s->imm : w->r[o->src[0]][l] + (uint32_t)(int16_t)s->imm;
        if (!data || at > limit || limit - at < bytes || at & (bytes - 1)) {
            emu_fault(w, o, "lane %d: c[0x%x][0x%x] is misaligned or past the end of the bank (0x%x bytes)", l, s->bank,
                      at, data ? limit : 0);
            return;
        }
        uint8_t v[8] = {0};
        memcpy(v, data + at, bytes);
        memcpy(&t[0][l], v, 4);
        memcpy(&t[1][l], v + 4, 4);
        if (o->in->m.type == TURING_S8)
            t[0][l] = (uint32_t)(int8_t)v[0];
        else if (o->in->m.type == TURING_S16)
            t[0][l] = (uint32_t)(int16_t)t[0][l];
    }
    put(w, o->d, t[0], on);
    if (bytes == 8)
        put(w, o->d + 1u, t[1], on);
}

/* ---- atomics ------------------------------------------------------------------------------------ */

static float float_of(uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return (x & 0x7f800000) ? f : x >> 31 ? -0.0f : 0.0f; /* .FTZ */
}

static uint32_t add_float(uint32_t x, uint32_t y)
{
    float f = float_of(x) + float_of(y);
    uint32_t r;
    memcpy(&r, &f, 4);
    return (r & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : (r & 0x7f800000) ? r : r & 0x80000000u;
}

static uint64_t add_double(uint64_t x, uint64_t y)
{
    double a, b;
    memcpy(&a, &x, 8);
    memcpy(&b, &y, 8);
    a += b;
    memcpy(&x, &a, 8);
    return x;
}

static uint64_t updated(const op_t *o, uint64_t old, uint64_t v)
{
    const unsigned type = o->in->m.type;
    const bool wide = type == TURING_U64 || type == TURING_S64, is_signed = type == TURING_S32 || type == TURING_S64;
    const uint64_t bias = !is_signed ? 0 : wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    switch (o->in->m.func) {
    case TURING_ATOM_ADD:
        return type == TURING_F32     ? add_float((uint32_t)old, (uint32_t)v)
               : type == TURING_F64   ? add_double(old, v)
               : type == TURING_F16X2 ? emu_add_half2((uint32_t)old, (uint32_t)v)
                                      : old + v;
    case TURING_ATOM_MIN: return (old ^ bias) < (v ^ bias) ? old : v;
    case TURING_ATOM_MAX: return (old ^ bias) > (v ^ bias) ? old : v;
    case TURING_ATOM_INC: return old >= v ? 0 : old + 1;
    case TURING_ATOM_DEC: return old == 0 || old > v ? v : old - 1;
    case TURING_ATOM_AND: return old & v;
    case TURING_ATOM_OR: return old | v;
    case TURING_ATOM_XOR: return old ^ v;
    default: return v; /* EXCH */
    }
}

/* Lane after lane, lowest first. */
static void atomic(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES], bool cas)
{
    machine_t *m = w->block->worker->m;
    const unsigned type = o->in->m.type;
    const uint32_t bytes = type == TURING_U64 || type == TURING_S64 || type == TURING_F64 ? 8 : 4;
    const row_t *a = (const row_t *)(w->r + o->src[0]), *b = (const row_t *)(w->r + o->src[1]);
    uint32_t lo[LANES] = {0}, hi[LANES] = {0};
    uint32_t allowed = observe(w, o, on, space, ACCESS_ATOMIC, address, bytes);
    pthread_mutex_lock(&m->atomics);
    for (int l = 0; l < LANES; l++) {
        if (!(allowed >> l & 1))
            continue;
        uint8_t *p = locate(w, o, space, l, address[l], bytes);
        if (!p || !present(w, o, space, l, p, bytes))
            break;
        uint64_t old = 0, first = a[0][l], second = b[0][l], now;
        if (bytes == 8) {
            first |= (uint64_t)a[1][l] << 32;
            second |= (uint64_t)b[1][l] << 32;
        }
        memcpy(&old, p, bytes);
        if (w->define)
            emu_define_atomic(w, o, (uint32_t)l, space, address[l], bytes, cas, old == first);
        now = cas ? (old == first ? second : old) : updated(o, old, first);
        w->block->worker->changes += now != old;
        memcpy(p, &now, bytes);
        mark(w, space, p, bytes);
        if (cas && o->in->m.func) /* CAST: tells success instead of the old value */
            old = old == first;
        lo[l] = (uint32_t)old;
        hi[l] = (uint32_t)(old >> 32);
    }
    pthread_mutex_unlock(&m->atomics);
    if (o->d == ROW_SINK || w->stop == STOP_FAULT)
        return;
    put(w, o->d, lo, on);
    if (bytes == 8) /* of CAST, too: the loop around it compares a pair */
        put(w, o->d + 1u, hi, on);
}

static void global_atomic(warp_t *w, const op_t *o, uint32_t on, bool cas)
{
    uint64_t address[LANES], rebased[LANES] = {0};
    addresses(w, o, address);
    uint32_t shared = in_window(on, address, SHARED_WINDOW, rebased), global = on & ~shared;
    if (o->pdst[0] != PRED_SINK) {
        /* Says whether the address was a global one and this is done: for shared ones the compiler has a loop. */
        put_pred(w, o->pdst[0], global, on);
        shared = 0;
    }
    if (shared)
        atomic(w, o, shared, TURING_SPACE_SHARED, rebased, cas);
    if (!global || w->stop == STOP_FAULT)
        return;
    strong(w, global, o->d == ROW_SINK ? ACCESS_WRITE : ACCESS_ATOMIC, address);
    atomic(w, o, global, TURING_SPACE_GLOBAL, address, cas);
}

static void op_atom(warp_t *w, const op_t *o, uint32_t on)
{
    global_atomic(w, o, on, false);
}

static void op_atom_cas(warp_t *w, const op_t *o, uint32_t on)
{
    global_atomic(w, o, on, true);
}

static void op_atoms(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses_32(w, o, address);
    atomic(w, o, on, TURING_SPACE_SHARED, address, false);
}

static void op_atoms_cas(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses_32(w, o, address);
    atomic(w, o, on, TURING_SPACE_SHARED, address, true);
}

/* Fences and cache control: this memory is always coherent, only the race
 * checker cares. */
static void op_fence(warp_t *w, const op_t *o, uint32_t on)
{
    if (w->block->race && o->in->op == TURING_MEMBAR)
        emu_race_fence(w, on, o->in->m.scope >= TURING_SCOPE_GPU);
}

/* A prefetch changes nothing here; one of no memory at all is a mistake in an address. */
static void op_prefetch(warp_t *w, const op_t *o, uint32_t on)
{
    uint64_t address[LANES];
    addresses(w, o, address);
    EACH_ON {
        if (!locate(w, o, TURING_SPACE_GLOBAL, l, address[l], 1))
            return;
    }
    if (w->trace)
        emu_time_global(w, on, address, 0);
}

void emu_select_memory(op_t *o)
{
    const turing_insn_t *in = o->in;
    o->flow = FLOW_STOPPING;
    const bool odd_predicate = in->psrc[0].present && (in->psrc[0].reg != TURING_PT || in->psrc[0].neg);
    switch (in->op) {
    case TURING_LDG: o->fn = odd_predicate ? NULL : op_ldg; break;
    case TURING_STG: o->fn = op_stg; break;
    case TURING_LDS: o->fn = odd_predicate ? NULL : op_load_near; break;
    case TURING_LDL: o->fn = op_load_near; break;
    case TURING_STS:
    case TURING_STL: o->fn = op_store_near; break;
    case TURING_LD: o->fn = odd_predicate ? NULL : op_ld; break;
    case TURING_ST: o->fn = op_st; break;
    case TURING_LDSM: o->fn = op_ldsm; break;
    case TURING_QSPC: o->fn = op_qspc; break;
    case TURING_LDC:
    case TURING_ULDC: o->fn = in->m.fmt || in->src[0].kind == TURING_BINDLESS ? NULL : op_ldc; break;
    case TURING_ATOM:
    case TURING_ATOMG:
    case TURING_RED: o->fn = in->m.func == TURING_ATOM_SAFEADD ? NULL : op_atom; break;
    case TURING_ATOM_CAS:
    case TURING_ATOMG_CAS: o->fn = in->m.func ? NULL : op_atom_cas; break;
    case TURING_ATOMS: o->fn = in->m.func == TURING_ATOM_SAFEADD ? NULL : op_atoms; break;
    case TURING_ATOMS_CAS: o->fn = op_atoms_cas; break;
    case TURING_MEMBAR:
    case TURING_ERRBAR:
    case TURING_CCTL:
    case TURING_CCTLL:
    case TURING_CCTLT:
        if (in->op == TURING_CCTL && in->m.func <= 1) { /* .PF1, .PF2 */
            o->fn = op_prefetch;
            break;
        }
        o->fn = op_fence;
        o->flow = FLOW_PLAIN;
        break;
    default: break;
    }
}
