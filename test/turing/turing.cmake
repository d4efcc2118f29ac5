# SPDX-License-Identifier: MIT
#
# The emulator's own tests.

include(turing/turing_exec.cmake)

# Decoding, against the vendor's text; loading, of what is whole and of what is damaged.
turing_test(turing_decode_test)
hgemm_add_test(turing_decode turing_decode_test
    ${recorded}/sass_pairs.txt ${recorded}/sass_variants.txt)
turing_test(turing_load_test)
turing_test(turing_cubin_test)
target_link_libraries(turing_cubin_test PRIVATE zstd)
set(load_images "")
foreach(symbol k1_tiled_nn k5_64x64_tt_any)
    if(symbol IN_LIST symbols)
        list(APPEND load_images ${image_dir}/${symbol}.fatbin)
    endif()
endforeach()
if(load_images AND has_cubin)
    hgemm_add_test(turing_load turing_load_test ${load_images} ${cubin})
    hgemm_add_test(turing_cubin turing_cubin_test ${cubin})
endif()

# Where the vendor's tool is present: the same text for every instruction of every kernel.
set(fatbins ${symbols})
list(TRANSFORM fatbins REPLACE "(.+)" "${image_dir}/\\1.fatbin")
hgemm_add_test(turing_vendor ${CMAKE_CURRENT_SOURCE_DIR}/turing/turing_vendor.sh $<TARGET_FILE:turing_tool> ${fatbins})

# What a table's words are to ptxas.
set(by_tables ${fatbins})
list(FILTER by_tables INCLUDE REGEX "/weights_table_(32x128_nt_packed(_bf16)?|(teams_)?64x128_nt_packed)\\.fatbin$")
if(by_tables)
    hgemm_add_test(turing_uniform_moves ${CMAKE_CURRENT_SOURCE_DIR}/turing/uniform_moves.sh $<TARGET_FILE:turing_tool>
        ${HGEMM_NVCC_VERSION} ${by_tables})
endif()

# No result of fixed latency is read too soon in ptxas's own code.
turing_test(turing_latency_test)
set(some ${fatbins})
list(FILTER some INCLUDE REGEX "_n[nt](_packed)?\\.fatbin$")
if(some)
    hgemm_add_test(turing_latency turing_latency_test ${some})
endif()

# Random kernels, compiled by nvcc and by gcc: the emulator's results are the host's own. Fresh ones each time; what is wrong
# names its seed.
add_executable(turing_random turing/random/turing_random.c)
target_compile_options(turing_random PRIVATE ${warnings} -ffp-contract=off)
target_include_directories(turing_random PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(turing_random PRIVATE turing m ${CMAKE_DL_LIBS})
if(NOT HGEMM_NVCC)
    find_program(HGEMM_NVCC nvcc HINTS /usr/local/cuda/bin)
endif()
if(Python3_FOUND AND HGEMM_NVCC AND NOT HGEMM_SANITIZE)
    add_test(NAME turing_random COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/turing/random/batches.py
        $<TARGET_FILE:turing_random> --nvcc ${HGEMM_NVCC} --kernels 400 --seconds 15 --jobs 1)
    set_tests_properties(turing_random PROPERTIES SKIP_RETURN_CODE 77)
endif()

# Every kernel, to be timed without its results.
turing_test(turing_dry_test)
hgemm_add_test(turing_dry turing_dry_test ${fatbins})
