# SPDX-License-Identifier: MIT
"""Products of floats: what hgemm's cost model expects, what hgemm and cuBLAS's SGEMM take, and the estimate of SGEMM that the cuBLAS
door has for a T4 (src/cublas/sgemm.c), with the rates of the GPU here. Needs torch and a GPU of compute capability 8.6 or more.

    HGEMM_LIBRARY=LIBHGEMM.so python3 bench/sgemm_estimate.py OUT.json COMMIT      in a clone
"""
import csv
import json
import pathlib
import statistics
import sys
from ctypes import POINTER, byref, c_void_p

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python"))

import torch
from float_plans import PlanInfo, descriptor, train
from hgemm import _c

LANES, DRAM_BYTES, ENDS = 128, 16.1, 5000  # a clock and multiprocessor, of GPUs from 8.6 on; of an H100, as costs.def has it; clocks


def shapes():
    with open(ROOT / "bench" / "shapes" / "random.csv") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            yield tuple(int(row[name] or 0) for name in ("m", "n", "k", "trans_a", "trans_b")) + (int(row.get("batch") or 1),)
    yield from ((s, s, s, 0, 0, 1) for s in (64, 128, 256, 384, 512, 768, 1024, 2048, 4096))
    yield from ((m, 4096, 4096, 0, 1, 1) for m in (1, 8, 32, 64, 128, 256, 512))
    yield from ((m, n, k, 0, 1, 1) for m in (128, 512) for n, k in ((768, 768), (3072, 768), (768, 3072)))


def measure(handle, info, m, n, k, trans_a, trans_b, batch):
    desc, x, y, d = descriptor(m, n, k, trans_a, trans_b, batch, 0)
    plan, of_plan = c_void_p(), PlanInfo()
    _c.check(_c.lib.hgemm_plan_create(byref(plan), handle, byref(desc)), handle)
    _c.lib.hgemm_plan_get_info(plan, byref(of_plan))
    _c.lib.hgemm_plan_destroy(plan)
    contestants = {"hgemm": lambda: _c.check(_c.lib.hgemm_run_desc(handle, byref(desc)), handle),
                   "sgemm": (lambda: torch.mm(x[0], y[0], out=d[0])) if batch == 1 else (lambda: torch.bmm(x, y, out=d))}
    times = {name: [] for name in contestants}
    launches = {name: max(3, min(200, int(1500 / train(run, 5)))) for name, run in contestants.items()}
    for _ in range(5):
        for name, run in contestants.items():
            times[name].append(train(run, launches[name]))
    macs, bytes_ = batch * m * n * k, 4 * batch * (m * k + k * n + m * n)
    clocks = max(macs / LANES, bytes_ / DRAM_BYTES) / info.multiprocessors + ENDS
    return {"m": m, "n": n, "k": k, "op": "nt"[trans_a] + "nt"[trans_b], "batch": batch,
            **{name: round(statistics.median(us), 1) for name, us in times.items()},
            "expected": round(of_plan.seconds * 1e6, 1), "estimate": round(clocks / info.clock_khz * 1e3, 1)}


def main():
    lib, handle, info = _c.lib, c_void_p(), _c.DeviceInfo()
    lib.hgemm_plan_create.argtypes = [POINTER(c_void_p), c_void_p, POINTER(_c.Desc)]
    lib.hgemm_plan_get_info.argtypes = [c_void_p, POINTER(PlanInfo)]
    lib.hgemm_plan_destroy.argtypes = [c_void_p]
    torch.backends.cuda.matmul.allow_tf32 = False
    _c.check(lib.hgemm_create(byref(handle), b"cuda:0"))
    lib.hgemm_set_stream(handle, torch.cuda.current_stream().cuda_stream)
    lib.hgemm_get_device_info(handle, byref(info))
    rows = [measure(handle, info, *shape) for shape in shapes()]
    context = {"gpu": info.name.decode(), "clocks": f"{info.clock_khz // 1000} MHz at most", "torch": torch.__version__,
               "hgemm": f"{_c.version_text()}, commit {sys.argv[2]}", "witness": "measured", "depends": "single selection",
               "about": "Products of floats, us: hgemm and cuBLAS's SGEMM (torch.mm) in turns, medians of 5 trains of launches; what hgemm's "
                        "cost model expects; and the door's estimate of SGEMM with this GPU's rates."}
    lines = ",\n".join(map(json.dumps, rows))
    pathlib.Path(sys.argv[1]).write_text(f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n')


if __name__ == "__main__":
    main()
