#!/bin/sh
# SPDX-License-Identifier: MIT
#
# turing_vendor.sh TURING IMAGE... - our disassembly of every instruction of the images is cuobjdump's,
# and so are the 128 bits it was read from. Skipped (77) where there is no cuobjdump.
set -eu
command -v cuobjdump >/dev/null || { echo "SKIPPED: cuobjdump was not found"; exit 77; }
turing=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "address text low-bits" and "high-bits" lines, blanks folded
vendor() {
    cuobjdump --dump-sass "$1" | sed -n -e 's|^ */\*\([0-9a-f]*\)\*/ *\(.*[^ ]\) *; */\* 0x\([0-9a-f]*\) \*/|\1 \2 \3|p' \
        -e 's|^ */\* 0x\([0-9a-f]*\) \*/$|\1|p' | tr -s ' '
}
ours() {
    "$turing" disasm -x "$1" | sed -n -e 's|^ */\*\([0-9a-f]*\)\*/ *\(.*[^ ]\) *; */\* 0x\([0-9a-f]\{16\}\)\([0-9a-f]\{16\}\) \*/|\1 \2 \4\n\3|p' | tr -s ' '
}

total=0
for image; do
    vendor "$image" >"$work/vendor"
    ours "$image" >"$work/ours"
    lines=$(wc -l <"$work/vendor")
    [ "$lines" -gt 100 ] || { echo "FAILED: $image: cuobjdump shows $lines lines"; exit 1; }
    diff "$work/vendor" "$work/ours" >"$work/diff" || { echo "FAILED: $image"; head -n 10 "$work/diff"; exit 1; }
    total=$((total + lines / 2))
done
echo "$# images, $total instructions"
