#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The scripts and commands as someone meets them who does not know them.
#
#   tools.sh SOURCE BUILD WORK
#
# --help prints what there is to know, and touches nothing; an unknown option ends with 2 and a hint. setup.sh on
# machines that lack something, played by stand-ins on PATH. dump_sass.sh finds what it is asked for, and counts
# instructions per HMMA as bench_hgemm does. The commands of docs/install.md do what is said there; the test `install` has
# those that install and link. What BUILD does not have is left out, and said to be.
set -u
source=$1 build=$2 work=$3
failures=0
fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }

rm -rf "$work"
mkdir -p "$work/tree"
work=$(cd "$work" && pwd) || exit 2
tree=$work/tree
cp -r "$source/tools" "$tree/tools" || exit 2
listing() { find "$tree" -type f -exec cksum {} + | sort -k 3; find "$tree" | sort; }
listing >"$work/before"

# run COMMAND...: its status, its output in $work/out and $work/err
run() { "$@" </dev/null >"$work/out" 2>"$work/err"; status=$?; }

# expect WHAT STATUS FILE PATTERN: what the last run gave
expect() {
    [ "$status" = "$2" ] || fail "$1: status $status, not $2: $(tail -n 3 "$work/err")"
    grep -Eq -e "$4" "$work/$3" || fail "$1: nothing like '$4' in its std$3: $(head -c 500 "$work/$3")"
}
untouched() {
    listing >"$work/after"
    cmp -s "$work/before" "$work/after" || fail "$1 changed the tree"
}

# ---- --help, and options that are not known -----------------------------------------------------

# helpful NAME PATTERN COMMAND...
helpful() {
    name=$1 pattern=$2
    shift 2
    run "$@" --help
    expect "$name --help" 0 out "$pattern"
    [ ! -s "$work/err" ] || fail "$name --help writes to stderr"
    run "$@" --nonsense
    expect "$name --nonsense" 2 err 'Try .*--help'
    [ ! -s "$work/out" ] || fail "$name --nonsense writes to stdout"
    untouched "$name"
}
for script in "$tree"/tools/*.sh; do
    name=$(basename "$script")
    helpful "$name" "^  tools/$name" "$script"
done
parts=$(sed -n "s/^case \" \$parts \" in \*' \([a-z_]*\) '\*).*/\1/p" "$source/tools/gpu_check.sh")
HGEMM_CHECK="$parts nonsense" run "$tree/tools/gpu_check.sh" "$work/checked" # takes its own, and comes to that one
expect 'gpu_check.sh with all its parts' 2 err 'has no part nonsense\. Try'
if [ -x "$build/turing" ]; then
    for command in '' list disasm; do
        helpful "turing $command" 'turing run FILE' "$build/turing" $command
    done
    helpful 'turing run' '^  buffer NAME TYPE COUNT INIT' "$build/turing" run
else
    echo "left out: turing, which this build does not have"
fi
if [ -x "$build/hgemm" ]; then
    for command in '' tune plan devices; do
        helpful "hgemm $command" "^Usage: hgemm ${command:-COMMAND}" "$build/hgemm" $command
    done
else
    echo "left out: hgemm, which this build does not have"
fi
if [ -x "$build/bench/bench_hgemm" ]; then
    helpful bench_hgemm 't4emu:time' "$build/bench/bench_hgemm"
    run "$build/bench/bench_hgemm" --help
    sed -n 's/.*{"\([a-z-]*\)", [01], NULL, .*/\1/p' "$source/bench/options.c" | grep -vx help >"$work/options"
    grep -qx batch "$work/options" || fail "this test does not find the options of bench_hgemm"
    while read -r option; do
        grep -q -e "--$option" "$work/out" || fail "bench_hgemm --help does not tell of --$option"
    done <"$work/options"
else
    echo "left out: bench_hgemm, which this build does not have"
fi

# ---- setup.sh -------------------------------------------------------------------------------------

# machine NAME: a folder $bin of commands, of which those that setup.sh needs are this machine's; `stub` adds others
machine() {
    bin=$work/$1
    mkdir "$bin"
    for tool in sh dirname mkdir printf sed sort head tail grep awk env id; do
        ln -s "$(command -v "$tool")" "$bin/$tool"
    done
    stub gcc 'exit 0'
    stub g++ 'exit 0'
    stub cmake 'echo cmake version 3.25.1'
    stub nvcc 'echo Cuda compilation tools, release 13.0, V13.0.88'
}
# Not through a link of `machine`, which leads to this machine's own command.
stub() { rm -f "$bin/$1" && printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1" && chmod +x "$bin/$1"; }
setup() { run env -i PATH="$bin" "$tree/tools/setup.sh"; }

machine without_root
stub id 'echo 1000'
stub apt-get 'exit 1'
setup
expect 'setup.sh without root' 1 err '^ *apt-get update && apt-get install .* ninja-build$'

machine without_apt
setup
expect 'setup.sh without apt' 1 err 'Debian packages hold is missing: ninja-build$'
expect 'setup.sh without apt' 1 err 'dnf install'

machine with_apt
stub id 'echo 0'
# shellcheck disable=SC2016 # expanded later
stub apt-get 'echo "$*"; [ "$1" = update ] || exit 100'
setup
expect 'setup.sh where apt fails' 1 err 'apt-get failed, see build/setup.log'
grep -q '^install -y --no-install-recommends ninja-build$' "$tree/build/setup.log" || fail "setup.sh asks apt for something else"

# driver DRIVER CUDA CAPABILITY NVCC: a machine with that driver, for that CUDA, and that nvcc; what setup.sh says goes to err
driver() {
    rm -rf "$work/driver"
    machine driver
    stub ninja 'exit 0'
    stub nvcc "echo 'Cuda compilation tools, release $4, V$4.99'"
    stub nvidia-smi "case \$1 in *driver_version) echo $1.54.03 ;; *compute_cap) echo $3 ;; *) echo '| CUDA Version: $2 |' ;; esac"
    setup
    [ "$status" = 0 ] || fail "setup.sh with driver $1 and nvcc $4: status $status: $(cat "$work/err")"
}
warns() {
    driver "$1" "$2" "$3" "$4"
    expect "setup.sh with driver $1 and nvcc $4" 0 err "WARNING.*$5"
}
is_silent() {
    driver "$@"
    [ ! -s "$work/err" ] || fail "setup.sh with driver $1 and nvcc $4 on $3 says $(cat "$work/err")"
}
warns 550 12.4 7.5 13.0 'need driver 580 or newer, and here is 550: .*nvcc of CUDA 12 '
warns 470 11.4 7.5 12.4 'need driver 525 or newer, and here is 470: update the driver$'
warns 535 12.2 8.6 12.4 'cannot compile their PTX.*compute capability 8.6.*nvcc of CUDA 12.2 or older'
warns 580 13.0 9.0 13.5 'cannot compile their PTX.*nvcc of CUDA 13.0 or older'
is_silent 525 12.0 7.5 12.9
is_silent 580 13.0 7.5 13.5
is_silent 580 13.0 9.0 13.0
is_silent 580 13.0 8.6 12.4

# ---- dump_sass.sh ---------------------------------------------------------------------------------

export HGEMM_BUILD="$build"
images=$(sed -n 's/^HGEMM_IMAGE_DIR:PATH=//p' "$build/CMakeCache.txt")
images=${images:-$build/kernels}
dump=$source/tools/dump_sass.sh
wanted="k1_tiled_nn k2_swizzled_nn k5_64x64_nn k5_64x32_f32_nt_x8 single_128x128_nt_f32" missing=''
for variant in $wanted; do
    [ -f "$images/$variant.fatbin" ] || missing="$missing $variant"
done
if [ -x "$build/turing" ] && [ -z "$missing" ]; then
    run "$dump" k2_swizzled_nn
    expect 'dump_sass.sh of a variant' 0 out '^k2_swizzled_nn, main loop:$'
    ! grep -q 'EXIT' "$work/out" || fail 'dump_sass.sh shows more than the main loop'
    run "$dump" --all k2_swizzled_nn
    expect 'dump_sass.sh --all' 0 out '^> /\*[0-9a-f]*\*/ .*HMMA'
    expect 'dump_sass.sh --all' 0 out '^  /\*[0-9a-f]*\*/ .*EXIT'
    run "$dump" -s k2_swizzled
    expect 'dump_sass.sh of a kernel' 0 out "^k2_swizzled_nn +[0-9]+ +0 +[0-9]+ +128 "
    [ "$(wc -l <"$work/out")" = 2 ] || fail 'dump_sass.sh -s shows more than the summary of one kernel'
    run "$dump" -s single_128x128_nt_f32 # whose source declares an array, and which spills nothing
    expect 'dump_sass.sh of a kernel with an array' 0 out '^variant +regs +local '
    expect 'dump_sass.sh of a kernel with an array' 0 out '^single_128x128_nt_f32 +[0-9]+ +[1-9][0-9]* '
    mkdir -p "$work/built/kernels" # a build with few kernels
    ln -s "$build/turing" "$work/built/turing"
    for variant in $wanted; do
        ln -s "$images/$variant.fatbin" "$images/$variant.usage" "$work/built/kernels"
    done
    HGEMM_BUILD=$work/built
    run "$dump" -s k5_tuned
    expect 'dump_sass.sh of a rung' 0 out '^k5_64x64_nn '
    expect 'dump_sass.sh of a rung' 0 out '^k5_64x32_f32_nt_x8 '
    [ "$(wc -l <"$work/out")" = 3 ] || fail 'dump_sass.sh of a rung shows other kernels too'
    HGEMM_BUILD=$build
    run "$dump" nothing
    expect 'dump_sass.sh of nothing' 1 err 'no kernel, variant or rung called nothing'
    if [ -x "$build/bench/bench_hgemm" ]; then
        for kernel in k1_tiled k2_swizzled; do
            run "$dump" -s "${kernel}_nn"
            ours=$(awk -v name="${kernel}_nn" '$1 == name { printf "%.3f", $4 / $5 }' "$work/out")
            run "$build/bench/bench_hgemm" --device t4emu --kernel "^$kernel\$" --format json 128
            theirs=$(sed -n 's/.*"instructions_per_hmma": \([0-9.]*\).*/\1/p' "$work/out" | awk '{ printf "%.3f", $1 }')
            [ -n "$theirs" ] || { echo "left out: $kernel, which this build has not"; continue; }
            [ "${ours:-none}" = "$theirs" ] ||
                fail "$kernel: $ours instructions per HMMA by dump_sass.sh, $theirs by bench_hgemm"
        done
    fi
else
    echo "left out: dump_sass.sh, for this build has no disassembler, or not the kernels$missing"
fi

# ---- docs/install.md ------------------------------------------------------------------------------

# Its commands end where two blanks come before what they are for. gpu_check.sh needs a GPU, run.sh and test.sh build.
sed -n 's/^    \(\(tools\|build\/release\)\/.*\)/\1/p' "$source/docs/install.md" | sed 's/   *.*//' >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 6 ] || fail "this test does not find the commands of docs/install.md"
while read -r command; do
    set -f
    # shellcheck disable=SC2086 # words
    set -- $command
    set +f
    program=$1
    shift
    case $program in
        build/release/*)
            [ -x "$build/${program#build/release/}" ] || { echo "left out: $command"; continue; }
            run "$build/${program#build/release/}" "$@"
            ;;
        tools/dump_sass.sh)
            if [ ! -f "$images/$1_nn.fatbin" ] || [ ! -x "$build/turing" ]; then
                echo "left out: $command"
                continue
            fi
            run "$source/$program" "$@"
            ;;
        *)
            [ -x "$source/$program" ] || fail "docs/install.md: there is no $program"
            continue
            ;;
    esac
    [ "$status/$(head -c 1 "$work/out" | wc -c)" = 0/1 ] || fail "docs/install.md: $command: status $status: $(tail -n 3 "$work/err")"
done <"$work/commands"
for preset in $(sed -n 's/.*# or \([a-z, ]*\);.*/\1/p' "$source/docs/install.md" | tr -d ,); do
    grep -q "\"name\": \"$preset\", \"inherits\"" "$source/CMakePresets.json" || fail "docs/install.md: there is no preset $preset"
done

if [ "$failures" = 0 ]; then echo "all as it should be"; fi
[ "$failures" = 0 ]
