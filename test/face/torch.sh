#!/bin/sh
# SPDX-License-Identifier: MIT
#
# torch.sh TURING DOOR LIBRARY WORK: PyTorch's CUDA wheel on the emulated T4, with the cuBLAS door. The Python that has it is
# TURING_TORCH_PYTHON, or python3. 77: it has none, for which nothing is fetched here: some 3 GB.
set -eu
turing=$1 door=$2 library=$3 work=$4 here=$(cd "$(dirname "$0")" && pwd)
python=${TURING_TORCH_PYTHON:-python3}
"$python" -c 'import torch; assert "sm_75" in torch.cuda.get_arch_list()' 2> /dev/null || exit 77
rm -f "$work"
HGEMM_CUBLAS_LOG=$work HGEMM_LIBRARY=$library PYTHONPATH=$here/../../python \
    LD_PRELOAD=$door:$(dirname "$turing")/turing_face/libturing_blas.so \
    "$turing" exec "$python" "$here/torch_program.py"
