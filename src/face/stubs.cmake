# SPDX-License-Identifier: MIT
#
# Makes, of CUDA's headers, the entry points that are not served: weak ones, which those that are
# served displace. Included with CUDA_INCLUDE set.

# Names that a header declares with `marker` before them, and those that it gives them by #define.
function(face_names out header marker prefix)
    file(READ ${header} text)
    string(REGEX MATCHALL "${marker}[ \n]+${prefix}[A-Za-z0-9_]+ *\\(" names "${text}") # some begin a line of their own
    list(TRANSFORM names REPLACE "${marker}[ \n]+(${prefix}[A-Za-z0-9_]+) *\\(" "\\1")
    file(STRINGS ${header} lines REGEX "# *define ${prefix}[A-Za-z0-9]+ +.*${prefix}[A-Za-z0-9]+_v[0-9]")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "(${prefix}[A-Za-z0-9]+_v[0-9]+)[) ]*$" unused "${line}")
        list(APPEND names ${CMAKE_MATCH_1})
    endforeach()
    list(REMOVE_DUPLICATES names)
    list(FILTER names EXCLUDE REGEX "_pt[ds][sz]?$|_ptsz$|_ptds$")
    list(SORT names)
    set(${out} ${names} PARENT_SCOPE)
endfunction()

function(face_write path text)
    file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
endfunction()

# The driver's: also a table by name, and the names of errors.
function(face_driver_stubs path)
    face_names(names ${CUDA_INCLUDE}/cuda.h "CUDAAPI" "cu")
    list(APPEND names cuProfilerInitialize cuProfilerStart cuProfilerStop) # whose header is in no package that tools/setup.sh fetches
    list(REMOVE_DUPLICATES names)
    set(text "/* Made by src/face/stubs.cmake of cuda.h. */\n#include \"face/machine.h\"\n\n")
    set(table "")
    foreach(name IN LISTS names)
        string(APPEND text "__attribute__((used)) static CUresult stub_${name}(void) { return not_served(\"${name}\"); }\n"
            "extern char address_${name}[] __asm__(\"${name}\");\n"
            "__asm__(\".weak ${name}\\n.set ${name}, stub_${name}\");\n")
        string(APPEND table "    {\"${name}\", address_${name}, (void *)stub_${name}},\n")
    endforeach()
    string(APPEND text "\nconst entry_point_t entry_points[] = {\n${table}};\n"
        "const unsigned entry_point_count = sizeof entry_points / sizeof *entry_points;\n\nconst error_name_t error_names[] = {\n")
    file(STRINGS ${CUDA_INCLUDE}/cuda.h lines REGEX "^ +CUDA_(SUCCESS|ERROR_[A-Z0-9_]+) += [0-9]+")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "CUDA_[A-Z0-9_]+" name "${line}")
        string(APPEND text "    {${name}, \"${name}\"},\n")
    endforeach()
    string(APPEND text "};\nconst unsigned error_name_count = sizeof error_names / sizeof *error_names;\n")
    face_write(${path} "${text}")
endfunction()

function(face_runtime_stubs path)
    face_names(names ${CUDA_INCLUDE}/cuda_runtime_api.h "CUDARTAPI" "cuda")
    list(APPEND names cudaProfilerStart cudaProfilerStop)
    list(REMOVE_DUPLICATES names)
    set(text "/* Made by src/face/stubs.cmake of cuda_runtime_api.h. */\n#include \"face/runtime.h\"\n\n")
    foreach(name IN LISTS names)
        string(APPEND text "__attribute__((used)) static cudaError_t stub_${name}(void) { return runtime_not_served(\"${name}\"); }\n"
            "__asm__(\".weak ${name}\\n.set ${name}, stub_${name}\");\n")
    endforeach()
    string(APPEND text "\nconst runtime_error_name_t runtime_error_names[] = {\n")
    file(STRINGS ${CUDA_INCLUDE}/driver_types.h lines REGEX "^ +cuda(Success|Error[A-Za-z0-9]+) += +[0-9]+")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "cuda[A-Za-z0-9]+" name "${line}")
        string(APPEND text "    {${name}, \"${name}\"},\n")
    endforeach()
    string(APPEND text "};\nconst unsigned runtime_error_name_count = sizeof runtime_error_names / sizeof *runtime_error_names;\n")
    face_write(${path} "${text}")
endfunction()
