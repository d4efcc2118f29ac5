/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static settings_t read_once;

static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static void read_environment(void)
{
    const char *policy = value_of("HGEMM_CUBLAS");
    if (!policy || strcmp(policy, "faster") == 0)
        read_once.policy = POLICY_FASTER;
    else if (strcmp(policy, "everywhere") == 0)
        read_once.policy = POLICY_EVERYWHERE;
    else
        read_once.policy = POLICY_NOWHERE;
    if (read_once.policy == POLICY_NOWHERE && strcmp(policy, "nowhere") != 0)
        read_once.unknown = policy;
    read_once.log = value_of("HGEMM_CUBLAS_LOG");
    read_once.summary = value_of("HGEMM_CUBLAS_SUMMARY");
    read_once.record = value_of("HGEMM_CUBLAS_RECORD");
}

const settings_t *settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &read_once;
}

const char *settings_refuse(int capability)
{
    switch (settings()->policy) {
    case POLICY_EVERYWHERE: return NULL;
    case POLICY_NOWHERE: return "the policy is nowhere";
    default: return capability == 75 ? NULL : "the policy is faster, and hgemm is not known to be on this GPU";
    }
}
