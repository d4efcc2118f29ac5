# SPDX-License-Identifier: MIT
#
# The library DOOR exports what src/cublas/abi.h lists as entries, and nothing else; of hgemm it needs nothing that beside.c does not
# have.

file(READ ${CMAKE_CURRENT_LIST_DIR}/../../src/cublas/abi.h text)
string(REGEX MATCHALL "X\\(cublas[A-Za-z_0-9]+, [A-Z_]+, int" listed "${text}")
list(TRANSFORM listed REPLACE "X\\(([^,]+),.*" "\\1")
execute_process(COMMAND ${NM} -D --defined-only ${DOOR} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
string(REGEX MATCHALL " [A-Za-z] [^ \n]+" exported "${symbols}")
list(TRANSFORM exported REPLACE "^ . " "")
list(SORT exported)
list(SORT listed)
list(LENGTH listed count)
if(failed OR NOT count EQUAL 19 OR NOT exported STREQUAL listed)
    message(FATAL_ERROR "${DOOR}\nexports: ${exported}\nlisted: ${listed}")
endif()
execute_process(COMMAND ${NM} -D -u ${DOOR} OUTPUT_VARIABLE symbols)
if(symbols MATCHES "hgemm_[a-z0-9_]+")
    message(FATAL_ERROR "${DOOR} needs ${CMAKE_MATCH_0}: a row of src/cublas/beside.c")
endif()
