/* SPDX-License-Identifier: MIT */
/*
 * latency.h - the units that instructions go through, and how many cycles their results take, as ptxas's code says.
 *
 * Every figure is the least distance between a producer and a reader in the machine code of many kernels: some thousand
 * random ones (test/turing/random) and those of CUDA's libraries. turing_latency_test sweeps over code in the same way
 * and finds none below; `turing_latency_test --table FILE...` prints what it found. ptxas keeps one distance for a pair
 * of units, so a sweep of some ten instances finds it.
 */
#ifndef TURING_LATENCY_H
#define TURING_LATENCY_H

#include "insn.h"

typedef enum unit {
    UNIT_ALU,
    UNIT_IMAD,
    UNIT_WIDE,
    UNIT_FLOAT,
    UNIT_HALF,
    UNIT_UNIFORM,
    UNIT_QUICK,
    UNIT_CS2R,
    UNIT_FIXED, /* number of the units above, whose results have fixed latency */
    UNIT_MEMORY = UNIT_FIXED,
    UNIT_XU,
    UNIT_CONTROL,
    UNIT_TENSOR,
    UNIT_DOUBLE,
    UNITS
} unit_t;

/* Cycles from issue until the last write, to tell which of two lands last. */
extern const uint8_t emu_write_latency[UNIT_FIXED];

typedef struct station {
    uint8_t unit;
    uint8_t reads_as; /* the unit as whose its registers are read                         */
    uint8_t late;     /* predicates that are its data are read where guards are, not earlier */
} station_t;

station_t emu_station(const turing_insn_t *in);

/* Cycles from the issue of an instruction of a unit of fixed latency to the earliest issue of one that reads its
 * result, a register or predicate of a file: a predicate as guard or branch condition, or as data. */
unsigned emu_latency(unit_t from, station_t to, turing_file_t file, bool is_guard);

#endif
