# SPDX-License-Identifier: MIT
#
# The cuBLAS door, before a fake cuBLAS and a fake driver. No test here needs a GPU or CUDA.

set(fakes "")
foreach(fake driver cublas cublaslt)
    add_library(fake_door_${fake} SHARED fake_cublas/${fake}.c)
    target_compile_options(fake_door_${fake} PRIVATE ${warnings})
    set_target_properties(fake_door_${fake} PROPERTIES C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_cublas)
    list(APPEND fakes $<TARGET_FILE:fake_door_${fake}>)
endforeach()
set_target_properties(fake_door_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
set_target_properties(fake_door_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 13)
set_target_properties(fake_door_cublaslt PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13)
list(JOIN fakes "," fakes)

# The door's objects in one program with a test that stands behind them, in hgemm's place.
hgemm_test_program(test_door test_door.c util.c $<TARGET_OBJECTS:cublas_door>)
target_link_libraries(test_door PRIVATE m)
set(wrapped "")
foreach(function create destroy set_stream set_workspace prepare run_desc error_detail)
    list(APPEND wrapped -Wl,--wrap=hgemm_${function})
endforeach()
target_link_options(test_door PRIVATE ${wrapped})

function(hgemm_door_test name libraries environment)
    add_test(NAME door_${name} COMMAND ${CMAKE_COMMAND} -E env ${environment} $<TARGET_FILE:test_door> ${libraries} ${ARGN})
endfunction()
hgemm_door_test(mapping ${fakes} "" mapping)
hgemm_door_test(calls ${fakes} "" calls)
hgemm_door_test(cost ${fakes} "" cost)
if(HGEMM_EMULATOR)
    hgemm_door_test(emulated ${fakes} "" emulated)
endif()
foreach(case unset:75:hit unset:80:miss faster:75:hit faster:90:miss everywhere:75:hit everywhere:90:hit nowhere:75:miss
        nowhere:90:miss nonsense:75:miss)
    string(REPLACE ":" ";" case ${case})
    list(GET case 0 policy)
    list(GET case 1 capability)
    list(GET case 2 expected)
    if(policy STREQUAL "unset")
        set(environment --unset=HGEMM_CUBLAS)
    else()
        set(environment HGEMM_CUBLAS=${policy})
    endif()
    hgemm_door_test(policy_${policy}_${capability} ${fakes} ${environment} policy ${capability} ${expected})
endforeach()
