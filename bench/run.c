/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>
#include <string.h>

bench_t bench;

int emulated(void)
{
    return strcmp(bench.info.kind, "t4emu") == 0;
}

int modelled(void)
{
    return strcmp(bench.info.kind, "t4model") == 0;
}

int typed(void)
{
    return bench.options.fill.is_packed || bench.options.fill.type != HGEMM_TYPE_F16;
}

const char *device_name(void)
{
    const char *name = bench.options.device && *bench.options.device ? bench.options.device : getenv("HGEMM_DEVICE");
    return name ? name : "";
}

int is_dry(void)
{
    return modelled() && strstr(device_name(), "dry") != NULL;
}
