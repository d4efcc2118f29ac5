#!/bin/sh
# SPDX-License-Identifier: MIT
#
# turing_run.sh TURING CUBIN APART WORK: several launches, variables, structs, expectations and mistakes in a file of
# `turing run`. The kernels are those of turing_people.cu,
# and of turing_apart.cu.
set -eu
turing=$1 cubin=$2 apart=$3 work=$4
mkdir -p "$work"
cat > "$work/good" << X
cubin $cubin
checks all
symbol weights f32 4 fill 3
symbol visits i32 1 none
buffer d f32 64 none
kernel module_var
grid 2
arg d
expect d 0 3 3 3 3 6
launch
limit 1000
kernel module_variables
arg d
launch
expect visits 0 128
kernel prints
grid 1
buffer a i32 32 ramp
arg a
launch
X
"$turing" run "$work/good" > "$work/out"
grep -q '^3  1.50 text z' "$work/out"

# Functions in sections of their own.
cat > "$work/apart" << X
cubin $apart
checks all
buffer a i32 32 ramp
buffer d i32 32 none
kernel apart
arg a
arg d
expect d 0 0 3 8 15
X
"$turing" run "$work/apart"
sed 's/^kernel apart/kernel apart_too/; s/^expect.*/expect d 0 0 1 8 27/' "$work/apart" > "$work/apart_too"
"$turing" run "$work/apart_too"

# Constants of the timing model: cycles with these statements before the others.
cycles()
{
    { echo "cubin $cubin"; printf '%s\n' "$@"; cat << X
kernel flag_last
buffer a i32 32 ramp
buffer d i32 32 none
arg a
arg d
arg u8 0
X
    } > "$work/clock"
    "$turing" run "$work/clock" | sed -n 's/^  time  *\([0-9]*\) cycles.*/\1/p'
}
plain=$(cycles time)
test "$plain" = "$(cycles 'time dry')"
test "$plain" = "$(cycles time 'clock dram_latency 220' 'clock l2_part 0')"
test "$((plain + 100))" = "$(cycles 'clock dram_latency 320' time)"
# A block of 13 lanes stores one sector whole and half of another, not in L2.
half=$(cycles 'block 13' time)
test "$half" -lt "$(cycles 'block 13' time 'clock l2_part 8')"
test "$plain" = "$(cycles time 'clock l2_part 8' 'clock dram_fill 2')"

# says STATUS WORDS: the file on standard input is refused or differs so.
says()
{
    cat > "$work/bad"
    status=0
    "$turing" run "$work/bad" > "$work/out" 2>&1 || status=$?
    if [ "$status" != "$1" ] || ! grep -q "$2" "$work/out"; then
        echo "expected $1, $2; got $status"
        cat "$work/out"
        exit 1
    fi
}
for clock in 'latency 1' 'queue 9' 'queue 0' 'dram_rate 0' 'port -1' 'port nan' 'port 1e300'; do
    says 2 "no such constant, or no value for it: ${clock% *}" << X
clock $clock
X
done
says 2 'no number: 3x' << X
clock port 3x
X
# What is no number, or one that cannot be, is not taken for another.
for line in 'limit ten' 'limit -1' 'threads -1' 'threads 4096' 'shared all' 'grid x' 'block 32 1 z' 'expect d x 3' 'print d a' \
    'print d 0 b' 'buffer q f32 many none' 'buffer q f32 -3 none' 'buffer q f32 4 fill three' 'buffer q u8 4 fill 256' \
    'buffer q i8 4 fill -129' 'buffer q f32 4 random a 0 1' 'buffer q f32 4 random 1 0 b' 'expect d file /dev/null near' 'arg d +x'; do
    says 2 'bad:4: no number' << X
cubin $cubin
kernel flag_last
buffer d i32 32 none
$line
X
done
says 2 'one to three numbers must follow: block' << X
block
X
says 2 'unknown statement: tensor' << X
tensor cores
X
{ printf 'cubin %s\nkernel flag_last\nbuffer d i32 600 none\nexpect d 0' "$cubin"; yes ' 0' | head -n 600 | tr -d '\n'; echo; } > "$work/long"
says 2 'the line is too long' < "$work/long"
says 2 'unknown statement: time' << X
time wet
X
says 2 'arg before kernel: say first' << X
cubin $cubin
arg u32 1
X
says 2 'more than one kernel has this in its name: bad_' << X
cubin $cubin
kernel bad_
X
says 2 'no such __device__ or __constant__ variable: wait' << X
cubin $cubin
symbol wait f32 1 none
X
says 2 'another size: i32, parameter 2 has 1 bytes' << X
cubin $cubin
kernel flag_last
buffer a i32 32 ramp
arg a
arg a
arg i32 1
X
says 1 'd\[1\] is -1, expected 1 (1 of 3 elements differ)' << X
cubin $cubin
kernel flag_last
buffer a i32 32 ramp
buffer d i32 32 none
arg a
arg d
arg u8 1
expect d 0 0 1 -2
X
says 2 'textures and surfaces are not emulated' << X
cubin $cubin
kernel bad_texture
buffer d f32 32 none
arg u64 1
arg d
X
"$turing" list "$cubin" | grep -q 'cannot be executed: bad_texture+0x40 (TLD'
echo "all as expected"
