// SPDX-License-Identifier: MIT
//
// libhgemm_peers.so, see peers_cutlass.h. This file is compiled once without PEERS_ALIGN, for the C
// interface, and once for each kind of kernel: PEERS_ALIGN elements, PEERS_A and PEERS_B the
// layouts RowMajor or ColumnMajor, PEERS_SUMS the types half_t or float. With PEERS_SIMT all matrices are of floats,
// which FP32 units multiply.
#include <cuda_runtime.h>

#include "peers_cutlass.h"

// One tile of one kind. Each kind hands its table to the interface before main begins.
struct Configuration {
    int tile_m, tile_n, tile_k, alignment, transpose_a, transpose_b, single, floats;
    const void *function;
    int (*run)(const peers_call_t &call, void *semaphores, void *workspace);
};
struct Kind {
    const Configuration *first;
    int count;
    const Kind *next;
};
extern const Kind *peers_kinds; // of zero before any constructor runs

#ifdef PEERS_ALIGN

#include <algorithm>

#include "cutlass/epilogue/thread/linear_combination.h"
#include "cutlass/gemm/device/gemm_universal_base.h"
#include "cutlass/gemm/kernel/default_gemm_universal.h"
#include "cutlass/reduction/device/reduce_split_k.h"
#include "cutlass/reduction/thread/reduction_operators.h"

namespace
{

using cutlass::gemm::GemmShape;
using cutlass::half_t;
using Sums = PEERS_SUMS;
#ifdef PEERS_SIMT
using Element = float;
using Units = cutlass::arch::OpClassSimt;
using Arch = cutlass::arch::Sm50;
using Instruction = GemmShape<1, 1, 1>;
#else
using Element = half_t;
using Units = cutlass::arch::OpClassTensorOp;
using Arch = cutlass::arch::Sm75;
using Instruction = GemmShape<16, 8, 8>;
#endif
using LayoutA = cutlass::layout::PEERS_A;
using LayoutB = cutlass::layout::PEERS_B;
using cutlass::gemm::GemmUniversalMode;

template <class Output> using Epilogue = cutlass::epilogue::thread::LinearCombination<
    Output, std::min<int>(PEERS_ALIGN, 16 / sizeof(Output)), Sums, Sums>;

template <class Tile, class Warp, class Output> struct Gemm
    : cutlass::gemm::device::GemmUniversalBase<typename cutlass::gemm::kernel::DefaultGemmUniversal<
          Element, LayoutA, cutlass::ComplexTransform::kNone, PEERS_ALIGN, Element, LayoutB,
          cutlass::ComplexTransform::kNone, PEERS_ALIGN, Output, cutlass::layout::RowMajor, Sums,
          Units, Arch, Tile, Warp, Instruction, Epilogue<Output>,
          cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, 2,
          cutlass::arch::OpMultiplyAdd>::GemmKernel> {

    // Enqueues it; `slices` gets those that k was cut in. Semaphores are zero, and serial slices
    // leave them so: the memset that initialize() puts before every launch is not needed.
    cutlass::Status start(const typename Gemm::Arguments &arguments, void *semaphores, int *slices)
    {
        cutlass::Status status = this->can_implement(arguments);
        if (status == cutlass::Status::kSuccess)
            status = this->init_params(arguments);
        if (status != cutlass::Status::kSuccess)
            return status;
        this->params_.semaphore = static_cast<int *>(semaphores);
        *slices = this->params_.grid_tiled_shape.k();
        return this->GemmUniversalBase::run(nullptr);
    }
};

// Adds up what slices left in the workspace, as GemmSplitKParallel does it.
using Reduce = cutlass::reduction::device::ReduceSplitK<cutlass::reduction::kernel::ReduceSplitK<
    cutlass::MatrixShape<4, 32 * PEERS_ALIGN>, Epilogue<Element>,
    cutlass::reduction::thread::ReduceAdd<Sums, Sums, PEERS_ALIGN>>>;

template <class Tile, class Warp>
int run(const peers_call_t &call, void *semaphores, void *workspace)
{
    const cutlass::gemm::GemmCoord size(call.m, call.n, call.k);
    const typename Epilogue<Element>::Params scalars(Sums(call.alpha), Sums(call.beta));
    const int64_t area = int64_t(call.m) * call.n;
    int slices;
    if (!call.parallel) {
        Gemm<Tile, Warp, Element> gemm;
        const bool batched = call.batch > 1;
        return gemm.start({batched ? GemmUniversalMode::kBatched : GemmUniversalMode::kGemm, size,
                           batched ? call.batch : call.slices, scalars, call.a, call.b, call.c,
                           call.d, call.stride_a, call.stride_b, call.stride_c, call.stride_c,
                           call.lda, call.ldb, call.ldc, call.ldc},
                          semaphores, &slices) != cutlass::Status::kSuccess;
    }

    Gemm<Tile, Warp, Sums> gemm;
    if (gemm.start({GemmUniversalMode::kGemmSplitKParallel,
                    size,
                    call.slices,
                    {Sums(1), Sums(0)},
                    call.a,
                    call.b,
                    workspace,
                    workspace,
                    0,
                    0,
                    0,
                    area,
                    call.lda,
                    call.ldb,
                    call.n,
                    call.n},
                   nullptr, &slices) != cutlass::Status::kSuccess)
        return 1;
    Reduce reduce;
    return reduce({{call.m, call.n},
                   slices,
                   size_t(area),
                   {static_cast<Sums *>(workspace), call.n},
                   {static_cast<Element *>(call.d), call.ldc},
                   {static_cast<Element *>(const_cast<void *>(call.c)), call.ldc},
                   scalars}) != cutlass::Status::kSuccess;
}

template <int M, int N, int K, int WarpM, int WarpN> Configuration configuration()
{
    using Tile = GemmShape<M, N, K>;
    using Warp = GemmShape<WarpM, WarpN, K < 32 ? K : 32>;
    return {M,
            N,
            K,
            PEERS_ALIGN,
            std::is_same<LayoutA, cutlass::layout::ColumnMajor>::value,
            std::is_same<LayoutB, cutlass::layout::ColumnMajor>::value,
            std::is_same<Sums, float>::value,
            std::is_same<Element, float>::value,
            reinterpret_cast<const void *>(
                &cutlass::Kernel2<typename Gemm<Tile, Warp, Element>::GemmKernel>),
            run<Tile, Warp>};
}

const Configuration configurations[] = {
#ifdef PEERS_SIMT // GenerateSM50_Simt of CUTLASS's generator.py
    configuration<128, 128, 8, 32, 64>(), configuration<128, 64, 8, 64, 32>(), configuration<64, 128, 8, 32, 64>(),
    configuration<64, 64, 8, 32, 64>(),   configuration<128, 32, 8, 64, 32>(), configuration<32, 128, 8, 32, 64>(),
#else // GenerateSM75_TensorOp_1688
    configuration<256, 128, 32, 64, 64>(), configuration<128, 256, 32, 64, 64>(),
    configuration<128, 128, 32, 64, 64>(), configuration<64, 256, 32, 64, 64>(),
    configuration<256, 64, 32, 64, 64>(),  configuration<64, 128, 32, 32, 64>(),
    configuration<128, 64, 32, 64, 32>(),  configuration<64, 64, 32, 32, 32>(),
    configuration<64, 128, 64, 64, 64>(), // two warps for each half of the k-tile
#endif
};

struct Registered : Kind {
    Registered() : Kind{configurations, sizeof configurations / sizeof *configurations, peers_kinds}
    {
        peers_kinds = this;
    }
} registered;

} // namespace

#else

#include <cstdint>
#include <cstdio>
#include <vector>

#include "cutlass/version.h"

const Kind *peers_kinds;

namespace
{

constexpr size_t SEMAPHORES = 1 << 20; // tiles with serial slices
constexpr size_t WORKSPACE = 96 << 20; // bytes of parallel slices
constexpr int MOST_BATCH = 65535;      // gridDim.z

std::vector<const Configuration *> table;
void *semaphores, *workspace;
char about[96];

// The largest alignment of 8, 4, 2 and 1 elements that all pointers and rows have; of floats kernels want none.
int alignment_of(const peers_call_t &call)
{
    if (call.floats)
        return 1;
    const long long strides =
        call.batch > 1 ? call.stride_a | call.stride_b | call.stride_c : 0;
    const uintptr_t bits =
        2 * uintptr_t(strides) | reinterpret_cast<uintptr_t>(call.a) | reinterpret_cast<uintptr_t>(call.b) |
        reinterpret_cast<uintptr_t>(call.c) | reinterpret_cast<uintptr_t>(call.d) |
        2 * uintptr_t(call.lda | call.ldb | call.ldc | call.n |
                      (call.transpose_a ? call.m : call.k) | (call.transpose_b ? call.k : call.n));
    for (int elements = 8; elements > 1; elements /= 2)
        if (bits % (2 * elements) == 0)
            return elements;
    return 1;
}

size_t tiles(int extent, int tile)
{
    return (size_t(extent) + tile - 1) / tile;
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int hgemm_peers_open(int ordinal)
{
    cudaFuncAttributes attributes = {};
    table.clear();
    for (const Kind *kind = peers_kinds; kind; kind = kind->next)
        for (int i = 0; i < kind->count; ++i)
            table.push_back(&kind->first[i]);
    cudaError_t error = cudaSetDevice(ordinal);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, table[0]->function);
    if (error == cudaSuccess)
        error = cudaMalloc(&semaphores, SEMAPHORES * sizeof(int));
    if (error == cudaSuccess)
        error = cudaMemset(semaphores, 0, SEMAPHORES * sizeof(int));
    if (error == cudaSuccess)
        error = cudaMalloc(&workspace, WORKSPACE);
    snprintf(about, sizeof about, "%d.%d.%d, Sm75 kernels built for compute_%d by nvcc %d.%d.%d",
             CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH, attributes.ptxVersion,
             __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
    if (error != cudaSuccess)
        hgemm_peers_close();
    return error;
}

EXPORTED void hgemm_peers_close(void)
{
    cudaFree(semaphores);
    cudaFree(workspace);
    semaphores = workspace = nullptr;
}

EXPORTED const char *hgemm_peers_about(void)
{
    return about;
}

EXPORTED int hgemm_peers_count(void)
{
    return static_cast<int>(table.size());
}

EXPORTED peers_config_t hgemm_peers_config(int config)
{
    const Configuration &c = *table[config];
    peers_config_t out = {c.tile_m, c.tile_n, c.tile_k, c.alignment, ""};
    if (c.floats)
        snprintf(out.name, sizeof out.name, "%dx%dx%d simt", c.tile_m, c.tile_n, c.tile_k);
    else
        snprintf(out.name, sizeof out.name, "%dx%dx%d align%d", c.tile_m, c.tile_n, c.tile_k, c.alignment);
    return out;
}

EXPORTED int hgemm_peers_can_run(int config, const peers_call_t *call)
{
    const Configuration &c = *table[config];
    if (c.transpose_a != call->transpose_a || c.transpose_b != call->transpose_b ||
        c.single != call->single || c.floats != call->floats || c.alignment != alignment_of(*call))
        return 0;
    if (call->batch > MOST_BATCH)
        return 0;
    if (call->slices <= 1)
        return call->slices == 1 && !call->parallel;
    if (call->batch > 1)
        return 0;
    const size_t bytes = size_t(call->m) * call->n * call->slices * (call->single ? 4 : 2);
    return call->k / call->slices >= c.tile_k &&
           (call->parallel ? bytes <= WORKSPACE
                           : tiles(call->m, c.tile_m) * tiles(call->n, c.tile_n) <= SEMAPHORES);
}

EXPORTED int hgemm_peers_run(int config, const peers_call_t *call)
{
    return !hgemm_peers_can_run(config, call) || table[config]->run(*call, semaphores, workspace);
}

#endif
