/* SPDX-License-Identifier: MIT */
/* Images: what is left of one after damage is refused in words, or its kernels can be read and launched. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "turing/turing.h"
#include "turing/launch.h"

const char *const fuzz_words[] = {"\177ELF", ".nv.info", ".text.", ".nv.constant0.", NULL};

/* The files, which are whole images. */
size_t fuzz_seed(int number, char **files, uint8_t data[MOST_INPUT])
{
    static struct {
        size_t size;
        uint8_t data[1 << 19];
    } read[4];
    if (number >= 4 || !files[number])
        return 0;
    if (!read[number].size) {
        FILE *file = fopen(files[number], "rb");
        fuzz_check(file != NULL, files[number]);
        read[number].size = fread(read[number].data, 1, sizeof read[number].data, file);
        fuzz_check(read[number].size < sizeof read[number].data, "an image is too large for a seed");
        fclose(file);
    }
    memcpy(data, read[number].data, read[number].size);
    return read[number].size;
}

static void launch(const turing_kernel_t *kernel, turing_memory_t *memory, uint64_t address)
{
    uint8_t params[4096];
    turing_error_t error = {""};
    turing_launch_t run = {.grid = {1, 1, 1},
                           .block = {64, 1, 1},
                           .shared_bytes = 16384,
                           .params = params,
                           .param_bytes = kernel->param_bytes,
                           .max_warp_instructions = 500};
    if (kernel->param_bytes > sizeof params)
        return;
    for (size_t i = 0; i < sizeof params; i += 8)
        memcpy(params + i, i < 32 ? &address : &(uint64_t){64}, 8);
    fuzz_check(turing_launch(kernel, memory, &run, NULL, &error) || error.text[0], "an error without a word");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    turing_error_t error = {""};
    turing_module_t *module = turing_module_open(data, size, &error);
    fuzz_check(module || error.text[0], "an image is refused without a word");
    if (!module)
        return;
    turing_memory_t *memory = turing_memory_create(0);
    const uint64_t address = turing_memory_alloc(memory, 1 << 16);
    for (size_t i = 0; i < turing_module_kernel_count(module); i++) {
        const turing_kernel_t *kernel = turing_module_kernel(module, i);
        char text[TURING_TEXT_MAX];
        for (uint32_t n = 0; kernel->insns && n < kernel->n_insns; n += 1 + kernel->n_insns / 64)
            fuzz_check(turing_disasm(&kernel->insns[n], text) > 0, "an instruction without a text");
        launch(kernel, memory, address);
    }
    turing_memory_destroy(memory);
    turing_module_close(module);
}
