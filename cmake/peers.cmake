# SPDX-License-Identifier: MIT
#
# libhgemm_peers.so, which bench_hgemm opens to measure CUTLASS beside our kernels, and libhgemm_peers_t4emu.so,
# by which it runs them on the emulated T4: made by -DHGEMM_PEERS=ON next to bench_hgemm, in about
# a quarter of an hour on two cores. CUTLASS's headers are those in CUTLASS_INCLUDE_DIR, else they are fetched into the build folder from the Python package
# index. HGEMM_PEERS_CODE says which GPUs get code, see bench/peers_cutlass.h.

hgemm_find_nvcc()
set(HGEMM_PEERS_CODE "-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_75,code=[sm_75,compute_75]" CACHE STRING
    "nvcc flags: code that libhgemm_peers.so holds")
set(HGEMM_CUTLASS_VERSION 4.2.0.0 CACHE STRING "Release of the package nvidia-cutlass")

set(fetched ${CMAKE_CURRENT_BINARY_DIR}/cutlass/${HGEMM_CUTLASS_VERSION})
set(fetched_include ${fetched}/cutlass_library/source/include)
if(NOT CUTLASS_INCLUDE_DIR AND NOT EXISTS ${fetched_include}/cutlass/cutlass.h)
    message(STATUS "fetching nvidia-cutlass ${HGEMM_CUTLASS_VERSION}")
    file(MAKE_DIRECTORY ${fetched})
    execute_process(
        COMMAND python3 -m pip download -q --no-deps --only-binary :all: -d ${fetched} nvidia-cutlass==${HGEMM_CUTLASS_VERSION}
        RESULT_VARIABLE failed)
    file(GLOB wheel ${fetched}/*.whl)
    if(NOT failed AND wheel)
        execute_process(COMMAND ${CMAKE_COMMAND} -E tar xf ${wheel} WORKING_DIRECTORY ${fetched})
    endif()
endif()
find_path(CUTLASS_INCLUDE_DIR cutlass/gemm/kernel/default_gemm_universal.h HINTS ${fetched_include}
    DOC "Folder include/ of CUTLASS")
if(NOT CUTLASS_INCLUDE_DIR)
    message(FATAL_ERROR "CUTLASS was not found and pip could not fetch nvidia-cutlass: set CUTLASS_INCLUDE_DIR")
endif()

set(source ${CMAKE_CURRENT_SOURCE_DIR}/peers_cutlass.cu)
set(flags -std=c++17 -O3 ${HGEMM_PEERS_CODE} -isystem ${CUTLASS_INCLUDE_DIR} -Xcompiler=-fPIC,-fvisibility=hidden)
if(HGEMM_NVCC_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND flags --compress-mode=size)
endif()
set(objects "")
function(hgemm_compile_peers name)
    set(object peers/${name}.o)
    add_custom_command(
        OUTPUT ${object}
        COMMAND ${HGEMM_NVCC} ${flags} ${ARGN} -c ${source} -o ${object}
        WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
        DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/peers_cutlass.h
        COMMENT "Compiling CUTLASS ${name}"
        VERBATIM)
    set(objects ${objects} ${CMAKE_CURRENT_BINARY_DIR}/${object} PARENT_SCOPE)
endfunction()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/peers)
hgemm_compile_peers(interface)
foreach(sums half_t float)
    foreach(a RowMajor ColumnMajor)
        foreach(b RowMajor ColumnMajor)
            foreach(align 8 4 2 1)
                hgemm_compile_peers(${sums}_${a}_${b}_${align}
                    -DPEERS_SUMS=${sums} -DPEERS_A=${a} -DPEERS_B=${b} -DPEERS_ALIGN=${align})
            endforeach()
            if(sums STREQUAL float)
                hgemm_compile_peers(simt_${a}_${b} -DPEERS_SIMT -DPEERS_SUMS=float -DPEERS_A=${a} -DPEERS_B=${b} -DPEERS_ALIGN=1)
            endif()
        endforeach()
    endforeach()
endforeach()

# It travels alone: neither CUDA's runtime nor C++'s is needed where it is opened.
set(HGEMM_PEERS_LIBRARY ${CMAKE_CURRENT_BINARY_DIR}/libhgemm_peers.so)
add_custom_command(
    OUTPUT ${HGEMM_PEERS_LIBRARY}
    COMMAND ${HGEMM_NVCC} -shared -cudart static -Xcompiler=-static-libstdc++,-static-libgcc
        -Xlinker=-s,--exclude-libs,ALL,--no-undefined -o ${HGEMM_PEERS_LIBRARY} ${objects}
    DEPENDS ${objects}
    COMMENT "Linking libhgemm_peers.so"
    VERBATIM)
set(peers ${HGEMM_PEERS_LIBRARY})

# The same objects on the CUDA runtime that is the emulated T4 (src/face).
string(REGEX MATCH "^[0-9]+" major "${HGEMM_NVCC_VERSION}")
if(TARGET face_runtime_${major})
    set(library ${CMAKE_CURRENT_BINARY_DIR}/libhgemm_peers_t4emu.so)
    add_custom_command(
        OUTPUT ${library}
        COMMAND ${HGEMM_NVCC} -shared -cudart none
            -Xcompiler=-static-libstdc++,-static-libgcc -Xlinker=-s,--exclude-libs,libstdc++.a,--no-undefined
            -Xlinker=-rpath,$<TARGET_FILE_DIR:face_runtime_${major}>,$<TARGET_FILE:face_runtime_${major}>
            -o ${library} ${objects}
        DEPENDS ${objects} face_runtime_${major}
        COMMENT "Linking libhgemm_peers_t4emu.so"
        VERBATIM)
    list(APPEND peers ${library})
endif()
add_custom_target(peers ALL DEPENDS ${peers})
