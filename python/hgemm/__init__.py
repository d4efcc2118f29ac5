# SPDX-License-Identifier: MIT
"""Matrix multiplication for the NVIDIA T4 in FP16, BF16 and FP32 and by weights of 4 and 8 bits, and on the CPU by an emulated T4.

    hgemm.matmul(a, b)     numpy, torch, cupy; anything with __cuda_array_interface__ or DLPack
    hgemm.linear(x, w)     x @ w.T + bias
    hgemm.grouped(x, w, ends)  groups of rows, each by a matrix of its own: experts
    hgemm.find_scale(w)    the scale of bfloat16 weights
    hgemm.array(x)         a copy of a host array in device memory
    hgemm.info()           the library and the device
    hgemm.bench()          a table of speeds on this GPU
    hgemm.predictions()    what the timing model says of a T4
    hgemm.report()         a JSON file that says how the library does on this GPU
    hgemm.pack(weights)    weights of 4 and 8 bits, for linear and grouped
    hgemm.gguf(path)       the tensors of a GGUF file
    hgemm.formats          weights of 4 and 8 bits as GPTQ, AWQ, compressed-tensors, bitsandbytes and others store them
    hgemm.torch            operators for torch, and `with hgemm.torch.enable():`
"""
from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from ._c import ArgumentError, DeviceError, Error, NotSupportedError, OutOfMemoryError, kernels
from ._c import version_text as _version_text
from ._device_array import DeviceArray, array
from ._functions import find_scale, grouped, linear, matmul, pack
from ._packed import PackedWeights
from ._weights import Weights

if TYPE_CHECKING:
    from . import formats as formats
    from . import torch as torch
    from ._measure import bench, info, predictions, report
    from .formats import GGUF as gguf

__version__ = _version_text()
__all__ = ["ArgumentError", "DeviceArray", "DeviceError", "Error", "NotSupportedError", "OutOfMemoryError", "PackedWeights",
           "Weights", "array", "bench", "find_scale", "gguf", "grouped", "info", "kernels", "linear", "matmul", "pack", "predictions", "report"]


_LATER = ("bench", "info", "predictions", "report")
_USED = {"importlib", "annotations", "TYPE_CHECKING", "Any"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "formats", *(["torch"] if importlib.util.find_spec("torch") else [])} - _USED)


def _load(name: str) -> Any:  # when it is asked for: torch takes seconds, and may not be there
    if name in _LATER:
        return getattr(importlib.import_module("._measure", __name__), name)
    if name in ("torch", "formats"):
        return importlib.import_module("." + name, __name__)
    if name == "gguf":
        return importlib.import_module(".formats", __name__).GGUF
    raise AttributeError(f"module 'hgemm' has no attribute {name!r}")


if not TYPE_CHECKING:  # to which any name would be there
    __getattr__ = _load
