# SPDX-License-Identifier: MIT
#
# What products of floats add to the library: at most MOST images (IMAGES of them are given, with commas), and at most 3 MB as they
# are packed in the folder PACKS.

cmake_minimum_required(VERSION 3.22)

string(REPLACE "," ";" images "${IMAGES}")
list(LENGTH images count)
set(bytes 0)
set(packs "")
foreach(image IN LISTS images)
    string(REGEX REPLACE "_[nt][nt]_.*$" "" pack ${image})
    list(APPEND packs ${pack})
endforeach()
list(REMOVE_DUPLICATES packs)
foreach(pack IN LISTS packs)
    file(SIZE ${PACKS}/${pack}.zst size)
    math(EXPR bytes "${bytes} + ${size}")
endforeach()
message(STATUS "${count} images for floats, ${bytes} bytes packed")
if(count LESS 9 OR count GREATER MOST OR bytes LESS 100000 OR bytes GREATER 3000000)
    message(FATAL_ERROR "at most ${MOST} images and 3000000 bytes are allowed")
endif()
