#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the wheel, installs it in a clean virtual environment, runs its tests and the notebook there on the emulated T4.
# HGEMM_IMAGE_DIR names the compiled kernels of another build, if there is one. HGEMM_CHECK_PACKAGES are more packages to install,
# without which some tests are skipped: torch bitsandbytes compressed-tensors safetensors transformers peft accelerate.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/python-check
step() { printf '==> python: %s\n' "$*" >&2; }
# Runs a command in silence; when it fails, shows the end of what it said.
quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; printf 'FAILED: %s\n' "$*" >&2; exit 1; }
}

unset PYTHONPATH HGEMM_LIBRARY # what they name is not this clone's
rm -rf "$work"
mkdir -p "$work"
step "building the wheel"
quietly "$root/python/wheel.sh" "$work"
wheel=$(echo "$work"/hgemm-*.whl)
case $wheel in
    *-py3-none-manylinux_2_28_*) ;;
    *) echo "FAILED: $wheel is not a wheel for every Python 3 and glibc 2.28" >&2; exit 1 ;;
esac
[ "$(wc -c <"$wheel")" -lt 14000000 ] || { echo "FAILED: $wheel has 14 MB or more" >&2; exit 1; }

step "installing it in a clean environment"
quietly python3 -m venv "$work/venv"
quietly "$work/venv/bin/pip" install -q --disable-pip-version-check "$wheel" pytest ml_dtypes gguf matplotlib nbconvert ipykernel mypy
# shellcheck disable=SC2086 # several words
[ -z "${HGEMM_CHECK_PACKAGES:-}" ] || quietly "$work/venv/bin/pip" install -q --disable-pip-version-check $HGEMM_CHECK_PACKAGES
strangers=$(nm -D --defined-only "$work"/venv/lib/python3*/site-packages/hgemm/libhgemm.so | grep -Ev ' (hgemm_[a-z0-9_]+@@)?HGEMM_(PRIVATE_)?[0-9.]+$' || true)
[ -z "$strangers" ] || { printf 'FAILED: libhgemm.so exports\n%s\n' "$strangers" >&2; exit 1; }
cd "$work" # where Python finds the installed package only
step "checking annotations"
quietly venv/bin/mypy --config-file "$root/python/pyproject.toml" --cache-dir mypy "$root/python/hgemm"
quietly venv/bin/mypy --config-file "$root/python/pyproject.toml" --cache-dir mypy --strict --python-executable venv/bin/python "$root/python/tests/typed.py"
step "testing"
HGEMM_DEVICE=t4emu:check venv/bin/pytest -q -rs -p no:cacheprovider "$root/python/tests"
step "running examples/colab.ipynb"
cp "$root/examples/colab.ipynb" notebook.ipynb
HGEMM_DEVICE=t4emu quietly venv/bin/jupyter nbconvert --to notebook --execute --output executed.ipynb notebook.ipynb
[ -s hgemm_report.json ] || { echo "FAILED: the notebook wrote no report" >&2; exit 1; }
