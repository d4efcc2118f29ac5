/* SPDX-License-Identifier: MIT */
/* runtime_call.c - what each of libcudart's entry points begins and ends with. */
#include "runtime.h"

static __thread cudaError_t last;
static __thread int ready;

CUresult runtime_ready(void)
{
    CUcontext context = NULL;
    if (ready && !cuCtxGetCurrent(&context) && context)
        return CUDA_SUCCESS;
    CUresult r = cuInit(0);
    if (!r && !cuCtxGetCurrent(&context) && context)
        ready = 1;
    else if (!r && !(r = cuDevicePrimaryCtxRetain(&context, 0)) && !(r = cuCtxSetCurrent(context)))
        ready = 1;
    return r;
}

cudaError_t runtime_keep(CUresult result)
{
    if (result)
        last = (cudaError_t)result;
    return (cudaError_t)result;
}

CUresult turing_face_not_served(const char *name); /* names.c, in libcuda */

cudaError_t runtime_not_served(const char *name)
{
    return runtime_keep(turing_face_not_served(name));
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}
