/* SPDX-License-Identifier: MIT */
/* want.h - what the programs of this folder check, in C or C++: results and CUDA's errors. They end with report(). */
#ifndef TEST_FACE_WANT_H
#define TEST_FACE_WANT_H

#include <stdio.h>

static int failures;

#define WANT(condition)                                                      \
    do {                                                                     \
        if (!(condition)) {                                                  \
            failures++;                                                      \
            printf("%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
        }                                                                    \
    } while (0)

/* A call of the runtime returns that error, and it is the last one, too. */
#define IS(error, ...)                                                                                                 \
    do {                                                                                                               \
        cudaGetLastError();                                                                                            \
        const cudaError_t found_ = (__VA_ARGS__), last_ = cudaGetLastError(), wanted_ = (error);                       \
        if (found_ != wanted_ || (wanted_ && last_ != wanted_)) {                                                      \
            failures++;                                                                                                \
            printf("%s:%d: %s: %s, and last %s, for %s\n", __FILE__, __LINE__, #__VA_ARGS__, cudaGetErrorName(found_), \
                   cudaGetErrorName(last_), cudaGetErrorName(wanted_));                                                \
        }                                                                                                              \
    } while (0)
#define OK(...) IS(cudaSuccess, __VA_ARGS__)

static int report(void)
{
    if (!failures)
        printf("all as expected\n");
    return failures != 0;
}

#endif
