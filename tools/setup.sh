#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes a fresh Debian or Ubuntu able to build: installs the packages that are missing (as root, or
# through sudo) and, where there is no CUDA compiler, fetches one into .toolchain/ of this tree
# from the Python package index (about 250 MB unpacked; nothing outside the tree changes).
# What is there already is left alone; run again, it does nothing.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
log=build/setup.log
: >"$log"

step() { printf '==> %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has() { command -v "$1" >/dev/null 2>&1; }

# has_header LANGUAGE HEADER: whether it can be included (cmocka.h wants others before it).
has_header() {
    printf '#include <%s>\n' stddef.h stdint.h stdarg.h setjmp.h "$2" | gcc -x "$1" -fsyntax-only - 2>/dev/null
}

find_nvcc() {
    for nvcc in "$(command -v nvcc 2>/dev/null)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" \
        .toolchain/nvidia/cu13/bin/nvcc /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc; do
        [ -x "$nvcc" ] && return 0
    done
    return 1
}

missing=''
need() { missing="$missing $1"; }
has gcc || need gcc
has g++ || need g++
has cmake || need cmake
has ninja || need ninja-build
has_header c cmocka.h || need libcmocka-dev
has_header c libelf.h || need libelf-dev
has_header c zstd.h || need libzstd-dev
has_header c++ benchmark/benchmark.h || need libbenchmark-dev
if ! find_nvcc; then
    python3 -m pip --version >/dev/null 2>&1 || need "python3-pip ca-certificates"
fi

if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ]; then
        as_root=''
    elif has sudo; then
        as_root=sudo
    else
        die "these packages are missing, and only root can install them:$missing"
    fi
    has apt-get || die "install what these Debian packages hold:$missing"
    step "installing$missing"
    # shellcheck disable=SC2086 # lists of words
    install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; }
    # shellcheck disable=SC2086
    install || { $as_root apt-get update >>"$log" 2>&1 && install; } ||
        { tail -n 20 "$log" >&2; die "apt-get failed, see $log"; }
fi

cmake_version=$(cmake --version | sed -n '1s/[^0-9]*//p')
[ "$(printf '3.22\n%s\n' "$cmake_version" | sort -V | head -n 1)" = 3.22 ] ||
    die "CMake $cmake_version is too old, 3.22 is needed"

if ! find_nvcc; then
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n '1s/^\([0-9]*\)\..*/\1/p')
    [ "${driver:-580}" -ge 580 ] ||
        step "WARNING: kernels built by this compiler need driver 580 or newer, here is $driver: update the driver," \
            "or put the nvcc of the driver's own CUDA release on PATH, remove build/ and run this again"
    step "fetching the CUDA compiler into .toolchain/"
    rm -rf .toolchain
    python3 -m pip install -q --no-deps --disable-pip-version-check --target .toolchain \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 \
        >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "pip failed, see $log"; }
    find_nvcc || die "pip brought no nvcc: is this machine x86-64 or arm64?"
fi
