# SPDX-License-Identifier: MIT
#
# Tests of the emulator's executor: small kernels compiled here, and the library's own.

function(turing_test name)
    add_executable(${name} turing/${name}.c)
    target_compile_options(${name} PRIVATE ${warnings} -ffp-contract=off)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} PRIVATE turing m)
endfunction()

turing_test(turing_hmma_test)
hgemm_add_test(turing_hmma turing_hmma_test)

# Beside the library's images, where other builds (HGEMM_IMAGE_DIR) find it too.
set(cubin ${image_dir}/turing_kernels.cubin)
if(NOT HGEMM_IMAGE_DIR)
    add_custom_command(
        OUTPUT ${cubin}
        COMMAND ${HGEMM_NVCC} -arch=sm_75 -cubin -lineinfo -fmad=false -O2 -std=c++17
            -o ${cubin} ${CMAKE_CURRENT_SOURCE_DIR}/turing/turing_kernels.cu
        DEPENDS turing/turing_kernels.cu turing/turing_kernels.h
        COMMENT "Compiling the emulator's test kernels"
        VERBATIM)
    add_custom_target(turing_kernels ALL DEPENDS ${cubin})
endif()
if(NOT HGEMM_IMAGE_DIR OR EXISTS ${cubin})
    set(has_cubin ON)
    foreach(name exec check fuzz)
        turing_test(turing_${name}_test)
        hgemm_add_test(turing_${name} turing_${name}_test ${cubin})
    endforeach()
else()
    set(has_cubin OFF)
    message(STATUS "no ${cubin}: without the emulator's tests that run it")
endif()

# Kernels of the kinds that people write; some with functions in sections of their own.
set(people ${image_dir}/turing_people.cubin)
set(apart ${image_dir}/turing_apart.cubin)
if(NOT HGEMM_IMAGE_DIR)
    foreach(name people apart)
        set(options -lineinfo -O2 -Xptxas -w -diag-suppress 177)
        if(name STREQUAL "apart")
            set(options -G)
        endif()
        add_custom_command(
            OUTPUT ${${name}}
            COMMAND ${HGEMM_NVCC} -arch=sm_75 -cubin -std=c++17 ${options}
                -o ${${name}} ${CMAKE_CURRENT_SOURCE_DIR}/turing/turing_${name}.cu
            DEPENDS turing/turing_${name}.cu
            COMMENT "Compiling people's kernels: ${name}"
            VERBATIM)
        add_custom_target(turing_${name} ALL DEPENDS ${${name}})
    endforeach()
endif()
if(NOT HGEMM_IMAGE_DIR OR (EXISTS ${people} AND EXISTS ${apart}))
    turing_test(turing_people_test)
    hgemm_add_test(turing_people turing_people_test ${people})
    add_test(NAME turing_run COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/turing/turing_run.sh $<TARGET_FILE:turing_tool> ${people} ${apart}
        ${CMAKE_CURRENT_BINARY_DIR}/turing_run)
    if(Python3_FOUND)
        add_test(NAME calibrate COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_calibrate.py
            $<TARGET_FILE:turing_tool> ${people})
    endif()
endif()

# What the ladder claims, counted, and seeded faults.
set(ladder "")
set(mutants "")
foreach(symbol k1_tiled_nn k2_swizzled_nn k3_prefetch_nn k4_fastindex_nn k5_64x64_nn k5_128x128_nn)
    if(symbol IN_LIST symbols)
        set(image ${image_dir}/${symbol}.fatbin:${symbol})
        list(APPEND ladder ${image})
        if(NOT symbol MATCHES "k1|k3")
            list(APPEND mutants ${image})
        endif()
    endif()
endforeach()
foreach(tile 256x256 256x128 128x128x64 64x128 256x128_f32 128x128_f32 128x128x64_f32)
    if(k5_${tile}_nn IN_LIST symbols)
        list(APPEND ladder ${image_dir}/k5_${tile}_nn.fatbin:k5_${tile}_nn)
    endif()
endforeach()
if(mutants)
    turing_test(turing_count_test)
    target_link_libraries(turing_count_test PRIVATE hgemm_internals) # the table
    hgemm_add_test(turing_count turing_count_test ${ladder})
    turing_test(turing_mutation_test)
    target_link_libraries(turing_mutation_test PRIVATE hgemm_internals)
    hgemm_add_test(turing_mutation turing_mutation_test ${mutants})
endif()

# Modelled time: small kernels against published figures, and the ladder in order.
if(has_cubin)
    turing_test(turing_time_test)
    target_link_libraries(turing_time_test PRIVATE hgemm_internals)
    hgemm_add_test(turing_time turing_time_test ${cubin} ${ladder})
endif()
