#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python.sh TURING WORK: a Python program of the driver's interface and NVRTC (cuda-python), whose kernel
# the emulated T4 runs. 77: the packages or NVRTC are not to be had.
set -eu
turing=$1 work=$2
[ -x "$work/bin/python" ] || python3 -m venv "$work" || exit 77
"$work/bin/python" -c 'import cuda.bindings.nvrtc, numpy' 2> /dev/null ||
    "$work/bin/python" -m pip install --quiet cuda-bindings numpy || exit 77
cat > "$work/program.py" << 'X'
import ctypes, sys
import numpy as np
from cuda.bindings import driver, nvrtc

def call(function, *arguments):
    error, *rest = function(*arguments)
    assert int(error) == 0, (function.__name__, error)
    return rest[0] if len(rest) == 1 else rest

source = b'''extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}'''
try:
    nvrtc.nvrtcVersion()
except Exception as missing:
    print("no NVRTC:", missing)
    sys.exit(77)
program = call(nvrtc.nvrtcCreateProgram, source, b"saxpy.cu", 0, [], [])
call(nvrtc.nvrtcCompileProgram, program, 2, [b"--gpu-architecture=sm_75", b"-lineinfo"])
cubin = b" " * call(nvrtc.nvrtcGetCUBINSize, program)
call(nvrtc.nvrtcGetCUBIN, program, cubin)
call(driver.cuInit, 0)
call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, 0))
function = call(driver.cuModuleGetFunction, call(driver.cuModuleLoadData, cubin), b"saxpy")
n = 1000
x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
stream = call(driver.cuStreamCreate, 0)
device = [call(driver.cuMemAlloc, a.nbytes) for a in (x, y)]
for address, array in zip(device, (x, y)):
    call(driver.cuMemcpyHtoDAsync, address, array.ctypes.data, array.nbytes, stream)
arguments = ((2.0, *device, n), (ctypes.c_float, None, None, ctypes.c_int))
call(driver.cuLaunchKernel, function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, 0)
result = np.empty_like(y)
call(driver.cuMemcpyDtoHAsync, result.ctypes.data, device[1], result.nbytes, stream)
call(driver.cuStreamSynchronize, stream)
assert (result == 2 * x + 1).all()
print("all as expected")
X
"$turing" exec --check "$work/bin/python" "$work/program.py"
