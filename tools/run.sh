#!/bin/sh
# SPDX-License-Identifier: MIT
#
# From a fresh clone to a result: sets up what is missing, builds, multiplies two matrices and shows how fast the
# kernels are.
#
#   tools/run.sh [--counts] [--all-kernels] [-- OPTIONS OF bench_hgemm]
#
# With a GPU it builds everything and measures each kernel beside cuBLAS. Without one it builds the kernels that it
# needs and shows what a timing model says that each rung of the ladder takes on a T4, beside what is published of
# cuBLAS there: modelled, not measured.
#   --counts       without a GPU: what the emulated T4 counts instead (bank conflicts, bytes, instructions)
#   --all-kernels  without a GPU: build all kernels, which options after -- may need
#   --             what follows goes to bench_hgemm, whose --help lists its options
# Exit status: 0, 1 where something failed, 2 where an option is not known.
set -eu
counts='' all=''
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
        --counts) counts=1 ;;
        --all-kernels) all=1 ;;
        --) shift; break ;;
        *) printf 'run: takes no %s. Try --help.\n' "$1" >&2; exit 2 ;;
    esac
    shift
done
cd "$(dirname "$0")/.."

step() { printf '==> %s\n' "$*" >&2; }
cores=$(nproc)
gpu=''
case ${HGEMM_DEVICE:-} in
    t4emu*) ;;
    *) ! nvidia-smi >/dev/null 2>&1 || { gpu=1; all=1; } ;;
esac

if [ -n "$all" ]; then
    folder=build/release minutes=$((2 + 16 / cores))
    configure() { cmake --preset release; }
else
    folder=build/run minutes=$((1 + 2 / cores))
    # all kernels for row-major matrices, not transposed, aligned, with sums in half precision
    configure() { cmake --preset release -B build/run -DHGEMM_TESTS=OFF '-DHGEMM_KERNELS=^k[0-9]_[a-z0-9]+_nn$'; }
fi
step "this takes at most $minutes minutes on $cores idle cores, the first time, and as long again as missing packages take"
tools/setup.sh
step "building"
mkdir -p build
# Tells of every tenth that is done.
show_progress() {
    shown=0
    while read -r percent _; do
        case $percent in
            *[!0-9%]* | '' | %*) ;;
            *%) [ "${percent%\%}" -lt $((shown + 10)) ] || { shown=${percent%\%}; step "building: $percent"; } ;;
        esac
    done
}
{ configure && NINJA_STATUS='%p ' cmake --build "$folder" && echo built; } 2>&1 | tee build/build.log | show_progress
[ "$(tail -n 1 build/build.log)" = built ] ||
    { tail -n 60 build/build.log >&2; printf 'FAILED: the build, see build/build.log\n' >&2; exit 1; }
bench=$folder/bench/bench_hgemm

if [ -n "$gpu" ]; then
    step "examples/multiply"
    "$folder/multiply"
    step "bench_hgemm"
    exec "$bench" "$@"
fi
step "examples/multiply, on an emulated T4"
HGEMM_DEVICE=t4emu "$folder/multiply"
if [ -n "$counts" ]; then
    step "bench_hgemm: what the emulated T4 counts"
    [ $# -gt 0 ] || set -- --kernel '^(k[1-5]_.*|auto)$' 512 # k0_naive would take a minute more
    exec "$bench" --device t4emu "$@"
elif [ $# -gt 0 ]; then
    step "bench_hgemm, by the timing model of a T4"
    exec "$bench" --device t4emu:time "$@"
fi
step "the ladder on a T4, by a timing model"
model() { "$bench" --device t4emu:time,dry --reps 1 "$@"; }
model --peers none --kernel '^k0_naive$' 256
others=$(model --peers ceiling --kernel '^(k[1-4].*|auto)$' 1024)
echo
printf '%s\n' "$others" | sed '/ modelled, not measured$/,$!d' # what is above stands there already
cat <<EOF

Nothing above was measured: a model of the T4 (docs/emulator.md) executed the kernels' machine code. k0_naive computes each
element by itself, for which the emulator would take minutes at 1024. "auto" is what hgemm_run runs, the fifth rung.
"median us" is the kernel alone; "events us" is what a T4 that is timed by a pair of events after a pause would say, and
"% published" compares that with cublasHgemm's rate on a T4, which others timed so. "% ceiling" is of the rate of
mma.m16n8k8 alone in the same model. The model is calibrated by twelve published times and not yet judged on times that
were kept back. On a machine with a GPU this script measures.
    tools/run.sh --counts       what the emulator counts
    $bench --help
EOF
