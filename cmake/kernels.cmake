# SPDX-License-Identifier: MIT
#
# From rows of src/kernels.def to embedded machine code.
#
#   hgemm_find_nvcc()                       sets HGEMM_NVCC and HGEMM_FATBINARY, or stops and says what to do
#   hgemm_read_table(<out>)                 the table's variants: their symbols; <symbol>_SOURCE, <symbol>_T4,
#                                           <symbol>_DEFINES, and <out>_KERNELS, the rows' names
#   hgemm_compile_variant(<dir> <symbol> <source> <t4> <defines>...)
#   hgemm_embed(<output.c> <array> <count> <dir> <symbols>...)

function(hgemm_find_nvcc)
    find_program(HGEMM_NVCC nvcc # as tools/setup.sh looks for it: PATH comes before PATHS
        PATHS ENV CUDA_HOME ENV CUDA_PATH ${PROJECT_SOURCE_DIR}/.toolchain/nvidia/cu13/bin /usr/local/cuda /opt/cuda
        PATH_SUFFIXES bin
        DOC "CUDA compiler, used for ptx/*.cu only")
    if(NOT HGEMM_NVCC)
        message(FATAL_ERROR "nvcc was not found. Install the CUDA toolkit's compiler (13.0 is what is tested) and put it "
            "on PATH, set CUDA_HOME, or run tools/setup.sh, which fetches it into .toolchain/.")
    endif()
    get_filename_component(nvcc ${HGEMM_NVCC} REALPATH)
    get_filename_component(bin ${nvcc} DIRECTORY)
    find_program(HGEMM_FATBINARY fatbinary HINTS ${bin} REQUIRED DOC "The CUDA compiler's, beside nvcc")
    execute_process(COMMAND ${HGEMM_NVCC} --version OUTPUT_VARIABLE text RESULT_VARIABLE failed)
    if(failed OR NOT text MATCHES "V([0-9.]+)")
        message(FATAL_ERROR "${HGEMM_NVCC} --version failed")
    endif()
    set(HGEMM_NVCC_VERSION ${CMAKE_MATCH_1} CACHE INTERNAL "")
    message(STATUS "nvcc ${HGEMM_NVCC_VERSION}: ${HGEMM_NVCC}")
endfunction()

# A row becomes one variant for each transpose and access. `out` gets the symbols, sorted;
# <symbol>_SOURCE and <symbol>_DEFINES describe each one, <symbol>_T4 is true where a T4 has a row of its own.
function(hgemm_read_table out)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels.def)
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/kernels.def rows REGEX "^HGEMM_KERNEL\\(")
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/kernels.def t4_rows REGEX "^HGEMM_ON_T4\\(")
    list(TRANSFORM t4_rows REPLACE "^HGEMM_ON_T4\\(([a-z0-9_]+),.*" "\\1")
    set(w "[ ]*([a-z0-9_]+)[ ]*")
    set(symbols "")
    set(kernels "")
    foreach(row IN LISTS rows)
        #                           rung  name BM  BN  BK  WM  WN  WK  st  acc  ops  align
        if(NOT row MATCHES "\\(${w},${w},[^,]+,[^,]+,[^,]+,[^,]+,[^,]+,[^,]+,[^,]+,[^,]+,${w},${w},")
            message(FATAL_ERROR "src/kernels.def: cannot read the row\n  ${row}")
        endif()
        set(rung ${CMAKE_MATCH_1})
        set(name ${CMAKE_MATCH_2})
        set(ops ${CMAKE_MATCH_3})
        set(align ${CMAKE_MATCH_4})
        if(NOT ops MATCHES "^(nn|all)$" OR NOT align MATCHES "^(x16|x8|any|far)$")
            message(FATAL_ERROR "src/kernels.def: ${name}: ops is nn or all, align is x16, x8, any or far, not ${ops} and ${align}")
        endif()
        if(ops STREQUAL "all")
            set(ops nn nt tn tt)
        endif()
        set(source ${PROJECT_SOURCE_DIR}/ptx/${rung}.cu)
        list(APPEND kernels ${name})
        set(on_t4 OFF)
        if(name IN_LIST t4_rows)
            set(on_t4 ON)
        endif()
        foreach(op IN LISTS ops)
            string(REGEX MATCH "^t" op_a "${op}")
            string(REGEX MATCH "t$" op_b "${op}")
            foreach(access x16 x8 any far)
                set(symbol ${name}_${op})
                if(NOT access STREQUAL "x16")
                    string(APPEND symbol _${access})
                endif()
                string(TOUPPER ${access} upper)
                list(APPEND symbols ${symbol})
                set(${symbol}_SOURCE ${source} PARENT_SCOPE)
                set(${symbol}_T4 ${on_t4} PARENT_SCOPE)
                set(${symbol}_DEFINES -DHGEMM_VARIANT=${symbol} -DHGEMM_ROW=${name} -DHGEMM_ACCESS=${upper}
                    -DHGEMM_OP_A=$<BOOL:${op_a}> -DHGEMM_OP_B=$<BOOL:${op_b}> PARENT_SCOPE)
                if(access STREQUAL align)
                    break()
                endif()
            endforeach()
        endforeach()
    endforeach()
    list(SORT symbols)
    set(${out} ${symbols} PARENT_SCOPE)
    set(${out}_KERNELS ${kernels} PARENT_SCOPE)
endfunction()

# One command per image: the fatbin holds sm_75 machine code for the T4 and compute_75 PTX, which
# the driver translates on newer GPUs; `t4` is true where the source makes the machine code by itself. `dir`
# lies below the current binary directory.
function(hgemm_compile_variant dir symbol source t4)
    file(RELATIVE_PATH target ${CMAKE_CURRENT_BINARY_DIR} ${dir}/${symbol}.fatbin)
    set(flags -std=c++17 -O3 -I${PROJECT_SOURCE_DIR}/src ${HGEMM_NVCC_FLAGS} ${ARGN})
    set(pack "")
    if(HGEMM_NVCC_VERSION VERSION_GREATER_EQUAL 12.8)
        set(pack --compress-mode=size) # a third of the bytes; drivers unpack it when they load
    endif()
    add_custom_command(
        OUTPUT ${dir}/${symbol}.fatbin ${dir}/${symbol}.usage
        COMMAND ${CMAKE_COMMAND} -D NVCC=${HGEMM_NVCC} -D FATBINARY=${HGEMM_FATBINARY} -D SOURCE=${source}
            -D SYMBOL=${symbol} -D TARGET=${target} -D "FLAGS=${flags}" -D T4=${t4} -D PACK=${pack} -P ${PROJECT_SOURCE_DIR}/cmake/compile_kernel.cmake
        WORKING_DIRECTORY ${dir}
        DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/compile_kernel.cmake
        DEPFILE ${dir}/${symbol}.d
        COMMENT "Compiling kernel ${symbol}"
        VERBATIM)
endfunction()

function(hgemm_embed output array count dir)
    string(REPLACE ";" "\n" lines "${ARGN}")
    file(GENERATE OUTPUT ${output}.list CONTENT "${lines}\n")
    set(inputs ${ARGN})
    list(TRANSFORM inputs REPLACE "(.+)" "${dir}/\\1.fatbin;${dir}/\\1.usage")
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D ARRAY=${array} -D COUNT=${count} -D LIST=${output}.list -D DIR=${dir}
            -D OUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/embed_images.cmake
        DEPENDS ${inputs} ${output}.list ${PROJECT_SOURCE_DIR}/cmake/embed_images.cmake
        COMMENT "Embedding ${array}"
        VERBATIM)
endfunction()
