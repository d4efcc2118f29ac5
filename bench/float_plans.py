# SPDX-License-Identifier: MIT
"""Plans of products of floats: what they take and what hgemm's cost model expects of them, beside cuBLAS's SGEMM. Needs PyTorch and a GPU.

    HGEMM_LIBRARY=LIBHGEMM.so python3 bench/float_plans.py OUT.json COMMIT [SECONDS] [all]     in a clone

With `all`, every float kernel takes part, with k in several numbers of parts; else only hgemm's own choice. The GPU waits while a train of
launches is enqueued, so that none of it waits for the CPU.
"""
import csv
import ctypes
import json
import pathlib
import statistics
import sys
import time
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p, create_string_buffer

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python"))

import torch
from hgemm import _c

KERNELS = ["single_128x64", "single_32x64", "planes_128x128", "few_16x64", "few_64x16"]
BLOCK_K = {"single_128x64": 32, "single_32x64": 32, "planes_128x128": 32, "few_16x64": 128, "few_64x16": 128}
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


class PlanInfo(ctypes.Structure):
    _fields_ = [("kernel", c_int), ("splits", c_int), ("tiles", c_int64), ("split_tiles", c_int64), ("copies_a", c_int), ("copies_b", c_int),
                ("is_tuned", c_int), ("seconds", c_double), ("workspace_bytes", c_size_t)]


def shapes():
    """m, n, k, transposes, batch, elements that rows are longer than they are wide."""
    for m in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        yield from ((m, n, k, 0, 1, 1, 0) for n, k in ((4096, 4096), (11008, 4096), (4096, 11008)))
    yield from ((64, 64, 16384, 0, 0, 1, 0), (512, 512, 16384, 0, 0, 1, 0), (1, 4096, 4096, 0, 0, 1, 0), (16, 4096, 4096, 0, 0, 1, 0),
                (4096, 1, 4096, 0, 0, 1, 0), (4096, 1, 4096, 1, 0, 1, 0), (4096, 8, 4096, 0, 0, 1, 0), (4096, 16, 4096, 1, 1, 1, 0),
                (1, 4096, 4096, 0, 1, 1, 1), (8, 4096, 4096, 0, 0, 1, 1), (32, 4096, 4096, 0, 1, 1, 1), (1023, 1023, 1023, 0, 0, 1, 0),
                (1, 512, 512, 0, 1, 64, 0), (16, 128, 64, 0, 1, 96, 0), (8, 64, 2048, 0, 0, 96, 0), (64, 64, 64, 0, 1, 256, 0),
                (32, 4096, 4096, 0, 0, 1, 0), (48, 4096, 4096, 0, 1, 1, 0), (4096, 32, 4096, 0, 0, 1, 0), (1, 32000, 4096, 0, 1, 1, 0))
    with open(ROOT / "bench" / "shapes" / "random.csv") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            yield tuple(int(row[name] or 0) for name in ("m", "n", "k", "trans_a", "trans_b")) + (int(row.get("batch") or 1), 0)
    yield from ((s, s, s, 0, 0, 1, 0) for s in (128, 256, 512, 1024, 2048, 4096))
    yield from ((m, n, k, 0, 1, 1, 0) for m in (128, 512, 2048) for n, k in ((768, 768), (3072, 768), (768, 3072)))


def train(run, launches):
    """Microseconds of a launch."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(20000 * launches)
    begin.record()
    for _ in range(launches):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / launches


def descriptor(m, n, k, trans_a, trans_b, batch, pad):
    shape_a, shape_b = ((k, m) if trans_a else (m, k)), ((n, k) if trans_b else (k, n))
    a, b = (torch.randn((batch, rows, width + pad), device="cuda") for rows, width in (shape_a, shape_b))
    d = torch.zeros((batch, m, n), device="cuda")
    desc = _c.new_desc()
    desc.accumulate = _c.ACCUMULATE["float32"]
    desc.type_a = desc.type_b = desc.type_c = desc.type_d = _c.TYPE["float32"]
    desc.m, desc.n, desc.k, desc.batch, desc.op_a, desc.op_b = m, n, k, batch, trans_a, trans_b
    desc.lda, desc.ldb, desc.ldc, desc.ldd = a.shape[2], b.shape[2], n, n
    desc.stride_a, desc.stride_b, desc.stride_d = a.shape[1] * a.shape[2], b.shape[1] * b.shape[2], m * n
    desc.a, desc.b, desc.d = a.data_ptr(), b.data_ptr(), d.data_ptr()
    a, b = a[:, :, :shape_a[1]], b[:, :, :shape_b[1]]
    return desc, a.mT if trans_a else a, b.mT if trans_b else b, d


def plan_of(handle, desc, kernel, splits):
    """A plan, its text and what it says; None where there is none."""
    lib, plan, info, text = _c.lib, c_void_p(), PlanInfo(), create_string_buffer(768)
    desc.kernel = lib.hgemm_find_kernel(kernel.encode()) if kernel else 0
    if lib.hgemm_plan_create(byref(plan), handle, byref(desc)):
        return None
    lib.hgemm_plan_get_text(plan, text)
    lib.hgemm_plan_get_info(plan, byref(info))
    if splits > 1:
        part = -(-desc.k // splits)
        part = -(-part // BLOCK_K[kernel]) * BLOCK_K[kernel]
        own = text.value.decode()
        lib.hgemm_plan_destroy(plan)
        if -(-desc.k // part) != splits:
            return None
        if lib.hgemm_plan_from_text(byref(plan), handle, byref(desc), f"{own} whole 0 splits {splits} k {part}".encode()):
            return None
        lib.hgemm_plan_get_text(plan, text)
        lib.hgemm_plan_get_info(plan, byref(info))
    return plan, text.value.decode(), info


def measure(handle, with_all, shape):
    lib = _c.lib
    desc, x, y, d = descriptor(*shape)
    m, n, k, batch = *shape[:3], shape[5]
    plans = [("auto", plan_of(handle, desc, None, 1))]
    if with_all:
        for kernel in KERNELS:
            if kernel.startswith("few") and (m if kernel == "few_16x64" else n) > 32:
                continue
            plans += [(kernel, plan_of(handle, desc, kernel, splits)) for splits in SPLITS if splits == 1 or k // splits >= 2 * BLOCK_K[kernel]
                      and (kernel != "few_16x64" or n * batch * splits < 64 * 132 * 5) and (kernel != "few_64x16" or m * batch * splits < 64 * 132 * 5)]
    plans = [(name, plan) for name, plan in plans if plan]
    desc.kernel = 0
    exact = x[0].double() @ y[0].double()
    sums = x[0].double().abs() @ y[0].double().abs()

    def run_plan(plan, kernel):  # a plan is for the call that it was made for, the kernel included
        number = lib.hgemm_find_kernel(kernel.encode()) if kernel != "auto" else 0

        def run():
            desc.kernel = number
            _c.check(lib.hgemm_plan_run(plan, handle, byref(desc)), handle)
        return run

    sgemm = (lambda: torch.mm(x[0], y[0], out=d[0])) if batch == 1 else (lambda: torch.bmm(x, y, out=d))
    runs = [sgemm] + [run_plan(plan[0], name) for name, plan in plans]
    errors = []
    for run in runs:
        d.fill_(float("nan"))
        run()
        error = ((d[0].double() - exact).abs() / sums).nan_to_num(1e9)
        errors.append((error.pow(2).mean().sqrt().item(), error.max().item() * 2**24))
    launches = [max(2, min(30, int(600 / train(run, 2)))) for run in runs]
    times = [[] for _ in runs]
    for turn in range(5):
        for i, run in enumerate(runs):
            if turn < 3 or i < 2:
                times[i].append(train(run, launches[i]))
    us = [statistics.median(list_) for list_ in times]
    rows = []
    for i, (name, (plan, text, info)) in enumerate(plans):
        rows.append({"kernel": name, "plan": text.split(": ")[-1][-70:], "splits": info.splits, "us": round(us[i + 1], 2),
                     "expected_us": round(info.seconds * 1e6, 2), "rms": errors[i + 1][0], "worst_units": round(errors[i + 1][1], 2)})
        lib.hgemm_plan_destroy(plan)
    return {"m": m, "n": n, "k": k, "op": "nt"[shape[3]] + "nt"[shape[4]], "batch": batch, "pad": shape[6], "sgemm_us": round(us[0], 2),
            "sgemm_rms": errors[0][0], "plans": rows}


def main():
    lib, handle, info = _c.lib, c_void_p(), _c.DeviceInfo()
    lib.hgemm_plan_create.argtypes = [POINTER(c_void_p), c_void_p, POINTER(_c.Desc)]
    lib.hgemm_plan_from_text.argtypes = [POINTER(c_void_p), c_void_p, POINTER(_c.Desc), c_char_p]
    lib.hgemm_plan_get_info.argtypes = [c_void_p, POINTER(PlanInfo)]
    lib.hgemm_plan_get_text.argtypes = [c_void_p, c_char_p]
    lib.hgemm_plan_run.argtypes = [c_void_p, c_void_p, POINTER(_c.Desc)]
    lib.hgemm_plan_destroy.argtypes = [c_void_p]
    lib.hgemm_find_kernel.argtypes = [c_char_p]
    torch.backends.cuda.matmul.allow_tf32 = False
    _c.check(lib.hgemm_create(byref(handle), b"cuda:0"))
    lib.hgemm_set_stream(handle, torch.cuda.current_stream().cuda_stream)
    lib.hgemm_get_device_info(handle, byref(info))
    stop, rows = time.time() + float(sys.argv[3] if len(sys.argv) > 3 else 1e9), []
    for shape in shapes():
        if time.time() > stop:
            print("stopped for time")
            break
        try:
            rows.append(measure(handle, "all" in sys.argv, shape))
        except Exception as error:
            print(shape, error, flush=True)
            continue
        row = rows[-1]
        auto, best = row["plans"][0], min(row["plans"], key=lambda plan: plan["us"])
        print(f"{row['m']}x{row['n']}x{row['k']} {row['op']} b{row['batch']} pad {row['pad']}: sgemm {row['sgemm_us']} auto {auto['us']} "
              f"({row['sgemm_us'] / auto['us']:.2f}, expected {auto['expected_us']}) {auto['plan'][-45:]} | best {best['us']} {best['kernel']} k/{best['splits']}"
              f" | rms {auto['rms']:.2g} {row['sgemm_rms']:.2g}", flush=True)
    context = {"gpu": info.name.decode(), "clocks": f"{info.clock_khz // 1000} MHz at most", "torch": torch.__version__,
               "hgemm": f"{_c.version_text()}, commit {sys.argv[2]}", "witness": "measured", "depends": "single planes few selection",
               "about": "Products of floats, us: hgemm's choice (auto), other plans, and cuBLAS's SGEMM (torch.mm) in turns, medians of trains of launches."}
    lines = ",\n".join(map(json.dumps, rows))
    pathlib.Path(sys.argv[1]).write_text(f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n')


if __name__ == "__main__":
    main()
