/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "Usage: hgemm devices\n"
    "\n"
    "Shows the GPUs and the emulated T4: the name that hgemm_create takes, and what it is, or why it\n"
    "cannot be used.\n";

/* Returns 0 if there is no such device. */
static int show(const char *name)
{
    hgemm_handle_t handle;
    hgemm_device_info_t i;
    hgemm_status_t status = hgemm_create(&handle, name);
    if (status == HGEMM_STATUS_INVALID_DEVICE)
        return 0;
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_get_device_info(handle, &i);
    if (status != HGEMM_STATUS_SUCCESS) {
        printf("%-8s %s %s\n", name, hgemm_status_string(status), hgemm_error_detail(NULL));
        return status == HGEMM_STATUS_OLD_DEVICE;
    }
    printf("%-8s %s: compute capability %d.%d, %d multiprocessors, %zu MiB of memory, %zu KiB of L2 cache, ", name,
           i.name, i.compute_major, i.compute_minor, i.multiprocessors, i.memory_bytes >> 20, i.l2_bytes >> 10);
    if (i.driver_version)
        printf("CUDA driver %d.%d\n", i.driver_version / 1000, i.driver_version % 1000 / 10);
    else
        printf("on the CPU, thousands of times slower\n");
    hgemm_destroy(handle);
    return 1;
}

int tool_devices(int argc, char **argv)
{
    static const struct option known[] = {{"help", 0, NULL, 1}, {NULL, 0, NULL, 0}};
    int option = getopt_long(argc, argv, "", known, NULL);
    if (option == 1) {
        fputs(usage, stdout);
        return 0;
    }
    if (option != -1 || optind < argc) {
        fputs("Try hgemm devices --help.\n", stderr);
        return 2;
    }
    char name[16] = "cuda:0";
    for (int ordinal = 0; show(name) && ordinal < 1000; snprintf(name, sizeof name, "cuda:%d", ordinal))
        ordinal++;
    show("t4emu");
    return 0;
}
