#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The sm_75 machine code of the kernels as they were built, and what their main loops consist of.
#
#   tools/dump_sass.sh [-s] KERNEL|VARIANT|all
#
# KERNEL is a name of the table (k5_256x256: all its variants), VARIANT a symbol (k5_256x256_nn).
# -s prints the summary only. Images are read from HGEMM_BUILD, by default build/release. The code
# is disassembled by cuobjdump where there is one, otherwise by this project's own disassembler.
#
# Columns of the summary, per iteration of the main loop (the smallest loop that holds an HMMA):
#   instr    all instructions               int      integer, logic and address ones, uniform too
#   HMMA     mma.m16n8k8                    per HMMA  instr / HMMA and int / HMMA
#   LDSM LDG STS BAR   with their widths in bits; LDG counts LD through generic addresses too
# and of the whole kernel: regs (of a thread) and spills (LDL and STL: local memory).
set -eu

usage() { sed -n '5,17s/^# \{0,1\}//p' "$0" >&2; exit 2; }
summary_only=''
[ "${1:-}" = -s ] && { summary_only=1; shift; }
[ $# = 1 ] || usage

root=$(dirname "$0")/..
build=${HGEMM_BUILD:-$root/build/release}
[ -d "$build/kernels" ] || { echo "dump_sass: no kernels in $build: build first, or set HGEMM_BUILD" >&2; exit 1; }

if command -v cuobjdump >/dev/null; then
    disassemble() { cuobjdump -sass -arch sm_75 "$1"; }
elif [ -x "$build/turing" ] || [ -x "$build/bin/turing" ]; then
    own=$build/turing
    [ -x "$own" ] || own=$build/bin/turing
    disassemble() { "$own" disasm "$1"; }
else
    cat >&2 <<EOF
dump_sass: no disassembler. Either build this project's own (cmake --build $build --target turing_tool)
or install NVIDIA's cuobjdump, which the CUDA toolkit has (package cuda-cuobjdump) and put it on PATH.
EOF
    exit 1
fi

summarise() {
    awk -v symbol="$1" -v usage="$2" '
    function number(hex,   i, value) {
        for (i = 1; i <= length(hex); i++) value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
        return value
    }
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
        match($0, /\/\*[0-9a-f]+\*\//)
        at = substr($0, RSTART + 2, RLENGTH - 4)
        $0 = substr($0, RSTART + RLENGTH)
        op = $1; operands = 2
        if (op ~ /^@/) { op = $2; operands = 3 }
        n++; address[n] = number(at); ops[n] = op
        if (op ~ /^BRA/)
            for (i = operands; i <= NF; i++)
                if ($i ~ /^0x/) { hex = $i; sub(/^0x/, "", hex); sub(/[^0-9a-f].*/, "", hex); target[n] = number(hex) }
        if (op ~ /^(LDL|STL)/) spills++
    }
    END {
        best = 0
        for (b = 1; b <= n; b++) {
            if (!(b in target) || target[b] >= address[b]) continue
            hmma = 0
            for (i = 1; i <= n; i++) if (address[i] >= target[b] && address[i] <= address[b] && ops[i] ~ /^HMMA/) hmma++
            if (hmma && (!best || address[b] - target[b] < address[best] - target[best])) best = b
        }
        for (i = 1; best && i <= n; i++) {
            if (address[i] < target[best] || address[i] > address[best]) continue
            op = ops[i]
            count("instr")
            if (op ~ /^HMMA/) count("HMMA")
            else if (op ~ /^LDSM/) count("LDSM", op ~ /\.4$/ ? "x4" : op ~ /\.2$/ ? "x2" : "x1")
            else if (op ~ /^LDS/) count("LDS", width_of(op))
            else if (op ~ /^(LDG|LD($|\.))/) count("LDG", width_of(op))
            else if (op ~ /^STS/) count("STS", width_of(op))
            else if (op ~ /^BAR/) count("BAR")
            else if (op ~ /^U?(IADD|IMAD|LEA|LOP|SHF|ISETP|IMNMX|PRMT|MOV|SEL|IABS|PLOP|P2|SGXT|BMSK|FLO|POPC)/) count("int")
        }
        split(usage, used, " ")
        format = "%-24s %5s %6s %6d %5d %5d %8.2f %8.2f %8s %12s %12s %4d\n"
        if (!best) { printf "%-24s %5s %6d  no loop with HMMA\n", symbol, used[1], spills; exit }
        printf format, symbol, used[1], spills + 0, counts["instr"], counts["HMMA"], counts["int"],
            counts["instr"] / counts["HMMA"], counts["int"] / counts["HMMA"], shown("LDSM"), shown("LDG"), shown("STS"), counts["BAR"]
    }'
}

found=''
table=$(mktemp)
trap 'rm -f "$table"' EXIT
for image in "$build"/kernels/*.fatbin; do
    symbol=$(basename "$image" .fatbin)
    case $1 in
        all) ;;
        "$symbol") ;;
        *) printf '%s\n' "$symbol" | grep -Eq "^$1_(nn|nt|tn|tt)(_x8|_any|_far)?\$" || continue ;;
    esac
    found=1
    code=$(disassemble "$image")
    [ -n "$summary_only" ] || printf '%s\n\n' "$code"
    printf '%s\n' "$code" | summarise "$symbol" "$(cat "$build/kernels/$symbol.usage")" >>"$table"
done
[ -n "$found" ] || { echo "dump_sass: no kernel or variant called $1 in $build/kernels" >&2; exit 1; }
printf '%-24s %5s %6s %6s %5s %5s %8s %8s %8s %12s %12s %4s\n' variant regs spills instr HMMA int instr/HM int/HM LDSM LDG STS BAR
cat "$table"
