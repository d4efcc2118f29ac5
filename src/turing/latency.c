/* SPDX-License-Identifier: MIT */
/* latency.c - see latency.h. */
#include "latency.h"

/* Registers, by producer and reader. */
/* clang-format off */
static const uint8_t registers[UNIT_FIXED][UNITS] = {
    /*                alu imad wide float half unif quick cs2r mem xu ctl tens dbl */
    [UNIT_ALU]     = { 4,  5,   5,   5,    6,   4,   4,    4,   8, 6,  6,  6,   6},
    [UNIT_IMAD]    = { 5,  4,   4,   4,    6,   4,   5,    4,   8, 6,  6,  6,   6},
    [UNIT_WIDE]    = { 5,  4,   6,   4,    6,   4,   5,    4,   8, 6,  6,  6,   6},
    [UNIT_FLOAT]   = { 5,  4,   4,   4,    6,   4,   5,    4,   8, 6,  6,  6,   6},
    [UNIT_HALF]    = { 8,  8,   8,   8,    6,   6,   8,    6,   8, 8,  8,  6,   8},
    [UNIT_UNIFORM] = { 6,  6,   6,   6,    6,   4,   4,    2,   9, 6,  2,  2,   6},
    [UNIT_QUICK]   = { 2,  2,   2,   2,    2,   2,   2,    2,   2, 2,  2,  2,   2}, /* ULDC, UMOV, VOTEU */
    [UNIT_CS2R]    = { 6,  6,   6,   6,    6,   6,   6,    6,   8, 6,  6,  6,   6},
};
/* clang-format on */

/* A predicate as data is read where registers are, and so in their time: a carry of IMAD.WIDE after 4 cycles by IMAD.X,
 * after 5 by IADD3.X. Votes, and what goes through queues, read it as late as a guard. */
enum { GUARD = 12, GUARD_OF_HALF = 14, UNIFORM_GUARD = 11, QUICK_GUARD = 4 };

const uint8_t emu_write_latency[UNIT_FIXED] = {4, 4, 5, 4, 6, 2, 2, 4};

static unit_t unit_of(const turing_insn_t *in)
{
    switch (in->op) {
    case TURING_IMAD: return UNIT_IMAD;
    case TURING_IMAD_WIDE:
    case TURING_IMAD_HI: return UNIT_WIDE;
    case TURING_CS2R: return UNIT_CS2R;
    case TURING_VOTEU:
    case TURING_ULDC:
    case TURING_UMOV: return UNIT_QUICK;
    case TURING_R2UR:
    case TURING_S2UR: return UNIT_MEMORY;
    case TURING_MOVM: return UNIT_XU;
    default: break;
    }
    switch (turing_op_pipe((turing_op_t)in->op)) {
    case TURING_PIPE_ALU: return UNIT_ALU;
    case TURING_PIPE_FMA: return UNIT_FLOAT;
    case TURING_PIPE_HALF: return UNIT_HALF;
    case TURING_PIPE_UNIFORM: return UNIT_UNIFORM;
    case TURING_PIPE_XU: return UNIT_XU;
    case TURING_PIPE_TENSOR: return UNIT_TENSOR;
    case TURING_PIPE_FMA64: return UNIT_DOUBLE;
    case TURING_PIPE_CONTROL: return UNIT_CONTROL;
    default: return UNIT_MEMORY;
    }
}

station_t emu_station(const turing_insn_t *in)
{
    const unit_t unit = unit_of(in);
    /* constants are indexed sooner than memory; and what asks no memory at all, or a surface */
    const bool sooner = in->op == TURING_LDC || in->op == TURING_MATCH || in->op == TURING_SUST;
    const bool late = in->op == TURING_VOTE || in->op == TURING_VOTEU || unit >= UNIT_FIXED;
    return (station_t){(uint8_t)unit, (uint8_t)(sooner ? UNIT_XU : unit), late};
}

unsigned emu_latency(unit_t from, station_t to, turing_file_t file, bool is_guard)
{
    if (file == TURING_FILE_UP)
        return is_guard             ? (from == UNIT_QUICK ? QUICK_GUARD : UNIFORM_GUARD)
               : from == UNIT_QUICK ? (to.unit == UNIT_UNIFORM ? 2 : 1) /* ptxas has a PLOP3 right behind a VOTEU */
               : to.unit == UNIT_UNIFORM ? 4
                                         : 6;
    if (file == TURING_FILE_P && (is_guard || to.late))
        return from == UNIT_HALF ? GUARD_OF_HALF : GUARD;
    return registers[from][to.reads_as];
}
