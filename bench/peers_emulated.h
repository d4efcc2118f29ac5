/* SPDX-License-Identifier: MIT */
/* What libhgemm_peers_t4emu.so has beyond peers_cutlass.h: the emulated T4 that its kernels run on. */
#ifndef HGEMM_BENCH_PEERS_EMULATED_H
#define HGEMM_BENCH_PEERS_EMULATED_H

#include "hgemm.h"

struct turing_kernel;
struct turing_launch;

/* A handle of the emulated T4 and the functions that serve it; the library has none of them itself. */
typedef struct peers_machine_t {
    hgemm_handle_t handle;
    hgemm_status_t (*malloc)(hgemm_handle_t, void **, size_t);
    hgemm_status_t (*free)(hgemm_handle_t, void *);
    hgemm_status_t (*upload)(hgemm_handle_t, void *, const void *, size_t);
    hgemm_status_t (*run)(hgemm_handle_t, const struct turing_kernel *, struct turing_launch *);
} peers_machine_t;

/* Call it before hgemm_peers_open. */
void hgemm_peers_emulate(const peers_machine_t *machine);

#endif
