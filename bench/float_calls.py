# SPDX-License-Identifier: MIT
"""Products of floats on a GPU, by hgemm and as PyTorch sees them, for the scripts beside this one that time them."""
import csv
import ctypes
import json
import pathlib
import subprocess
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python"))

import torch
from hgemm import _c

lib = _c.lib


class PlanInfo(ctypes.Structure):
    _fields_ = [("kernel", c_int), ("splits", c_int), ("tiles", c_int64), ("split_tiles", c_int64), ("copies_a", c_int), ("copies_b", c_int),
                ("is_tuned", c_int), ("seconds", c_double), ("workspace_bytes", c_size_t)]


lib.hgemm_plan_create.argtypes = [POINTER(c_void_p), c_void_p, POINTER(_c.Desc)]
lib.hgemm_plan_from_text.argtypes = [POINTER(c_void_p), c_void_p, POINTER(_c.Desc), c_char_p]
lib.hgemm_plan_get_info.argtypes = [c_void_p, POINTER(PlanInfo)]
lib.hgemm_plan_get_text.argtypes = [c_void_p, c_char_p]
lib.hgemm_plan_run.argtypes = [c_void_p, c_void_p, POINTER(_c.Desc)]
lib.hgemm_plan_destroy.argtypes = [c_void_p]
lib.hgemm_find_kernel.argtypes = [c_char_p]
torch.backends.cuda.matmul.allow_tf32 = False


def open_gpu():
    """A handle that enqueues on PyTorch's stream, and what it says of the GPU."""
    handle, info = c_void_p(), _c.DeviceInfo()
    _c.check(lib.hgemm_create(byref(handle), b"cuda:0"))
    lib.hgemm_set_stream(handle, torch.cuda.current_stream().cuda_stream)
    lib.hgemm_get_device_info(handle, byref(info))
    return handle, info


def random_shapes():
    """m, n, k, transposes and batch of bench/shapes/random.csv."""
    with open(ROOT / "bench" / "shapes" / "random.csv") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            yield tuple(int(row[name] or 0) for name in ("m", "n", "k", "trans_a", "trans_b")) + (int(row.get("batch") or 1),)


def product(m, n, k, trans_a, trans_b, batch=1, pad=0, draw=torch.randn):
    """A call, and its operands and result as PyTorch sees them. Rows are `pad` elements longer than they are wide."""
    shape_a, shape_b = ((k, m) if trans_a else (m, k)), ((n, k) if trans_b else (k, n))
    a, b = (draw((batch, rows, width + pad), device="cuda") for rows, width in (shape_a, shape_b))
    d = torch.full((batch, m, n), float("nan"), device="cuda")
    desc = _c.new_desc()
    desc.accumulate = _c.ACCUMULATE["float32"]
    desc.type_a = desc.type_b = desc.type_c = desc.type_d = _c.TYPE["float32"]
    desc.m, desc.n, desc.k, desc.batch, desc.op_a, desc.op_b = m, n, k, batch, trans_a, trans_b
    desc.lda, desc.ldb, desc.ldc, desc.ldd = a.shape[2], b.shape[2], n, n
    desc.stride_a, desc.stride_b, desc.stride_d = a.shape[1] * a.shape[2], b.shape[1] * b.shape[2], m * n
    desc.a, desc.b, desc.d = a.data_ptr(), b.data_ptr(), d.data_ptr()
    a, b = a[:, :, :shape_a[1]], b[:, :, :shape_b[1]]
    return desc, a.mT if trans_a else a, b.mT if trans_b else b, d


def errors(d, x, y, rows=256):
    """Root mean square of the errors of a product's first rows over sum|a||b|, and the largest one in units of 2^-24."""
    x = x[:rows].double()
    off = ((d[:rows].double() - x @ y.double()).abs() / (x.abs() @ y.double().abs())).nan_to_num(1e9)
    return off.pow(2).mean().sqrt().item(), off.max().item() * 2**24


def by_hgemm(handle, desc, kernel=None):
    """A function that enqueues it, by that kernel or by hgemm's choice."""
    number = lib.hgemm_find_kernel(kernel.encode()) if kernel else 0

    def run():
        desc.kernel = number
        _c.check(lib.hgemm_run_desc(handle, byref(desc)), handle)
    return run


def by_torch(x, y, d):
    """The same for PyTorch, which asks cuBLAS."""
    return (lambda: torch.mm(x[0], y[0], out=d[0])) if len(x) == 1 else (lambda: torch.bmm(x, y, out=d))


def write(path, rows, info, commit, depends, about):
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(smi, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    context = {"gpu": info.name.decode(), "clocks": f"{info.clock_khz // 1000} MHz at most", "driver": driver, "torch": torch.__version__,
               "hgemm": f"{_c.version_text()}, commit {commit}", "witness": "measured", "depends": depends, "about": about}
    lines = ",\n".join(map(json.dumps, rows))
    pathlib.Path(path).write_text(f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n')
