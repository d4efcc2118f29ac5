#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command hgemm, and what HGEMM_LOG, HGEMM_RECORD and HGEMM_TUNING do to a program, on the emulated T4 and its model.
#
#   hgemm.sh BUILD WORK
set -u
build=$1 work=$2
failures=0
fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }

rm -rf "$work"
mkdir -p "$work" && cd "$work" || exit 2
unset HGEMM_LOG HGEMM_RECORD HGEMM_TUNING HGEMM_DEVICE
hgemm=$build/hgemm

# run STATUS COMMAND...: its status, its output in out and err
run() {
    wanted=$1
    shift
    "$@" </dev/null >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || fail "$*: status $status, not $wanted: $(tail -n 3 err)"
}
has() { grep -Eq -e "$2" "$1" || fail "nothing like '$2' in $1: $(head -c 600 "$1")"; }
lines() { [ "$(wc -l <"$1")" = "$2" ] || fail "$1 has not $2 lines: $(head -c 600 "$1")"; }

# ---- nothing is said that was not asked for ------------------------------------------------------
run 0 "$hgemm" plan --device t4emu 64
[ ! -s err ] || fail "a call writes to stderr: $(cat err)"

# ---- HGEMM_LOG: a line for each new call, which is a command --------------------------------------
HGEMM_LOG=1 run 0 "$hgemm" plan --device t4emu --trans nt --accumulate f16,f32 40x64x72 "f32 nt 40x64x72 lda 80 aligned 8 8"
lines err 3
has err "^bench_hgemm --device t4emu --trans nt --accumulate f16 --kernel '\^auto\\$' 40x64x72 # f16 nt 40x64x72 = [a-z]"
has err "^bench_hgemm .* --kernel '\^auto_f32\\$' 40x64x72 # f32 nt 40x64x72 lda 80 aligned 8 8 = [a-z]"
HGEMM_LOG=1 run 0 "$hgemm" plan --device t4emu "f32 nn 40x64x72 types f32 f32 accuracy 16bits" "f32 nn 40x64x72 fused types bf16 bf16 scaled_a scaled_b"
has err "^bench_hgemm .* --kernel '\^auto_of_f32_16bits\\$' --type f32 40x64x72 # f32 nn 40x64x72 types f32 f32 accuracy 16bits = [a-z]"
has err "^bench_hgemm .* --kernel '\^auto_of_bf16\\$' --type bf16 40x64x72 # f32 nn 40x64x72 fused types bf16 bf16 scaled_a scaled_b = [a-z]"
cp err of_types
HGEMM_LOG=1 run 0 "$hgemm" plan --device t4emu --trans nt --accumulate f16,f32 40x64x72
cat of_types >>err
if [ -x "$build/bench/bench_hgemm" ]; then
    sed "s|^bench_hgemm|'$hgemm' bench|" err >commands
    run 0 sh -e ./commands
    has out 'auto_f32 '
    has out 'auto_of_f32_16bits '
    has out 'auto_of_bf16 '
    ! grep -q WRONG out || fail "a command of the log: $(cat out)"
fi
# A command's contestant is the call's own, whatever its operands are.
if [ -x "$build/bench/bench_hgemm" ]; then
    for call in "of_uint4:64:code:f16 16x128x256 types f16 packed codes uint4 groups 64 zeros code" \
        "of_bf16_int8:32:none:f32 4x64x128 types bf16 packed codes int8 groups 32 scales f32 scaled_a" \
        "of_int4:128:none:f16 9x64x128 batch 3 grouped types f16 packed groups 128" "f32 9x64x128 batch 3 grouped" \
        "of_bf16_found 32x32x64 types bf16 bf16" "of_bf16 32x32x64 types bf16 bf16 scaled_a scaled_b" "of_f32 32x32x64 types f32 f32"; do
        HGEMM_LOG=1 run 0 "$hgemm" plan --device t4emu "f32 nt ${call#* }"
        lines err 1
        sed "s|^bench_hgemm|'$hgemm' bench|" err >commands
        run 0 sh -e ./commands
        has out "^  auto_${call%% *} "
    done
fi
HGEMM_LOG=log run 0 "$hgemm" plan --device t4emu 64 64x64x72
HGEMM_LOG=log run 0 "$hgemm" plan --device t4emu 64
lines log 3

# ---- HGEMM_RECORD: each shape once, in every run ---------------------------------------------------
record() { HGEMM_RECORD=shapes.csv run 0 "$hgemm" plan --device t4emu "$@"; }
record --accumulate f32 64x64x512 "f16 nn 64x64x1024"
record --accumulate f32 64x64x512 "f16 nn 64x64x1024"
record "f16 nt 16x128x200 lda 201 aligned 2 2"
lines shapes.csv 7
[ "$(head -n 1 shapes.csv)" = m,n,k,trans_a,trans_b,batch ] || fail "shapes.csv begins with other columns"
if [ -x "$build/bench/bench_hgemm" ]; then
    run 0 "$hgemm" bench --device t4emu --kernel '^auto$' --format csv --shapes shapes.csv
    [ "$(grep -c ',auto,' out)" = 3 ] || fail "bench_hgemm does not read the shapes: $(cat out)"
fi

# Processes that start together write one header, and none a line into another's (test_append tries harder).
for round in 1 2; do
    rm -f together.csv
    for i in 1 2 3 4 5 6 7 8; do
        HGEMM_RECORD=together.csv "$hgemm" plan --device t4emu "64x64x${round}00$i" >/dev/null 2>&1 &
    done
    wait
    [ "$(grep -c m,n,k together.csv)$(head -n 1 together.csv)" = 1m,n,k,trans_a,trans_b,batch ] ||
        fail "together.csv has other headers: $(cat together.csv)"
    lines together.csv 17
done
run 0 "$hgemm" plan --device t4emu --shapes together.csv

# What cannot be written is told of, where somebody asks; nothing waits for a reader that a FIFO does not have.
mkfifo fifo
for target in missing/file / fifo; do
    HGEMM_LOG=1 HGEMM_RECORD=$target run 0 timeout 30 "$hgemm" plan --device t4emu 64
    has err "^# hgemm: HGEMM_RECORD is ignored: $target cannot be written: [A-Z]"
    HGEMM_RECORD=$target run 0 timeout 30 "$hgemm" plan --device t4emu 64
    [ ! -s err ] || fail "HGEMM_RECORD=$target: $(cat err)"
    HGEMM_LOG=$target run 0 timeout 30 "$hgemm" plan --device t4emu 64
    has err "^# hgemm: HGEMM_LOG cannot be written: $target: [A-Z]"
done
HGEMM_LOG=1 HGEMM_TUNING=fifo run 0 timeout 30 "$hgemm" plan --device t4emu 64
has err '^# hgemm: HGEMM_TUNING is ignored: fifo is no regular file'

# ---- tune: in steps, to a file that the library follows, which is not slower --------------------------
# tune STATUS FILE ARGUMENTS...
tune() {
    expected=$1 file=$2
    shift 2
    run "$expected" "$hgemm" tune --device t4emu:time --reps 2 --out "$file" "$@"
}
run 1 "$hgemm" tune --device t4emu 64
has err 'has no times'
tune 0 tuning --plans 3 --budget 1e-6 --shapes shapes.csv
lines out 1
has err '2 of 3 shapes are left'
lines tuning 5
tune 0 tuning --plans 3 --shapes shapes.csv
lines out 2
has err '\[1/3\] .*: is in tuning'
lines tuning 7
[ "$(sed 1,4d tuning)" = "$(sed 1,4d tuning | sort)" ] || fail "the file is not sorted: $(cat tuning)"
has tuning '^f32 nn 64x64x512 = [a-z].* # modelled: [0-9.]+ us, by default [0-9.]+ us$'
has tuning '^f16 nt 16x128x200 lda 201 aligned 2 2 = '
tune 0 tuning --check
has out '^0 of 3 shapes are slower than by default'

run 0 "$hgemm" plan --device t4emu:time --tuning tuning "f32 nn 64x64x512"
has out 'chosen by +the tuning file'
HGEMM_TUNING=tuning run 0 "$hgemm" plan --device t4emu:time "f32 nn 64x64x512" "f32 nn 64x64x520"
[ "$(grep -c 'chosen by *the tuning file' out)$(grep -c 'chosen by *the cost model' out)" = 11 ] || fail "HGEMM_TUNING: $(cat out)"

# Where no plan is faster by the margin, the default stays.
run 0 "$hgemm" plan --device t4emu:time --shapes shapes.csv
sed -n 's/.*text .* | \(f.*\) | \([a-z].*\)/\1 = \2/p' out | sort >defaults
lines defaults 3
tune 0 strict --plans 3 --margin 100 --shapes shapes.csv
sed '1,4d; s/ #.*//' strict | sort >chosen
cmp -s chosen defaults || fail "the default does not stay: $(cat chosen)"
sed '1,4d; s/ #.*//' tuning | sort >chosen
! cmp -s chosen defaults || fail "no plan is faster than the default, so that the tests before show nothing"

# Several processes add to one file, each what it measures; a link stays one, also to a file that is not there yet, and the
# file may be read by whom it could be before.
ln -s kept.tuning link
for i in 1 2 3 4; do
    "$hgemm" tune --device t4emu:time,dry --reps 1 --plans 1 --out link "16x16x${i}00" "16x16x${i}08" "16x16x${i}16" \
        "16x16x${i}24" "16x16x${i}32" 16x16x64 >/dev/null 2>"err$i" || cat "err$i" >>broken &
done
wait
[ ! -e broken ] || fail "tune beside others: $(cat broken)"
[ -L link ] || fail "the link has become a file"
lines kept.tuning 25
HGEMM_LOG=1 HGEMM_TUNING=kept.tuning run 0 "$hgemm" plan --device t4emu:time 16x16x424
has out 'chosen by +the tuning file'
chmod 640 kept.tuning
tune 0 link --plans 1 16x16x80
[ "$(stat -c %a link kept.tuning | tr '\n' ' ')" = "777 640 " ] || fail "tune changes what the file is: $(ls -l link kept.tuning)"
lines kept.tuning 26
[ "$(find . -name 'kept.tuning?*')" = "" ] || fail "tune leaves behind: $(find . -name 'kept.tuning?*')"

# A plan that is slow is told of, and replaced only where it is asked for.
long="f16 nn 64x64x1024"
sed "s/^$long = .*/$long = k1_tiled nn x16/" tuning >slow
grep -q k1_tiled slow || fail "there is no line to replace"
tune 1 slow --check "$long"
has out 'k1_tiled.*SLOWER'
tune 0 slow --plans 2 "$long"
grep -q k1_tiled slow || fail "a line was replaced that nobody named"
tune 0 slow --plans 2 --again "$long"
tune 0 slow --check "$long"

# What no entry can say is not measured: operands by pointers, say, are not there.
cp tuning kept
for class in invariant gathered grouped pointers; do
    tune 1 tuning "f16 nn 64x64x64 batch 2 $class"
    has err "batch 2 $class is left out: .* are not tuned"
    cmp -s tuning kept || fail "tune notes what cannot be tuned: $(cat tuning)"
done

# ---- packed weights: planned, recorded, tuned, and followed ------------------------------------------
run 0 "$hgemm" plan --device t4emu --weights nf4:64:none:f32 "f16 nn 64x64x64" 16x128x256
has out '^f16 nn 64x64x64$'
has out '^f32 nt 16x128x256 types f16 packed codes table16 groups 64 scales f32$'
has out '^    kernel +weights_'
HGEMM_LOG=1 HGEMM_RECORD=weights.csv run 0 "$hgemm" plan --device t4emu --batch 2 --weights uint4:64:code 16x128x256
has err "^bench_hgemm --device t4emu --trans nt --accumulate f32 --kernel '\^auto_of_uint4:64:code:f16\\$' --batch 2 --weights uint4:64:code:f16 16x128x256 #"
HGEMM_RECORD=weights.csv run 0 "$hgemm" plan --device t4emu "f32 nt 4x64x128 types bf16 packed codes int8 groups 32 scales f32 scaled_a"
lines weights.csv 5
has weights.csv '^# f32 nt 16x128x256 batch 2 strides 4096 17920 types f16 packed codes uint4 groups 64 zeros code$'
tune 0 packed.tuning --plans 4 --shapes weights.csv
for weights in int4:128 uint4:32:offset int8:0 uint8:64:code e4m3:16 mxfp4:32:none:bf16; do
    tune 0 packed.tuning --plans 3 --margin 0 --weights "$weights" 16x128x256
done
! grep -q 'does not count' err || fail "plans of packed weights disagree: $(cat err)"
lines packed.tuning 12
tune 0 packed.tuning --check
has out '^0 of 8 shapes are slower than by default'
HGEMM_TUNING=packed.tuning run 0 "$hgemm" plan --device t4emu:time --weights mxfp4:32:none:bf16 16x128x256 17x128x256
[ "$(grep -c 'chosen by *the tuning file' out)$(grep -c 'chosen by *the cost model' out)" = 11 ] || fail "HGEMM_TUNING: $(cat out)"
run 0 "$hgemm" plan --device t4emu:time --tuning packed.tuning --shapes weights.csv
[ "$(grep -c 'chosen by *the tuning file' out)" = 2 ] || fail "recorded weights are not followed: $(cat out)"
printf 'm,n,k\n8,64,256\n' >rows.csv
printf 'm,n,k,trans_b\n8,64,256,0\n' >nn.csv
run 0 "$hgemm" plan --device t4emu --weights int4 --shapes rows.csv
has out '^f32 nt 8x64x256 types f16 packed groups 128$'
for wrong in "int3 64" "int4:100 64" "nf4:64:code 64" "int4 1x1x63" "int4 --trans nn 64" "int4 --layout col 64" \
    "int4 --accumulate f16 64" "int4 --shapes nn.csv"; do
    # shellcheck disable=SC2086 # words
    run 2 "$hgemm" plan --device t4emu --weights $wrong
done
has err 'packed weights are multiplied as f32 nt'

# A file that is of no use is ignored; the log says why, and tune leaves it as it is.
sed 's/^library .*/library 0.0.1/' tuning >old
HGEMM_LOG=1 HGEMM_TUNING=old run 0 "$hgemm" plan --device t4emu:time "f32 nn 64x64x512"
has err '^# hgemm: HGEMM_TUNING is ignored: old is for others: its line 2 is "library 0.0.1"'
has out 'chosen by +the cost model'
HGEMM_TUNING=old run 0 "$hgemm" plan --device t4emu:time "f32 nn 64x64x512"
[ ! -s err ] || fail "an old file is told of: $(cat err)"
cp old kept
tune 1 old 64
cmp -s old kept || fail "tune changes a file of another library"
run 1 "$hgemm" plan --device t4emu:time --tuning /dev/null 64

# ---- devices, and arguments that make no sense -------------------------------------------------------
run 0 "$hgemm" devices
has out '^t4emu +Tesla T4 \(emulated\): compute capability 7.5, 40 multiprocessors'
run 2 "$hgemm"
run 2 "$hgemm" fly
for wrong in 0 64x64 64x0x64 64,64 "f16 nn 64x64" "f16 nn 64x64x64 lda x"; do
    run 2 "$hgemm" plan --device t4emu "$wrong"
done
run 1 "$hgemm" plan --device t4emu "f16 nn 64x64x64 lda 63"
run 2 "$hgemm" tune --reps 0 64
run 2 "$hgemm" tune --shapes tuning
run 2 "$hgemm" tune --shapes missing
run 2 "$hgemm" plan --trans nx 64

[ "$failures" = 0 ] && echo passed
exit "$((failures > 0))"
