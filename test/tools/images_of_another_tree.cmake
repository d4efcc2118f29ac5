# SPDX-License-Identifier: MIT
#
# A build of a copy of the project SOURCE, below WORK, takes two kernels and what is of no row from IMAGES, and refuses those that would
# be others here: where an included file, a row, an option or nvcc's version changed since, before a build and in the midst of
# one. It names the first, and why. What does not become code changes nothing: comments, and other kernels' rows. Where the
# compiler NVCC is, an image is compiled anew for the same reasons, and for no others.

set(tree ${WORK}/tree)
set(images ${WORK}/images)

# edit(FILE WAS IS): in the copy.
function(edit file was is)
    file(READ ${tree}/${file} text)
    string(REPLACE "${was}" "${is}" changed "${text}")
    if(changed STREQUAL text)
        message(FATAL_ERROR "${file} has no ${was}")
    endif()
    file(WRITE ${tree}/${file} "${changed}")
endfunction()

function(restore file)
    file(COPY_FILE ${SOURCE}/${file} ${tree}/${file})
endfunction()

set(configure ${CMAKE_COMMAND} -S ${tree} -B ${WORK}/build -G ${GENERATOR} -D HGEMM_IMAGE_DIR=${images}
    -D HGEMM_KERNELS=^k[12]_[a-z]+_nn$ -D HGEMM_NVCC_FLAGS=${NVCC_FLAGS} -D HGEMM_TESTS=OFF -D HGEMM_BENCH=OFF -D HGEMM_TOOL=OFF
    -D HGEMM_EXAMPLES=OFF -D HGEMM_EMULATOR=OFF)
set(build ${CMAKE_COMMAND} --build ${WORK}/build --target hgemm_pack_images)

function(taken what)
    execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE log ERROR_VARIABLE log RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${what}: refused\n${log}")
    endif()
endfunction()

function(refused what words)
    execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE log ERROR_VARIABLE log RESULT_VARIABLE failed)
    string(REGEX REPLACE "[ \n]+" " " log "${log}")
    if(NOT failed OR NOT log MATCHES "${words}")
        message(FATAL_ERROR "${what}: taken, or without the words \"${words}\"\n${log}")
    endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/cmake ${SOURCE}/include ${SOURCE}/ptx ${SOURCE}/src DESTINATION ${tree})
file(GLOB copied ${IMAGES}/k[12]_*_nn.* ${IMAGES}/*pack_weights.* ${IMAGES}/realign.* ${IMAGES}/recompute.* ${IMAGES}/scale.*
    ${IMAGES}/nvcc_version)
file(COPY ${copied} DESTINATION ${images})
taken("the same tree" ${configure})

edit(src/table/args.h "typedef struct kernel_args_t {" "typedef struct kernel_args_t { /* \"so\" */ // parameters\n\n")
edit(src/table/kernels.def "HGEMM_KERNEL(k3_prefetch, k3_prefetch, BLOCK(128" "HGEMM_KERNEL(k3_prefetch, k3_prefetch, BLOCK(64")
taken("comments, and another row" ${build})
edit(src/table/args.h "const void *a, *b, *c;" "const void *b, *a, *c;")
refused("a file that all include, after the build was configured" "k1_tiled_nn.fatbin was compiled from another src/table/args.h" ${build})
restore(src/table/args.h)
taken("the file as it was" ${build})
edit(ptx/k2_swizzled.cu "#include \"insn.cuh\"" "#include \"insn.cuh\"\nstatic_assert(true);")
refused("a source" "k2_swizzled_nn.fatbin was compiled from another ptx/k2_swizzled.cu" ${configure})
restore(ptx/k2_swizzled.cu)
edit(src/table/kernels.def "HGEMM_KERNEL(k2_swizzled, k2_swizzled, BLOCK(128, 128, 32)" "HGEMM_KERNEL(k2_swizzled, k2_swizzled, BLOCK(128, 128, 64)")
refused("a row" "k2_swizzled_nn.fatbin was compiled by .row [^.]*128, 32.[^.]* not by .row [^.]*128, 64" ${configure})
restore(src/table/kernels.def)
refused("an option" "k1_tiled_nn.fatbin was compiled by .options [^.]*-DMORE" ${configure} -D HGEMM_NVCC_FLAGS=-DMORE)
file(REMOVE ${images}/nvcc_version) # or a link to it would be written through
file(WRITE ${images}/nvcc_version 1.2.3)
refused("another nvcc" "k1_tiled_nn.fatbin was compiled by .nvcc [0-9.]+., not by .nvcc 1.2.3" ${configure} -D HGEMM_NVCC_FLAGS=${NVCC_FLAGS})
file(COPY ${IMAGES}/nvcc_version DESTINATION ${images})
file(REMOVE ${images}/realign.inputs)
refused("an image that says nothing" "realign.fatbin is not known to be of this tree" ${configure})
file(COPY ${IMAGES}/realign.inputs DESTINATION ${images})
taken("all as it was" ${configure})

if(NOT NVCC)
    return()
endif()
set(configure ${CMAKE_COMMAND} -S ${tree} -B ${WORK}/compiled -G ${GENERATOR} -D HGEMM_NVCC=${NVCC} -D HGEMM_KERNELS=^none$ -D HGEMM_TESTS=OFF
    -D HGEMM_BENCH=OFF -D HGEMM_TOOL=OFF -D HGEMM_EXAMPLES=OFF -D HGEMM_EMULATOR=OFF)
set(build ${CMAKE_COMMAND} --build ${WORK}/compiled --target kernels/realign.fatbin)
function(is_compiled what is)
    taken("${what}" ${build})
    file(READ ${WORK}/compiled/kernels/realign.fatbin now LIMIT 4)
    if(is AND now STREQUAL "kept" OR NOT is AND NOT now STREQUAL "kept")
        message(FATAL_ERROR "${what}: is not as it should be: ${now}")
    endif()
    file(WRITE ${WORK}/compiled/kernels/realign.fatbin "kept")
endfunction()
taken("a build that compiles" ${configure})
is_compiled("the first time" ON)
edit(src/table/args.h "typedef struct kernel_args_t {" "typedef struct kernel_args_t { // parameters\n")
is_compiled("a comment" OFF)
edit(src/table/args.h "#define HGEMM_REALIGN_THREADS 128" "#define HGEMM_REALIGN_THREADS 64")
is_compiled("a number" ON)
restore(src/table/args.h)
is_compiled("the number as it was" ON)
