# SPDX-License-Identifier: MIT
#
# Arrows go one way: no file of a room in SOURCE/src includes a header of a higher room, and within the library's own rooms
# no module needs itself by way of others. (A module is a .c file and its header.) The emulator knows nothing of the
# library, its face the emulator alone, and the cuBLAS door the public header and how files are written. Nor does code that
# chooses and launches name a kernel of the table.

cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/circle.cmake)

set(rank_api 4)
set(rank_select 3)
set(rank_problem 2) # these two may include each other
set(rank_table 2)
set(rank_device 1)
set(rank_turing 0)
set(rank_files 0) # for all but the emulator

# The quoted includes of a file.
function(includes_of out file)
    file(STRINGS ${file} lines REGEX "^#include \"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]*)\".*" "\\1")
    set(${out} ${lines} PARENT_SCOPE)
endfunction()

set(faults "")
set(modules "")
foreach(room api select problem table device files turing face cublas)
    file(GLOB files RELATIVE ${SOURCE}/src ${SOURCE}/src/${room}/*.c ${SOURCE}/src/${room}/*.h ${SOURCE}/src/${room}/*.def)
    if(NOT files)
        message(FATAL_ERROR "${SOURCE}/src has no room ${room}")
    endif()
    foreach(file IN LISTS files)
        string(REGEX REPLACE "\\.[a-z]+$" "" module ${file})
        if(room MATCHES "^(api|select|problem)$") # what a kernel is, its row's columns say
            file(STRINGS ${SOURCE}/src/${file} named REGEX "KERNEL_[a-z]")
            if(named)
                list(APPEND faults "src/${file} names a kernel: ${named}")
            endif()
        endif()
        if(room STREQUAL "face") # what else a CUDA toolkit has, tools/setup.sh does not fetch
            file(STRINGS ${SOURCE}/src/${file} vendors REGEX "^#include <cu")
            list(FILTER vendors EXCLUDE REGEX "<(cuda|cuda_runtime_api)\\.h>")
            if(vendors)
                list(APPEND faults "src/${file}: ${vendors}")
            endif()
        endif()
        includes_of(headers ${SOURCE}/src/${file})
        foreach(header IN LISTS headers)
            if(NOT header MATCHES "^([a-z]+)/(.*)\\.[a-z]+$" OR NOT EXISTS ${SOURCE}/src/${header})
                if(NOT header STREQUAL "hgemm.h" AND NOT EXISTS ${SOURCE}/src/${room}/${header})
                    list(APPEND faults "src/${file} includes ${header}, which is in no room")
                elseif(header STREQUAL "hgemm.h" AND room STREQUAL "turing")
                    list(APPEND faults "src/${file} includes ${header}")
                endif()
                continue()
            endif()
            set(other ${CMAKE_MATCH_1})
            string(REGEX REPLACE "\\.[a-z]+$" "" needed ${header})
            if(NOT other STREQUAL room AND ((room STREQUAL "turing" OR (room STREQUAL "cublas" AND NOT other STREQUAL "files") OR (room STREQUAL "face" AND NOT other STREQUAL "turing")) OR rank_${other} GREATER rank_${room}))
                list(APPEND faults "src/${file} includes ${header}")
            endif()
            if(room MATCHES "^(api|select|problem|table)$" AND NOT needed STREQUAL module)
                list(APPEND modules ${module})
                list(APPEND arrows_${module} ${needed})
            endif()
        endforeach()
    endforeach()
endforeach()

left_in_circle(left ${modules})
if(left)
    list(APPEND faults "a circle goes through some of: ${left}")
endif()
if(faults)
    list(JOIN faults "\n  " faults)
    message(FATAL_ERROR "what a room must not know:\n  ${faults}")
endif()
