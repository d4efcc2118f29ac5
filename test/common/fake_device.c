/* SPDX-License-Identifier: MIT */
#include "fake_device.h"

#include <stdlib.h>
#include <string.h>

static fake_device_t *fake_of(device_t *device)
{
    return (fake_device_t *)device;
}

static hgemm_status_t fake_info(device_t *device, hgemm_device_info_t *info)
{
    (void)device;
    *info = (hgemm_device_info_t){.name = "fake", .kind = "fake", .multiprocessors = 40};
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t fake_alloc(device_t *device, void **pointer, size_t bytes)
{
    (void)device;
    void *memory = malloc(bytes);
    if (!memory)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    *pointer = memory;
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t fake_release(device_t *device, void *pointer)
{
    (void)device;
    free(pointer);
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t fake_copy(device_t *device, void *stream, void *to, const void *from, size_t bytes)
{
    (void)device, (void)stream;
    memcpy(to, from, bytes);
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t fake_load(device_t *device, const image_t *image, unsigned shared_bytes, void **function)
{
    fake_device_t *fake = fake_of(device);
    (void)shared_bytes;
    fake->loads++;
    fake->image = image;
    if (fake->load_status == HGEMM_STATUS_SUCCESS)
        memcpy(function, &image, sizeof image);
    return fake->load_status;
}

static double load_half(const void *data, int64_t element)
{
    return hgemm_half_to_float(((const uint16_t *)data)[element]);
}

/* D = alpha * op(A) * op(B) + beta * C, row-major, for every matrix of the grid. The transposes
 * are those that the symbol names. */
static void multiply(const kernel_args_t *p, int transposed_a, int transposed_b, int64_t batch)
{
    for (int64_t y = 0; y < batch; y++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0, added = 0;
                for (int64_t l = 0; l < p->k; l++) {
                    int64_t in_a = transposed_a ? l * p->lda + i : i * p->lda + l;
                    int64_t in_b = transposed_b ? j * p->ldb + l : l * p->ldb + j;
                    sum += load_half(p->a, y * p->stride_a + in_a) * load_half(p->b, y * p->stride_b + in_b);
                }
                if (p->beta != 0)
                    added = (double)p->beta * load_half(p->c, y * p->stride_c + i * p->ldc + j);
                ((uint16_t *)p->d)[y * p->stride_d + i * p->ldd + j] =
                    hgemm_half_from_float((float)((double)p->alpha * sum + added));
            }
}

static hgemm_status_t fake_launch(device_t *device, void *stream, void *function, const launch_t *launch)
{
    fake_device_t *fake = fake_of(device);
    fake->launches++;
    fake->image = function;
    fake->stream = stream;
    fake->launch = *launch;
    if (launch->args_size == sizeof fake->args || launch->args_size == sizeof(packed_args_t)) /* which it begins */
        memcpy(&fake->args, launch->args, sizeof fake->args);
    const int warps_have_tiles = strncmp(fake->image->symbol, "tiny_", 5) == 0;
    const int64_t matrices = warps_have_tiles ? fake->args.groups : (int64_t)launch->grid[1];
    fake->matrices += matrices;
    if (fake->launch_status == HGEMM_STATUS_SUCCESS && fake->compute) {
        const char *symbol = fake->image->symbol; /* <name>_<op>, and _x8, _any or _far */
        size_t length = strlen(symbol);
        const char *op = symbol + length - 2;
        if (strcmp(symbol + length - 4, "_any") == 0 || strcmp(symbol + length - 4, "_far") == 0)
            op -= 4;
        else if (strcmp(symbol + length - 3, "_x8") == 0)
            op -= 3;
        multiply(&fake->args, op[0] == 't', op[1] == 't', matrices);
    }
    return fake->launch_status;
}

static hgemm_status_t fake_synchronize(device_t *device, void *stream)
{
    (void)stream;
    fake_of(device)->synchronisations++;
    return HGEMM_STATUS_SUCCESS;
}

static void fake_close(device_t *device)
{
    fake_of(device)->closes++;
}

void fake_device_init(fake_device_t *device)
{
    static const device_ops_t ops = {
        .info = fake_info,
        .alloc = fake_alloc,
        .release = fake_release,
        .upload = fake_copy,
        .download = fake_copy,
        .load = fake_load,
        .launch = fake_launch,
        .synchronize = fake_synchronize,
        .close = fake_close,
    };
    *device = (fake_device_t){.base = {.ops = &ops}, .compute = 1};
}
