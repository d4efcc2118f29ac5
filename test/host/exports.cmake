# SPDX-License-Identifier: MIT
#
# The libraries SHARED and STATIC export every function of the public header and nothing else, but for the images that SHARED has
# for the commands of its own release; SHARED's names have a version, the interface's and a private one. They call nothing that exits, aborts or prints, but for write: to what HGEMM_LOG and HGEMM_RECORD name (src/api/record.c alone).

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../../include/hgemm.h lines REGEX "^HGEMM_API")
set(declared "")
foreach(line IN LISTS lines)
    string(REGEX MATCH "(hgemm_[a-z0-9_]+)\\(" unused "${line}")
    list(APPEND declared ${CMAKE_MATCH_1})
endforeach()
list(SORT declared)

function(check library option private)
    execute_process(COMMAND ${NM} ${option} --defined-only ${library} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${NM} cannot read ${library}")
    endif()
    string(REGEX MATCHALL " [A-Za-z] [^ \n]+" exported "${symbols}")
    list(TRANSFORM exported REPLACE "^ . " "")
    list(FILTER exported EXCLUDE REGEX "^HGEMM_(PRIVATE_)?[0-9.]+(@@.*)?$") # the versions themselves; llvm-nm gives them one
    set(others ${exported})
    list(FILTER exported INCLUDE REGEX "@@HGEMM_[0-9.]+$")
    list(FILTER others EXCLUDE REGEX "@@HGEMM_[0-9.]+$")
    if(NOT private) # nothing has a version
        set(exported ${others})
        set(others "")
    endif()
    list(TRANSFORM exported REPLACE "@@.*" "")
    list(SORT exported)
    list(SORT others)
    if(NOT declared OR NOT exported STREQUAL declared OR NOT "${others}" MATCHES "^${private}$")
        message(FATAL_ERROR "${library}\nexports: ${exported}\ndeclared: ${declared}\nbesides: ${others}")
    endif()
    execute_process(COMMAND ${NM} ${option} -u ${library} OUTPUT_VARIABLE symbols)
    set(forbidden "abort|_*exit|quick_exit|__assert_fail|v?f?printf|__v?f?printf_chk|f?puts|putchar|f?putc|fwrite|perror|stdout|stderr")
    if(NOT symbols MATCHES " U malloc" OR symbols MATCHES " U (${forbidden})[@\n]")
        message(FATAL_ERROR "${library} must not need ${CMAKE_MATCH_1}")
    endif()
endfunction()
check(${SHARED} -D "hgemm_image_count@@HGEMM_PRIVATE_[0-9.]+;hgemm_images@@HGEMM_PRIVATE_[0-9.]+")
check(${STATIC} -g "")
