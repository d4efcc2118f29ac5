# SPDX-License-Identifier: MIT
"""Products of FP32 by hgemm, of every accuracy, beside torch.mm, in FP32 and in TF32: times, alternating, and errors against float64.

    python3 bench/float_products.py LIBHGEMM.so OUT.json COMMIT [KERNEL...]    on a machine with a GPU and PyTorch, in a clone

hgemm takes part with its own choice, and with each kernel that is named.
"""
import os
import sys

os.environ.setdefault("HGEMM_LIBRARY", sys.argv[1])  # which float_calls opens

import torch
from float_calls import by_hgemm, by_torch, errors, open_gpu, product, write
from trains import medians_us

SHAPES = [(n, n, n, 0, 0, torch.randn) for n in (1024, 2048, 4096, 8192)]
SHAPES += [(n, n, n, 0, 1, torch.randn) for n in (1024, 2048, 4096)]
SHAPES += [(2048, 2048, 2048, 1, op_b, torch.randn) for op_b in (0, 1)]
SHAPES += [(m, m, k, 0, 0, torch.rand) for m, k in ((512, 16384), (64, 16384), (1024, 2048), (4096, 16384))]
SHAPES += [(m, 4096, 4096, 0, 1, torch.randn) for m in (1, 16, 64, 256)]
SHAPES += [(n, n, n, 0, 0, torch.randn) for n in (1023, 2047)]


def in_tf32(run):
    """That call where cuBLAS may round what it multiplies to 11 bits."""
    def allowed():
        torch.backends.cuda.matmul.allow_tf32 = True
        run()
        torch.backends.cuda.matmul.allow_tf32 = False
    return allowed


def measure(handle, kernels, m, n, k, op_a, op_b, draw):
    desc, x, y, d = product(m, n, k, op_a, op_b, draw=draw)
    sgemm = by_torch(x, y, d)
    runs = {"hgemm": by_hgemm(handle, desc), **{kernel: by_hgemm(handle, desc, kernel) for kernel in kernels}, "sgemm": sgemm, "tf32": in_tf32(sgemm),
            **{level: by_hgemm(handle, desc, accuracy=level) for level in ("16bits", "11bits")}}
    found = {}
    for name in ("hgemm", "sgemm", "tf32", "16bits", "11bits"):
        d.fill_(float("nan"))
        runs[name]()
        found[name] = errors(d[0], x[0], y[0])
    us = medians_us(runs, 9)
    return {"m": m, "n": n, "k": k, "op": "nt"[op_a] + "nt"[op_b], "data": "normal" if draw is torch.randn else "positive",
            **{f"us_{which}": value for which, value in us.items()}, "tflops": 2e-6 * m * n * k / us["hgemm"],
            "speed_over_sgemm": us["sgemm"] / us["hgemm"], **{f"rms_{name}": error for name, (error, _) in found.items()},
            "worst_units": found["hgemm"][1]}


def main():
    handle, info = open_gpu()
    rows = []
    for shape in SHAPES:
        rows.append(measure(handle, sys.argv[4:], *shape))
        print(" ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    write(sys.argv[2], rows, info, sys.argv[3], "single", "Products of FP32 by hgemm beside torch.mm, us in turns, medians of 9 trains of "
          "launches that wait until they are enqueued; and errors over sum|a||b|.")


if __name__ == "__main__":
    main()
