# SPDX-License-Identifier: MIT
#
# No files of a program stand in a circle: none of the OBJECTS needs itself by way of others. What an object defines and needs,
# NM says, so a header that declares what several files define hides nothing. A weak symbol is at home where a strong one is.

cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/circle.cmake)

string(REPLACE "," ";" objects "${OBJECTS}")
list(LENGTH objects count)
if(count LESS 2)
    message(FATAL_ERROR "OBJECTS names ${count} files")
endif()
foreach(object IN LISTS objects)
    execute_process(COMMAND ${NM} -g -P ${object} OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" lines "${lines}")
    foreach(line IN LISTS lines)
        if(line MATCHES "^([^ ]+) U")
            list(APPEND needs_${object} ${CMAKE_MATCH_1})
        elseif(line MATCHES "^([^ ]+) ([A-Z])" AND NOT (CMAKE_MATCH_2 MATCHES "[WV]" AND DEFINED home_${CMAKE_MATCH_1}))
            set(home_${CMAKE_MATCH_1} ${object})
        endif()
    endforeach()
endforeach()
foreach(object IN LISTS objects)
    foreach(symbol IN LISTS needs_${object})
        if(DEFINED home_${symbol} AND NOT home_${symbol} STREQUAL object)
            list(APPEND arrows_${object} ${home_${symbol}})
        endif()
    endforeach()
endforeach()

left_in_circle(left ${objects})
if(left)
    list(TRANSFORM left REPLACE "^.*/" "")
    list(JOIN left " " left)
    message(FATAL_ERROR "a circle goes through some of: ${left}")
endif()
