# SPDX-License-Identifier: MIT
#
# Of two compilers, one on PATH and one that tools/setup.sh fetched, the build takes the one on PATH. Both are made
# below WORK.

foreach(folder path .toolchain/nvidia/cu13/bin)
    foreach(tool nvcc fatbinary)
        file(WRITE ${WORK}/${folder}/${tool} "#!/bin/sh\necho V1.2.3\n")
        file(CHMOD ${WORK}/${folder}/${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    endforeach()
endforeach()
set(PROJECT_SOURCE_DIR ${WORK})
set(ENV{PATH} "${WORK}/path:$ENV{PATH}")
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/kernels.cmake)
hgemm_find_nvcc()
if(NOT HGEMM_NVCC STREQUAL ${WORK}/path/nvcc OR NOT HGEMM_FATBINARY STREQUAL ${WORK}/path/fatbinary)
    message(FATAL_ERROR "took ${HGEMM_NVCC} and ${HGEMM_FATBINARY}")
endif()
