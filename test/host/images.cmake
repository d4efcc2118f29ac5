# SPDX-License-Identifier: MIT
#
# What products of a kind add to the library: at most MOST images (IMAGES of them are given, with commas), and at most BYTES as they
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
message(STATUS "${count} images, ${bytes} bytes packed")
if(count LESS 9 OR count GREATER MOST OR bytes LESS 100000 OR bytes GREATER BYTES)
    message(FATAL_ERROR "at most ${MOST} images and ${BYTES} bytes are allowed")
endif()
