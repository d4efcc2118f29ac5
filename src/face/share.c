/* SPDX-License-Identifier: MIT */
/*
 * share.c - memory that processes share: cuIpc...
 *
 * What is exported moves into a file without a name (memfd), at the same device address. A handle says whose file it
 * is; another process maps it, and sees it at the address of its mapping. The file goes with its last mapping.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct handle { /* what a CUipcMemHandle holds */
    char magic[8];
    int64_t process, file;
    uint64_t bytes;
} handle_t;

static const char magic[8] = "turing1";

typedef struct shared { /* memory of this process that is such a file: its own, or another's */
    CUdeviceptr address;
    void *host;
    size_t bytes;
    handle_t handle;
    unsigned opened; /* times that it was; 0: it is our own */
    struct shared *next;
} shared_t;

static shared_t *all;

static shared_t *find(CUdeviceptr address)
{
    shared_t *s = all;
    while (s && s->address != address)
        s = s->next;
    return s;
}

static CUresult keep(CUdeviceptr address, void *host, const handle_t *handle, unsigned opened)
{
    shared_t *s = calloc(1, sizeof *s);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *s = (shared_t){address, host, handle->bytes, *handle, opened, all};
    all = s;
    return CUDA_SUCCESS;
}

void share_end(CUdeviceptr address)
{
    shared_t **at = &all;
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    shared_t *s = *at;
    if (!s)
        return;
    *at = s->next;
    if (!s->opened)
        close((int)s->handle.file);
    munmap(s->host, s->bytes);
    free(s);
}

/* The same bytes at the same address, in a file from now on. */
static CUresult move(CUdeviceptr base, size_t bytes, handle_t *handle)
{
    turing_error_t err;
    const int file = memfd_create("turing", MFD_CLOEXEC);
    void *host = file >= 0 && !ftruncate(file, (off_t)bytes)
                     ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
    *handle = (handle_t){.process = getpid(), .file = file, .bytes = bytes};
    memcpy(handle->magic, magic, sizeof magic);
    if (host != MAP_FAILED && turing_memory_read(machine.mem, base, host, bytes, &err) &&
        keep(base, host, handle, 0) == CUDA_SUCCESS) {
        turing_memory_free(machine.mem, base, NULL);
        if (turing_memory_bind(machine.mem, base, host, bytes, &err))
            return CUDA_SUCCESS;
        share_end(base);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (host != MAP_FAILED)
        munmap(host, bytes);
    if (file >= 0)
        close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    BEGIN;
    uint64_t base, bytes;
    handle_t handle;
    if (!out || !turing_memory_range(machine.mem, address, &base, &bytes) || is_pinned(base))
        END(CUDA_ERROR_INVALID_VALUE);
    const shared_t *known = find(base);
    const CUresult r = known ? CUDA_SUCCESS : move(base, bytes, &handle);
    if (r == CUDA_SUCCESS) {
        memset(out, 0, sizeof *out);
        memcpy(out, known ? &known->handle : &handle, sizeof handle);
    }
    END(r);
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle given, unsigned flags)
{
    BEGIN;
    handle_t h;
    char path[64];
    turing_error_t err;
    memcpy(&h, &given, sizeof h);
    if (!address || flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(h.magic, magic, sizeof magic))
        END(CUDA_ERROR_INVALID_VALUE);
    if (h.process == getpid()) /* as CUDA has it: not where it comes from */
        END(CUDA_ERROR_INVALID_CONTEXT);
    for (shared_t *s = all; s; s = s->next)
        if (!memcmp(&s->handle, &h, sizeof h)) {
            s->opened++;
            *address = s->address;
            END(CUDA_SUCCESS);
        }
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)h.process, (long long)h.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    void *host = file >= 0 ? mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    if (host == MAP_FAILED) {
        machine_say("%s: the process that shared this memory has ended, or is not ours", path);
        END(CUDA_ERROR_MAP_FAILED);
    }
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)host;
    if (!turing_memory_bind(machine.mem, at, host, h.bytes, &err)) {
        munmap(host, h.bytes);
        END(CUDA_ERROR_MAP_FAILED);
    }
    *address = at;
    END(keep(at, host, &h, 1));
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address)
{
    BEGIN;
    shared_t *s = find(address);
    if (!s || !s->opened)
        END(CUDA_ERROR_INVALID_VALUE);
    if (s->opened > 1) {
        s->opened--;
        END(CUDA_SUCCESS);
    }
    turing_memory_free(machine.mem, address, NULL);
    share_end(address);
    END(CUDA_SUCCESS);
}
