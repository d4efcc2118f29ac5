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

/* HGEMM_CUBLAS_F32. */
static void read_floats(const char *value)
{
    static const char *const accuracies[] = {"f32", "16bits", "11bits"}; /* hgemm_accuracy_t */
    read_once.honours_permission = !value || strcmp(value, "on") == 0;
    read_once.takes_floats = read_once.honours_permission;
    for (int i = 0; value && i < 3; i++)
        if (strcmp(value, accuracies[i]) == 0)
            read_once.takes_floats = 1, read_once.accuracy = (hgemm_accuracy_t)i;
    if (!read_once.takes_floats && strcmp(value, "off") != 0)
        read_once.unknown_floats = value;
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
    read_floats(value_of("HGEMM_CUBLAS_F32"));
    read_once.has_tuning = value_of("HGEMM_TUNING") != NULL;
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

enum { TURING = 75 };

const char *settings_refuse(int capability)
{
    switch (settings()->policy) {
    case POLICY_EVERYWHERE: return NULL;
    case POLICY_NOWHERE: return "the policy is nowhere";
    default:
        return capability == TURING || settings()->has_tuning
                   ? NULL
                   : "the policy is faster, and there is no tuning file that compares hgemm with cuBLAS on this GPU";
    }
}

const char *settings_refuse_ratio(int capability, double ratio)
{
    if (ratio == 0)
        return capability == TURING ? NULL
                                    : "the policy is faster, and the tuning file does not compare this with cuBLAS";
    return ratio >= 1 ? NULL : "the policy is faster, and by the tuning file cuBLAS is";
}
