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

# Every kernel, to be timed without its results.
turing_test(turing_dry_test)
hgemm_add_test(turing_dry turing_dry_test ${fatbins})
