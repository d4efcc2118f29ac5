/* SPDX-License-Identifier: MIT */
/*
 * The C face of libhgemm_peers.so: NVIDIA's CUTLASS as a peer to be measured beside. The library is
 * built with -DHGEMM_PEERS=ON and opened at run time; nothing links it.
 *
 * It holds the kernels that CUTLASS's own generator makes for Turing's tensor cores: GemmUniversal,
 * OpClassTensorOp, arch::Sm75, mma.m16n8k8, two stages; all nine of the generator's tiles, all four
 * transposes, alignments of 8, 4, 2 and 1 elements, sums in half and in single precision (scalars
 * have the precision of the sums). Nothing of that product is left out. What CUTLASS has beyond it
 * and this library does not: operands of different alignments in one kernel, stream-k. Of floats it holds what the
 * generator makes for FP32 units (OpClassSimt, arch::Sm50): all six tiles, all four transposes.
 *
 * On a Hopper GPU they run as machine code that was built for it, which is the faster opponent; on
 * others as compute_75 PTX, which is how hgemm's own kernels come. The PTX of both is the same,
 * Turing's mma.m16n8k8 and ldmatrix, but for the target that it names; CUDA_FORCE_PTX_JIT=1 in the
 * environment makes the driver compile the compute_75 one everywhere.
 *
 * The same kernels' sm_75 machine code runs on the emulated T4 by libhgemm_peers_t4emu.so: the same objects, whose
 * CUDA runtime is the emulator's (src/face).
 */
#ifndef HGEMM_BENCH_PEERS_CUTLASS_H
#define HGEMM_BENCH_PEERS_CUTLASS_H

#ifdef __cplusplus
extern "C" {
#endif

/* D = alpha * op(A) * op(B) + beta * C, all matrices of halves, or of floats, and row-major as they are stored;
 * D may be C. Leading dimensions and strides are in elements. */
typedef struct peers_call_t {
    int m, n, k, batch;           /* batch: products, whose matrices are strides apart */
    int transpose_a, transpose_b; /* op(A) is m x k: A is stored so, or as k x m */
    int single;                   /* sums in single precision */
    int lda, ldb, ldc;            /* ldc: of C and D */
    long long stride_a, stride_b, stride_c;
    float alpha, beta;
    const void *a, *b, *c; /* on the device */
    void *d;
    int slices;   /* of k, at least 1; 1 for a batch */
    int parallel; /* with slices: 0: each adds to D what the one before it left there (in halves),
                   * 1: each leaves its sums in a workspace, another kernel adds them up */
    int floats;   /* matrices of floats; then sums are in single precision */
} peers_call_t;

typedef struct peers_config_t {
    int tile_m, tile_n, tile_k; /* of a block */
    int alignment;              /* of pointers and rows, in elements */
    char name[32];              /* such as "128x128x32 align8" or "128x128x8 simt" */
} peers_config_t;

/* Makes the GPU of that CUDA ordinal current and allocates what all calls share. 0, or a
 * cudaError_t. Every other function but hgemm_peers_close wants a 0 first. */
int hgemm_peers_open(int ordinal);
void hgemm_peers_close(void);

/* Versions, and the architecture that the code was built for which runs on that GPU: "4.2.0, Sm75
 * kernels built for compute_90 by nvcc 13.0.88". */
const char *hgemm_peers_about(void);

/* Configurations are numbered from 0. */
int hgemm_peers_count(void);
peers_config_t hgemm_peers_config(int config);

/* Whether the configuration is made for that call: its transposes, its sums, the largest alignment
 * that its operands have; and slices that k has and the workspace holds. */
int hgemm_peers_can_run(int config, const peers_call_t *call);

/* Enqueues the call on the default stream. 0; 1 where hgemm_peers_can_run says no or CUTLASS or
 * CUDA refuses. Calls share a workspace: they must not overlap. */
int hgemm_peers_run(int config, const peers_call_t *call);

#ifdef __cplusplus
}
#endif
#endif
