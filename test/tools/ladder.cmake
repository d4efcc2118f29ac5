# SPDX-License-Identifier: MIT
#
# The ladder climbs: by the T4's model each rung is faster than the one before, and what selection chooses is faster
# than all of them. Of a square of 2048 or 4096 some rows of tiles are enough, of whole columns and the whole k: the model would take
# minutes for the rest. k0_naive has a sixteenth of the rows and a fourth of the columns: four times its time is still longer
# than that of k1_tiled with all of them.
#
#   cmake -D BENCH=bench_hgemm -D SHAPE=MxNxK -P ladder.cmake

function(model kernels shape csv)
    execute_process(COMMAND ${BENCH} --device t4emu:time,dry --kernel "${kernels}" --peers none --reps 1 --format csv ${shape}
        OUTPUT_VARIABLE text RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "bench_hgemm failed (${failed}):\n${text}")
    endif()
    set(${csv} "${text}" PARENT_SCOPE)
endfunction()

string(REPLACE "x" ";" sides ${SHAPE})
list(POP_FRONT sides m n k)
math(EXPR rows "${m} / 16")
math(EXPR columns "${n} / 4")
model("^k0_naive$" ${rows}x${columns}x${k} naive)
model("^(k[1-4]_.*|auto)$" ${SHAPE} csv)
string(APPEND csv "${naive}")
set(before "")
foreach(rung k0_naive k1_tiled k2_swizzled k3_prefetch k4_fastindex auto)
    if(NOT csv MATCHES "\n[^\n,]*,${rung},[^\n,]*,([0-9]+\\.[0-9]+),")
        message(FATAL_ERROR "no time of ${rung}:\n${csv}")
    endif()
    set(us ${CMAKE_MATCH_1})
    if(rung STREQUAL "k0_naive")
        string(REPLACE "." "" us ${us}) # in ns, for there are no fractions in math()
        math(EXPR us "${us} * 4 / 1000")
    endif()
    message("modelled  ${rung} ${us} us")
    if(before AND NOT us LESS before)
        message(FATAL_ERROR "${rung} takes ${us} us, the rung before ${before} us")
    endif()
    set(before ${us})
endforeach()
