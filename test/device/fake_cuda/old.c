/* SPDX-License-Identifier: MIT */
/* A driver that is too old to have what the library needs. */
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags)
{
    return flags ? 1 : 0;
}
