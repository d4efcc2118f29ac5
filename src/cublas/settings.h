/* SPDX-License-Identifier: MIT */
/* What the environment asks of the door; read once, at the first call. */
#ifndef HGEMM_CUBLAS_SETTINGS_H
#define HGEMM_CUBLAS_SETTINGS_H

#include "hgemm.h"

typedef enum policy_t { POLICY_FASTER, POLICY_EVERYWHERE, POLICY_NOWHERE } policy_t;

typedef struct settings_t {
    policy_t policy;           /* HGEMM_CUBLAS */
    int takes_floats;          /* HGEMM_CUBLAS_F32: "on" or an accuracy, or "off" and any other word */
    int honours_permission;    /* it is "on": the program's leave to be less exact is used */
    hgemm_accuracy_t accuracy; /* what it says may suffice anyhow */
    int has_tuning;            /* HGEMM_TUNING: hgemm's own setting, a file that may compare it with cuBLAS */
    const char *unknown,
        *unknown_floats; /* values of the first two that are none of their words; NULL: there is none */
    const char *log;     /* HGEMM_CUBLAS_LOG: "1" for stderr, or a file; NULL: none */
    const char *summary; /* HGEMM_CUBLAS_SUMMARY: the same, at exit */
    const char *record;  /* HGEMM_CUBLAS_RECORD: a file */
} settings_t;

const settings_t *settings(void);

/* NULL where the policy has hgemm run products on a GPU of this capability (75 is 7.5), or some of them, else why not.
 */
const char *settings_refuse(int capability);

/* With the policy "faster" and a tuning file: NULL where hgemm may run a product for which the file has that ratio
 * (hgemm_get_cublas_ratio), else why not. */
const char *settings_refuse_ratio(int capability, double ratio);

#endif
