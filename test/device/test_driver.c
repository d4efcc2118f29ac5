/* SPDX-License-Identifier: MIT */
/*
 * device_cuda.c against a driver that fails on demand (fake_cuda): which GPU is opened, what each
 * failure becomes, and that the caller's context and all resources are given back whatever fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cuda/libcuda.h"
#include "api/handle.h"

enum { OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700 };

static fake_cuda_t *fake;

static int set_up(void **state)
{
    (void)state;
    *fake = (fake_cuda_t){.version = HGEMM_CUDA_VERSION, .devices = 1, .capability = {75, 75, 75, 75}};
    return 0;
}

/* Everything made was given back, and the stack of contexts and the mode of capture are as they were. */
static int tear_down(void **state)
{
    (void)state;
    return fake->depth || fake->capture_mode || fake->retains || fake->allocations || fake->modules || fake->events;
}

#define assert_status(call, expected) assert_string_equal(hgemm_status_name(call), hgemm_status_name(expected))

static hgemm_status_t open_and_close(const char *name)
{
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, name);
    if (status == HGEMM_STATUS_SUCCESS)
        assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->depth, 0);
    assert_int_equal(fake->retains, 0);
    return status;
}

static void the_first_usable_gpu_is_opened(void **state)
{
    (void)state;
    hgemm_handle_t handle = NULL;
    hgemm_device_info_t info;
    fake->devices = 4;
    fake->capability[0] = 70, fake->capability[1] = 61, fake->capability[3] = 90;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS);
    assert_string_equal(info.name, "fake GPU 2");
    assert_int_equal(handle->device->ordinal, 2);
    assert_string_equal(info.kind, "cuda");
    assert_int_equal(info.compute_major, 7);
    assert_int_equal(info.compute_minor, 5);
    assert_int_equal(info.multiprocessors, 40);
    assert_int_equal(info.clock_khz, 1590000);
    assert_int_equal(info.l2_bytes, 4 << 20);
    assert_int_equal(info.driver_version, HGEMM_CUDA_VERSION);
    assert_int_equal(info.is_emulated, 0);
    assert_string_equal(info.fallback, "");
    assert_true(info.memory_bytes == (size_t)16 << 30);
    assert_string_equal(hgemm_error_detail(handle), "");
    assert_ptr_equal(fake->copied, DEVICE_STREAM_PER_THREAD); /* on the legacy stream it would end a capture */
    const uint32_t *counters = handle->workspace;             /* of the parts of split tiles: none has come */
    for (int i = 0; i < HGEMM_WORKSPACE_TILES; i++)
        assert_int_equal(counters[i], 0);
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);

    assert_status(open_and_close("cuda:0"), HGEMM_STATUS_OLD_DEVICE);
    assert_non_null(strstr(hgemm_error_detail(NULL), "7.0"));
    assert_status(open_and_close("cuda:2"), HGEMM_STATUS_SUCCESS);
    assert_status(open_and_close("cuda:3"), HGEMM_STATUS_SUCCESS);
    assert_status(open_and_close("cuda:4"), HGEMM_STATUS_INVALID_DEVICE);
    fake->devices = 2;
    assert_status(open_and_close("cuda"), HGEMM_STATUS_OLD_DEVICE);
    fake->devices = 0;
    assert_status(open_and_close("cuda"), HGEMM_STATUS_NO_DEVICE);
    assert_status(open_and_close("cuda:0"), HGEMM_STATUS_NO_DEVICE);
}

/* A GPU that fails is passed over for one that can be used, but not hidden by one that is too old. */
static void a_failing_gpu_is_not_hidden(void **state)
{
    (void)state;
    fake->devices = 3;
    fake->failing = "cuDevicePrimaryCtxRetain", fake->result = ILLEGAL_ADDRESS;
    unsetenv("HGEMM_DEVICE");
    for (int usable = 0; usable < 3; usable++) {
        for (int i = 0; i < 3; i++)
            fake->capability[i] = i == usable ? 75 : 70;
        assert_status(open_and_close("cuda"), HGEMM_STATUS_DEVICE_ERROR);
        assert_non_null(strstr(hgemm_error_detail(NULL), "cuDevicePrimaryCtxRetain"));
        assert_status(open_and_close(NULL), HGEMM_STATUS_DEVICE_ERROR); /* and no emulator takes its place */
    }
}

static void drivers_that_cannot_serve_are_told_apart(void **state)
{
    (void)state;
    const struct {
        int result;
        hgemm_status_t status;
    } cases[] = {
        {34, HGEMM_STATUS_NO_DRIVER},  {100, HGEMM_STATUS_NO_DEVICE},    {803, HGEMM_STATUS_NO_DRIVER},
        {804, HGEMM_STATUS_NO_DRIVER}, {999, HGEMM_STATUS_DEVICE_ERROR},
    };
    fake->failing = "cuInit";
    for (int i = 0; i < 5; i++) {
        fake->result = cases[i].result;
        assert_status(open_and_close("cuda"), cases[i].status);
    }
    assert_non_null(strstr(hgemm_error_detail(NULL), "cuInit: CUDA_ERROR_OF_THE_TEST (999)"));
    fake->failing = NULL;
    fake->version = 10020;
    assert_status(open_and_close("cuda"), HGEMM_STATUS_NO_DRIVER);
    assert_non_null(strstr(hgemm_error_detail(NULL), "10.2"));
}

/* A GPU of 7.5 gets machine code, which a driver of the compiler's major release runs; a newer one PTX, which needs
 * the compiler's release. Another driver is found when the handle is made, and said to be too old. */
static void an_old_driver_is_found_at_once(void **state)
{
    (void)state;
    enum { BUILD = HGEMM_CUDA_VERSION, MAJOR = BUILD / 1000 * 1000 };
    const struct {
        int capability, version, is_usable;
    } cases[] = {
        {75, BUILD, 1}, {75, MAJOR, 1},     {75, MAJOR - 10, 0}, {75, BUILD + 10, 1}, {75, MAJOR + 1000, 1},
        {80, BUILD, 1}, {80, BUILD - 1, 0}, {90, MAJOR - 10, 0}, {90, BUILD + 10, 1}, {120, MAJOR + 1000, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[32];
        fake->capability[0] = cases[i].capability, fake->version = cases[i].version;
        assert_status(open_and_close("cuda"), cases[i].is_usable ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_NO_DRIVER);
        snprintf(words, sizeof words, "for CUDA %d.%d;", cases[i].version / 1000, cases[i].version % 1000 / 10);
        assert_int_equal(strstr(hgemm_error_detail(NULL), words) == NULL, cases[i].is_usable);
    }
    /* A GPU that the driver can serve is taken, though another comes before it. */
    fake->devices = 3, fake->version = MAJOR - 10;
    fake->capability[0] = 70, fake->capability[1] = 90, fake->capability[2] = 80;
    assert_status(open_and_close("cuda"), HGEMM_STATUS_NO_DRIVER); /* not OLD_DEVICE: this can be mended */
    assert_non_null(strstr(hgemm_error_detail(NULL), "GPU 1"));
    fake->failing = "cuDevicePrimaryCtxRetain", fake->result = ILLEGAL_ADDRESS;
    assert_status(open_and_close("cuda"), HGEMM_STATUS_NO_DRIVER);
    fake->failing = NULL;
    assert_status(open_and_close("cuda:2"), HGEMM_STATUS_NO_DRIVER);
    assert_non_null(strstr(hgemm_error_detail(NULL), "GPU 2"));
    if (BUILD % 1000 > 0) { /* PTX of the first release is the machine code's */
        fake->version = MAJOR;
        fake->capability[2] = 75;
        assert_status(open_and_close("cuda"), HGEMM_STATUS_SUCCESS);
    }
}

/* Without a name the emulated T4 takes the place of a GPU that is missing or too old, where the build has it; not of
 * one that fails. */
static void the_emulator_is_a_last_resort(void **state)
{
    (void)state;
    const hgemm_status_t without[] = {HGEMM_STATUS_SUCCESS, HGEMM_STATUS_NO_DEVICE, HGEMM_STATUS_OLD_DEVICE,
                                      HGEMM_STATUS_NO_DRIVER, HGEMM_STATUS_DEVICE_ERROR};
    const int has_emulator = open_and_close("t4emu") == HGEMM_STATUS_SUCCESS;
    unsetenv("HGEMM_DEVICE");
    for (int way = 0; way < 5; way++) {
        hgemm_handle_t handle = NULL;
        hgemm_device_info_t info;
        set_up(NULL);
        fake->devices = way != 1;
        fake->capability[0] = way == 2 ? 70 : 75;
        fake->version = way == 3 ? 10020 : HGEMM_CUDA_VERSION;
        fake->failing = way == 4 ? "cuDevicePrimaryCtxRetain" : NULL, fake->result = ILLEGAL_ADDRESS;
        const int emulated = has_emulator && way >= 1 && way <= 3;
        assert_status(hgemm_create(&handle, NULL), emulated ? HGEMM_STATUS_SUCCESS : without[way]);
        if (way == 0 || emulated) {
            assert_status(hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS);
            assert_string_equal(info.kind, emulated ? "t4emu" : "cuda");
            assert_int_equal(info.is_emulated, emulated);
            const char *const reasons[] = {"", "found no GPU", "7.0", "CUDA 10.2"};
            if (emulated)
                assert_non_null(strstr(info.fallback, reasons[way]));
            else
                assert_string_equal(info.fallback, "");
        }
        assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        /* Whoever requires a GPU gets the reason as a status. */
        setenv("HGEMM_REQUIRE_GPU", "1", 1);
        assert_status(open_and_close(NULL), without[way]);
        if (emulated)
            assert_non_null(strstr(hgemm_error_detail(NULL), "HGEMM_REQUIRE_GPU is set"));
        if (way == 2 || way == 3)
            assert_non_null(strstr(hgemm_error_detail(NULL), way == 2 ? "7.0" : "10.2"));
        setenv("HGEMM_REQUIRE_GPU", "0", 1);
        assert_status(open_and_close(NULL), emulated ? HGEMM_STATUS_SUCCESS : without[way]);
        unsetenv("HGEMM_REQUIRE_GPU");
    }
    if (has_emulator) { /* who names it means it */
        hgemm_handle_t handle = NULL;
        hgemm_device_info_t info;
        setenv("HGEMM_REQUIRE_GPU", "1", 1);
        assert_status(hgemm_create(&handle, "t4emu"), HGEMM_STATUS_SUCCESS);
        unsetenv("HGEMM_REQUIRE_GPU");
        assert_status(hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS);
        assert_int_equal(info.is_emulated, 1);
        assert_string_equal(info.fallback, "");
        assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    }
}

static void failures_while_opening_are_reported(void **state)
{
    (void)state;
    const char *const functions[] = {"cuDriverGetVersion",   "cuDeviceGetCount",         "cuDeviceGet",
                                     "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDeviceGetName",
                                     "cuDeviceTotalMem"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int memory = 0; memory < 2; memory++) {
            fake->failing = functions[i];
            fake->result = memory ? OUT_OF_MEMORY : ILLEGAL_ADDRESS;
            assert_status(open_and_close("cuda"), memory ? HGEMM_STATUS_OUT_OF_MEMORY : HGEMM_STATUS_DEVICE_ERROR);
            assert_non_null(strstr(hgemm_error_detail(NULL), functions[i]));
            assert_non_null(strstr(hgemm_error_detail(NULL), "words of the test"));
        }
}

/* One call of each kind; the first that fails ends it. */
static hgemm_status_t use(hgemm_handle_t handle, void *stream)
{
    enum { N = 64 };
    static uint16_t host[N * N];
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    void *p = NULL, *from = NULL, *to = NULL;
    float elapsed = 0;
    const device_ops_t *ops = handle->device->ops;
#define STEP(call)                          \
    do {                                    \
        if (status == HGEMM_STATUS_SUCCESS) \
            status = call;                  \
        assert_int_equal(fake->depth, 0);   \
    } while (0)
    STEP(hgemm_set_stream(handle, stream));
    STEP(hgemm_malloc(handle, &p, sizeof host));
    STEP(hgemm_upload(handle, p, host, sizeof host));
    if (status == HGEMM_STATUS_SUCCESS)
        assert_ptr_equal(fake->copied, stream);
    STEP(hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, N, N, N, 1, p, N, p, N, 0,
                   (char *)p + 8 * sizeof host, N));
    STEP(hgemm_synchronize(handle));
    STEP(hgemm_download(handle, host, p, sizeof host));
    STEP(ops->event_create(handle->device, &from));
    STEP(ops->event_create(handle->device, &to));
    STEP(ops->event_record(handle->device, from, stream));
    STEP(ops->event_elapsed(handle->device, from, to, &elapsed));
#undef STEP
    if (status == HGEMM_STATUS_SUCCESS)
        assert_true(elapsed == 2.5f);
    const char *failing = fake->failing;
    fake->failing = NULL;
    if (from)
        ops->event_destroy(handle->device, from);
    if (to)
        ops->event_destroy(handle->device, to);
    assert_status(hgemm_free(handle, p), HGEMM_STATUS_SUCCESS);
    fake->failing = failing;
    return status;
}

static void failures_in_use_are_reported(void **state)
{
    (void)state;
    const char *const functions[] = {"cuCtxPushCurrent",    "cuThreadExchangeStreamCaptureMode",
                                     "cuMemAlloc",          "cuMemcpyHtoDAsync",
                                     "cuModuleLoadDataEx",  "cuModuleGetFunction",
                                     "cuFuncSetAttribute",  "cuLaunchKernel",
                                     "cuStreamSynchronize", "cuMemcpyDtoHAsync",
                                     "cuEventCreate",       "cuEventRecord",
                                     "cuEventSynchronize",  "cuEventElapsedTime"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int memory = 0; memory < 2; memory++) {
            hgemm_handle_t handle = NULL;
            assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
            fake->failing = functions[i];
            fake->result = memory ? OUT_OF_MEMORY : ILLEGAL_ADDRESS;
            assert_status(use(handle, NULL), memory ? HGEMM_STATUS_OUT_OF_MEMORY : HGEMM_STATUS_DEVICE_ERROR);
            const char *detail = hgemm_error_detail(handle);
            assert_non_null(strstr(detail, functions[i]));
            assert_non_null(strstr(detail, "CUDA_ERROR_OF_THE_TEST"));
            assert_int_equal(detail[strlen(detail) - 1], '.');
            if (strcmp(functions[i], "cuModuleLoadDataEx") == 0)
                assert_non_null(strstr(detail, "ptxas says no"));
            fake->failing = NULL;
            assert_status(use(handle, NULL), HGEMM_STATUS_SUCCESS); /* and it goes on */
            assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
            assert_int_equal(tear_down(NULL), 0);
        }
    /* A context that is lost: destroying the handle tells it, and still gives all back. */
    hgemm_handle_t handle = NULL;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(handle, NULL), HGEMM_STATUS_SUCCESS);
    fake->failing = "cuStreamSynchronize";
    fake->result = ILLEGAL_ADDRESS;
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_DEVICE_ERROR);
}

/* Without memory for a workspace, or for its counters' zeros to reach it, a handle is made all the same: k is not
 * split. Any other failure there is one of hgemm_create. */
static void a_workspace_is_no_condition(void **state)
{
    (void)state;
    const char *const functions[] = {NULL, "cuMemAlloc", "cuMemcpyHtoDAsync"};
    for (int i = 0; i < 3; i++) {
        hgemm_handle_t handle = NULL;
        hgemm_desc_t desc;
        fake->failing = functions[i];
        fake->result = OUT_OF_MEMORY;
        assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
        fake->failing = NULL;
        assert_int_equal(fake->allocations, i == 0);
        assert_string_equal(hgemm_error_detail(handle), "");
        hgemm_desc_init(&desc);
        desc.m = desc.n = desc.ldb = desc.ldc = desc.ldd = 64, desc.k = desc.lda = 1 << 16;
        desc.a = (void *)(1 << 24), desc.b = (void *)(1 << 26), desc.d = (void *)4096; /* kernels do nothing */
        assert_status(hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake->parameters.splits > 1, i == 0);
        assert_int_equal(fake->parameters.workspace != NULL, i == 0);
        assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        if (i == 0)
            continue;
        fake->failing = functions[i];
        fake->result = ILLEGAL_ADDRESS;
        assert_status(open_and_close("cuda"), HGEMM_STATUS_DEVICE_ERROR);
        assert_non_null(strstr(hgemm_error_detail(NULL), functions[i]));
        assert_int_equal(fake->allocations, 0);
    }
}

/* A product with a long k uses the workspace that is set, of any size, and the handle's own again. */
static void the_caller_may_give_a_workspace(void **state)
{
    (void)state;
    enum { COUNTERS = HGEMM_WORKSPACE_TILES * 4, BYTES = 8 << 20 };
    hgemm_handle_t handle = NULL;
    hgemm_desc_t desc;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    void *own = handle->workspace, *ours = NULL;
    size_t own_bytes = handle->workspace_bytes;
    int stream, allocations = fake->allocations;
    assert_status(hgemm_malloc(handle, &ours, BYTES), HGEMM_STATUS_SUCCESS);
    char *memory = (char *)(((uintptr_t)ours + 127) / 128 * 128);
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.ldb = desc.ldc = desc.ldd = 64, desc.k = desc.lda = 1 << 16;
    desc.a = (void *)(1 << 24), desc.b = (void *)(1 << 26), desc.d = (void *)4096; /* kernels do nothing */
    const struct {
        void *pointer;
        size_t bytes;
        hgemm_status_t status;
        void *used;
        size_t used_bytes;
    } steps[] = {
        {memory, BYTES / 2 + 100, HGEMM_STATUS_SUCCESS, memory, BYTES / 2},
        {memory + 64, BYTES / 2, HGEMM_STATUS_MISALIGNED_WORKSPACE, memory, BYTES / 2},
        {NULL, 1, HGEMM_STATUS_INVALID_HANDLE, memory, BYTES / 2},
        {memory, COUNTERS - 1, HGEMM_STATUS_SUCCESS, NULL, 0},
        {memory, 0, HGEMM_STATUS_SUCCESS, NULL, 0},
        {NULL, 0, HGEMM_STATUS_SUCCESS, own, own_bytes},
    };
    assert_status(hgemm_set_stream(handle, &stream), HGEMM_STATUS_SUCCESS);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_status(hgemm_set_workspace(handle, steps[i].pointer, steps[i].bytes), steps[i].status);
        assert_ptr_equal(handle->workspace, steps[i].used);
        assert_int_equal(handle->workspace_bytes, steps[i].used_bytes);
        if (i == 0) { /* no part of a split tile has come, and none did elsewhere */
            for (int byte = 0; byte < COUNTERS; byte++)
                assert_int_equal(memory[byte], 0);
            assert_int_equal(memory[COUNTERS], 0x5a);
            assert_ptr_equal(fake->copied, &stream);
        }
        assert_status(hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_ptr_equal(fake->parameters.workspace, steps[i].used);
        assert_int_equal(fake->parameters.splits > 1, steps[i].used != NULL);
    }
    assert_int_equal(fake->allocations, allocations + 1);
    fake->failing = "cuMemcpyHtoDAsync", fake->result = ILLEGAL_ADDRESS;
    assert_status(hgemm_set_workspace(handle, memory, BYTES / 2), HGEMM_STATUS_DEVICE_ERROR);
    assert_ptr_equal(handle->workspace, own);
    fake->failing = NULL;
    assert_status(hgemm_set_workspace(NULL, memory, BYTES), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_set_workspace(handle, memory, BYTES / 2), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS); /* which leaves it to the caller */
    assert_int_equal(fake->allocations, 1);
    free(ours);
    fake->allocations = 0;
}

/* The stream is passed on, launches wait for nothing, and the kernel is prepared as it must be. */
static void calls_reach_the_driver_as_meant(void **state)
{
    (void)state;
    int stream;
    hgemm_handle_t handle = NULL;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(handle, &stream), HGEMM_STATUS_SUCCESS);
    assert_ptr_equal(fake->copied, &stream);
    assert_int_equal(fake->copying, 0);
    assert_ptr_equal(fake->synchronised, &stream);
    assert_ptr_equal(fake->launch_stream, &stream);
    assert_int_equal(fake->launches, 1);
    assert_int_equal(fake->modules, 1);
    int kernel = 0;
    while (++kernel < KERNEL_END)
        if (strncmp(fake->symbol, kernel_table[kernel].info.name, strlen(kernel_table[kernel].info.name)) == 0 &&
            kernel_table[kernel].info.shared_bytes == fake->shared_bytes)
            break;
    assert_true(kernel < KERNEL_END);
    assert_int_equal(fake->parameters.m, 64);
    assert_true(fake->parameters.alpha == 1 && fake->parameters.beta == 0 && fake->parameters.lda == 64);

    int waits = fake->synchronisations; /* a second run loads nothing, allocates nothing and waits for nothing */
    void *p = NULL;
    assert_status(hgemm_malloc(handle, &p, 64 * 64 * 2), HGEMM_STATUS_SUCCESS);
    int allocations = fake->allocations;
    assert_status(hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 64, 64, 64, 1, p, 64, p, 64, 0,
                            (char *)p + 8192, 64),
                  HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->synchronisations, waits);
    assert_int_equal(fake->allocations, allocations);
    assert_int_equal(fake->modules, 1);
    assert_int_equal(fake->launches, 2);
    assert_status(hgemm_free(handle, p), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

static void a_driver_without_our_functions_is_too_old(void **state)
{
    (void)state;
    hgemm_handle_t handle = NULL;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_NO_DRIVER);
    assert_non_null(strstr(hgemm_error_detail(NULL), "too old"));
    assert_null(handle);
}

/* A kernel is loaded once for all handles of a GPU, and unloaded with the last of them. */
static void handles_share_kernels(void **state)
{
    (void)state;
    hgemm_handle_t first = NULL, second = NULL, third = NULL;
    assert_status(hgemm_create(&first, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_create(&second, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(first, NULL), HGEMM_STATUS_SUCCESS);
    assert_status(use(second, NULL), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->launches, 2);
    assert_int_equal(fake->modules, 1);
    assert_status(hgemm_destroy(first), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->modules, 1);
    assert_status(use(second, NULL), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_create(&third, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(third, NULL), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->modules, 1);
    assert_status(hgemm_destroy(second), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_destroy(third), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->modules, 0);
    assert_status(hgemm_create(&first, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(first, NULL), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->modules, 1);
    assert_status(hgemm_destroy(first), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake->modules, 0);
}

/* The driver hears nothing of it, and the handle goes on. */
static void a_damaged_image_is_reported(void **state)
{
    (void)state;
    hgemm_handle_t handle = NULL;
    void *function = NULL;
    image_t image = hgemm_images[0];
    image.packed = 64; /* of a pack that may begin with it */
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(handle->device->ops->load(handle->device, &image, 0, &function), HGEMM_STATUS_DEVICE_ERROR);
    assert_non_null(strstr(hgemm_error_detail(handle), image.symbol));
    assert_non_null(strstr(hgemm_error_detail(handle), "damaged"));
    assert_null(function);
    assert_int_equal(fake->modules, 0);
    assert_int_equal(fake->depth, 0);
    assert_status(use(handle, NULL), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

/* CUDA does not work in the child of a process that has used it: each call says so, and touches nothing. */
static int try_in_child(hgemm_handle_t handle)
{
    char words[1024];
    hgemm_device_info_t info;
    hgemm_handle_t another = NULL;
    void *memory;
    const int launches = fake->launches, allocations = fake->allocations;
    if (hgemm_malloc(handle, &memory, 16) != HGEMM_STATUS_DEVICE_ERROR)
        return 1;
    snprintf(words, sizeof words, "%s", hgemm_error_detail(handle));
    if (!strstr(words, "forked") || hgemm_get_device_info(handle, &info) != HGEMM_STATUS_DEVICE_ERROR)
        return 2;
    if (use(handle, NULL) != HGEMM_STATUS_DEVICE_ERROR || strcmp(words, hgemm_error_detail(handle)) != 0)
        return 3;
    if (hgemm_synchronize(handle) != HGEMM_STATUS_DEVICE_ERROR || hgemm_destroy(handle) != HGEMM_STATUS_DEVICE_ERROR)
        return 4;
    if (fake->launches != launches || fake->allocations != allocations || fake->retains != 1 || fake->depth)
        return 5;
    fake->failing = "cuInit", fake->result = 3; /* as the driver has it there */
    if (hgemm_create(&another, "cuda") != HGEMM_STATUS_DEVICE_ERROR || strcmp(words, hgemm_error_detail(NULL)) != 0)
        return 6;
    return 0;
}

static void a_child_is_told_that_its_handles_are_dead(void **state)
{
    (void)state;
    hgemm_handle_t handle = NULL;
    int status;
    assert_status(hgemm_create(&handle, "cuda"), HGEMM_STATUS_SUCCESS);
    assert_status(use(handle, NULL), HGEMM_STATUS_SUCCESS);
    const pid_t child = fork();
    if (child == 0)
        _exit(try_in_child(handle));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_status(use(handle, NULL), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_usable_gpu_is_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failing_gpu_is_not_hidden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(drivers_that_cannot_serve_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_old_driver_is_found_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_emulator_is_a_last_resort, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_while_opening_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_in_use_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_workspace_is_no_condition, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_caller_may_give_a_workspace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_reach_the_driver_as_meant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(handles_share_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_image_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_is_told_that_its_handles_are_dead, set_up, tear_down),
    };
    const struct CMUnitTest old[] = {
        cmocka_unit_test(a_driver_without_our_functions_is_too_old),
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("this test wants LD_LIBRARY_PATH to name one of its drivers\n");
        return 1;
    }
    fake = (fake_cuda_t *)dlsym(library, "fake_cuda");
    return fake ? cmocka_run_group_tests(tests, NULL, NULL) : cmocka_run_group_tests(old, NULL, NULL);
}
