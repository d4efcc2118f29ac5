# SPDX-License-Identifier: MIT
#
# CUDA programs on the emulated T4, as `turing exec` runs them.

if(NOT TARGET face_driver)
    return()
endif()
set(exec $<TARGET_FILE:turing_tool> exec)
add_executable(face_blas_program face/blas.c)
target_compile_options(face_blas_program PRIVATE ${warnings})
target_link_libraries(face_blas_program PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME face_blas_statuses COMMAND ${exec} $<TARGET_FILE:face_blas_program> $<TARGET_FILE:face_blas>)
if(TARGET turing_people_test)
    add_executable(face_driver_program face/driver.c)
    target_compile_options(face_driver_program PRIVATE ${warnings})
    target_include_directories(face_driver_program SYSTEM PRIVATE ${HGEMM_CUDA_INCLUDE})
    target_link_libraries(face_driver_program PRIVATE pthread ${CMAKE_DL_LIBS})
    add_test(NAME face_driver COMMAND ${exec} $<TARGET_FILE:face_driver_program> ${people})
    # It asserts what is not so, and goes on: that is allowed by name.
    add_test(NAME face_driver_checked COMMAND ${exec} --check --allow ${CMAKE_CURRENT_SOURCE_DIR}/face/driver.allow $<TARGET_FILE:face_driver_program> ${people})
    add_test(NAME face_time COMMAND ${exec} --time $<TARGET_FILE:face_driver_program> ${people})
    set_tests_properties(face_time PROPERTIES PASS_REGULAR_EXPRESSION
        "modelled on a T4 at 1590 MHz, not measured.*[0-9]%.* 1 .*grid_sync\n")
    # What an option does not mean is refused: else a run without a check would pass for one with it.
    foreach(option TURING_CHECK=memory,rac TURING_LIMIT=ten TURING_THREADS=-3 TURING_LOG=/no/folder/log)
        string(REPLACE "=" ";" words ${option})
        list(GET words 0 variable)
        add_test(NAME face_${variable} COMMAND ${exec} $<TARGET_FILE:face_driver_program> ${people})
        set_tests_properties(face_${variable} PROPERTIES ENVIRONMENT ${option} PASS_REGULAR_EXPRESSION
            "turing: ${variable}: [^\n]*\n.*p_cuInit[^\n]*is not so")
    endforeach()
    add_test(NAME face_check_unknown COMMAND ${exec} --check=memory,rac ${CMAKE_COMMAND} -E true)
    set_tests_properties(face_check_unknown PROPERTIES PASS_REGULAR_EXPRESSION "unknown check rac; there are memory")
    add_test(NAME face_log COMMAND ${exec} --log $<TARGET_FILE:face_driver_program> ${people})
    set_tests_properties(face_log PROPERTIES PASS_REGULAR_EXPRESSION "cuGraphCreate: not served\n")
endif()

# Every entry point with arguments that make no sense, and the list of those that are not served.
set(face_libraries $<TARGET_FILE:face_driver> $<TARGET_FILE:face_runtime_12> $<TARGET_FILE:face_runtime_13>)
add_executable(face_sweep_program face/sweep.c)
target_compile_options(face_sweep_program PRIVATE ${warnings})
target_link_libraries(face_sweep_program PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME face_sweep COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/face/sweep.sh $<TARGET_FILE:turing_tool>
    $<TARGET_FILE:face_sweep_program> ${face_libraries})
add_test(NAME face_unserved COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/face/unserved.py $<TARGET_FILE_DIR:face_driver>
    ${HGEMM_CUDA_INCLUDE}/cuda.h --check ${PROJECT_SOURCE_DIR}/src/face/unserved.txt)
set_tests_properties(face_sweep PROPERTIES TIMEOUT 120)
set_tests_properties(face_unserved PROPERTIES SKIP_RETURN_CODE 77)

# A program of <<<>>> with cub and thrust, which needs nvcc; then the same with faults.
if(NOT HGEMM_NVCC)
    find_program(HGEMM_NVCC nvcc HINTS ${HGEMM_CUDA_INCLUDE}/../bin)
endif()
if(HGEMM_NVCC AND NOT HGEMM_SANITIZE) # a program without the sanitizer cannot load libraries with it
    set(program ${CMAKE_CURRENT_BINARY_DIR}/face_runtime_program)
    add_custom_command(OUTPUT ${program}
        COMMAND ${HGEMM_NVCC} -arch=sm_75 -lineinfo -cudart shared -O1 -std=c++17
            -o ${program} ${CMAKE_CURRENT_SOURCE_DIR}/face/runtime.cu
        DEPENDS face/runtime.cu face/want.h
        COMMENT "Compiling a CUDA program for the emulated T4"
        VERBATIM)
    add_custom_target(compile_face_runtime ALL DEPENDS ${program})
    add_test(NAME face_runtime COMMAND ${exec} ${program})
    add_test(NAME face_runtime_checked COMMAND ${exec} --check ${program})
    add_test(NAME face_race COMMAND ${exec} --check=race ${program} race)
    set_tests_properties(face_race PROPERTIES PASS_REGULAR_EXPRESSION
        "race: _Z7reverse[^\n]* at [^\n]*runtime.cu:[45][0-9], block[^\n]* lane [^\n]*\n.*cudaErrorLaunchFailure")
    add_test(NAME face_bounds COMMAND ${exec} --check ${program} bounds)
    set_tests_properties(face_bounds PROPERTIES PASS_REGULAR_EXPRESSION
        "out of bounds: _Z5scale[^\n]*runtime.cu:[^\n]*past the end of the 4000 bytes.*cudaErrorIllegalAddress")
    add_test(NAME face_hang COMMAND ${exec} ${program} hang)
    set_tests_properties(face_hang PROPERTIES ENVIRONMENT TURING_LIMIT=1000000 PASS_REGULAR_EXPRESSION
        "endless loop[^\n]*warp 0 runs[^\n]*runtime.cu:.*cudaErrorLaunchTimeout")

    # Programs of the interface, and of how one is built: NAME SOURCES; FLAGS.
    function(face_compile name flags)
        set(program ${CMAKE_CURRENT_BINARY_DIR}/face_${name}_program)
        list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/face/ OUTPUT_VARIABLE sources)
        separate_arguments(flags)
        add_custom_command(OUTPUT ${program}
            COMMAND ${HGEMM_NVCC} -arch=sm_75 -cudart shared -std=c++17 ${flags} -o ${program} ${sources}
            DEPENDS ${sources} face/want.h face/builds_functions.cuh face/builds_functions.cu
            COMMENT "Compiling a CUDA program for the emulated T4: ${name}"
            VERBATIM)
        add_custom_target(compile_face_${name} ALL DEPENDS ${program})
    endfunction()
    function(face_program name flags)
        face_compile(${name} "${flags}" ${ARGN})
        add_test(NAME face_${name} COMMAND ${exec} ${CMAKE_CURRENT_BINARY_DIR}/face_${name}_program)
        set_tests_properties(face_${name} PROPERTIES PASS_REGULAR_EXPRESSION "all as expected\n")
    endfunction()
    face_program(interface "-O1" interface.cu)
    face_program(interface_per_thread "-O1 -default-stream per-thread" interface.cu)
    # What is not served is told, and once.
    set_tests_properties(face_interface PROPERTIES PASS_REGULAR_EXPRESSION
        "turing: cudaGraphCreate: not served.*all as expected\n|all as expected.*turing: cudaGraphCreate: not served"
        FAIL_REGULAR_EXPRESSION "turing: cudaGraphCreate.*turing: cudaGraphCreate")
    face_program(builds_optimized "-O3 -lineinfo" builds.cu)
    face_program(builds_debug "-G -Xptxas=-suppress-stack-size-warning" builds.cu)
    face_program(builds_linked "-O3 -rdc=true -Xnvlink=-suppress-stack-size-warning" builds.cu builds_functions.cu)
    face_program(builds_linked_debug "-G -rdc=true -Xnvlink=-suppress-stack-size-warning" builds.cu builds_functions.cu)

    # Values that nobody wrote, in the three ways of building a program.
    set(face_ways optimized debug linked)
    set(face_ways_flags "-O3 -lineinfo" "-G" "-O3 -rdc=true")
    set(face_said_decides "uninitialised read: _Z7decides[^\n]* global [^\n]*decides by it")
    set(face_said_addresses "uninitialised read: _Z9addresses[^\n]* global [^\n]*has it in its address")
    set(face_said_stores "uninitialised read: _Z6stores[^\n]* shared 0x24, [^\n]*stores it where the host reads it")
    set(face_said_computes "uninitialised read: _Z8computes[^\n]* global [^\n]*stores it where the host reads it")
    set(face_said_counts "uninitialised read: _Z6counts[^\n]* global [^\n]*stores it where the host reads it")
    set(face_said_shuffles "divergent: _Z8shuffles[^\n]*does not execute this SHFL[^\n]*stores it where the host reads it")
    foreach(way flags IN ZIP_LISTS face_ways face_ways_flags)
        face_compile(defined_${way} "${flags}" defined.cu)
        set(program ${CMAKE_CURRENT_BINARY_DIR}/face_defined_${way}_program)
        add_test(NAME face_defined_${way} COMMAND ${exec} --check ${program})
        foreach(fault decides addresses stores computes counts shuffles)
            add_test(NAME face_defined_${way}_${fault} COMMAND ${exec} --check ${program} ${fault})
            set_tests_properties(face_defined_${way}_${fault} PROPERTIES PASS_REGULAR_EXPRESSION "${face_said_${fault}}")
        endforeach()
    endforeach()

    # Lanes of a warp, and barriers that warps leave out.
    set(face_said_unsynced "race: [^\n]*reads what lane 1 of the same warp writes")
    set(face_said_overwritten "race: [^\n]*writes what lane 1 of the same warp reads")
    set(face_said_shuffled "race: [^\n]*reads what lane 1 of the same warp writes")
    set(face_said_of_a_matrix "race: [^\n]*reads what lane [0-9]+ of the same warp writes")
    set(face_said_increments "race: [^\n]*writes what lane 1 of the same warp reads")
    set(face_said_leaves_out "barrier mismatch: _Z10leaves_out[^\n]*1 of 2 warps ended without this barrier, warp 1 first")
    set(face_said_names_those_that_left
        "a __syncwarp, a shuffle or a vote that names lanes 0xffffffff, of which 0xffff0000 do not come")
    face_compile(lanes "-O3 -lineinfo" lanes.cu)
    face_compile(lanes_debug "-G" lanes.cu)
    set(program ${CMAKE_CURRENT_BINARY_DIR}/face_lanes_program)
    add_test(NAME face_lanes COMMAND ${exec} --check=all,leaks ${program})
    add_test(NAME face_lanes_debug COMMAND ${exec} --check ${CMAKE_CURRENT_BINARY_DIR}/face_lanes_debug_program)
    foreach(fault unsynced overwritten shuffled of_a_matrix increments leaves_out names_those_that_left)
        add_test(NAME face_lanes_${fault} COMMAND ${exec} --check ${program} ${fault})
        set_tests_properties(face_lanes_${fault} PROPERTIES PASS_REGULAR_EXPRESSION "${face_said_${fault}}")
    endforeach()
    add_test(NAME face_leaks COMMAND ${exec} --check=leaks ${program} unsynced)
    set_tests_properties(face_leaks PROPERTIES PASS_REGULAR_EXPRESSION
        "leak: 1024 bytes [^\n]*allocation 1, .*leak: 512 bytes [^\n]*allocation 2, .*turing: 2 found")

    # A kernel that goes nowhere, and the exit statuses.
    face_compile(stuck "-lineinfo" stuck.cu)
    foreach(way spin loop)
        add_test(NAME face_stuck_${way} COMMAND ${exec} --seconds 2 ${CMAKE_CURRENT_BINARY_DIR}/face_stuck_program ${way})
        set_tests_properties(face_stuck_${way} PROPERTIES TIMEOUT 20 PASS_REGULAR_EXPRESSION
            "for (ever|2 seconds)[^\n]*warp 0 runs[^\n]*stuck.cu:.*cudaErrorLaunchTimeout")
    endforeach()
    set(static ${CMAKE_CURRENT_BINARY_DIR}/face_static_program)
    add_custom_command(OUTPUT ${static}
        COMMAND ${HGEMM_NVCC} -arch=sm_75 -cudart static -o ${static} ${CMAKE_CURRENT_SOURCE_DIR}/face/stuck.cu
        DEPENDS face/stuck.cu
        COMMENT "Compiling a CUDA program with NVIDIA's runtime in it"
        VERBATIM)
    add_custom_target(compile_face_static ALL DEPENDS ${static})
    add_test(NAME face_gate COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/face/gate.sh $<TARGET_FILE:turing_tool>
        ${CMAKE_CURRENT_BINARY_DIR}/face_runtime_program ${static})

    # The example that launches a rung of the ladder.
    foreach(rung k1_tiled k4_fastindex)
        set(program ${CMAKE_CURRENT_BINARY_DIR}/face_${rung})
        add_custom_command(OUTPUT ${program}
            COMMAND ${HGEMM_NVCC} -arch=sm_75 -std=c++17 -O3 -lineinfo -cudart shared -I${PROJECT_SOURCE_DIR}/src
                "-DRUNG=\"../ptx/${rung}.cu\"" -o ${program} ${PROJECT_SOURCE_DIR}/examples/rung.cu
            DEPENDS ${PROJECT_SOURCE_DIR}/examples/rung.cu ${PROJECT_SOURCE_DIR}/ptx/${rung}.cu
                ${PROJECT_SOURCE_DIR}/ptx/insn.cuh ${PROJECT_SOURCE_DIR}/src/table/args.h
            COMMENT "Compiling a program that launches ${rung}"
            VERBATIM)
        add_custom_target(compile_face_${rung} ALL DEPENDS ${program})
        add_test(NAME face_${rung} COMMAND ${exec} --check --time ${program})
        set_tests_properties(face_${rung} PROPERTIES PASS_REGULAR_EXPRESSION
            "no error, 0 of 27200 elements are wrong\n.* 1 +[0-9.]+ +[0-9.]+ +[0-9.]+ [^\n]* rung\n")
    endforeach()
endif()

# cuda-python with NVRTC, from the package registry into a folder of its own.
if(NOT HGEMM_SANITIZE)
    add_test(NAME face_python COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/face/python.sh $<TARGET_FILE:turing_tool>
        ${CMAKE_CURRENT_BINARY_DIR}/face_python)
    add_test(NAME face_torch COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/face/torch.sh $<TARGET_FILE:turing_tool>
        $<TARGET_FILE:hgemm_cublas> $<TARGET_FILE:hgemm_shared> ${CMAKE_CURRENT_BINARY_DIR}/face_torch_log)
    set_tests_properties(face_python face_torch PROPERTIES SKIP_RETURN_CODE 77)
endif()
