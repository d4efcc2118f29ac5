# SPDX-License-Identifier: MIT
#
# What a compiled kernel was made from. Beside <symbol>.fatbin lies <symbol>.inputs, a text:
#
#   nvcc <version>
#   options <all options of nvcc but folders>, and whether the T4's machine code is compiled by itself
#   row <its row of the table, as it is written there; empty: it is of no row>
#   <hash> <file>            a line for each file of this tree that was read, by its path from the root
#
# A hash is of the code: comments and blanks do not count, and of src/table/kernels.def no row counts, for the kernel's own
# stands above. Files of the CUDA toolkit are told by nvcc's version. So two trees make the same image where the text is the
# same, and a build takes another's images (HGEMM_IMAGE_DIR), or those that it has, by comparing it.
#
#   hgemm_code_of(<out> <file>)                 its code
#   hgemm_hash_sources(<out> <root> <pattern>...)   lines "<hash> <file>"
#   hgemm_recipe(<out> <version> <t4> <row> <option>...)   the first three lines
#   hgemm_changed_input(<out> <inputs> <recipe> <sources>)   what the file `inputs` says that is not so here; empty: nothing

set(row_of_table "HGEMM_KERNEL\\(([^()]|\\(([^()]|\\([^()]*\\))*\\))*\\)")

# A comment's sign between quotes would be none: a file that has one there counts with its comments.
function(hgemm_code_of out file)
    file(READ ${file} text)
    string(REGEX MATCHALL "\"[^\"\n]*\"" quoted "${text}")
    string(REGEX REPLACE "\"[^\"\n]*\"" "" unquoted "${text}")
    if(file MATCHES "[.]cmake$")
        string(REGEX REPLACE "(^|\n) *#[^\n]*" "\\1" text "${text}")
    elseif(NOT quoted MATCHES "//|/[*]" AND NOT unquoted MATCHES "\"")
        string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" " " text "${text}")
        string(REGEX REPLACE "//[^\n]*" " " text "${text}")
    endif()
    string(REGEX REPLACE "[ \t\r\n]*\n[ \t\r\n]*" "\n" text "${text}") # lines stay: of the preprocessor's, each is one
    string(REGEX REPLACE "[ \t]+" " " text "${text}")
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(hgemm_hash_sources out root)
    list(TRANSFORM ARGN PREPEND "${root}/" OUTPUT_VARIABLE patterns)
    file(GLOB files ${patterns})
    set(lines "")
    foreach(file IN LISTS files)
        hgemm_code_of(code ${file})
        if(file MATCHES "kernels[.]def$")
            string(REGEX REPLACE "\n*${row_of_table}\n*" "\n" code "${code}")
        endif()
        string(SHA256 hash "${code}")
        string(SUBSTRING ${hash} 0 16 hash)
        file(RELATIVE_PATH name ${root} ${file})
        list(APPEND lines "${hash} ${name}")
    endforeach()
    set(${out} "${lines}" PARENT_SCOPE)
endfunction()

function(hgemm_recipe out version t4 row)
    set(options ${ARGN})
    list(FILTER options EXCLUDE REGEX "^-I")
    if(t4)
        list(APPEND options -DHGEMM_T4) # of the second compilation
    endif()
    list(JOIN options " " options)
    set(${out} "nvcc ${version}" "options ${options}" "row ${row}" PARENT_SCOPE)
endfunction()

function(hgemm_changed_input out inputs recipe sources)
    set(${out} "" PARENT_SCOPE)
    if(NOT EXISTS ${inputs})
        set(${out} "is not known to be of this tree: it has no ${inputs}" PARENT_SCOPE)
        return()
    endif()
    file(STRINGS ${inputs} lines)
    list(SUBLIST lines 0 3 head)
    foreach(was is IN ZIP_LISTS head recipe)
        if(NOT was STREQUAL is)
            set(${out} "was compiled by \"${was}\", not by \"${is}\"" PARENT_SCOPE)
            return()
        endif()
    endforeach()
    list(REMOVE_AT lines 0 1 2)
    if(NOT lines)
        set(${out} "does not say of which files it is" PARENT_SCOPE)
    endif()
    list(REMOVE_ITEM lines ${sources})
    if(lines)
        list(GET lines 0 line)
        string(REGEX REPLACE "^[^ ]+ " "" file "${line}")
        set(${out} "was compiled from another ${file}" PARENT_SCOPE)
    endif()
endfunction()
