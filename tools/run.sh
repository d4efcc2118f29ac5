#!/bin/sh
# SPDX-License-Identifier: MIT
#
# From a fresh clone to a result: sets up what is missing, builds, multiplies two matrices and
# shows each kernel's speed beside cuBLAS. Arguments go to bench_hgemm (try --help).
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh
printf '==> building\n' >&2
mkdir -p build
{ cmake --preset release && cmake --build --preset release; } >build/build.log 2>&1 ||
    { tail -n 60 build/build.log >&2; printf 'FAILED: the build, see build/build.log\n' >&2; exit 1; }
printf '==> examples/multiply\n' >&2
build/release/multiply
printf '==> bench_hgemm\n' >&2
exec build/release/bench/bench_hgemm "$@"
