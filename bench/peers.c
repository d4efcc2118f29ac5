/* SPDX-License-Identifier: MIT */
#include "peers.h"

#include "internals.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* POSIX, not C, lets an object pointer carry a function: it is copied, not converted. */
static int find(void *library, const char *symbol, void *function)
{
    void *address = library ? dlsym(library, symbol) : NULL;
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* ---- the driver's copy --------------------------------------------------------------------------
 */

copy_fn *copy_open(int ordinal)
{
    copy_fn *copy;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return find(driver, "cuMemcpyDtoDAsync_v2", &copy) && cublas_make_current(ordinal) ? copy : NULL;
}

/* ---- CUTLASS ----------------------------------------------------------------------------------
 */

const cutlass_t *cutlass_open(int ordinal, hgemm_handle_t emulated, char why[VERIFY_WORDS])
{
    static cutlass_t cutlass;
    const char *const name = emulated ? "libhgemm_peers_t4emu.so" : "libhgemm_peers.so";
    char beside[4096];
    const char *path = getenv("HGEMM_PEERS_LIBRARY");
    int (*start)(int);
    internals_visit_fn *visit;
    if (!path) {
        ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - strlen(name) - 1);
        while (length > 0 && beside[length - 1] != '/')
            length--;
        strcpy(beside + (length > 0 ? length : 0), name);
        path = beside;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        snprintf(why, VERIFY_WORDS, "-DHGEMM_PEERS=ON builds what it needs; %s", words ? words : "");
        return NULL;
    }
    if (!find(library, "hgemm_peers_open", &start) || !find(library, "hgemm_peers_close", &cutlass.close) ||
        !find(library, "hgemm_peers_about", &cutlass.about) || !find(library, "hgemm_peers_count", &cutlass.count) ||
        !find(library, "hgemm_peers_config", &cutlass.config) ||
        !find(library, "hgemm_peers_can_run", &cutlass.can_run) || !find(library, "hgemm_peers_run", &cutlass.run) ||
        (emulated && !find(library, "turing_face_visit", &visit))) {
        snprintf(why, VERIFY_WORDS, "%s is not what this program was built with", name);
        return NULL;
    }
#ifdef HGEMM_EMULATOR
    if (emulated)
        internals_receive(emulated, visit);
#endif
    int error = start(ordinal);
    if (error) {
        snprintf(why, VERIFY_WORDS, "%s was found but could not be started: CUDA error %d", name, error);
        return NULL;
    }
    return &cutlass;
}

/* A column-major problem is the row-major one of the transposed matrices. */
peers_call_t cutlass_call(const problem_t *p, int floats, hgemm_accumulate_t accumulate, float alpha, const void *a,
                          const void *b, float beta, void *c)
{
    const int row = p->layout == HGEMM_ROW_MAJOR;
    return (peers_call_t){.m = (int)(row ? p->m : p->n),
                          .n = (int)(row ? p->n : p->m),
                          .k = (int)p->k,
                          .batch = (int)p->batch,
                          .transpose_a = (row ? p->op_a : p->op_b) == HGEMM_OP_T,
                          .transpose_b = (row ? p->op_b : p->op_a) == HGEMM_OP_T,
                          .single = accumulate == HGEMM_ACCUMULATE_F32,
                          .lda = (int)(row ? p->lda : p->ldb),
                          .ldb = (int)(row ? p->ldb : p->lda),
                          .ldc = (int)p->ldc,
                          .stride_a = row ? p->size_a : p->size_b,
                          .stride_b = row ? p->size_b : p->size_a,
                          .stride_c = p->size_c,
                          .alpha = alpha,
                          .beta = beta,
                          .a = row ? a : b,
                          .b = row ? b : a,
                          .c = c,
                          .d = c,
                          .slices = 1,
                          .floats = floats};
}

/* ---- clocks -----------------------------------------------------------------------------------
 */

enum { CLOCK_SM = 1 }; /* of nvml.h */

static struct {
    void *device; /* NULL: unknown */
    char driver[80];
    int (*clock)(void *, int, unsigned *);
    int (*max_clock)(void *, int, unsigned *);
    int (*power_limit)(void *, unsigned *);
    int (*power)(void *, unsigned *);            /* NULL: unknown */
    int (*energy)(void *, unsigned long long *); /* NULL: unknown */
} nvml;

void clocks_open(int ordinal)
{
    int (*init)(void), (*by_bus)(const char *, void **), (*driver)(char *, unsigned);
    int (*device_get)(int *, int), (*bus_of)(char *, int, int);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    char bus[32];
    int device;
    /* The two libraries number GPUs differently; the bus address is the same for both. */
    if (!find(library, "nvmlInit_v2", &init) || !find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) ||
        !find(library, "nvmlSystemGetDriverVersion", &driver) ||
        !find(library, "nvmlDeviceGetClockInfo", &nvml.clock) ||
        !find(library, "nvmlDeviceGetMaxClockInfo", &nvml.max_clock) ||
        !find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.power_limit) ||
        !find(cuda, "cuDeviceGet", &device_get) || !find(cuda, "cuDeviceGetPCIBusId", &bus_of) || init() != 0 ||
        device_get(&device, ordinal) != 0 || bus_of(bus, sizeof bus, device) != 0 || by_bus(bus, &nvml.device) != 0) {
        nvml.device = NULL;
        return;
    }
    driver(nvml.driver, sizeof nvml.driver);
    find(library, "nvmlDeviceGetPowerUsage", &nvml.power);
    find(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml.energy);
}

double clocks_sm_mhz(void)
{
    unsigned mhz = 0;
    return nvml.device && nvml.clock(nvml.device, CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

double clocks_max_sm_mhz(void)
{
    unsigned mhz = 0;
    return nvml.device && nvml.max_clock(nvml.device, CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

double clocks_power_limit_w(void)
{
    unsigned milliwatts = 0;
    return nvml.device && nvml.power_limit(nvml.device, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

double clocks_power_w(void)
{
    unsigned milliwatts = 0;
    return nvml.device && nvml.power && nvml.power(nvml.device, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

int clocks_energy_j(double *joules)
{
    unsigned long long millijoules;
    if (!nvml.device || !nvml.energy || nvml.energy(nvml.device, &millijoules) != 0)
        return 0;
    *joules = (double)millijoules / 1000;
    return 1;
}

const char *clocks_driver(void)
{
    return nvml.driver;
}
