# SPDX-License-Identifier: MIT
"""Products of FP32 by hgemm beside torch.mm, in FP32 and in TF32: times, alternating, and errors against float64.

    python3 bench/float_products.py LIBHGEMM.so OUT.json COMMIT [KERNEL...]    on a machine with a GPU and PyTorch, in a clone

hgemm takes part with its own choice, and with each kernel that is named.
"""
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
os.environ.setdefault("HGEMM_LIBRARY", sys.argv[1])
from hgemm import _c as c  # noqa: E402
FLOAT = c.TYPE["float32"]

lib = ctypes.CDLL(sys.argv[1])
lib.hgemm_error_detail.restype = ctypes.c_char_p
lib.hgemm_set_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
handle, stream = ctypes.c_void_p(), torch.cuda.Stream()
assert lib.hgemm_create(ctypes.byref(handle), b"cuda") == 0
lib.hgemm_set_stream(handle, stream.cuda_stream)


def smi(field):
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]


def descriptor(a, b, d, op_a, op_b, kernel=None):
    desc = c.Desc()
    desc.size, desc.accumulate, desc.alpha, desc.batch = ctypes.sizeof(c.Desc), c.ACCUMULATE["float32"], 1, 1
    desc.m, desc.n, desc.k = *d.shape, a.shape[0] if op_a else a.shape[1]
    desc.op_a, desc.op_b = op_a, op_b
    desc.a, desc.b, desc.d = a.data_ptr(), b.data_ptr(), d.data_ptr()
    desc.lda, desc.ldb, desc.ldd = a.shape[1], b.shape[1], d.shape[1]
    desc.type_a = desc.type_b = desc.type_d = FLOAT
    desc.kernel = lib.hgemm_find_kernel(kernel.encode()) if kernel else 0
    return desc


def measure(m, n, k, op_a, op_b, draw, turns=9, calls=3):
    a = draw(k, m, device="cuda") if op_a else draw(m, k, device="cuda")
    b = draw(n, k, device="cuda") if op_b else draw(k, n, device="cuda")
    ours, theirs = torch.full((m, n), float("nan"), device="cuda"), torch.empty((m, n), device="cuda")
    descs = {name: descriptor(a, b, ours, op_a, op_b, name if name != "hgemm" else None) for name in ["hgemm", *sys.argv[4:]]}
    left, right = a.t() if op_a else a, b.t() if op_b else b

    def run(which):
        torch.backends.cuda.matmul.allow_tf32 = which == "tf32"
        if which in descs:
            status = lib.hgemm_run_desc(handle, ctypes.byref(descs[which]))
            assert status == 0, lib.hgemm_error_detail(handle)
        else:
            torch.mm(left, right, out=theirs)

    torch.cuda.synchronize()
    run("hgemm"), torch.cuda.synchronize(), run("sgemm"), torch.cuda.synchronize()
    some = slice(0, min(m, 256))
    exact = left[some].double() @ right.double()
    sums = left[some].double().abs() @ right.double().abs()
    errors = [(x[some].double() - exact).abs() / sums for x in (ours, theirs)]
    times = {which: [] for which in [*descs, "sgemm", "tf32"]}
    with torch.cuda.stream(stream):
        for _ in range(turns + 2):
            for which, list_ in times.items():
                begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
                begin.record()
                for _ in range(calls):
                    run(which)
                end.record(), end.synchronize()
                list_.append(begin.elapsed_time(end) * 1000 / calls)
    us = {which: statistics.median(list_[2:]) for which, list_ in times.items()}
    return {"m": m, "n": n, "k": k, "op": "nt"[op_a] + "nt"[op_b], "data": "normal" if draw is torch.randn else "positive",
            **{f"us_{which}": value for which, value in us.items()}, "tflops": 2e-6 * m * n * k / us["hgemm"],
            "speed_over_sgemm": us["sgemm"] / us["hgemm"], "rms_hgemm": errors[0].pow(2).mean().sqrt().item(),
            "rms_sgemm": errors[1].pow(2).mean().sqrt().item(), "worst_units": errors[0].max().item() * 2**24}


SHAPES = [(n, n, n, 0, 0, torch.randn) for n in (1024, 2048, 4096, 8192)]
SHAPES += [(n, n, n, 0, 1, torch.randn) for n in (1024, 2048, 4096)]
SHAPES += [(2048, 2048, 2048, 1, op_b, torch.randn) for op_b in (0, 1)]
SHAPES += [(m, m, k, 0, 0, torch.rand) for m, k in ((512, 16384), (64, 16384), (1024, 2048), (4096, 16384))]
SHAPES += [(m, 4096, 4096, 0, 1, torch.randn) for m in (1, 16, 64, 256)]
SHAPES += [(n, n, n, 0, 0, torch.randn) for n in (1023, 2047)]
rows = []
for shape in SHAPES:
    rows.append(measure(*shape))
    print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in rows[-1].items()), flush=True)
context = {"gpu": torch.cuda.get_device_name(), "clocks": smi("clocks.max.sm") + " MHz at most", "driver": smi("driver_version"),
           "torch": torch.__version__, "hgemm": f"{c.version_text()}, commit {sys.argv[3]}", "witness": "measured", "depends": "single planes"}
lines = ",\n".join(map(json.dumps, rows))
pathlib.Path(sys.argv[2]).write_text(f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n')
