/* SPDX-License-Identifier: MIT */
/* Names of devices, and what is opened where none is named. */
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char cuda_prefix[] = "cuda:", t4emu_prefix[] = "t4emu:";

static int begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The ordinal that follows "cuda:", -1 where it is not a plain number. */
static int parse_ordinal(const char *digits)
{
    char *end;
    if (*digits < '0' || *digits > '9')
        return -1;
    long ordinal = strtol(digits, &end, 10);
    return *end || ordinal > 9999 ? -1 : (int)ordinal;
}

#ifdef HGEMM_EMULATOR

static int gpu_is_required(void)
{
    const char *required = getenv("HGEMM_REQUIRE_GPU");
    return required && *required && strcmp(required, "0") != 0;
}

/* The emulator in place of a GPU that is missing. The reason is kept, so that nobody takes it for a GPU. */
static hgemm_status_t open_instead(hgemm_status_t missing, device_t **device, char detail[DEVICE_DETAIL])
{
    char reason[DEVICE_FALLBACK];
    snprintf(reason, sizeof reason, "%s", *detail ? detail : hgemm_status_string(missing));
    if (gpu_is_required()) {
        size_t length = strlen(detail);
        snprintf(detail + length, DEVICE_DETAIL - length,
                 "%sHGEMM_REQUIRE_GPU is set, so that the emulated T4 does not take its place.", length ? " " : "");
        return missing;
    }
    hgemm_status_t status = device_open_t4emu("", device, detail);
    if (status == HGEMM_STATUS_SUCCESS)
        memcpy((*device)->fallback, reason, sizeof reason);
    return status;
}

static hgemm_status_t open_emulator(const char *name, device_t **device, char detail[DEVICE_DETAIL])
{
    const char *options = begins_with(name, t4emu_prefix) ? name + strlen(t4emu_prefix) : "";
    return device_open_t4emu(options, device, detail);
}

#else

static hgemm_status_t open_instead(hgemm_status_t missing, device_t **device, char detail[DEVICE_DETAIL])
{
    (void)device, (void)detail;
    return missing;
}

static hgemm_status_t open_emulator(const char *name, device_t **device, char detail[DEVICE_DETAIL])
{
    (void)device;
    snprintf(detail, DEVICE_DETAIL, "No device is called \"%.100s\": this build has no emulator.", name);
    return HGEMM_STATUS_INVALID_DEVICE;
}

#endif

static hgemm_status_t open_default(device_t **device, char detail[DEVICE_DETAIL])
{
    hgemm_status_t status = device_open_cuda(-1, device, detail);
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE || status == HGEMM_STATUS_OLD_DEVICE)
        return open_instead(status, device, detail);
    return status;
}

hgemm_status_t device_open(const char *name, device_t **device, char detail[DEVICE_DETAIL])
{
    if (!*name)
        return open_default(device, detail);
    if (strcmp(name, "cuda") == 0)
        return device_open_cuda(-1, device, detail);
    if (begins_with(name, cuda_prefix) && parse_ordinal(name + strlen(cuda_prefix)) >= 0)
        return device_open_cuda(parse_ordinal(name + strlen(cuda_prefix)), device, detail);
    if (strcmp(name, "t4emu") == 0 || begins_with(name, t4emu_prefix))
        return open_emulator(name, device, detail);
    snprintf(detail, DEVICE_DETAIL, "No device is called \"%.100s\".", name);
    return HGEMM_STATUS_INVALID_DEVICE;
}
