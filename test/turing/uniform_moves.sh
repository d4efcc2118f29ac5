#!/bin/sh
# SPDX-License-Identifier: MIT
#
# uniform_moves.sh TURING NVCC_VERSION IMAGE... - the main loops of weights by tables have their table in registers (ptx/lookup.cuh).
# No result shows where ptxas finds the words to be alike in all lanes after all: then a move from a uniform register comes before
# each permutation, fifty and more in a loop (note 491). Skipped (77) for images of another nvcc, whose ptxas allots registers otherwise.
set -eu
turing=$1 version=$2
shift 2
[ "$version" = 13.0.88 ] || { echo "SKIPPED: nvcc $version"; exit 77; }
[ $# -gt 0 ] || { echo "FAILED: no images"; exit 1; }
most=12
for image; do
    loop=$("$turing" disasm -m "$image" | grep '^>')
    permutations=$(echo "$loop" | grep -c ' PRMT ')
    moves=$(echo "$loop" | grep -cE ' (IMAD\.U32|MOV) R[0-9]+,.* UR[0-9]+ ;' || true)
    echo "$(basename "$image"): $moves moves from uniform registers, $permutations permutations"
    [ "$permutations" -ge 60 ] || { echo "FAILED: that is no loop by tables"; exit 1; }
    [ "$moves" -le $most ] || { echo "FAILED: at most $most are expected"; exit 1; }
done
