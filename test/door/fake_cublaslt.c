/* SPDX-License-Identifier: MIT */
/* A cuBLASLt for tests: descriptors are lists of attributes with the sizes and defaults of the real ones. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { ATTRIBUTES = 40 };

typedef struct descriptor_t {
    uint64_t values[ATTRIBUTES];
    size_t sizes[ATTRIBUTES]; /* in bytes; 0: there is no such attribute */
} descriptor_t;

EXPORT fake_cublas_t fake_cublaslt;

EXPORT int cublasLtMatmulDescCreate(void **desc, int compute, int scale_type);
EXPORT int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
EXPORT int cublasLtMatmulDescDestroy(void *desc);
EXPORT int cublasLtMatrixLayoutDestroy(void *layout);
EXPORT int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t size);
EXPORT int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size);
EXPORT cublasLtMatmulDescGetAttribute_fn cublasLtMatmulDescGetAttribute;
EXPORT cublasLtMatrixLayoutGetAttribute_fn cublasLtMatrixLayoutGetAttribute;
EXPORT cublasLtMatmul_fn cublasLtMatmul;

static descriptor_t *make(const char *sizes)
{
    descriptor_t *made = calloc(1, sizeof *made);
    for (int i = 0; made && sizes[i]; i++)
        made->sizes[i] = (size_t)(sizes[i] - '0');
    return made;
}

int cublasLtMatmulDescCreate(void **desc, int compute, int scale_type)
{
    descriptor_t *made = make("44444444"
                              "80"
                              "88888"
                              "44"
                              "88888"
                              "4"
                              "88"
                              "1"
                              "4"
                              "0000"
                              "44444"
                              "848");
    if (!made)
        return BLAS_STATUS_NOT_INITIALIZED;
    made->values[LT_DESC_COMPUTE_TYPE] = (uint64_t)compute;
    made->values[LT_DESC_SCALE_TYPE] = (uint64_t)scale_type;
    made->values[LT_DESC_FILL_MODE] = BLAS_FILL_MODE_FULL;
    made->values[LT_DESC_EPILOGUE] = LT_EPILOGUE_DEFAULT;
    made->values[LT_DESC_BIAS_DATA_TYPE] = UINT32_MAX;
    *desc = made;
    return BLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    descriptor_t *made = make("448884884");
    if (!made)
        return BLAS_STATUS_NOT_INITIALIZED;
    made->values[LT_LAYOUT_TYPE] = (uint64_t)type;
    made->values[LT_LAYOUT_ROWS] = rows;
    made->values[LT_LAYOUT_COLS] = columns;
    made->values[LT_LAYOUT_LD] = (uint64_t)ld;
    made->values[LT_LAYOUT_BATCH_COUNT] = 1;
    *layout = made;
    return BLAS_STATUS_SUCCESS;
}

int cublasLtMatmulDescDestroy(void *desc)
{
    free(desc);
    return BLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    return cublasLtMatmulDescDestroy(layout);
}

static int is_wrong(const descriptor_t *descriptor, int attribute, size_t size)
{
    return !descriptor || attribute < 0 || attribute >= ATTRIBUTES || descriptor->sizes[attribute] == 0 ||
           descriptor->sizes[attribute] != size;
}

int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t size)
{
    descriptor_t *descriptor = desc;
    if (is_wrong(descriptor, attribute, size))
        return BLAS_STATUS_INVALID_VALUE;
    memcpy(&descriptor->values[attribute], value, size);
    return BLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size)
{
    return cublasLtMatmulDescSetAttribute(layout, attribute, value, size);
}

int cublasLtMatmulDescGetAttribute(void *desc, int attribute, void *value, size_t size, size_t *written)
{
    const descriptor_t *descriptor = desc;
    if (is_wrong(descriptor, attribute, size))
        return BLAS_STATUS_INVALID_VALUE;
    memcpy(value, &descriptor->values[attribute], size);
    *written = size;
    return BLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutGetAttribute(void *layout, int attribute, void *value, size_t size, size_t *written)
{
    return cublasLtMatmulDescGetAttribute(layout, attribute, value, size, written);
}

int cublasLtMatmul(LT_PARAMETERS(int))
{
    fake_cublaslt.calls++;
    fake_cublaslt.last = (fake_call_t){FAKE_LT("cublasLtMatmul")};
    if (fake_cublaslt.inner)
        fake_cublaslt.inner();
    return handle && desc ? fake_cublaslt.status : BLAS_STATUS_INVALID_VALUE;
}
