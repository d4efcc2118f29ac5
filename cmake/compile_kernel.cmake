# SPDX-License-Identifier: MIT
#
# Compiles one kernel variant to <SYMBOL>.fatbin, in the current directory: machine code for the T4 and PTX
# for newer GPUs. Refuses it when a register is spilled. Run by the build for every variant:
#
#   cmake -D NVCC=... -D FATBINARY=... -D SOURCE=... -D SYMBOL=... -D TARGET=... -D FLAGS=... -D T4=... -D NVCC_VERSION=...
#         -D ROW=... -P compile_kernel.cmake
#
# There it finds the file `sources` (hgemm_read_sources), and leaves <SYMBOL>.inputs (inputs.cmake). Where what these say is what they
# said when the fatbin was made, it stays: a comment that changed, or another kernel's row, compiles nothing.
#
# Where T4 is true, the machine code is compiled by itself, with the macro HGEMM_T4. TARGET is what the depfile
# calls the fatbin, which is not compressed: pack_images.c does that, to many at once. <SYMBOL>.usage gets one line,
# "registers shared": registers of a thread and bytes of static shared memory of a block, as ptxas reports them for sm_75.

include(${CMAKE_CURRENT_LIST_DIR}/inputs.cmake)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
hgemm_recipe(recipe "${NVCC_VERSION}" "${T4}" "${ROW}" ${FLAGS})
set(sources "")
if(EXISTS ${CMAKE_CURRENT_BINARY_DIR}/sources)
    file(STRINGS sources sources)
endif()
set(here ${CMAKE_CURRENT_BINARY_DIR})
if(EXISTS ${here}/${SYMBOL}.fatbin AND EXISTS ${here}/${SYMBOL}.usage)
    hgemm_changed_input(why ${here}/${SYMBOL}.inputs "${recipe}" "${sources}")
    if(NOT why)
        file(STRINGS ${SYMBOL}.inputs files)
        list(SUBLIST files 3 -1 files)
        list(TRANSFORM files REPLACE "^[^ ]+ " "${root}/")
        list(TRANSFORM files REPLACE "([ #])" "\\\\\\1")
        list(JOIN files " " files)
        file(WRITE ${SYMBOL}.d "${TARGET}: ${files}\n") # the build reads it, and keeps none
        file(TOUCH ${SYMBOL}.fatbin ${SYMBOL}.usage ${SYMBOL}.inputs)
        return()
    endif()
endif()
file(REMOVE ${SYMBOL}.inputs)

set(log "")
function(refuse why)
    file(REMOVE ${SYMBOL}.fatbin ${SYMBOL}.cubin ${SYMBOL}.ptx ${SYMBOL}.t4.ptx)
    message("${log}")
    message(FATAL_ERROR "kernel ${SYMBOL}: ${why}")
endfunction()

# run(COMMAND...): adds what it prints to the log, and refuses the variant where it fails.
function(run)
    execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE more ERROR_VARIABLE more RESULT_VARIABLE failed)
    set(log "${log}${more}" PARENT_SCOPE)
    if(failed)
        string(APPEND log "${more}")
        refuse("${ARGV0} failed")
    endif()
endfunction()

set(ptx ${SYMBOL}.ptx)
run(${NVCC} ${FLAGS} -ptx -arch=compute_75 -MMD -MF ${SYMBOL}.d -MT ${TARGET} -o ${ptx} ${SOURCE})
if(T4)
    set(ptx ${SYMBOL}.t4.ptx)
    run(${NVCC} ${FLAGS} -ptx -arch=compute_75 -DHGEMM_T4 -o ${ptx} ${SOURCE})
endif()
run(${NVCC} ${FLAGS} -cubin -arch=sm_75 -Xptxas -v -o ${SYMBOL}.cubin ${ptx})

# Device functions that were not inlined have properties of their own: none may touch the stack, but for what the source
# declares there: then the frame has that many bytes, and nothing is spilled.
file(STRINGS ${ptx} declared REGEX "[.]local [.]align [0-9]+ [.]b8 ")
set(frame 0)
if(declared MATCHES "__local_depot[0-9]+\\[([0-9]+)\\]")
    set(frame ${CMAKE_MATCH_1})
endif()
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
    if(NOT use MATCHES "^0 " AND NOT use STREQUAL "${frame} bytes stack frame")
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

run(${FATBINARY} --create=${SYMBOL}.fatbin -64 --compress=false --image3=kind=elf,sm=75,file=${SYMBOL}.cubin
    --image3=kind=ptx,sm=75,file=${SYMBOL}.ptx)
file(REMOVE ${SYMBOL}.cubin ${SYMBOL}.ptx ${SYMBOL}.t4.ptx)

# What ptxas reports is recorded; what nvcc warns about is shown.
string(REGEX REPLACE "ptxas info[^\n]*\n|    [0-9]+ bytes stack frame[^\n]*\n" "" log "${log}")
string(STRIP "${log}" log)
if(log)
    message("${SYMBOL}:\n${log}")
endif()

# Last, that what was broken off has no record.
file(READ ${SYMBOL}.d made_from)
string(REGEX REPLACE "\\\\\r?\n" " " made_from "${made_from}")
string(REGEX REPLACE "^[^:]*:" "" made_from "${made_from}")
string(REPLACE "\\ " "?" made_from "${made_from}")
string(REGEX MATCHALL "[^ \n]+" made_from "${made_from}")
set(lines "")
foreach(file IN LISTS made_from ITEMS ${CMAKE_CURRENT_LIST_FILE})
    string(REPLACE "?" " " file "${file}")
    get_filename_component(file "${file}" ABSOLUTE)
    file(RELATIVE_PATH name ${root} ${file})
    if(name MATCHES "^[.][.]/|^[.]toolchain/")
        continue()
    endif()
    string(REGEX REPLACE "([].+*?|()[^$])" "\\\\\\1" pattern "${name}")
    set(line ${sources})
    list(FILTER line INCLUDE REGEX "^[^ ]+ ${pattern}$")
    if(NOT line)
        refuse("includes ${name}, whose hash the build does not take (hgemm_read_sources)")
    endif()
    list(APPEND lines ${line})
endforeach()
list(REMOVE_DUPLICATES lines)
list(JOIN recipe "\n" text)
list(JOIN lines "\n" lines)
file(WRITE ${SYMBOL}.inputs "${text}\n${lines}\n")
