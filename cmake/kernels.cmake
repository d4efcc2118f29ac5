# SPDX-License-Identifier: MIT
#
# From rows of src/table/kernels.def to embedded machine code.
#
#   hgemm_find_nvcc()                       sets HGEMM_NVCC and HGEMM_FATBINARY, or stops and says what to do
#   hgemm_read_table(<out>)                 the table's variants: their symbols, and of each <symbol>_KERNEL,
#                                           <symbol>_PLACE, <symbol>_SOURCE, <symbol>_T4, <symbol>_ROW and <symbol>_DEFINES
#   hgemm_read_sources(<dir>)               what kernels are compiled from, for the next
#   hgemm_image(<dir> <symbol>)             has the variant compiled into `dir`, or stops where HGEMM_IMAGE_DIR has another there
#   hgemm_embed(<output.c> <array> <count> <dir> <symbols>...)

include(${CMAKE_CURRENT_LIST_DIR}/inputs.cmake)

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

# Runs the C preprocessor over a file in this folder that makes JSON of one in src/table.
function(hgemm_preprocess out as_json source)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source} ${as_json})
    execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P -x c ${as_json} OUTPUT_VARIABLE json ERROR_VARIABLE words RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${source} cannot be read:\n${words}")
    endif()
    set(${out} "${json}" PARENT_SCOPE)
endfunction()

# Lists the strings, or with a `key` the strings by that key, in a list of the JSON that ends with null.
function(hgemm_json_list out json list)
    set(found "")
    string(JSON last LENGTH "${json}" ${list})
    math(EXPR last "${last} - 2")
    foreach(i RANGE ${last})
        string(JSON value GET "${json}" ${list} ${i} ${ARGN})
        list(APPEND found ${value})
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# The accesses of a way (ways.def) that a row has: those that the way's column `upto` allows. `limits_<column>`
# are the row's words in such columns, "" where it has no such column.
function(hgemm_accesses_of_way out way)
    set(accesses "")
    if(NOT limits_${${way}_needs} STREQUAL "" AND NOT limits_${${way}_upto} STREQUAL "")
        string(REPLACE "_" ";" accesses ${${way}_accesses})
        foreach(column ${${way}_upto})
            list(FIND every_access ${limits_${column}} most) # not found: one
            set(allowed ${every_access})
            math(EXPR count "${most} + 1")
            if(most LESS 0)
                set(count 1)
            endif()
            list(SUBLIST allowed 0 ${count} allowed)
            list(JOIN allowed "|" allowed)
            list(FILTER accesses INCLUDE REGEX "^(${allowed})$")
        endforeach()
    endif()
    set(${out} ${accesses} PARENT_SCOPE)
endfunction()

# 1 where a condition holds, else 0.
function(hgemm_bit out)
    set(${out} 0 PARENT_SCOPE)
    if(${ARGN})
        set(${out} 1 PARENT_SCOPE)
    endif()
endfunction()

# A row becomes a variant for each transpose, or one for all, and each way and access that it has columns for (ways.def).
# `out` gets the symbols, sorted; <symbol>_SOURCE and <symbol>_DEFINES describe each one, <symbol>_T4 is true where its row has columns
# for a T4, <symbol>_ROW is the row as it is written, <symbol>_KERNEL its name, among whose variants <symbol>_PLACE puts in order: those
# come first that are loaded most often.
function(hgemm_read_table out)
    set(table ${PROJECT_SOURCE_DIR}/src/table/kernels.def)
    hgemm_preprocess(json ${PROJECT_SOURCE_DIR}/cmake/kernels.json.def ${table})
    hgemm_preprocess(ways_json ${PROJECT_SOURCE_DIR}/cmake/ways.json.def ${PROJECT_SOURCE_DIR}/src/table/ways.def)
    hgemm_json_list(every_access "${ways_json}" accesses)
    hgemm_json_list(every_limit "${ways_json}" limits)
    hgemm_json_list(every_way "${ways_json}" ways name)
    foreach(field indirect factors needs upto accesses)
        hgemm_json_list(values "${ways_json}" ways ${field})
        foreach(way value IN ZIP_LISTS every_way values)
            set(${way}_${field} ${value})
        endforeach()
    endforeach()
    list(JOIN every_access "|" any_access)
    string(JSON last ERROR_VARIABLE failed LENGTH "${json}")
    if(json MATCHES "\"name\": \"([a-z0-9_]+)\"[^{}]*[^A-Za-z0-9_]([A-Z][A-Z0-9_]*) ?\\(")
        message(FATAL_ERROR "${table}: ${CMAKE_MATCH_1}: there is no column ${CMAKE_MATCH_2}")
    elseif(failed)
        message(FATAL_ERROR "${table} cannot be read: ${failed}\n${json}")
    endif()
    math(EXPR last "${last} - 2") # a null follows
    hgemm_code_of(code ${table})
    string(REPLACE "\n" " " code "${code}")
    string(REGEX MATCHALL "${row_of_table}" rows "${code}")
    foreach(row IN LISTS rows)
        string(REGEX REPLACE "^HGEMM_KERNEL\\([a-z0-9_]+, ([a-z0-9_]+),.*" "\\1" name "${row}")
        set(row_of_${name} "${row}")
    endforeach()
    set(symbols "")
    foreach(i RANGE ${last})
        string(JSON name GET "${json}" ${i} name)
        string(JSON rung GET "${json}" ${i} rung)
        string(JSON ops ERROR_VARIABLE no_ops GET "${json}" ${i} ops)
        string(JSON on_t4 ERROR_VARIABLE not_on_t4 GET "${json}" ${i} on_t4)
        if(no_ops OR NOT ops MATCHES "^(nn|nt|nn_nt|nn_nt_tn|all|one)$")
            message(FATAL_ERROR "${table}: ${name}: OPS is nn, nt, nn_nt, nn_nt_tn, all or one, not ${ops}")
        endif()
        if(not_on_t4)
            set(on_t4 OFF)
        endif()
        foreach(limit IN LISTS every_limit)
            string(JSON most ERROR_VARIABLE no_limit GET "${json}" ${i} ${limit})
            if(no_limit)
                set(most "")
            elseif(NOT most MATCHES "^(${any_access}|one)$")
                string(TOUPPER ${limit} column)
                message(FATAL_ERROR "${table}: ${name}: ${column} is one of ${any_access}|one, not ${most}")
            endif()
            set(limits_${limit} "${most}")
        endforeach()
        if(ops STREQUAL "all")
            set(ops nn nt tn tt)
        elseif(ops STREQUAL "one")
            set(ops nt)
        else()
            string(REPLACE "_" ";" ops ${ops})
        endif()
        set(way_place 0)
        foreach(way IN LISTS every_way)
            string(JSON type_a GET "${ways_json}" factors ${${way}_factors} type_a)
            string(JSON type_b GET "${ways_json}" factors ${${way}_factors} type_b)
            hgemm_accesses_of_way(accesses ${way})
            set(packed "")
            if(type_b STREQUAL "PACKED")
                set(packed -DHGEMM_PACKED_B=1)
            endif()
            foreach(access IN LISTS accesses)
                list(FIND every_access ${access} access_place)
                string(TOUPPER ${access} upper)
                foreach(op IN LISTS ops)
                    hgemm_bit(op_a "${op}" MATCHES "^t")
                    hgemm_bit(op_b "${op}" MATCHES "t$")
                    hgemm_bit(bf16 "${type_a}" STREQUAL "BF16")
                    set(symbol ${name}_${op})
                    if(NOT access STREQUAL "x16")
                        string(APPEND symbol _${access})
                    endif()
                    if(NOT way STREQUAL "plain")
                        string(APPEND symbol _${way})
                    endif()
                    list(APPEND symbols ${symbol})
                    set(${symbol}_KERNEL ${name} PARENT_SCOPE)
                    set(${symbol}_PLACE ${way_place}${access_place}${op} PARENT_SCOPE)
                    set(${symbol}_SOURCE ${PROJECT_SOURCE_DIR}/ptx/${rung}.cu PARENT_SCOPE)
                    set(${symbol}_T4 ${on_t4} PARENT_SCOPE)
                    set(${symbol}_ROW "${row_of_${name}}" PARENT_SCOPE)
                    set(${symbol}_DEFINES -DHGEMM_VARIANT=${symbol} -DHGEMM_ROW=${name} -DHGEMM_ACCESS=${upper}
                        -DHGEMM_OP_A=${op_a} -DHGEMM_OP_B=${op_b} -DHGEMM_INDIRECT=${${way}_indirect}
                        -DHGEMM_BF16=${bf16} ${packed} PARENT_SCOPE)
                endforeach()
            endforeach()
            math(EXPR way_place "${way_place} + 1")
        endforeach()
    endforeach()
    list(SORT symbols)
    set(${out} ${symbols} PARENT_SCOPE)
endfunction()

# Hashes what kernels are compiled from. Where one changes, CMake runs again before anything is built, so that no image of
# another source is taken, and none is recorded as of a source that it is not of.
function(hgemm_read_sources dir)
    hgemm_hash_sources(sources ${PROJECT_SOURCE_DIR} ptx/*.cu ptx/*.cuh src/table/*.h src/table/*.def cmake/nvcc/*
        cmake/compile_kernel.cmake)
    set(files ${sources})
    list(TRANSFORM files REPLACE "^[^ ]+ " "${PROJECT_SOURCE_DIR}/")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    list(JOIN sources "\n" text)
    file(CONFIGURE OUTPUT ${dir}/sources CONTENT "${text}\n" @ONLY)
    set(HGEMM_SOURCES "${sources}" PARENT_SCOPE)
endfunction()

# One command per image: the fatbin holds sm_75 machine code for the T4 and compute_75 PTX, which the driver translates on
# newer GPUs; where <symbol>_T4 is true, the source makes the machine code by itself. `dir` lies below the current binary
# directory, unless it is HGEMM_IMAGE_DIR, where the image must have been made from what it would be made from here.
function(hgemm_image dir symbol)
    set(flags -std=c++17 -O3 -I${PROJECT_SOURCE_DIR}/cmake/nvcc -I${PROJECT_SOURCE_DIR}/src ${HGEMM_NVCC_FLAGS} ${${symbol}_DEFINES})
    if(HGEMM_IMAGE_DIR)
        hgemm_recipe(recipe "${HGEMM_NVCC_VERSION}" "${${symbol}_T4}" "${${symbol}_ROW}" ${flags})
        hgemm_changed_input(why ${dir}/${symbol}.inputs "${recipe}" "${HGEMM_SOURCES}")
        if(why)
            message(FATAL_ERROR "${dir}/${symbol}.fatbin ${why}. Kernels are taken from a build of the same sources only: "
                "build that one anew, or leave HGEMM_IMAGE_DIR out.")
        endif()
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dir}/${symbol}.inputs)
        return()
    endif()
    file(RELATIVE_PATH target ${CMAKE_CURRENT_BINARY_DIR} ${dir}/${symbol}.fatbin)
    add_custom_command(
        OUTPUT ${dir}/${symbol}.fatbin ${dir}/${symbol}.usage
        BYPRODUCTS ${dir}/${symbol}.inputs
        COMMAND ${CMAKE_COMMAND} -D NVCC=${HGEMM_NVCC} -D FATBINARY=${HGEMM_FATBINARY} -D SOURCE=${${symbol}_SOURCE}
            -D SYMBOL=${symbol} -D TARGET=${target} -D "FLAGS=${flags}" -D "T4=${${symbol}_T4}" -D NVCC_VERSION=${HGEMM_NVCC_VERSION}
            -D "ROW=${${symbol}_ROW}" -P ${PROJECT_SOURCE_DIR}/cmake/compile_kernel.cmake
        WORKING_DIRECTORY ${dir}
        DEPENDS ${${symbol}_SOURCE} ${PROJECT_SOURCE_DIR}/cmake/compile_kernel.cmake ${PROJECT_SOURCE_DIR}/cmake/inputs.cmake
        DEPFILE ${dir}/${symbol}.d
        COMMENT "Compiling kernel ${symbol}"
        VERBATIM)
endfunction()

# The images of one kernel are nearly alike, so they are compressed as one: that halves what each by itself
# would take. The build that compiled them may have done it already. `dir` holds what hgemm_image made.
function(hgemm_embed output array count dir)
    set(lines "")
    set(packs "")
    foreach(symbol IN LISTS ARGN)
        set(pack ${symbol}) # by itself, if it is of no row
        if(DEFINED ${symbol}_KERNEL)
            set(pack ${${symbol}_KERNEL})
        endif()
        list(APPEND packs ${pack})
        list(APPEND lines "${pack} ${${symbol}_PLACE} ${symbol}")
    endforeach()
    list(SORT lines)
    foreach(line IN LISTS lines)
        string(REGEX MATCH "^([^ ]+) .* ([^ ]+)$" line "${line}")
        list(APPEND ${CMAKE_MATCH_1}_FATBINS ${dir}/${CMAKE_MATCH_2}.fatbin)
    endforeach()
    list(REMOVE_DUPLICATES packs)
    get_filename_component(folder ${output} DIRECTORY)
    file(MAKE_DIRECTORY ${folder}/packs)
    set(inputs "")
    foreach(pack IN LISTS packs)
        set(packed ${folder}/packs/${pack}.zst)
        add_custom_command(
            OUTPUT ${packed}
            COMMAND hgemm_pack_images ${packed} ${dir}/../packs/${pack}.zst ${${pack}_FATBINS}
            DEPENDS ${${pack}_FATBINS}
            COMMENT "Packing ${pack}"
            VERBATIM)
        list(APPEND inputs ${packed})
    endforeach()

    list(JOIN lines "\n" text)
    file(GENERATE OUTPUT ${output}.list CONTENT "${text}\n")
    set(usages ${ARGN})
    list(TRANSFORM usages REPLACE "(.+)" "${dir}/\\1.usage")
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D ARRAY=${array} -D COUNT=${count} -D LIST=${output}.list -D DIR=${dir}
            -D PACKS=${folder}/packs -D OUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/embed_images.cmake
        DEPENDS ${inputs} ${usages} ${output}.list ${PROJECT_SOURCE_DIR}/cmake/embed_images.cmake
        COMMENT "Embedding ${array}"
        VERBATIM)
endfunction()
