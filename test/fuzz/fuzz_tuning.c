/* SPDX-License-Identifier: MIT */
/* Tuning files: each is refused in words, or serves, and then every problem that it lists has a plan. */
#define _GNU_SOURCE /* memfd_create */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "select/plan_text.h"
#include "select/problem_class.h"

const char *const fuzz_words[] = {" = ",
                                  " cublas 1.250",
                                  "\n",
                                  "#",
                                  "f16 nn 64x64x64",
                                  "f32 tt 8x1024x4096 batch 3",
                                  " lda ",
                                  " ldb ",
                                  " strides ",
                                  " aligned 8 2",
                                  " fused",
                                  " invariant",
                                  " gathered",
                                  " pointers",
                                  " grouped",
                                  " col_major",
                                  " bf16",
                                  " scaled_a",
                                  " types f32 f16",
                                  " accuracy 16bits",
                                  " exact ab",
                                  "single_128x64 nn x16",
                                  "k5_64x64 nn x16",
                                  " whole 0 splits 4 k 1024",
                                  " copies ab",
                                  "library 0.2.0",
                                  "\r",
                                  "",
                                  NULL};

static const char *const bodies[] = {
    "",
    ("f16 nn 4096x4096x4096 = k5_256x128 nn x16\n"
     "f32 nt 16x4096x1024 batch 3 = k5_16x64_f32 nt x16 whole 0 splits 4 k 256 cublas 1.250\n"),
    ("f16 nt 16x128x200 lda 201 aligned 2 2 = k5_16x64 nt any # modelled: 2.00 us\n"
     "f16 nn 1x1x1 = thin_8x8 nn x16\n"),
    ("# a comment\n\nf32 nn 64x64x512 fused = k5_64x64_f32 nn x16\n"
     "f32 nn 64x64x512 types bf16 bf16 = k5_64x64_f32 nn x16 cublas 0.001\n"),
    ("f32 nn 512x512x512 types f32 f32 = single_128x64 nn x16 cublas 1.250\n"
     "f32 nt 512x512x512 types f32 f32 accuracy 11bits exact a = single11_128x128 nt x16\n"),
    "f16 nn 8x16x24 batch 3 lda 32 ldb 64 strides 0 99 = k5_64x32 nn any\n",
};

static void open_handle(void)
{
    set_up(NULL);
    fake.compute = 0;
    strcpy(handle.info.name, "fake");
    handle.info.driver_version = 12020;
    handle.info.multiprocessors = 132, handle.info.compute_major = 9;
    handle.machine = machine_of(&handle.info);
    handle.workspace_bytes = handle.machine.workspace_bytes;
}

size_t fuzz_seed(int number, char **files, uint8_t data[MOST_INPUT])
{
    (void)files;
    if (number >= (int)(sizeof bodies / sizeof bodies[0]))
        return 0;
    open_handle();
    tuning_header(&handle.info, (char *)data);
    strcat((char *)data, bodies[number]);
    return strlen((char *)data);
}

/* What the library chooses for the problem of a line. */
static void use(char *line)
{
    problem_class_t class;
    hgemm_desc_t example;
    hgemm_weights_t weights;
    plan_t plan;
    char text[CLASS_TEXT];
    char *end = strstr(line, " = ");
    if (end)
        *end = '\0';
    if (!end || class_from_text(line, &class) || class_example(&class, &example, &weights))
        return;
    class_to_text(&class, text);
    const problem_t p = normalise(&example);
    fuzz_check(handle_choose(&handle, &p, &plan) != HGEMM_STATUS_DEVICE_ERROR, "a problem of the file");
    fuzz_check(tuning_cublas_ratio(handle.tuning, &p) >= 0, "a ratio below 0");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    char path[32], line[2048];
    const int file = memfd_create("tuning", MFD_CLOEXEC);
    fuzz_check(file >= 0 && write(file, data, size) == (ssize_t)size, "memfd_create");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    open_handle();
    const hgemm_status_t status = hgemm_load_tuning(&handle, path);
    fuzz_check(status == HGEMM_STATUS_SUCCESS || status == HGEMM_STATUS_INVALID_TUNING, hgemm_status_name(status));
    fuzz_check(status == HGEMM_STATUS_SUCCESS || strstr(handle.device->detail, path),
               "a file is refused without a word");
    const hgemm_desc_t desc = small();
    fuzz_check(hgemm_prepare(&handle, &desc) == HGEMM_STATUS_SUCCESS, "a call with a file that may not list it");
    FILE *text = status == HGEMM_STATUS_SUCCESS ? fopen(path, "r") : NULL;
    while (text && fgets(line, sizeof line, text))
        use(line);
    if (text)
        fclose(text);
    hgemm_load_tuning(&handle, NULL);
    close(file);
}
