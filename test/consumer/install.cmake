# SPDX-License-Identifier: MIT
#
# Installs the build BUILD below WORK, moves the result into a folder with a blank in its name, builds the project CONSUMER
# against it and runs its programs, with the same GENERATOR; then builds one as the README of the project SOURCE says for
# pkg-config, where that is installed. CUDA_PROGRAM, if there is one, runs the kernels in $PEOPLE by the installed `turing exec`. Last,
# CONSUMER takes SOURCE as a part of itself, with its kernels KERNELS, which are in IMAGES, compiled with NVCC_FLAGS.

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
    if(failed)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "${command}\n${log}")
    endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
set(moved "${WORK}/moved here")
file(RENAME ${WORK}/installed ${moved}) # a package must not remember where it was

set(flags "")
if(SANITIZE)
    set(flags -fsanitize=${SANITIZE})
endif()
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${moved}
    -D CMAKE_C_FLAGS=${flags} -D CMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --no-tests=error --output-on-failure)

find_program(pkg_config pkg-config)
foreach(name LICENSE libhgemm.so.0.2 hgemm.pc)
    file(GLOB_RECURSE file ${moved}/${name})
    if(NOT file)
        message(FATAL_ERROR "no ${name} was installed")
    endif()
endforeach()
if(EXISTS ${BUILD}/hgemm) # the command
    run(${moved}/bin/hgemm --version)
endif()
if(CUDA_PROGRAM) # on the emulated T4 that was installed
    run(${moved}/bin/turing exec --check --allow ${SOURCE}/test/face/driver.allow ${CUDA_PROGRAM} $ENV{PEOPLE})
endif()
if(pkg_config)
    get_filename_component(folder ${file} DIRECTORY) # of hgemm.pc
    get_filename_component(folder ${folder} DIRECTORY)
    find_program(compiler NAMES cc gcc clang REQUIRED)
    file(STRINGS ${SOURCE}/README.md recipe REGEX "^    (export PKG_CONFIG_PATH=|.*cc multiply.c)")
    list(JOIN recipe " &&" recipe)
    string(REPLACE "/where/you/like/lib" "${folder}" recipe "${recipe}")
    string(REPLACE "cc multiply.c" "${compiler} ${flags} '${CONSUMER}/consumer.c' -o pkg_config_consumer" recipe "${recipe}")
    if(NOT recipe MATCHES "${folder}.*pkg_config_consumer")
        message(FATAL_ERROR "README.md has no line for pkg-config that is understood: ${recipe}")
    endif()
    string(REPLACE "--libs" "--static --libs" static_recipe "${recipe}")
    foreach(commands IN ITEMS "${recipe}" "${static_recipe}")
        run(sh -c "cd '${WORK}' && ${commands} && ./pkg_config_consumer")
    endforeach()
endif()

# As a part of another project: its build type stays its own, and nothing is installed that it does not ask for.
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/part -G ${GENERATOR} -D HGEMM=${SOURCE} -D HGEMM_IMAGE_DIR=${IMAGES}
    -D HGEMM_KERNELS=${KERNELS} -D HGEMM_NVCC_FLAGS=${NVCC_FLAGS})
run(${CMAKE_COMMAND} --install ${WORK}/part --prefix ${WORK}/part/installed)
file(STRINGS ${WORK}/part/CMakeCache.txt build_type REGEX "^CMAKE_BUILD_TYPE:STRING=.")
file(GLOB_RECURSE installed ${WORK}/part/installed/*)
if(build_type OR installed)
    message(FATAL_ERROR "a project that takes the sources gets: ${build_type} ${installed}")
endif()
