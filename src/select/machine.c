/* SPDX-License-Identifier: MIT */
#include "select/machine.h"

#include "table/kernels.h"

enum { LEAST_WORKSPACE = 32 << 20, MOST_WORKSPACE = 256 << 20 }; /* bytes; what machines ask for */
enum { GROWN_WORKSPACE = 1 << 30 };                              /* the same where a plan asks for more */
enum { SYSTEM_SHARED = 1 << 10 }; /* bytes of shared memory that newer GPUs reserve in each block */

const machine_t machine_t4 = {.multiprocessors = 40,
                              .shared_bytes = T4_SHARED,
                              .threads = T4_THREADS,
                              .l2_bytes = 4 << 20,
                              .workspace_bytes = LEAST_WORKSPACE,
                              .most_workspace = LEAST_WORKSPACE,
                              .has_t4_code = 1};

/* As many bytes, in whole MiB, but no less than every machine has, and no more than `most`. */
static size_t between(size_t bytes, size_t most)
{
    bytes = bytes >> 20 << 20;
    return bytes < LEAST_WORKSPACE ? LEAST_WORKSPACE : bytes > most ? most : bytes;
}

/* Limits of a multiprocessor: CUDA C++ Programming Guide, technical specifications per compute capability. Those of
 * 8.6 for 8.x and from 12.0 on, those of 9.0 between them. */
machine_t machine_of(const hgemm_device_info_t *info)
{
    machine_t machine = machine_t4;
    machine.multiprocessors = info->multiprocessors;
    machine.l2_bytes = info->l2_bytes ? info->l2_bytes : machine.l2_bytes;
    if (info->compute_major >= 8) {
        machine.is_newer = 1;
        machine.has_t4_code = info->is_emulated;
        int is_small = info->compute_major == 8 || info->compute_major >= 12;
        machine.shared_bytes = is_small ? 99 << 10 : 227 << 10;
        machine.threads = is_small ? 1536 : 2048;
        machine.workspace_bytes = between(info->memory_bytes / 512, MOST_WORKSPACE);
        machine.most_workspace = between(info->memory_bytes / 128, GROWN_WORKSPACE);
    }
    return machine;
}

int shared_bytes_on(const machine_t *machine, int kernel)
{
    return kernel_table[kernel].info.shared_bytes + (machine->is_newer ? SYSTEM_SHARED : 0);
}
