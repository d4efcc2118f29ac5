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

# turing_cubin(<out> <name> <options>...): the path of turing/<name>.cu, compiled beside the library's images, where other builds
# (HGEMM_IMAGE_DIR) find it too. Those take it if it is of their own source, else compile it themselves; empty: nor is there nvcc.
function(turing_cubin out name)
    set(cubin ${image_dir}/${name}.cubin)
    hgemm_recipe(recipe "${HGEMM_NVCC_VERSION}" OFF "" -std=c++17 ${ARGN})
    hgemm_hash_sources(sources ${CMAKE_CURRENT_SOURCE_DIR} turing/${name}.cu turing/${name}.h)
    set(files ${sources})
    list(TRANSFORM files REPLACE "^[^ ]+ " "${CMAKE_CURRENT_SOURCE_DIR}/")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    if(HGEMM_IMAGE_DIR)
        hgemm_changed_input(why ${image_dir}/${name}.inputs "${recipe}" "${sources}")
        if(NOT why AND EXISTS ${cubin})
            set(${out} ${cubin} PARENT_SCOPE)
            return()
        endif()
        find_program(HGEMM_NVCC nvcc HINTS ${HGEMM_CUDA_INCLUDE}/../bin)
        if(NOT HGEMM_NVCC)
            message(STATUS "no nvcc, and ${cubin} ${why}: without the tests that run it")
            set(${out} "" PARENT_SCOPE)
            return()
        endif()
        set(cubin ${CMAKE_CURRENT_BINARY_DIR}/${name}.cubin)
    endif()
    list(JOIN recipe "\n" recipe)
    list(JOIN sources "\n" lines)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.inputs CONTENT "${recipe}\n${lines}\n" @ONLY)
    string(REGEX REPLACE "cubin$" "inputs" inputs ${cubin})
    add_custom_command(
        OUTPUT ${cubin}
        COMMAND ${HGEMM_NVCC} -arch=sm_75 -cubin -std=c++17 ${ARGN} -o ${cubin} ${CMAKE_CURRENT_SOURCE_DIR}/turing/${name}.cu
        COMMAND ${CMAKE_COMMAND} -E copy_if_different ${CMAKE_CURRENT_BINARY_DIR}/${name}.inputs ${inputs}
        DEPENDS ${files}
        COMMENT "Compiling ${name} for the emulator's tests"
        VERBATIM)
    add_custom_target(${name} ALL DEPENDS ${cubin})
    set(${out} ${cubin} PARENT_SCOPE)
endfunction()

turing_cubin(cubin turing_kernels -lineinfo -fmad=false -O2)
if(cubin)
    set(has_cubin ON)
    foreach(name exec check fuzz)
        turing_test(turing_${name}_test)
        hgemm_add_test(turing_${name} turing_${name}_test ${cubin})
    endforeach()
else()
    set(has_cubin OFF)
endif()

# Kernels of the kinds that people write; some with functions in sections of their own.
turing_cubin(people turing_people -lineinfo -O2 -Xptxas -w -diag-suppress 177)
turing_cubin(apart turing_apart -G)
if(people AND apart)
    set_tests_properties(install PROPERTIES ENVIRONMENT PEOPLE=${people})
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
