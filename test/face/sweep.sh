#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sweep.sh TURING PROGRAM LIBRARY...: no entry point of CUDA's libraries as `turing exec` has them crashes, whatever it is given.
# What a call says of its arguments goes to standard error, which is left out.
set -eu
turing=$1 program=$2
shift 2
for library; do
    echo "$library"
    nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [TW] \(cu[A-Zd][^@]*\).*/\1/p' |
        "$turing" exec "$program" "$(basename "$library")" 2> /dev/null
done
