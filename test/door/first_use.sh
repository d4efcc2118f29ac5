#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Times the first use of the cuBLAS door on a machine with a GPU and torch: a wheel is installed, into a folder of its own, and an
# unmodified program of torch's runs behind the door. Needs no network, compiler or CUDA toolkit.
#
#   test/door/first_use.sh WHEEL [PYTHON]
#
# PYTHON (python3) is one that has torch and numpy. Ends with 1 where the program's products did not run on hgemm or are wrong.
set -eu
wheel=$1 python=${2:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.1f s\", $(now) - $1 }"; }

cat >"$work/program.py" <<'PROGRAM'
import torch

torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024, bias=False)).cuda().half()
x = torch.randn(64, 1024, device="cuda").half()
with torch.no_grad():
    y = layers(x).double()
    wanted = layers.double()(x.double())
print("relative error", ((y - wanted).norm() / wanted.norm()).item())
assert (y - wanted).norm() < 2e-3 * wanted.norm()
PROGRAM

start=$(now)
"$python" -m pip install -q --no-index --no-deps --disable-pip-version-check --target "$work/site" "$wheel"
export PYTHONPATH="$work/site"
echo "install: $(since "$start")"
start=$(now)
HGEMM_CUBLAS=nowhere "$python" -m hgemm.cublas "$work/program.py"
echo "program, by cuBLAS: $(since "$start")"
for run in first second; do
    start=$(now)
    HGEMM_CUBLAS=everywhere HGEMM_CUBLAS_SUMMARY="$work/summary" "$python" -m hgemm.cublas "$work/program.py"
    echo "program, by hgemm, $run time: $(since "$start")"
done
cat "$work/summary"
[ "$(grep -c ' hit ' "$work/summary")" = 4 ] || { echo "FAILED: not both products ran on hgemm, twice"; exit 1; }
