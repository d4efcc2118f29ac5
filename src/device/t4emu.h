/* SPDX-License-Identifier: MIT */
/* What only the emulated T4 offers, beside what every device does (device.h). */
#ifndef HGEMM_T4EMU_H
#define HGEMM_T4EMU_H

#include "device/device.h"
#include "turing/launch.h"

/* Its memory, for kernels of others. */
turing_memory_t *device_t4emu_memory(device_t *device);

/* From now on a launch on that emulated T4 leaves there what it counted, in the place of what another left; NULL ends
 * it. They are zero at first, and the caller frees them. */
void device_t4emu_count(device_t *device, turing_counters_t *counters);

/* From now on launches on that emulated T4 are timed by its model and add their figures to those
 * there; NULL ends it. */
void device_t4emu_time(device_t *device, turing_time_t *sum);

/* From now on that emulated T4's model has the constants there; NULL: its own. */
void device_t4emu_clock(device_t *device, const turing_clock_t *clock);

/* From now on `watch` is told of every instruction that the model issues; NULL ends it. */
void device_t4emu_watch(device_t *device, turing_watch_fn *watch, void *user);

/* Runs a kernel of another module on that emulated T4 as `launch` says, whose options, counters and
 * time become the device's; it is dry only if `launch` and the device have it so. */
typedef hgemm_status_t device_t4emu_run_fn(device_t *device, const turing_kernel_t *kernel, turing_launch_t *launch);
device_t4emu_run_fn device_t4emu_run;

#endif
