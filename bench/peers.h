/* SPDX-License-Identifier: MIT */
/* What the kernels are measured against and beside. Nothing here is linked: a library that is not
 * found is a peer that is not there. */
#ifndef HGEMM_BENCH_PEERS_H
#define HGEMM_BENCH_PEERS_H

#include "cublas.h"
#include "peers_cutlass.h"
#include "verify.h"

/* ---- the driver's copy --------------------------------------------------------------------------
 */

/* Enqueues a copy within the GPU's memory on the default stream: cuMemcpyDtoDAsync. 0 on success. */
typedef int copy_fn(uint64_t to, uint64_t from, size_t bytes, void *stream);

/* For the GPU of that CUDA ordinal, whose primary context it makes current; NULL where it cannot. */
copy_fn *copy_open(int ordinal);

/* ---- CUTLASS ----------------------------------------------------------------------------------
 */

/* libhgemm_peers.so, see peers_cutlass.h. */
typedef struct cutlass_t {
    void (*close)(void);
    const char *(*about)(void);
    int (*count)(void);
    peers_config_t (*config)(int);
    int (*can_run)(int, const peers_call_t *);
    int (*run)(int, const peers_call_t *);
} cutlass_t;

/* Opens it (the path in HGEMM_PEERS_LIBRARY, else the folder of this program) for the GPU of that
 * CUDA ordinal; or libhgemm_peers_t4emu.so, if that is not NULL, for an emulated T4. NULL and words in
 * `why` where it cannot. */
const cutlass_t *cutlass_open(int ordinal, hgemm_handle_t emulated, char why[VERIFY_WORDS]);

/* C = alpha * op(A) * op(B) + beta * C, of halves or of floats, k not sliced. */
peers_call_t cutlass_call(const problem_t *p, int floats, hgemm_accumulate_t accumulate, float alpha, const void *a,
                          const void *b, float beta, void *c);

/* ---- clocks -----------------------------------------------------------------------------------
 */

/* Opens libnvidia-ml for that GPU; where it is missing every answer is "unknown": 0 or "".
 * The power is what the driver reads out, on GPUs newer than Turing the mean of the last second. */
void clocks_open(int ordinal);
double clocks_sm_mhz(void);
double clocks_max_sm_mhz(void);
double clocks_power_limit_w(void);
double clocks_power_w(void);

/* The GPU's energy counter; it moves every 20 to 100 ms, see energy.c. 1, or 0 where there is none.
 */
int clocks_energy_j(double *joules);
const char *clocks_driver(void);

#endif
