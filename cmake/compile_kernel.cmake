# SPDX-License-Identifier: MIT
#
# Compiles one kernel variant to <SYMBOL>.fatbin, in the current directory, and refuses it when a
# register is spilled. Run by the build for every variant:
#
#   cmake -D NVCC=... -D SOURCE=... -D SYMBOL=... -D TARGET=... -D FLAGS=... -P compile_kernel.cmake
#
# TARGET is what the depfile calls the fatbin. <SYMBOL>.usage gets one line, "registers shared":
# registers of a thread and bytes of static shared memory of a block, as ptxas reports them for sm_75.

execute_process(
    COMMAND ${NVCC} ${FLAGS} -Xptxas -v -MMD -MF ${SYMBOL}.d -MT ${TARGET} -o ${SYMBOL}.fatbin ${SOURCE}
    OUTPUT_VARIABLE log ERROR_VARIABLE log RESULT_VARIABLE failed)
function(refuse why)
    file(REMOVE ${SYMBOL}.fatbin)
    message("${log}")
    message(FATAL_ERROR "kernel ${SYMBOL}: ${why}")
endfunction()

if(failed)
    refuse("nvcc failed")
endif()

# Device functions that were not inlined have properties of their own: none may touch the stack.
string(REGEX MATCHALL "[0-9]+ bytes (stack frame|spill stores|spill loads)" stack "${log}")
string(REGEX MATCHALL "for 'sm_[0-9a-z]+'" targets "${log}")
string(REGEX MATCHALL "Compiling entry function '[^']+'" entries "${log}")
if(NOT entries STREQUAL "Compiling entry function '${SYMBOL}'" OR NOT targets STREQUAL "for 'sm_75'")
    refuse("the image must hold this one entry point, for sm_75")
endif()
if(NOT stack)
    refuse("ptxas did not report its use of the stack")
endif()
foreach(use IN LISTS stack)
    if(NOT use MATCHES "^0 ")
        refuse("uses the stack: ${use}")
    endif()
endforeach()

if(NOT log MATCHES "Used ([0-9]+) registers")
    refuse("ptxas did not report its registers")
endif()
set(registers ${CMAKE_MATCH_1})
set(shared 0)
if(log MATCHES "([0-9]+) bytes smem")
    set(shared ${CMAKE_MATCH_1})
endif()
file(WRITE ${SYMBOL}.usage "${registers} ${shared}\n")

# What ptxas reports is recorded; what nvcc warns about is shown.
string(REGEX REPLACE "ptxas info[^\n]*\n|    [0-9]+ bytes stack frame[^\n]*\n" "" log "${log}")
string(STRIP "${log}" log)
if(log)
    message("${SYMBOL}:\n${log}")
endif()
