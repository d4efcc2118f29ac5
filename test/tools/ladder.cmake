# SPDX-License-Identifier: MIT
#
# The ladder climbs: by the T4's model each rung is faster than the one before, and what selection chooses is faster
# than all of them.
#
#   cmake -D BENCH=bench_hgemm -D SIZE=N -P ladder.cmake

execute_process(COMMAND ${BENCH} --device t4emu:time --kernel "^(k[1-4]_.*|auto)$" --peers none --reps 1 --format csv ${SIZE}
    OUTPUT_VARIABLE csv RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "bench_hgemm failed (${failed}):\n${csv}")
endif()
set(before "")
foreach(rung k1_tiled k2_swizzled k3_prefetch k4_fastindex auto)
    if(NOT csv MATCHES "\n[^\n,]*,${rung},[^\n,]*,([0-9]+\\.[0-9]+),")
        message(FATAL_ERROR "no time of ${rung}:\n${csv}")
    endif()
    set(us ${CMAKE_MATCH_1})
    message("modelled  ${rung} ${us} us")
    if(before AND NOT us LESS before)
        message(FATAL_ERROR "${rung} takes ${us} us, the rung before ${before} us")
    endif()
    set(before ${us})
endforeach()
