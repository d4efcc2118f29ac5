# SPDX-License-Identifier: MIT
"""What a program that calls hgemm looks like to mypy --strict. Nothing of it is run. Each `type: ignore` is a fault of the caller's that mypy must
find: one that it does not find is an error, too (warn_unused_ignores)."""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import hgemm
import hgemm.cublas

Floats = npt.NDArray[np.float16]


def products(a: Floats, b: Floats) -> npt.NDArray[Any]:
    d = hgemm.matmul(a, b, alpha=2, bias=a[0], activation="relu", gate=a, out_dtype="float32", accuracy="11bits")
    hgemm.matmul(a, b, out=d, beta=1.0, kernel=None, stream=None)
    d = hgemm.linear(a, b, None, alpha=2.0, batch_invariant=True)
    return hgemm.grouped(a, b, np.array([1, 2]), gather_a=np.array([0, 1]), scale_b=hgemm.find_scale(b))


def on_a_device(a: Floats) -> hgemm.DeviceArray:
    x: hgemm.DeviceArray = hgemm.array(a, device="cuda:1")
    shape: tuple[int, ...] = x.T.reshape(2, -1).swapaxes(0, 1)[:, None].shape
    host: npt.NDArray[Any] = x.numpy()
    x.copy_from(host)
    print(shape, x.dtype, x.nbytes, x.device)
    return hgemm.matmul(x, x.transpose(1, 0))


def packed(a: Floats) -> npt.NDArray[Any]:
    weights = hgemm.Weights(np.ones((16, 64), int), np.ones((16, 2)), "uint4", group=32, zeros=np.ones((16, 2), int))
    w: hgemm.PackedWeights = hgemm.pack(weights)
    print(w.shape, w.code, w.group, w.nbytes, w.unpack("float32"), weights.dequantize().sum(), hgemm.pack([weights, weights]).experts)
    return hgemm.linear(a, w, out_dtype="float32")


def a_file() -> hgemm.PackedWeights:
    tensors = hgemm.gguf("model.gguf")
    names: list[str] = [name for name in tensors if name.endswith("weight")]
    print(len(tensors), tensors.metadata["general.name"], hgemm.formats.gptq(*map(np.asarray, "abc"), version=2).dequantize())
    return hgemm.pack(tensors[names[0]])


def what_is_here() -> None:
    about: hgemm._measure.Info = hgemm.info()
    table = hgemm.bench(["64", "1x2x3"], kernels="auto", accumulate="float16", repetitions=3)
    written: dict[str, Any] = hgemm.report("report.json", shapes="64")
    names: list[str] = [kernel["name"] for kernel in hgemm.kernels()]
    print(about, table.rows, table.plot("table.png"), written, names, hgemm.predictions(events=True), hgemm.cublas.library())
    try:
        hgemm.info("cuda:9")
    except hgemm.DeviceError as error:
        print(error.status.lower(), error.detail.lower())


def faults(a: Floats) -> None:
    y: int = hgemm.matmul(a, a)  # type: ignore[assignment]
    hgemm.matmul(a, a, alhpa=2)  # type: ignore[call-arg]
    hgemm.linear(a, a, bais=a)  # type: ignore[call-arg]
    hgemm.matmul(a)  # type: ignore[call-arg]
    hgemm.matmul(a, a, activation=1)  # type: ignore[arg-type]
    hgemm.linear(a, a, accumulate=None)  # type: ignore[arg-type]
    hgemm.matmull(a, a)  # type: ignore[attr-defined]
    hgemm.array(a).shpae  # type: ignore[attr-defined]
    hgemm.bench(repetitions="3")  # type: ignore[arg-type]
    hgemm.pack(a)  # type: ignore[arg-type]
    hgemm.Weights(a, a)  # type: ignore[call-arg]
    hgemm.formats.awq(a, a, a, group=32)  # type: ignore[call-arg]
    print(y)
