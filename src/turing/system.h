/* SPDX-License-Identifier: MIT */
/*
 * system.h - functions that kernels call and that no cubin holds: those of the
 * device's runtime, vprintf, __assertfail, malloc and free, and the barrier of a
 * cooperative grid in code that is linked with libcudadevrt (inside the library).
 *
 * Each stands at a code address that no kernel reaches.  A call gets its arguments
 * in registers from R4 on, a pair for 64 bits, returns a result there, and goes on
 * behind the call, whose address is in R20.
 */
#ifndef TURING_SYSTEM_H
#define TURING_SYSTEM_H

#include "exec.h"

/* States of a byte in alloc_t.valid. */
enum { BYTE_NOT_WRITTEN, BYTE_WRITTEN, BYTE_NOT_GIVEN /* of the heap, in no block of malloc */ };

enum { RETURN_REGISTER = 20 };

/* The heap of a memory, before a launch that may call malloc. False: out of memory. */
bool emu_heap_open(turing_memory_t *mem);

/* False: there is no such function. */
bool emu_system_address(const char *name, uint64_t *address);

/* Does the code address belong to one?  Then emu_system_call() does what it does for the
 * lanes in `on`, and returns those that go on: the others wait, and are to call again. */
bool emu_system_is(uint64_t address);
uint32_t emu_system_call(warp_t *w, const op_t *o, uint32_t on, uint64_t address);

/* The barrier of a cooperative grid, before a launch.  False: out of memory. */
bool emu_grid_open(machine_t *m);
/* Lanes of such a grid have ended: the barrier waits for those that live. */
void emu_grid_leave(machine_t *m, uint32_t lanes);

#endif
