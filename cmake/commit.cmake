# SPDX-License-Identifier: MIT
# Writes commit.h with the commit that is being built, "unknown" outside a repository:
#   cmake -D SOURCE=... -D OUTPUT=... -D NVCC_VERSION=... -P commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
    set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define HGEMM_COMMIT \"${commit}\"\n#define HGEMM_NVCC_VERSION \"${NVCC_VERSION}\"\n")
