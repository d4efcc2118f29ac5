/* SPDX-License-Identifier: MIT */
/*
 * turing_load_test IMAGE... - what each image holds can be opened and disassembled; what is left of
 * it after damage (truncated, bytes changed, blocks copied about) is opened or refused with words,
 * and never takes the loader down. Built with sanitizers this also shows that it stays in bounds.
 */
#include "turing_test.h"

#ifdef __SANITIZE_ADDRESS__ /* five times as slow */
enum { ROUNDS = 250 };
#else
enum { ROUNDS = 1000 };
#endif

static uint64_t state = 1;

/* Opens the bytes, and reads all that the module offers. */
static bool read_all(const uint8_t *data, size_t size, const char *what)
{
    turing_error_t err = {""};
    turing_module_t *m = turing_module_open(data, size, &err);
    if (!m) {
        CHECK(err.text[0], "%s is refused without a word", what);
        return false;
    }
    for (size_t i = 0; i < turing_module_kernel_count(m); i++) {
        const turing_kernel_t *k = turing_module_kernel(m, i);
        char text[TURING_TEXT_MAX];
        CHECK(k->name && (k->insns || k->unusable), "%s: kernel %zu", what, i);
        for (uint32_t n = 0; k->insns && n < k->n_insns; n++)
            CHECK(turing_disasm(&k->insns[n], text) > 0, "%s: %s+%u", what, k->name, n);
        for (uint32_t n = 0; n < k->n_params; n++)
            CHECK(k->params[n].offset + k->params[n].size <= k->param_bytes, "%s: %s, parameter %u", what, k->name, n);
    }
    turing_module_close(m);
    return true;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1, "no image");
    for (int i = 1; i < argc; i++) {
        static uint8_t whole[1 << 22];
        FILE *file = fopen(argv[i], "rb");
        const size_t size = file ? fread(whole, 1, sizeof whole, file) : 0;
        if (file)
            fclose(file);
        CHECK(size > 64 && size < sizeof whole, "%s: %zu bytes", argv[i], size);
        CHECK(read_all(whole, size, argv[i]), "%s cannot be opened", argv[i]);
        int opened = 0;
        for (int round = 0; round < ROUNDS && size > 64; round++) {
            /* the bytes lie at the end of their allocation, so that a sanitizer sees one beyond */
            const size_t left = round % 4 ? size : random_word(&state) % size;
            uint8_t *copy = malloc(left ? left : 1);
            if (!copy)
                return 1;
            memcpy(copy, whole, left);
            for (uint32_t n = random_word(&state) % 8; round % 4 && n < 8; n++) {
                const size_t range = round % 4 == 1 && left > 1024 ? 1024 : left; /* headers more often */
                copy[random_word(&state) % range] = (uint8_t)random_word(&state);
                if (random_word(&state) % 8 == 0 && left > 64)
                    memmove(copy + random_word(&state) % (left - 64), copy + random_word(&state) % (left - 64), 64);
            }
            opened += read_all(copy, left, "a damaged image");
            free(copy);
        }
        printf("%s: %d of %d damaged copies open\n", argv[i], opened, (int)ROUNDS);
        CHECK(opened < ROUNDS, "%s: no damage is noticed", argv[i]);
    }
    return failures != 0;
}
