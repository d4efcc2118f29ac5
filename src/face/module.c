/* SPDX-License-Identifier: MIT */
/* module.c - modules and libraries, their functions and variables. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

struct module {
    turing_module_t *code;
    function_t *functions; /* one for each kernel of the code */
    size_t n_functions;
    struct module *next;
};

static module_t *modules;

enum { FATBIN = 0xba55ed50, WRAPPER = 0x466243b1, ELF = 0x464c457f };

typedef struct wrapper { /* as nvcc's host code has it */
    uint32_t magic, version;
    const void *image;
    const void *unused;
} wrapper_t;

/* An image says how long it is. 0: it is none. */
static size_t elf_size(const uint8_t *image)
{
    uint64_t sections, segments, end = 64;
    uint16_t section_size, section_count, segment_size, segment_count;
    memcpy(&segments, image + 32, 8);
    memcpy(&sections, image + 40, 8);
    memcpy(&segment_size, image + 54, 2);
    memcpy(&segment_count, image + 56, 2);
    memcpy(&section_size, image + 58, 2);
    memcpy(&section_count, image + 60, 2);
    for (unsigned i = 0; i < section_count; i++) {
        uint32_t type;
        uint64_t offset, size;
        const uint8_t *s = image + sections + (uint64_t)i * section_size;
        memcpy(&type, s + 4, 4);
        memcpy(&offset, s + 24, 8);
        memcpy(&size, s + 32, 8);
        if (type != 8 && offset + size > end) /* not NOBITS */
            end = offset + size;
    }
    const uint64_t after_sections = sections + (uint64_t)section_size * section_count,
                   after_segments = segments + (uint64_t)segment_size * segment_count;
    end = after_sections > end ? after_sections : end;
    return after_segments > end ? after_segments : end;
}

static size_t image_size(const void **image)
{
    uint32_t magic;
    memcpy(&magic, *image, 4);
    if (magic == WRAPPER) {
        *image = ((const wrapper_t *)*image)->image;
        memcpy(&magic, *image, 4);
    }
    if (magic == FATBIN) {
        uint16_t header;
        uint64_t size;
        memcpy(&header, (const uint8_t *)*image + 6, 2);
        memcpy(&size, (const uint8_t *)*image + 8, 8);
        return header + size;
    }
    return magic == ELF ? elf_size(*image) : 0;
}

static CUresult load(module_t **out, const void *image)
{
    turing_error_t err = {""};
    if (!out || !image)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t size = image_size(&image);
    if (!size) {
        machine_say("neither a cubin nor a fatbin: PTX text is not compiled here; NVRTC and nvcc -arch=sm_75 make "
                    "machine code");
        return CUDA_ERROR_INVALID_PTX;
    }
    module_t *m = handle_new(HANDLE_MODULE, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->code = turing_module_open_at(image, size, machine.next_base, &err);
    if (!m->code || !turing_module_map(m->code, machine.mem, &err)) {
        machine_say("%s", err.text);
        turing_module_close(m->code);
        handle_end(HANDLE_MODULE, m);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    machine.next_base = turing_module_end(m->code);
    const CUresult managed = managed_map(m->code);
    m->n_functions = turing_module_kernel_count(m->code);
    m->functions = calloc(m->n_functions + 1, sizeof *m->functions);
    for (size_t i = 0; m->functions && i < m->n_functions; i++)
        m->functions[i] = (function_t){.kernel = turing_module_kernel(m->code, i), .module = m};
    m->next = modules;
    modules = m;
    *out = m;
    return m->functions ? managed : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult load_file(module_t **out, const char *path)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    long size = -1;
    if (!f)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (!fseek(f, 0, SEEK_END))
        size = ftell(f);
    rewind(f);
    char *image = size >= 0 ? calloc(1, (size_t)size + 64) : NULL;
    const bool ok = image && fread(image, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    const CUresult r = ok ? load(out, image) : CUDA_ERROR_INVALID_IMAGE;
    free(image);
    return r;
}

static CUresult unload(module_t *m)
{
    module_t **at = &modules;
    while (*at && *at != m)
        at = &(*at)->next;
    if (!*at)
        return CUDA_ERROR_INVALID_HANDLE;
    *at = m->next;
    managed_unmap(m->code);
    turing_module_unmap(m->code, machine.mem);
    turing_module_close(m->code);
    for (size_t i = 0; i < m->n_functions; i++)
        free(m->functions[i].older);
    free(m->functions);
    handle_end(HANDLE_MODULE, m);
    return CUDA_SUCCESS;
}

bool function_known(const function_t *f)
{
    for (const module_t *m = modules; m; m = m->next)
        if (f >= m->functions && f < m->functions + m->n_functions)
            return true;
    return false;
}

static CUresult find_function(module_t *m, const char *name, function_t **out)
{
    if (!handle_is(HANDLE_MODULE, m))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !out)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < m->n_functions; i++)
        if (!strcmp(m->functions[i].kernel->name, name)) {
            *out = &m->functions[i];
            return CUDA_SUCCESS;
        }
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult find_variable(const module_t *m, const char *name, CUdeviceptr *address, size_t *bytes)
{
    if (!handle_is(HANDLE_MODULE, m))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    const turing_symbol_t *y = turing_module_find_symbol(m->code, name);
    if (!y)
        return CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = y->address;
    if (bytes)
        *bytes = y->size;
    return CUDA_SUCCESS;
}

/* ---- modules ----------------------------------------------------------------------------- */

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *path)
{
    BEGIN;
    END(load_file((module_t **)module, path));
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    BEGIN;
    END(load((module_t **)module, image));
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                    void **values)
{
    BEGIN;
    (void)count, (void)options, (void)values;
    END(load((module_t **)module, image));
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    BEGIN;
    END(load((module_t **)module, image));
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
    BEGIN;
    END(unload((module_t *)module));
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    ALWAYS;
    ANSWER(asked(mode), mode, CU_MODULE_EAGER_LOADING);
}

static CUresult count(unsigned *out, const module_t *m)
{
    if (!handle_is(HANDLE_MODULE, m))
        return CUDA_ERROR_INVALID_HANDLE;
    if (out)
        *out = (unsigned)m->n_functions;
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult enumerate(function_t **out, unsigned most, module_t *m)
{
    if (!handle_is(HANDLE_MODULE, m))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; out && i < most && i < m->n_functions; i++)
        out[i] = &m->functions[i];
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN;
    END(find_function((module_t *)module, name, (function_t **)function));
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned *out, CUmodule module)
{
    BEGIN;
    END(count(out, (module_t *)module));
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned most, CUmodule module)
{
    BEGIN;
    END(enumerate((function_t **)functions, most, (module_t *)module));
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    BEGIN;
    END(find_variable((module_t *)module, name, address, bytes));
}

/* ---- libraries: modules without a context -------------------------------------------------- */

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                                   unsigned count, CUlibraryOption *library_options, void **library_values,
                                   unsigned library_count)
{
    ALWAYS;
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    const CUresult r = machine_init();
    END(r == CUDA_SUCCESS ? load((module_t **)library, image) : r);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                                       unsigned count, CUlibraryOption *library_options, void **library_values,
                                       unsigned library_count)
{
    ALWAYS;
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    const CUresult r = machine_init();
    END(r == CUDA_SUCCESS ? load_file((module_t **)library, path) : r);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    ALWAYS;
    END(unload((module_t *)library));
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ALWAYS;
    END(find_function((module_t *)library, name, (function_t **)kernel));
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned *out, CUlibrary library)
{
    ALWAYS;
    END(count(out, (module_t *)library));
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned most, CUlibrary library)
{
    ALWAYS;
    END(enumerate((function_t **)kernels, most, (module_t *)library));
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    ALWAYS;
    if (!handle_is(HANDLE_MODULE, library))
        END(CUDA_ERROR_INVALID_HANDLE);
    ANSWER(asked(module), module, (CUmodule)library);
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    ALWAYS;
    END(find_variable((module_t *)library, name, address, bytes));
}

/* For a managed variable or one of the device: they are seen alike. */
CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    ALWAYS;
    const CUresult r = find_variable((module_t *)library, name, address, bytes);
    END(r == CUDA_SUCCESS && !turing_module_find_symbol(((module_t *)library)->code, name)->managed
            ? CUDA_ERROR_NOT_FOUND
            : r);
}

/* What is wrong with a function, or where an answer is to be put. */
static CUresult function_ok(const void *function, const void *out)
{
    return !function_known(function) ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ALWAYS;
    ANSWER(function_ok(kernel, function), function, (CUfunction)kernel);
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    ALWAYS;
    ANSWER(function_ok(kernel, library), library, (CUlibrary)((function_t *)kernel)->module);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The largest block that a launch takes. */
static int most_threads_of(const turing_kernel_t *k)
{
    uint32_t n = k->max_threads ? k->max_threads : 1024;
    while (n && !turing_occupancy(k, n, 0).blocks)
        n = (n - 1) / 32 * 32;
    return (int)n;
}

static CUresult attribute_of(const function_t *f, CUfunction_attribute attribute, int *value)
{
    const CUresult r = function_ok(f, value);
    if (r != CUDA_SUCCESS)
        return r;
    const turing_kernel_t *k = f->kernel;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = most_threads_of(k); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)k->shared_bytes; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)k->bank[3].size; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)k->local_bytes; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)k->registers; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 75; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = f->max_dynamic_shared ? f->max_dynamic_shared : 49152 - (int)k->shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = f->carveout - 1; return CUDA_SUCCESS;
    default: *value = 0; return (unsigned)attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(function_t *f, CUfunction_attribute attribute, int value)
{
    const CUresult r = function_ok(f, f);
    if (r != CUDA_SUCCESS)
        return r;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > TURING_T4_SHARED - (int)f->kernel->shared_bytes)
            return CUDA_ERROR_INVALID_VALUE;
        f->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        f->carveout = value + 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE; /* those of clusters, which a T4 has none of, and those that are read only */
    }
}

static CUresult parameter_of(const function_t *f, size_t index, size_t *offset, size_t *size)
{
    const CUresult r = function_ok(f, offset);
    if (r != CUDA_SUCCESS || index >= f->kernel->n_params)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *offset = f->kernel->params[index].offset;
    if (size)
        *size = f->kernel->params[index].size;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    ALWAYS;
    END(attribute_of((function_t *)function, attribute, value));
}

CUresult CUDAAPI cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    ALWAYS;
    (void)device;
    END(attribute_of((function_t *)kernel, attribute, value));
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    ALWAYS;
    END(set_attribute((function_t *)function, attribute, value));
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    ALWAYS;
    (void)device;
    END(set_attribute((function_t *)kernel, attribute, value));
}

static CUresult prefer(const void *function, CUfunc_cache config)
{
    return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : function_ok(function, function);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    ALWAYS;
    END(prefer(function, config));
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    ALWAYS;
    END(device ? CUDA_ERROR_INVALID_DEVICE : prefer(kernel, config));
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
    ALWAYS;
    END((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                     : function_ok(function, function));
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *module, CUfunction function)
{
    ALWAYS;
    ANSWER(function_ok(function, module), module, (CUmodule)((function_t *)function)->module);
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction function)
{
    ALWAYS;
    ANSWER(function_ok(function, name), name, ((function_t *)function)->kernel->name);
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel kernel)
{
    ALWAYS;
    ANSWER(function_ok(kernel, name), name, ((function_t *)kernel)->kernel->name);
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    ALWAYS;
    END(parameter_of((function_t *)function, index, offset, size));
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    ALWAYS;
    END(parameter_of((function_t *)kernel, index, offset, size));
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    ALWAYS;
    ANSWER(function_ok(function, state), state, CU_FUNCTION_LOADING_STATE_LOADED);
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    ALWAYS;
    END(function_ok(function, function));
}

/* ---- occupancy ---------------------------------------------------------------------------------- */

static CUresult occupancy(int *blocks, const function_t *f, int threads, size_t shared)
{
    const CUresult r = function_ok(f, blocks);
    if (r != CUDA_SUCCESS || threads <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *blocks =
        shared > TURING_T4_SHARED ? 0 : (int)turing_occupancy(f->kernel, (uint32_t)threads, (uint32_t)shared).blocks;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                             size_t shared)
{
    ALWAYS;
    END(occupancy(blocks, (function_t *)function, threads, shared));
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                                      size_t shared, unsigned flags)
{
    ALWAYS;
    END(flags & ~1u ? CUDA_ERROR_INVALID_VALUE : occupancy(blocks, (function_t *)function, threads, shared));
}

/* The block with most warps on a multiprocessor, of these the largest. */
static CUresult potential(int *grid, int *threads, const function_t *f, CUoccupancyB2DSize shared_of, size_t shared,
                          int limit)
{
    int most = 0, best = 0, blocks_of_best = 0, most_threads = 1024;
    const CUresult r = function_ok(f, grid && threads ? grid : NULL);
    if (r != CUDA_SUCCESS)
        return r;
    attribute_of(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most_threads);
    if (limit > 0 && limit < most_threads)
        most_threads = limit;
    for (int n = most_threads; n > 0; n = (n - 1) / 32 * 32) {
        int blocks = 0;
        occupancy(&blocks, f, n, shared_of ? shared_of(n) : shared);
        if (blocks * n > most)
            most = blocks * n, best = n, blocks_of_best = blocks;
    }
    *threads = best;
    *grid = blocks_of_best * TURING_T4_SMS;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    ALWAYS;
    END(potential(grid, threads, (function_t *)function, shared_of, shared, limit));
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *threads, CUfunction function,
                                                           CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                           unsigned flags)
{
    ALWAYS;
    (void)flags;
    END(potential(grid, threads, (function_t *)function, shared_of, shared, limit));
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks, int threads)
{
    ALWAYS;
    const function_t *f = (function_t *)function;
    const CUresult r = function_ok(f, bytes);
    if (r != CUDA_SUCCESS || blocks <= 0 || threads <= 0)
        END(r ? r : CUDA_ERROR_INVALID_VALUE);
    const size_t each = (size_t)TURING_T4_SHARED / (size_t)blocks / 256 * 256;
    *bytes = each > f->kernel->shared_bytes ? each - f->kernel->shared_bytes : 0;
    END(CUDA_SUCCESS);
}
