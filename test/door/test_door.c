/* SPDX-License-Identifier: MIT */
/*
 * The cuBLAS door between a program, which is this test, a fake cuBLAS and hgemm.
 *
 *     test_door LIBRARIES mapping    random calls become the descriptors that mean the same
 *     test_door LIBRARIES emulated   random calls give the right results on the emulated T4
 *     test_door LIBRARIES declined   what hgemm does not run reaches the real library as it came
 *     test_door LIBRARIES streams    handles, streams, captures, contexts, threads
 *     test_door LIBRARIES policy CAPABILITY RATIO hit|miss   what becomes of two products on such a GPU, for which a
 *                                    tuning file has that ratio
 *     test_door LIBRARIES floats CAPABILITY RATIO EXACT TF32 HALVES   the same of floats; each a hit, a miss, or by the
 *                                    cost model: those that are to be exact, or may be rounded to TF32, or to halves
 *     test_door LIBRARIES log        some products, for a log
 *     test_door LIBRARIES log_floats    others, of floats
 *     test_door LIBRARIES cost       what the door costs the host
 *     test_door LIBRARIES old        a release of cuBLAS that lacks a function
 *     test_door LIBRARIES child      a child that multiplies and one that does not, for a summary
 *     test_door LIBRARIES forks      children of a process whose threads multiply
 *
 * LIBRARIES are the paths of a driver, a cuBLAS and a cuBLASLt, separated by commas.
 */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "groups.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    open_libraries(argv[1]);
    rng.state = test_seed();
    driver->capability = 75;
    const char *group = argv[2];
    if (strcmp(group, "mapping") == 0)
        return test_mapping();
    if (strcmp(group, "emulated") == 0)
        return test_emulated();
    if (strcmp(group, "declined") == 0)
        return test_declined();
    if (strcmp(group, "streams") == 0)
        return test_streams();
    if (strcmp(group, "log") == 0)
        return test_log();
    if (strcmp(group, "log_floats") == 0)
        return test_log_of_floats();
    if (strcmp(group, "cost") == 0)
        return test_cost();
    if (strcmp(group, "old") == 0)
        return test_old();
    if (strcmp(group, "child") == 0)
        return test_child();
    if (strcmp(group, "forks") == 0)
        return test_forks();
    const int is_of_floats = strcmp(group, "floats") == 0;
    if (argc != (is_of_floats ? 8 : 6) || (!is_of_floats && strcmp(group, "policy") != 0))
        return 2;
    driver->capability = atoi(argv[3]);
    cublas_ratio = atof(argv[4]);
    return is_of_floats ? test_floats((const char *const[]){argv[5], argv[6], argv[7]}) : test_policy(argv[5]);
}
