#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes a fresh Debian or Ubuntu able to build.
#
#   tools/setup.sh
#
# Installs the packages that are missing (as root, or through sudo; without either it prints the command) and, where
# there is no CUDA compiler, fetches one into .toolchain/ of this tree from the Python package index (about 250 MB
# unpacked; nothing outside the tree changes). What is there already is left alone; run again, it does nothing. It warns
# where the NVIDIA driver is too old for what the compiler builds. Exit status: 0, 1 where something is missing still, 2
# where an option is not known.
set -eu
case ${1:-} in
    '') ;;
    -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) printf 'setup: takes no %s. Try --help.\n' "$1" >&2; exit 2 ;;
esac
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

# Warns where the driver cannot run what nvcc builds.
check_driver() {
    smi=$(nvidia-smi 2>/dev/null) || return 0 # no GPU, no driver
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | sed -n '1s/\..*//p')
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)
    release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
    needed=$(sed -n "s/^${release%.*} //p" tools/cuda_drivers.txt)
    known=$(printf '%s\n' "$smi" | sed -n 's/.*CUDA Version: *\([0-9]*\.[0-9]*\).*/\1/p')
    if [ -n "$needed" ] && [ "${driver:-0}" -lt "$needed" ]; then
        usable=$(awk -v driver="${driver:-0}" '$1 ~ /^[0-9]+$/ && $2 <= driver { release = $1 } END { print release }' \
            tools/cuda_drivers.txt)
        step "WARNING: $nvcc is of CUDA $release, whose kernels need driver $needed or newer, and here is $driver:" \
            "update the driver${usable:+, or put an nvcc of CUDA $usable on PATH and remove build/}"
    elif [ "$capability" != 7.5 ] && [ -n "$known" ] && [ -n "$release" ] &&
        [ "$(printf '%s\n%s\n' "$release" "$known" | sort -V | head -n 1)" != "$release" ]; then
        step "WARNING: $nvcc is of CUDA $release, and the driver here is for CUDA $known: it runs the kernels on a T4," \
            "but cannot compile their PTX, which this GPU needs (compute capability $capability): update the driver," \
            "or put an nvcc of CUDA $known or older on PATH and remove build/"
    fi
}

missing=''
need() { missing="$missing $1"; }
has gcc || need gcc
has g++ || need g++
has cmake || need cmake
has ninja || need ninja-build
has_header c cmocka.h || need libcmocka-dev
has_header c zstd.h || need libzstd-dev
has_header c++ benchmark/benchmark.h || need libbenchmark-dev
if ! find_nvcc; then
    python3 -m pip --version >/dev/null 2>&1 || need "python3-pip ca-certificates"
fi

if [ -n "$missing" ]; then
    as_root=''
    if ! has apt-get; then
        die "what these Debian packages hold is missing:$missing
Install it with your system's package manager and run this again; on Fedora, for example, as root:
    dnf install gcc gcc-c++ cmake ninja-build libcmocka-devel libzstd-devel \\
        google-benchmark-devel python3-pip"
    elif [ "$(id -u)" != 0 ]; then
        as_root=sudo
        # sudo asks for a password on a terminal only
        { has sudo && { sudo -n true 2>/dev/null || [ -t 2 ]; }; } ||
            die "packages are missing; as root run
    apt-get update && apt-get install -y --no-install-recommends$missing
and then this again"
    fi
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
    step "fetching the CUDA compiler into .toolchain/"
    rm -rf .toolchain
    python3 -m pip install -q --no-deps --disable-pip-version-check --target .toolchain \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 \
        >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "pip failed, see $log"; }
    find_nvcc || die "pip brought no nvcc: is this machine x86-64 or arm64?"
fi
check_driver
