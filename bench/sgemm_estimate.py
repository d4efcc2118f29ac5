# SPDX-License-Identifier: MIT
"""Products of floats: what hgemm's cost model expects, what hgemm and cuBLAS's SGEMM take, and the estimate of SGEMM that the cuBLAS
door has for a T4 (src/cublas/sgemm.c), with the rates of the GPU here. Needs torch and a GPU of compute capability 8.6 or more.

    HGEMM_LIBRARY=LIBHGEMM.so python3 bench/sgemm_estimate.py OUT.json COMMIT      in a clone
"""
import sys
from ctypes import byref, c_void_p

from float_calls import PlanInfo, _c, by_hgemm, by_torch, lib, open_gpu, product, random_shapes, write
from trains import medians_us

LANES, DRAM_BYTES, ENDS = 128, 16.1, 5000  # a clock and multiprocessor, of GPUs from 8.6 on; of an H100, as costs.def has it; clocks


def shapes():
    yield from random_shapes()
    yield from ((s, s, s, 0, 0, 1) for s in (64, 128, 256, 384, 512, 768, 1024, 2048, 4096))
    yield from ((m, 4096, 4096, 0, 1, 1) for m in (1, 8, 32, 64, 128, 256, 512))
    yield from ((m, n, k, 0, 1, 1) for m in (128, 512) for n, k in ((768, 768), (3072, 768), (768, 3072)))


def measure(handle, info, m, n, k, trans_a, trans_b, batch):
    desc, x, y, d = product(m, n, k, trans_a, trans_b, batch)
    plan, of_plan = c_void_p(), PlanInfo()
    _c.check(lib.hgemm_plan_create(byref(plan), handle, byref(desc)), handle)
    lib.hgemm_plan_get_info(plan, byref(of_plan))
    lib.hgemm_plan_destroy(plan)
    us = medians_us({"hgemm": by_hgemm(handle, desc), "sgemm": by_torch(x, y, d)})
    macs, bytes_ = batch * m * n * k, 4 * batch * (m * k + k * n + m * n)
    clocks = max(macs / LANES, bytes_ / DRAM_BYTES) / info.multiprocessors + ENDS
    return {"m": m, "n": n, "k": k, "op": "nt"[trans_a] + "nt"[trans_b], "batch": batch, **{name: round(time, 1) for name, time in us.items()},
            "expected": round(of_plan.seconds * 1e6, 1), "estimate": round(clocks / info.clock_khz * 1e3, 1)}


def main():
    handle, info = open_gpu()
    rows = [measure(handle, info, *shape) for shape in shapes()]
    write(sys.argv[1], rows, info, sys.argv[2], "single few fma selection",
          "Products of floats, us: hgemm and cuBLAS's SGEMM (torch.mm) in turns, medians of 5 trains of launches that wait until they are enqueued; "
          "what hgemm's cost model expects; and the door's estimate of SGEMM with this GPU's rates.")


if __name__ == "__main__":
    main()
