# SPDX-License-Identifier: MIT
"""bitsandbytes' NF4 and FP4: numbers of a table of sixteen values, the largest magnitude of each block as its scale, which may itself be
a code of 8 bits."""
from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy as np

from .._weights import Weights, wrong_shape
from .._words import shown
from ._tensors import matrix_shape, tensor, to_numpy

# The values of bitsandbytes' functional.py: NF4's are quantiles of the normal distribution, FP4's a float of 4 bits over 12.
TABLES = {
    "nf4": np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float32),
    "fp4": np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3], np.float32) / np.float32(12),
}


@functools.lru_cache(maxsize=64)
def _as_halves(values):
    """(halves, factor): what sixteen float32 are, times a factor from 1 to 2, as halves. Of 2^16 factors it is the one by which they are
    nearest to halves in relation to their size: FP4's become halves but for 2^-24, NF4's are off by 2^-12.5."""
    values = np.frombuffer(values, np.float32)
    used = values[values != 0].astype(np.float64)
    factors = 1 + np.arange(1 << 16) / (1 << 16)
    wanted = used[:, None] * factors
    off = np.abs(wanted.astype(np.float16) - wanted) / np.abs(wanted)
    factor = factors[np.argmin(off.max(axis=0, initial=0))]
    return (values * factor).astype(np.float16), np.float32(factor)


def bitsandbytes(weight: Any, absmax: Any, shape: Any, *, quant_type: str = "nf4", quant_map: Any = None, blocksize: int = 64, nested_absmax: Any = None,
                 nested_quant_map: Any = None, nested_offset: Any = 0.0, nested_blocksize: int = 256) -> Weights:
    """The Weights of a Linear4bit of bitsandbytes, by the names of its tensors in a checkpoint and of what its quant_state says.

    weight            uint8, n * k / 2 of them: two codes in a byte, the one with the smaller k in the high bits
    absmax            float32, a number for each block; uint8 where it is nested (double-quantised)
    shape             (n, k)
    quant_type        "nf4" or "fp4"; quant_map: other sixteen values, float32
    blocksize         elements of a block. Rows whose k is no multiple of it begin inside blocks, at a multiple of 16
    nested_absmax     float32, a number for each nested_blocksize of absmax
    nested_quant_map  float32, the 256 values of absmax' codes
    nested_offset     what is added to all of absmax"""
    n, k = matrix_shape("shape", shape, "weight")
    for name, size in (("blocksize", blocksize), ("nested_blocksize", nested_blocksize)):
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name}: {shown(size)} is no number of elements")
    if quant_map is None and not (isinstance(quant_type, str) and quant_type in TABLES):
        raise ValueError(f"quant_type: {shown(quant_type)} is neither 'nf4' nor 'fp4'")
    values = TABLES[quant_type] if quant_map is None else tensor("quant_map", quant_map, ("float32",), (16,))
    weight = to_numpy("weight", weight)
    if weight.ndim and weight.dtype.kind in "ifV" and weight.flags.c_contiguous:  # quant_storage of other types
        weight = weight.view(np.uint8)
    weight = tensor("weight", weight, ("uint8",))
    if k % 2 or weight.size * 2 != n * k:
        raise wrong_shape("weight", weight.shape, f"{n * k / 2:g} bytes for {n} rows of k = {k}, which is even")
    blocks = -(-n * k // blocksize)
    scales = _absmax(absmax, blocks, nested_absmax, nested_quant_map, nested_offset, nested_blocksize)
    step = math.gcd(k, blocksize)  # along a row blocks change at multiples of it only
    if step not in (k, blocksize) and step % 16:
        raise ValueError(f"weight: its rows of k = {k} begin at multiples of {step} inside blocks of {blocksize}; there are kernels for multiples of 16")
    scales = scales[np.arange(n * k // step) * step // blocksize].reshape(n, k // step)
    codes = weight.reshape(n, k // 2)
    halves, factor = _as_halves(np.ascontiguousarray(values).tobytes())
    return Weights(codes << 4 | codes >> 4, scales / factor, "table16", group=step if step < k else 0, table=halves, nibbles=True)


def _absmax(absmax, blocks, nested_absmax, nested_quant_map, nested_offset, nested_blocksize):
    if nested_absmax is None:
        absmax = tensor("absmax", absmax, ("float32",))
        if absmax.size != blocks:
            raise wrong_shape("absmax", absmax.shape, (blocks,))
        return absmax.reshape(-1)
    codes = tensor("absmax", absmax, ("uint8",))
    if codes.size != blocks:
        raise wrong_shape("absmax", codes.shape, (blocks,))
    values = tensor("nested_quant_map", nested_quant_map, ("float32",), (256,))
    outer = tensor("nested_absmax", nested_absmax, ("float32",))
    if outer.size != -(-blocks // nested_blocksize):
        raise wrong_shape("nested_absmax", outer.shape, (-(-blocks // nested_blocksize),))
    offset = float(nested_offset if isinstance(nested_offset, (int, float)) else to_numpy("nested_offset", nested_offset))
    return values[codes.reshape(-1)] * outer.reshape(-1)[np.arange(blocks) // nested_blocksize] + np.float32(offset)


def bitsandbytes_state(weight: Any, state: Any) -> Weights:
    """The same of a weight and what a checkpoint has beside it: a dict by names such as "absmax" and "quant_state.bitsandbytes__nf4", or
    the quant_state of a Params4bit."""
    if getattr(state, "packing_format_for_cpu", False):
        raise ValueError("weight: it is in bitsandbytes' own order for CPUs")
    if not isinstance(state, dict):
        if not hasattr(state, "as_dict"):
            raise TypeError(f"state: a {type(state).__module__}.{type(state).__qualname__} is neither a dict nor a quant_state")
        state = state.as_dict()
    found = {}
    for name, value in state.items():
        if name.split(".")[-1].startswith("bitsandbytes__"):  # a JSON text, as bytes
            try:
                found.update(json.loads(tensor(name, value, ("uint8",)).tobytes()))
            except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
                raise ValueError(f"{name}: it is no JSON text of names and values: {error}") from None
        else:
            found[name.split(".")[-1]] = value
    for name in ("absmax", "shape", "quant_type", "blocksize"):
        if found.get(name) is None:
            raise ValueError(f"{name}: the quant_state has none")
    names = ("quant_type", "quant_map", "blocksize", "nested_absmax", "nested_quant_map", "nested_offset", "nested_blocksize")
    return bitsandbytes(weight, found["absmax"], found["shape"], **{name: found[name] for name in names if found.get(name) is not None})
