/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libhgemm_peers_t4emu.so (bench/peers_cutlass.h), for what bench_hgemm does before a configuration of
 * CUTLASS runs. It has three, for any call whose k is in four slices at most, and refuses every launch: so bench_hgemm
 * names each that it would have taken.
 */
#include "peers_cutlass.h"

#define CONFIGS 3

void turing_face_visit(const void *host);
void turing_face_visit(const void *host)
{
    (void)host;
}

int hgemm_peers_open(int ordinal)
{
    (void)ordinal;
    return 0;
}

void hgemm_peers_close(void) {}

const char *hgemm_peers_about(void)
{
    return "a stand-in";
}

int hgemm_peers_count(void)
{
    return CONFIGS;
}

peers_config_t hgemm_peers_config(int config)
{
    static const peers_config_t configs[CONFIGS] = {
        {64, 64, 32, 8, "64x64x32 align8"},
        {64, 128, 32, 8, "64x128x32 align8"},
        {128, 128, 32, 8, "128x128x32 align8"},
    };
    return configs[config];
}

int hgemm_peers_can_run(int config, const peers_call_t *call)
{
    (void)config;
    return call->slices <= 4;
}

int hgemm_peers_run(int config, const peers_call_t *call)
{
    (void)config, (void)call;
    return 1;
}
