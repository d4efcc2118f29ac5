/* SPDX-License-Identifier: MIT */
/*
 * Life beside other users of a GPU: the caller's context is restored, work is ordered on the
 * caller's stream, calls can be captured in a graph and leave others' captures alone, pointers and
 * streams of the CUDA runtime work, and an error of the GPU is reported. The driver is the test's own,
 * reached as a caller would.
 */
#include "util.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, BYTES = N * N * 2, NON_BLOCKING = 1, CAPTURE_GLOBAL = 0, CAPTURE_THREAD_LOCAL = 1 };

typedef unsigned long long address_t;

static struct {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*retain)(void **, int);
    int (*release)(int);
    int (*context_create)(void **, unsigned, int);
    int (*context_destroy)(void *);
    int (*get_current)(void **);
    int (*set_current)(void *);
    int (*stream_create)(void **, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_synchronize)(void *);
    int (*set_halves)(address_t, unsigned short, size_t, void *);
    int (*begin_capture)(void *, int);
    int (*end_capture)(void *, void **);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*graph_launch)(void *, void *);
    int (*exec_destroy)(void *);
    int (*graph_destroy)(void *);
} cu;

static void must(int result, const char *what)
{
    if (result != 0) {
        printf("FAILED: %s gives %d\n", what, result);
        exit(1);
    }
}

static void find(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    expect_true(address != NULL, symbol);
    memcpy(function, &address, sizeof address);
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    expect_true(library != NULL, "libcuda.so.1");
    find(library, "cuInit", &cu.init);
    find(library, "cuDeviceGet", &cu.device_get);
    find(library, "cuDevicePrimaryCtxRetain", &cu.retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", &cu.release);
    find(library, "cuCtxCreate_v2", &cu.context_create);
    find(library, "cuCtxDestroy_v2", &cu.context_destroy);
    find(library, "cuCtxGetCurrent", &cu.get_current);
    find(library, "cuCtxSetCurrent", &cu.set_current);
    find(library, "cuStreamCreate", &cu.stream_create);
    find(library, "cuStreamDestroy_v2", &cu.stream_destroy);
    find(library, "cuStreamSynchronize", &cu.stream_synchronize);
    find(library, "cuMemsetD16Async", &cu.set_halves);
    find(library, "cuStreamBeginCapture_v2", &cu.begin_capture);
    find(library, "cuStreamEndCapture", &cu.end_capture);
    find(library, "cuGraphInstantiateWithFlags", &cu.instantiate);
    find(library, "cuGraphLaunch", &cu.graph_launch);
    find(library, "cuGraphExecDestroy", &cu.exec_destroy);
    find(library, "cuGraphDestroy", &cu.graph_destroy);
    must(cu.init(0), "cuInit");
}

static void succeed(hgemm_handle_t handle, hgemm_status_t status, const char *what)
{
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, what);
}

static void *allocate(hgemm_handle_t handle, size_t bytes)
{
    void *p = NULL;
    succeed(handle, hgemm_malloc(handle, &p, bytes), "hgemm_malloc");
    return p;
}

static void set(void *p, float value, size_t count, void *stream)
{
    must(cu.set_halves((address_t)(uintptr_t)p, hgemm_half_from_float(value), count, stream), "cuMemsetD16Async");
}

/* C = A * B, N x N. */
static void enqueue(hgemm_handle_t handle, const void *a, const void *b, void *c)
{
    succeed(handle, hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, N, N, N, 1, a, N, b, N, 0, c, N),
            "hgemm_run");
}

static void check_all(hgemm_handle_t handle, const void *p, float value, const char *what)
{
    static uint16_t host[N * N];
    succeed(handle, hgemm_download(handle, host, p, BYTES), "hgemm_download");
    for (int i = 0; i < N * N; i++)
        if (host[i] != hgemm_half_from_float(value)) {
            printf("FAILED: %s: element %d is %g, want %g\n", what, i, (double)hgemm_half_to_float(host[i]),
                   (double)value);
            exit(1);
        }
}

/* Every kind of call leaves the current context as it found it: none, the primary, another. */
static void context_is_restored(void *current)
{
    void *now = NULL;
    hgemm_handle_t handle = NULL;
    hgemm_device_info_t info;
    uint16_t half = 0;
    must(cu.set_current(current), "cuCtxSetCurrent");
#define KEEPS(call)                                \
    succeed(handle, call, #call);                  \
    must(cu.get_current(&now), "cuCtxGetCurrent"); \
    expect_true(now == current, #call " changes the current context")
    KEEPS(hgemm_create(&handle, "cuda"));
    KEEPS(hgemm_get_device_info(handle, &info));
    void *p = NULL;
    KEEPS(hgemm_malloc(handle, &p, BYTES));
    KEEPS(hgemm_upload(handle, p, &half, 2));
    KEEPS(hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 1, 1, 0, 1, NULL, 1, NULL, 1, 2, p, 1));
    KEEPS(hgemm_synchronize(handle));
    KEEPS(hgemm_download(handle, &half, p, 2));
    KEEPS(hgemm_free(handle, p));
    KEEPS(hgemm_destroy(handle));
#undef KEEPS
}

/* On a stream that waits for no other: what was enqueued before happens before, after after. */
static void work_is_ordered_on_the_stream(hgemm_handle_t handle)
{
    enum { LARGE = 1 << 27, DELAYS = 20 };
    void *stream = NULL;
    void *a = allocate(handle, BYTES), *b = allocate(handle, BYTES), *c = allocate(handle, BYTES);
    void *d = allocate(handle, BYTES), *large = allocate(handle, LARGE);
    must(cu.stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    succeed(handle, hgemm_set_stream(handle, stream), "hgemm_set_stream");
    void *found = NULL;
    succeed(handle, hgemm_get_stream(handle, &found), "hgemm_get_stream");
    expect_true(found == stream, "hgemm_get_stream gives the stream");
    for (int round = 0; round < 3; round++) {
        set(a, 9, N * N, stream);
        set(b, 9, N * N, stream);
        for (int i = 0; i < DELAYS; i++)
            set(large, 0, LARGE / 2, stream);
        set(a, 1, N * N, stream);
        set(b, 2, N * N, stream);
        enqueue(handle, a, b, c);
        set(a, 0.5f, N * N, stream);
        enqueue(handle, a, b, d);
        set(b, 7, N * N, stream);
        check_all(handle, c, 2 * N, "the first product on a stream");
        check_all(handle, d, N, "the second product on a stream");
    }
    succeed(handle, hgemm_set_stream(handle, NULL), "hgemm_set_stream");
    void *const all[] = {a, b, c, d, large};
    for (int i = 0; i < 5; i++)
        succeed(handle, hgemm_free(handle, all[i]), "hgemm_free");
    must(cu.stream_destroy(stream), "cuStreamDestroy");
}

/* Two dependent products captured, the first by a plan whose kernel nothing else has loaded, then launched twice with
 * other inputs. */
static void calls_can_be_captured(hgemm_handle_t handle)
{
    void *stream = NULL, *graph = NULL, *exec = NULL;
    void *a = allocate(handle, BYTES), *b = allocate(handle, BYTES), *c = allocate(handle, BYTES);
    must(cu.stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    succeed(handle, hgemm_set_stream(handle, stream), "hgemm_set_stream");
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = N;
    desc.a = a, desc.b = b, desc.c = c, desc.d = c;
    succeed(handle, hgemm_prepare(handle, &desc), "hgemm_prepare");
    hgemm_desc_t by_plan = desc;
    hgemm_plan_t plan;
    by_plan.kernel = hgemm_find_kernel("k2_swizzled");
    succeed(handle, hgemm_plan_create(&plan, handle, &by_plan), "hgemm_plan_create");
    set(a, 1, N * N, stream);
    set(b, 0.5f, N * N, stream);
    set(c, 3, N * N, stream);
    must(cu.stream_synchronize(stream), "cuStreamSynchronize");
    must(cu.begin_capture(stream, CAPTURE_THREAD_LOCAL), "cuStreamBeginCapture");
    succeed(handle, hgemm_plan_run(plan, handle, &by_plan), "hgemm_plan_run in a capture"); /* c = a b */
    hgemm_plan_destroy(plan);
    desc.a = c, desc.c = desc.d = a, desc.alpha = 0.25f, desc.beta = 1;
    succeed(handle, hgemm_run_desc(handle, &desc), "hgemm_run_desc in a capture"); /* a += c b / 4 */
    must(cu.end_capture(stream, &graph), "cuStreamEndCapture");
    check_all(handle, c, 3, "a captured call does not run");
    must(cu.instantiate(&exec, graph, 0), "cuGraphInstantiate");
    must(cu.graph_launch(exec, stream), "cuGraphLaunch");
    check_all(handle, c, N / 2, "the first product of a graph");
    check_all(handle, a, 1 + N * N / 16, "the second product of a graph");
    set(a, 2, N * N, stream);
    must(cu.graph_launch(exec, stream), "cuGraphLaunch");
    check_all(handle, c, N, "the first product of a graph, again");
    check_all(handle, a, 2 + N * N / 8, "the second product of a graph, again");
    must(cu.exec_destroy(exec), "cuGraphExecDestroy");
    must(cu.graph_destroy(graph), "cuGraphDestroy");
    succeed(handle, hgemm_set_stream(handle, NULL), "hgemm_set_stream");
    void *const all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        succeed(handle, hgemm_free(handle, all[i]), "hgemm_free");
    must(cu.stream_destroy(stream), "cuStreamDestroy");
}

/* A product of bfloat16 whose scales are found in samples, captured: a launch with elements so large that it must be
 * done again, most of which no sample has, and one without them after it. */
static void sampled_calls_can_be_captured(hgemm_handle_t handle)
{
    enum { K = 1 << 16, ONE = 0x3f80, LARGE = 0x4980, ROW = 77 }; /* 2^20 */
    static float host[N][N];
    void *stream = NULL, *graph = NULL, *exec = NULL;
    uint16_t *a = allocate(handle, (size_t)N * K * 2), *b = allocate(handle, (size_t)N * K * 2);
    float *d = allocate(handle, sizeof host);
    hgemm_desc_t desc;
    must(cu.stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    succeed(handle, hgemm_set_stream(handle, stream), "hgemm_set_stream");
    must(cu.set_halves((address_t)(uintptr_t)a, ONE, (size_t)N * K, stream), "cuMemsetD16Async");
    must(cu.set_halves((address_t)(uintptr_t)b, ONE, (size_t)N * K, stream), "cuMemsetD16Async");
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_d = HGEMM_TYPE_F32;
    desc.m = desc.n = desc.ldb = desc.ldd = N, desc.k = desc.lda = K;
    desc.a = a, desc.b = b, desc.d = d;
    succeed(handle, hgemm_prepare(handle, &desc), "hgemm_prepare");
    must(cu.stream_synchronize(stream), "cuStreamSynchronize");
    must(cu.begin_capture(stream, CAPTURE_THREAD_LOCAL), "cuStreamBeginCapture");
    succeed(handle, hgemm_run_desc(handle, &desc), "hgemm_run_desc in a capture");
    must(cu.end_capture(stream, &graph), "cuStreamEndCapture");
    must(cu.instantiate(&exec, graph, 0), "cuGraphInstantiate");
    for (int round = 0; round < 32; round++) {
        const address_t one = (address_t)(uintptr_t)(a + (size_t)ROW * K + (size_t)round / 2 * 1000);
        must(cu.set_halves(one, round % 2 ? LARGE : ONE, 1, stream), "cuMemsetD16Async");
        must(cu.graph_launch(exec, stream), "cuGraphLaunch");
        must(cu.set_halves(one, ONE, 1, stream), "cuMemsetD16Async");
        succeed(handle, hgemm_download(handle, host, d, sizeof host), "hgemm_download");
        for (int i = 0; i < N * N; i++)
            expect_true(host[i / N][i % N] == (float)K + (round % 2 && i / N == ROW ? 0x1p20f - 1 : 0),
                        "a captured sample");
    }
    must(cu.exec_destroy(exec), "cuGraphExecDestroy");
    must(cu.graph_destroy(graph), "cuGraphDestroy");
    succeed(handle, hgemm_set_stream(handle, NULL), "hgemm_set_stream");
    void *const all[] = {a, b, d};
    for (int i = 0; i < 3; i++)
        succeed(handle, hgemm_free(handle, all[i]), "hgemm_free");
    must(cu.stream_destroy(stream), "cuStreamDestroy");
}

/* While a call of one handle is captured, another handle comes, works and goes: in the mode that forbids the most,
 * and on either kind of stream. */
static void others_leave_a_capture_alone(hgemm_handle_t handle)
{
    void *a = allocate(handle, BYTES), *b = allocate(handle, BYTES), *c = allocate(handle, BYTES);
    for (int flags = 0; flags <= NON_BLOCKING; flags++) {
        void *stream = NULL, *beside = NULL, *graph = NULL, *exec = NULL;
        hgemm_handle_t other = NULL;
        hgemm_desc_t desc;
        must(cu.stream_create(&stream, (unsigned)flags), "cuStreamCreate");
        must(cu.stream_create(&beside, NON_BLOCKING), "cuStreamCreate");
        set(a, 1, N * N, stream);
        set(b, 0.5f, N * N, stream);
        must(cu.stream_synchronize(stream), "cuStreamSynchronize");
        succeed(handle, hgemm_set_stream(handle, stream), "hgemm_set_stream");
        hgemm_desc_init(&desc);
        desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = N;
        desc.a = a, desc.b = b, desc.c = desc.d = c;
        succeed(handle, hgemm_prepare(handle, &desc), "hgemm_prepare");
        must(cu.begin_capture(stream, CAPTURE_GLOBAL), "cuStreamBeginCapture");
        succeed(NULL, hgemm_create(&other, "cuda"), "hgemm_create beside a capture");
        succeed(other, hgemm_set_stream(other, beside), "hgemm_set_stream");
        void *d = allocate(other, BYTES);
        enqueue(other, a, b, d);
        check_all(other, d, N / 2, "a product beside a capture");
        succeed(other, hgemm_free(other, d), "hgemm_free beside a capture");
        succeed(other, hgemm_destroy(other), "hgemm_destroy beside a capture");
        succeed(handle, hgemm_run_desc(handle, &desc), "hgemm_run_desc in a capture");
        must(cu.end_capture(stream, &graph), "cuStreamEndCapture");
        must(cu.instantiate(&exec, graph, 0), "cuGraphInstantiate");
        must(cu.graph_launch(exec, stream), "cuGraphLaunch");
        check_all(handle, c, N / 2, "the product of a graph");
        must(cu.exec_destroy(exec), "cuGraphExecDestroy");
        must(cu.graph_destroy(graph), "cuGraphDestroy");
        set(c, 0, N * N, stream);
        must(cu.stream_synchronize(stream), "cuStreamSynchronize");
        succeed(handle, hgemm_set_stream(handle, NULL), "hgemm_set_stream");
        must(cu.stream_destroy(beside), "cuStreamDestroy");
        must(cu.stream_destroy(stream), "cuStreamDestroy");
    }
    void *const all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        succeed(handle, hgemm_free(handle, all[i]), "hgemm_free");
}

/* Memory and a stream of the CUDA runtime, where there is one. */
static void the_runtime_s_objects_work(hgemm_handle_t handle)
{
    static const char *const names[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
    enum { TO_DEVICE = 1, TO_HOST = 2 };
    int (*allocate_memory)(void **, size_t), (*release_memory)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*stream_create)(void **), (*stream_synchronize)(void *), (*stream_destroy)(void *);
    static uint16_t host[3][N * N];
    void *p[3], *stream = NULL, *library = NULL;
    for (int i = 0; i < 4 && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library) {
        printf("no CUDA runtime here: its pointers were not tried\n");
        return;
    }
    find(library, "cudaMalloc", &allocate_memory);
    find(library, "cudaFree", &release_memory);
    find(library, "cudaMemcpy", &copy);
    find(library, "cudaStreamCreate", &stream_create);
    find(library, "cudaStreamSynchronize", &stream_synchronize);
    find(library, "cudaStreamDestroy", &stream_destroy);
    for (int x = 0; x < 3; x++)
        must(allocate_memory(&p[x], BYTES), "cudaMalloc");
    for (int i = 0; i < N * N; i++) {
        host[0][i] = hgemm_half_from_float((float)(i / N % 5));
        host[1][i] = hgemm_half_from_float((float)(i % N == i / N));
    }
    must(copy(p[0], host[0], BYTES, TO_DEVICE), "cudaMemcpy");
    must(copy(p[1], host[1], BYTES, TO_DEVICE), "cudaMemcpy");
    must(stream_create(&stream), "cudaStreamCreate");
    succeed(handle, hgemm_set_stream(handle, stream), "hgemm_set_stream");
    enqueue(handle, p[0], p[1], p[2]);
    must(stream_synchronize(stream), "cudaStreamSynchronize");
    must(copy(host[2], p[2], BYTES, TO_HOST), "cudaMemcpy");
    expect_true(memcmp(host[0], host[2], BYTES) == 0, "a product of the runtime's memory");
    succeed(handle, hgemm_set_stream(handle, NULL), "hgemm_set_stream");
    must(stream_destroy(stream), "cudaStreamDestroy");
    for (int x = 0; x < 3; x++)
        must(release_memory(p[x]), "cudaFree");
}

/* A product of memory that does not exist. The context is lost; nothing can follow. */
static void errors_of_the_gpu_are_reported(hgemm_handle_t handle)
{
    const void *nowhere = (const void *)(uintptr_t)4096;
    void *c = allocate(handle, BYTES);
    hgemm_status_t status =
        hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, N, N, N, 1, nowhere, N, nowhere, N, 0, c, N);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_synchronize(handle);
    expect_status(handle, status, HGEMM_STATUS_DEVICE_ERROR, "reading memory that does not exist");
    expect_true(strstr(hgemm_error_detail(handle), "CUDA_ERROR") != NULL, "the driver's words are kept");
    expect_status(handle, hgemm_synchronize(handle), HGEMM_STATUS_DEVICE_ERROR, "a lost context stays lost");
    expect_true(hgemm_destroy(handle) != HGEMM_STATUS_INVALID_HANDLE, "hgemm_destroy");
}

int main(void)
{
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, "cuda");
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE || status == HGEMM_STATUS_OLD_DEVICE) {
        printf("SKIPPED: %s\n", hgemm_status_string(status));
        return TEST_SKIPPED;
    }
    expect_status(NULL, status, HGEMM_STATUS_SUCCESS, "hgemm_create");
    open_driver();
    int device = 0;
    void *primary = NULL, *other = NULL;
    must(cu.device_get(&device, 0), "cuDeviceGet");
    must(cu.retain(&primary, device), "cuDevicePrimaryCtxRetain");
    must(cu.context_create(&other, 0, device), "cuCtxCreate");
    context_is_restored(NULL);
    context_is_restored(primary);
    context_is_restored(other);
    must(cu.context_destroy(other), "cuCtxDestroy");
    must(cu.set_current(primary), "cuCtxSetCurrent");
    work_is_ordered_on_the_stream(handle);
    calls_can_be_captured(handle);
    sampled_calls_can_be_captured(handle);
    others_leave_a_capture_alone(handle);
    the_runtime_s_objects_work(handle);
    errors_of_the_gpu_are_reported(handle);
    printf("passed\n");
    return 0;
}
