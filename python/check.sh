#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the wheel, installs it in a clean virtual environment, runs its tests and the notebook there on the emulated T4.
#
#   python/check.sh              all of that
#   python/check.sh --prepare    downloads and installs what the first form needs, which then does not: 4 GB, some minutes. For a machine that
#                                has something else to do meanwhile
#
# HGEMM_IMAGE_DIR names the compiled kernels of another build, if there is one. HGEMM_CHECK_PACKAGES are the packages that tests ask for
# where they are, PyTorch above all: "" has such tests skipped.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/python-check
packages=${HGEMM_CHECK_PACKAGES-torch transformers peft accelerate safetensors compressed-tensors bitsandbytes}
step() { printf '==> python: %s\n' "$*" >&2; }
# Runs a command in silence; when it fails, shows the end of what it said.
quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; printf 'FAILED: %s\n' "$*" >&2; exit 1; }
}

prepare() {
    rm -rf "$work"
    mkdir -p "$work"
    quietly "$root/python/wheel.sh" --tools
    quietly python3 -m venv "$work/venv"
    # shellcheck disable=SC2086 # several words
    quietly "$work/venv/bin/pip" install -q --disable-pip-version-check --no-compile \
        numpy pytest pytest-xdist mypy ml_dtypes gguf matplotlib nbconvert ipykernel $packages
    touch "$work/prepared"
}

case ${1:-} in
    '') ;;
    --prepare) prepare; exit 0 ;;
    -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) printf 'check: takes no %s. Try --help.\n' "$1" >&2; exit 2 ;;
esac
unset PYTHONPATH HGEMM_LIBRARY # what they name is not this clone's
if [ ! -e "$work/prepared" ]; then
    step "preparing an environment"
    prepare
fi
rm "$work/prepared" # what follows leaves it other than clean
step "building the wheel"
quietly "$root/python/wheel.sh" "$work"
wheel=$(echo "$work"/hgemm-*.whl)
case $wheel in
    *-py3-none-manylinux_2_28_*) ;;
    *) echo "FAILED: $wheel is not a wheel for every Python 3 and glibc 2.28" >&2; exit 1 ;;
esac
[ "$(wc -c <"$wheel")" -lt 14000000 ] || { echo "FAILED: $wheel has 14 MB or more" >&2; exit 1; }

step "installing it in the clean environment"
quietly "$work/venv/bin/pip" install -q --disable-pip-version-check "$wheel"
strangers=$(nm -D --defined-only "$work"/venv/lib/python3*/site-packages/hgemm/libhgemm.so | grep -Ev ' (hgemm_[a-z0-9_]+@@)?HGEMM_(PRIVATE_)?[0-9.]+$' || true)
[ -z "$strangers" ] || { printf 'FAILED: libhgemm.so exports\n%s\n' "$strangers" >&2; exit 1; }
cd "$work" # where Python finds the installed package only
step "checking annotations"
quietly venv/bin/mypy --config-file "$root/python/pyproject.toml" --cache-dir mypy "$root/python/hgemm"
quietly venv/bin/mypy --config-file "$root/python/pyproject.toml" --cache-dir mypy --strict --python-executable venv/bin/python "$root/python/tests/typed.py"
step "testing"
OMP_NUM_THREADS=1 HGEMM_DEVICE=t4emu:check venv/bin/pytest -q -rs -p no:cacheprovider -n "$(nproc)" "$root/python/tests"
step "running examples/colab.ipynb"
cp "$root/examples/colab.ipynb" notebook.ipynb
HGEMM_DEVICE=t4emu quietly venv/bin/jupyter nbconvert --to notebook --execute --output executed.ipynb notebook.ipynb
[ -s hgemm_report.json ] || { echo "FAILED: the notebook wrote no report" >&2; exit 1; }
