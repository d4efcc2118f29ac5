# SPDX-License-Identifier: MIT
#
# Makes, of CUDA's headers, the entry points that are not served: weak ones, which those that are
# served displace; and the names by which others go, too. Included with CUDA_INCLUDE set.

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

# A script for the linker: with a default stream for each thread programs call NAME_ptds or NAME_ptsz, as the header says;
# `pairs` are more, NEW=OLD each.
function(face_aliases path header marker prefix pairs)
    file(STRINGS ${header} lines REGEX "# *define ${prefix}[A-Za-z0-9_]+ +${marker}_PT[DS][SZ]\\(")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "_(PT[DS][SZ])\\((${prefix}[A-Za-z0-9_]+)\\)" unused "${line}")
        string(TOLOWER ${CMAKE_MATCH_1} suffix)
        list(APPEND pairs ${CMAKE_MATCH_2}_${suffix}=${CMAKE_MATCH_2})
    endforeach()
    set(text "/* Made by src/face/stubs.cmake. */\n")
    foreach(pair IN LISTS pairs)
        string(REPLACE "=" " = " assignment ${pair})
        string(APPEND text "${assignment};\n")
    endforeach()
    face_write(${path} "${text}")
endfunction()

# The driver's: also a table by name, and the names of errors.
function(face_driver_stubs path)
    face_names(names ${CUDA_INCLUDE}/cuda.h "CUDAAPI" "cu")
    list(APPEND names cuProfilerInitialize cuProfilerStart cuProfilerStop) # whose header is in no package that tools/setup.sh fetches
    list(REMOVE_DUPLICATES names)
    # Older forms that are the newer ones, or ignore what these have more.
    set(same cuStreamGetCaptureInfo=cuStreamGetCaptureInfo_v3 cuStreamGetCaptureInfo_v2=cuStreamGetCaptureInfo_v3
        cuEventElapsedTime=cuEventElapsedTime_v2 cuDeviceGetUuid=cuDeviceGetUuid_v2)
    foreach(name IN ITEMS cuCtxDestroy cuCtxPopCurrent cuCtxPushCurrent cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset
            cuDevicePrimaryCtxSetFlags cuEventDestroy cuIpcOpenMemHandle cuMemHostRegister cuStreamDestroy)
        list(APPEND same ${name}=${name}_v2)
    endforeach()
    face_aliases(${path}.ld ${CUDA_INCLUDE}/cuda.h __CUDA_API cu "${same}")
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

# Names of CUDA 12's runtime that CUDA 13's headers do not have. Of "NAME=OTHER" one is the other.
set(face_runtime_12_names cudaEventElapsedTime_v2=cudaEventElapsedTime cudaMemPrefetchAsync_v2_ptsz=cudaMemPrefetchAsync_v2
    cudaStreamGetCaptureInfo_v2=cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v2_ptsz=cudaStreamGetCaptureInfo
    cudaStreamGetCaptureInfo_v3=cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3_ptsz=cudaStreamGetCaptureInfo
    cudaSignalExternalSemaphoresAsync_v2_ptsz=cudaSignalExternalSemaphoresAsync_v2
    cudaStreamUpdateCaptureDependencies_v2_ptsz=cudaStreamUpdateCaptureDependencies_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz=cudaWaitExternalSemaphoresAsync_v2
    cudaThreadExit=cudaDeviceReset cudaThreadSynchronize=cudaDeviceSynchronize cudaThreadGetLimit=cudaDeviceGetLimit
    cudaThreadSetLimit=cudaDeviceSetLimit cudaThreadGetCacheConfig=cudaDeviceGetCacheConfig
    cudaThreadSetCacheConfig=cudaDeviceSetCacheConfig cudaGetDeviceProperties_v2 cudaMemAdvise_v2 cudaMemPrefetchAsync_v2
    cudaGraphAddDependencies_v2 cudaGraphAddNode_v2 cudaGraphGetEdges_v2 cudaGraphNodeGetDependencies_v2
    cudaGraphNodeGetDependentNodes_v2 cudaGraphRemoveDependencies_v2 cudaLaunchCooperativeKernelMultiDevice
    cudaSetDoubleForDevice cudaSetDoubleForHost cudaSignalExternalSemaphoresAsync_v2 cudaStreamUpdateCaptureDependencies_v2
    cudaWaitExternalSemaphoresAsync_v2)

function(face_runtime_stubs path version)
    face_names(names ${CUDA_INCLUDE}/cuda_runtime_api.h "CUDARTAPI" "cuda")
    list(APPEND names cudaProfilerStart cudaProfilerStop)
    set(same __cudaLaunchKernel_ptsz=__cudaLaunchKernel)
    if(version EQUAL 12)
        set(same ${face_runtime_12_names})
        list(FILTER same INCLUDE REGEX "=")
        list(APPEND same __cudaLaunchKernel_ptsz=__cudaLaunchKernel)
        set(own ${face_runtime_12_names})
        list(FILTER own EXCLUDE REGEX "=")
        list(APPEND names ${own})
    endif()
    face_aliases(${path}.ld ${CUDA_INCLUDE}/cuda_runtime_api.h __CUDART_API cuda "${same}")
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
