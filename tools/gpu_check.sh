#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a machine with a GPU can show: tests, compute-sanitizer, benchmark; in under ten minutes by default.
#
#   tools/gpu_check.sh OUT [BUNDLE]
#
# Results go to the folder OUT: summary.txt with the benchmark's tables, tests.txt, sanitizer.txt and
# bench_<problems>.json. BUNDLE is what the build target `bundle` made, by default build/release/bundle; it needs
# neither compiler nor library on the GPU machine. Without it the release preset is built first.
#
# The environment's HGEMM_CHECK selects parts, by default "tests sanitizer bench". `cases` runs 100,000 random cases of all
# that a descriptor can say, into cases.txt; HGEMM_TEST_SEED says which. Others compare with CUTLASS too, over
# more shapes (build with -DHGEMM_PEERS=ON), some two minutes each:
#   sweep random    squares, random shapes         attention   strided batches of attention's products
#   energy          by the GPU's own counter       deepbench1 to deepbench6
#   types           products of FP32, of BF16 and by packed weights
#   plans           selection's choice beside the plans it was made from; plans_attention the same for attention, and
#                   one of its products with sums of 8 to 256
#   tune            hgemm tune over random shapes, four minutes of it; then what its file chooses against the default
#   sanitizer_cases 100 random cases through each of compute-sanitizer's tools, all at one time: under two minutes, into
#                   sanitizer_cases.txt
# HGEMM_DEVICE says which GPU (cuda:1), HGEMM_CUBLAS_LIBRARY where libcublas is.
#
# Exit status: 0 if all that ran passed; tests of kernels and benchmarks must have run. compute-sanitizer may be
# missing, or out of time: that is reported and is no failure. 1 if not, 2 where the arguments are not understood.
set -u

hint() { printf 'gpu_check: %s. Try --help.\n' "$1" >&2; exit 2; }
case ${1:-} in
    -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) hint "unknown option $1" ;;
    '') hint "takes a folder for its results" ;;
esac
[ $# -le 2 ] || hint "takes two folders at most"
cd "$(dirname "$0")/.." || exit 2
out=$1
bundle=${2:-build/release/bundle}
parts=${HGEMM_CHECK:-tests sanitizer bench}
for part in $parts; do
    case $part in
        tests | cases | sanitizer | sanitizer_cases | bench | types | sweep | random | attention | energy | plans | plans_attention | tune | deepbench[1-6]) ;;
        *) hint "HGEMM_CHECK has no part $part" ;;
    esac
done
export HGEMM_DEVICE="${HGEMM_DEVICE:-cuda}" # never the emulator, should there be no GPU after all
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
summary=$out/summary.txt
: >"$summary"
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
began=$(date +%s)

say() { printf '%s\n' "$*" | tee -a "$summary"; }
bad() { say "FAILED: $*"; failed=1; }
about() { echo "hgemm $("$bin/bench_hgemm" --version)"; }
elapsed() { echo "$(($(date +%s) - began)) s"; }
jobs=$(nproc)
[ "$jobs" -le 16 ] || jobs=16 # each has its own part of the GPU's memory

if [ ! -d "$bundle" ]; then
    say "no folder $bundle: building it"
    { cmake --preset release && cmake --build --preset release --target bundle; } >"$work/build" 2>&1 ||
        { bad "the build"; tail -n 40 "$work/build" | tee -a "$summary"; exit 1; }
fi
bundle=$(cd "$bundle" && pwd) || exit 2
bin=$bundle/bin

# cuBLAS often comes with Python packages only.
if [ -z "${HGEMM_CUBLAS_LIBRARY:-}" ] && ! ldconfig -p 2>/dev/null | grep -q 'libcublas\.so'; then
    HGEMM_CUBLAS_LIBRARY=$(python3 - 2>/dev/null <<'EOF'
import glob, site, sys
paths = [p for s in sys.path + site.getsitepackages() for p in glob.glob(s + "/nvidia/*/lib/libcublas.so.1[1-9]")]
print(paths[0] if paths else "")
EOF
    )
    [ -n "$HGEMM_CUBLAS_LIBRARY" ] || HGEMM_CUBLAS_LIBRARY=$(find /usr/local/cuda*/ -name 'libcublas.so.1[1-9]' 2>/dev/null | head -n 1)
    if [ -n "$HGEMM_CUBLAS_LIBRARY" ]; then
        # Programs that open it by name find it, and its own libraries, there.
        LD_LIBRARY_PATH=$(dirname "$HGEMM_CUBLAS_LIBRARY")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export HGEMM_CUBLAS_LIBRARY LD_LIBRARY_PATH
    else
        unset HGEMM_CUBLAS_LIBRARY
    fi
fi

say "machine: $(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv,noheader 2>/dev/null || echo 'nvidia-smi is missing')"
say "cuBLAS: ${HGEMM_CUBLAS_LIBRARY:-as the dynamic linker finds it}"

# What happens to the test $1 of tests.list: its output and exit status go to files.
# shellcheck disable=SC2016 # expanded later
one='
    start=$(date +%s)
    name=$1
    set -- $(sed -n "s/^$name //p" "$bundle/tests.list")
    program=$1
    shift
    $through "$bundle/bin/$program" "$@" </dev/null >"$work/$name.log" 2>&1
    status=$?
    echo "=== $what $name: status $status, $(($(date +%s) - start)) s" >>"$work/$name.log"
    cat "$work/$name.log" >>"$log" # at once, for the machine may not stay to the end
    echo "$status" >"$work/$name.status"
'

# run_tests WHAT LOG PATTERN COMMAND...: the tests whose name matches, $jobs at a time, each
# through COMMAND; output is appended to LOG. `timeout` ends with 124.
run_tests() {
    what=$1 log=$2 pattern=$3
    shift 3
    through=$*
    export bundle work what log through
    rm -f "$work"/*.status
    cut -d' ' -f1 "$bundle/tests.list" | grep -E "$pattern" | xargs -P "$jobs" -I '{}' sh -c "$one" sh '{}'

    passed=0 skipped='' late='' broken=''
    for file in "$work"/*.status; do
        name=$(basename "$file" .status)
        case $(cat "$file") in
            0) passed=$((passed + 1)) ;;
            77) skipped="$skipped $name" ;;
            124) late="$late $name" ;;
            *) broken="$broken $name" ;;
        esac
    done
    say "$what: $passed passed${skipped:+; skipped:$skipped}${late:+; not finished in time:$late} ($(elapsed))"
    [ -z "$broken" ] || bad "$what:$broken"
}

case " $parts " in *' tests '*)
    about >"$out/tests.txt"
    export HGEMM_TEST_FULL=1
    # check_<kernel> is the emulator's, and needs no GPU
    run_tests tests "$out/tests.txt" '^(test|gemm|consumer)_' timeout 400
    unset HGEMM_TEST_FULL
    [ -z "$late" ] || bad "tests not finished in time:$late"
    grep -qx 0 "$work"/gemm_*.status 2>/dev/null || bad "tests: no kernel ran"
    case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
        9.*)
            echo "=== bits of a Hopper GPU" >>"$out/tests.txt"
            if HGEMM_DEVICE=cuda "$bin/test_bits" "$bundle/data/bits_h100.txt" >>"$out/tests.txt" 2>&1; then
                say "bits: $(tail -n 1 "$out/tests.txt")"
            else
                bad "bits: $(tail -n 1 "$out/tests.txt")"
            fi
            ;;
        *) say "bits: skipped, bits_h100.txt is a Hopper GPU's" ;;
    esac
esac

case " $parts " in *' cases '*)
    about >"$out/cases.txt"
    HGEMM_TEST_FULL=1 "$bin/test_gemm" random --count 100000 --jobs "$jobs" >>"$out/cases.txt" 2>&1 || bad "random cases"
    say "random cases: $(tail -n 1 "$out/cases.txt") ($(elapsed))"
esac

# The named problems: what the README and docs/performance.md show.
bench() {
    name=$1
    shift
    rm -f "$out/bench_$name.json"
    if ! "$bin/bench_hgemm" --format json --out "$out/bench_$name.json" "$@" >"$work/table" 2>"$work/log"; then
        bad "bench $name: $(tail -n 1 "$work/log")"
    elif [ ! -s "$out/bench_$name.json" ]; then
        bad "bench $name: no bench_$name.json"
    fi
    say "
=== bench_hgemm $* ($(elapsed))"
    cat "$work/table" "$work/log" >>"$summary"
}
case " $parts " in *' bench '*)
    bench squares --alpha 0.7 --beta 0.3 --kernel '^(auto|k[1-4].*|k5_(256x256|128x256|256x128|128x128|64x128))$' 1024,2048,4096,8192
    bench continuous --alpha 0.7 --beta 0.3 --mode continuous --reps 7 --kernel '^(auto|k.*)$' 4096,8192
    bench transposes --trans nn,nt,tn,tt --accumulate f16,f32 --kernel '^auto' --reps 11 4096,8192
    bench odd --kernel '^auto$' --reps 11 1023,1025,2047,2049,4095,4097,4096x4096x4100,4096x4098x4096
    bench skinny --kernel '^auto$' --reps 11 1x4096x4096,16x4096x4096,32x4096x14336,64x14336x4096,128x4096x4096,35x700x2048,64x64x62500
    bench batch --kernel '^auto' --accumulate f16,f32 --reps 11 --trans nt --batch 384 512x512x64
esac

case " $parts " in *' types '*)
    bench f32 --type f32 --kernel '^auto' --reps 9 1024,2048,4096,8192,1023,2047
    bench f32_rows --type f32 --kernel '^auto' --reps 11 --trans nt 1x4096x4096,16x4096x4096,64x4096x4096,256x4096x4096,512x3072x768
    bench bf16 --type bf16 --peers ceiling,cublas --kernel '^auto' --reps 11 --trans nn,nt,tn 1x4096x4096,16x4096x4096,64x4096x4096,1024,2048,4096
    bench weights_int4 --weights int4:128 --kernel '^auto' --reps 11 1x4096x4096,16x4096x4096,64x4096x4096,256x4096x4096,2048x4096x4096
    bench experts --weights int4:128 --experts 8:2 --kernel '^auto' --reps 11 1x4096x4096,4x4096x4096,16x4096x4096,64x4096x4096
esac
case " $parts " in *' sweep '*)
    bench sweep --kernel '^auto$' --reps 9 128:1024:128,1280:2048:256,2560:4096:512,5120:8192:1024,192,320,448,576,704,960,1088,1600,3200,127,255,511,767,1023,1025,1279,1535,2047,2049,3071,3073,4095,4097,6143,8191
esac
case " $parts " in *' random '*)
    bench random --shapes bench/shapes/random.csv --kernel '^auto$' --reps 9
esac
case " $parts " in *' attention '*)
    bench attention --shapes bench/shapes/attention.csv --kernel '^auto' --accumulate f16,f32 --reps 9
    bench batches --shapes bench/shapes/batches.csv --kernel '^auto' --accumulate f16,f32 --reps 9
esac
case " $parts " in *' plans_attention '*)
    grep -E '^(m,.*|512,512,64,0,1,384|512,64,512,0,0,384|1024,1024,64,0,1,48|2048,2048,128,0,1,32|2048,128,2048,0,0,32)$' \
        bench/shapes/attention.csv >"$work/shapes.csv"
    bench plans_attention --shapes "$work/shapes.csv" --kernel '^auto' --accumulate f16,f32 --peers cublas,copy --plans 12 --reps 7
    # The same D from ever longer sums: what is left at the shortest is the time of the epilogue and of D's way to memory.
    bench sums_attention --batch 384 --trans nt --kernel '^auto' --accumulate f16,f32 --peers cublas,copy --reps 7 \
        512x512x8,512x512x16,512x512x32,512x512x64,512x512x128,512x512x256
esac
case " $parts " in *' plans '*)
    bench plans --shapes bench/shapes/random.csv --kernel '^auto$' --peers none --plans 16 --reps 7
esac
case " $parts " in *' tune '*)
    say "
=== hgemm tune, hgemm tune --check ($(elapsed))"
    rm -f "$out/tuning" # of another run, maybe on another machine: tune would go on with it, or refuse it
    timeout 420 "$bin/hgemm" tune --shapes bench/shapes/random.csv --accumulate f16,f32 --budget 240 --out "$out/tuning" \
        >"$work/table" 2>"$work/log" || bad "tune: status $?, $(tail -n 1 "$work/log")"
    timeout 420 "$bin/hgemm" tune --check --out "$out/tuning" >>"$work/table" 2>>"$work/log" ||
        bad "tune --check: status $?, $(tail -n 1 "$work/table")"
    cat "$work/table" "$work/log" >>"$summary"
    say "tune --check: $(tail -n 1 "$work/table") ($(elapsed))"
esac
case " $parts " in *' energy '*)
    bench energy --energy --reps 3 --kernel '^auto' --accumulate f16,f32 8192
    bench energy_f32 --type f32 --energy --reps 3 --peers cublas --kernel '^auto' 4096
esac
for part in 1 2 3 4 5 6; do
    case " $parts " in *" deepbench$part "*)
        awk -v part="$part" 'NR == 1 || NR % 6 == part % 6' bench/shapes/deepbench_training.csv >"$work/shapes.csv"
        bench "deepbench$part" --layout col --shapes "$work/shapes.csv" --kernel '^auto$' --reps 7
    esac
done

# What a descriptor can say, at random: fused epilogues, groups, pointers, indices, bfloat16, thin products, split k. With
# this seed all of these come. A plain run comes first, so that the driver has compiled all of it. The tools run side by
# side, for each has one case after the other.
case " $parts " in *' sanitizer_cases '*)
    if command -v compute-sanitizer >/dev/null; then
        about >"$out/sanitizer_cases.txt"
        cases="random --count 100 --seed 3"
        # shellcheck disable=SC2086 # several words
        timeout 200 "$bin/test_gemm" $cases --jobs "$jobs" >>"$out/sanitizer_cases.txt" 2>&1 || bad "cases before compute-sanitizer"
        for tool in memcheck racecheck initcheck; do
            # shellcheck disable=SC2086
            {
                timeout 100 compute-sanitizer --tool "$tool" --error-exitcode 99 "$bin/test_gemm" $cases >"$work/$tool.log" 2>&1
                echo $? >"$work/$tool.status"
            } &
        done
        wait
        for tool in memcheck racecheck initcheck; do
            { echo "=== compute-sanitizer $tool"; cat "$work/$tool.log"; } >>"$out/sanitizer_cases.txt"
            case $(cat "$work/$tool.status") in
                0) say "compute-sanitizer $tool, random cases: $(grep 'cases, .* failures' "$work/$tool.log") ($(elapsed))" ;;
                124) say "compute-sanitizer $tool, random cases: not finished in time" ;;
                *) bad "compute-sanitizer $tool, random cases: $(grep -m 1 -E 'Error|FAILED|=========.*(error|hazard)' "$work/$tool.log")" ;;
            esac
        done
    else
        say "compute-sanitizer: missing"
    fi
esac

# Last, in the time that is left.
case " $parts " in *' sanitizer '*)
    if command -v compute-sanitizer >/dev/null; then
        about >"$out/sanitizer.txt"
        tools_left=2
        for tool in memcheck racecheck; do
            seconds=$(((570 - $(date +%s) + began) / tools_left))
            [ "$seconds" -gt 30 ] || seconds=30
            tools_left=$((tools_left - 1))
            run_tests "compute-sanitizer $tool" "$out/sanitizer.txt" '^gemm_' \
                timeout "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 99
        done
    else
        say "compute-sanitizer: missing"
    fi
esac

say "done in $(elapsed): $([ "$failed" = 0 ] && echo 'all that ran passed' || echo 'FAILURES, see above')"
exit "$failed"
