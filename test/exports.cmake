# SPDX-License-Identifier: MIT
#
# The shared library LIBRARY exports every function of the public header and nothing else.

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "${NM} cannot read ${LIBRARY}")
endif()
string(REGEX MATCHALL "[^ \n]+\n" exported "${symbols}")
list(TRANSFORM exported STRIP)

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/hgemm.h lines REGEX "^HGEMM_API")
set(declared "")
foreach(line IN LISTS lines)
    string(REGEX MATCH "(hgemm_[a-z_]+)\\(" unused "${line}")
    list(APPEND declared ${CMAKE_MATCH_1})
endforeach()
list(SORT exported)
list(SORT declared)
if(NOT declared OR NOT exported STREQUAL declared)
    message(FATAL_ERROR "exported: ${exported}\ndeclared: ${declared}")
endif()
