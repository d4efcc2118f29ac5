#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Shows the sm_75 machine code of kernels as they were built: their main loops, and what these consist of.
#
#   tools/dump_sass.sh [--all | -s] KERNEL|VARIANT|RUNG|all
#
# KERNEL is a name of the table (k5_256x256: all its variants), VARIANT a symbol (k5_256x256_nn), RUNG a file of ptx/
# (k5_tuned: all its kernels). The code is the main loop's; with --all it is all of the kernel's, where ">" begins the
# lines of the main loop; with -s there is none, but the summary below. Images are read from HGEMM_BUILD, by default
# build/release, and disassembled by this project's own `turing`, which the build makes.
#
# The main loop is, of the innermost loops with HMMA, the one with most of them. Columns of the summary, per iteration:
#   instr    all instructions               int      integer, logic and address ones, uniform too
#   HMMA     mma.m16n8k8                    per HMMA  instr / HMMA and int / HMMA
#   LDSM LDG STS BAR   with their widths in bits; LDG counts LD through generic addresses too
# and of the whole kernel: regs (of a thread) and local (LDL and STL: arrays of a thread that its source declares. A spill,
# a register that did not fit, is no such: a kernel that spills fails the build). bench_hgemm on the emulated T4
# shows the same instr / HMMA.
set -eu

hint() { printf 'dump_sass: %s. Try --help.\n' "$1" >&2; exit 2; }
show=loop
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
        --all) show=all ;;
        -s) show='' ;;
        -*) hint "unknown option $1" ;;
        *) break ;;
    esac
    shift
done
[ $# = 1 ] || hint "takes one name, of a kernel, a variant or a rung, or all"

root=$(dirname "$0")/..
build=${HGEMM_BUILD:-$root/build/release}
images=$(sed -n 's/^HGEMM_IMAGE_DIR:PATH=//p' "$build/CMakeCache.txt" 2>/dev/null) || images='' # of another build folder
[ -n "$images" ] || images=$build/kernels
[ -d "$images" ] || { echo "dump_sass: no kernels in $build: build first, or set HGEMM_BUILD" >&2; exit 1; }
turing=$build/turing
[ -x "$turing" ] || turing=$build/bin/turing # of a bundle
[ -x "$turing" ] || { echo "dump_sass: $build has no disassembler: build its target turing_tool" >&2; exit 1; }

names="$1"
[ -f "$root/ptx/$1.cu" ] && names="$1|${1%%_*}_[a-z0-9_]*" # a rung's kernels begin with its number

summarise() {
    awk -v symbol="$1" -v usage="$2" '
    function count(kind, width) { counts[kind]++; if (width) widths[kind, width]++ }
    function shown(kind,   text, i, list, n) {
        n = split("8 16 32 64 128 x1 x2 x4", list, " ")
        for (i = 1; i <= n; i++)
            if (widths[kind, list[i]]) text = text (text ? "+" : "") widths[kind, list[i]] "x" list[i]
        gsub(/xx/, "x", text)
        return counts[kind] ? text : "0"
    }
    # bits of a load or store: the last of its modifiers that is a width, 32 without one
    function width_of(op) {
        if (op ~ /\.128/) return 128
        if (op ~ /\.64/) return 64
        if (op ~ /[.][US]16/) return 16
        if (op ~ /[.][US]8/) return 8
        return 32
    }
    /\/\*[0-9a-f][0-9a-f][0-9a-f][0-9a-f]+\*\/ .*;/ {
        in_loop = /^>/
        sub(/^.*\*\/ */, "")
        op = $1 ~ /^@/ ? $2 : $1
        if (op ~ /^(LDL|STL)/) local++
        if (!in_loop) next
        count("instr")
        if (op ~ /^HMMA/) count("HMMA")
        else if (op ~ /^LDSM/) count("LDSM", op ~ /\.4$/ ? "x4" : op ~ /\.2$/ ? "x2" : "x1")
        else if (op ~ /^LDS/) count("LDS", width_of(op))
        else if (op ~ /^(LDG|LD($|\.))/) count("LDG", width_of(op))
        else if (op ~ /^STS/) count("STS", width_of(op))
        else if (op ~ /^BAR/) count("BAR")
        else if (op ~ /^U?(IADD|IMAD|LEA|LOP|SHF|ISETP|IMNMX|PRMT|MOV|SEL|IABS|PLOP|P2|SGXT|BMSK|FLO|POPC)/) count("int")
    }
    END {
        split(usage, used, " ")
        format = "%-24s %5s %6s %6d %5d %5d %8.2f %8.2f %8s %12s %12s %4d\n"
        if (!counts["HMMA"]) { printf "%-24s %5s %6d  no loop with HMMA\n", symbol, used[1], local; exit }
        printf format, symbol, used[1], local + 0, counts["instr"], counts["HMMA"], counts["int"],
            counts["instr"] / counts["HMMA"], counts["int"] / counts["HMMA"], shown("LDSM"), shown("LDG"), shown("STS"), counts["BAR"]
    }'
}

found=''
table=$(mktemp)
trap 'rm -f "$table"' EXIT
for image in "$images"/*.fatbin; do
    symbol=$(basename "$image" .fatbin)
    case $1 in
        all) ;;
        "$symbol") ;;
        *) printf '%s\n' "$symbol" | grep -Eq "^($names)_(nn|nt|tn|tt)(_x8|_any|_far)?\$" || continue ;;
    esac
    found=1
    code=$("$turing" disasm -m "$image")
    case $show in
        all) printf '%s\n\n' "$code" ;;
        loop) printf '%s, main loop:\n%s\n\n' "$symbol" "$(printf '%s\n' "$code" | sed -n 's/^>/ /p')" ;;
    esac
    printf '%s\n' "$code" | summarise "$symbol" "$(cat "$images/$symbol.usage")" >>"$table"
done
[ -n "$found" ] || { echo "dump_sass: no kernel, variant or rung called $1 in $images" >&2; exit 1; }
printf '%-24s %5s %6s %6s %5s %5s %8s %8s %8s %12s %12s %4s\n' variant regs local instr HMMA int instr/HM int/HM LDSM LDG STS BAR
cat "$table"
