# SPDX-License-Identifier: MIT
"""Random weights, for the tests and for what is checked on a GPU."""
import numpy as np

import hgemm
from hgemm._types import BFLOAT16


def words(rng, *shape):
    """Integers of 32 bits, full of codes."""
    return rng.integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32).view(np.int32)


def zero_words(rng, *shape):
    """Those of zeros, of 4 or 8 bits, of which none is stored as ones in all its bits: in GPTQ's version 1, none is 0."""
    return words(rng, *shape) & 0x77777777


def halves(rng, *shape):
    return rng.uniform(0.01, 2, shape).astype(np.float16)


def made(rng, code, n, k, group, zeros=None, scale="float32"):
    """Random weights. Scales are powers of two, so that every element is exact in a half."""
    groups = -(-k // group) if group else 1
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256), "e4m3": (0x30, 0x50), "table16": (0, 16)}[code]
    scales = np.exp2(rng.integers(-4, 1, (n, groups))).astype(np.float32)
    options = {"table": np.arange(-8, 8) / 4} if code == "table16" else {}
    if zeros == "integer":
        options["zeros"] = rng.integers(low, high, (n, groups))
    if zeros == "real":
        options["offsets"] = rng.integers(-8, 9, (n, groups)).astype(scale)
    if scale == "bfloat16":
        scales = (scales.view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)
    else:
        scales = scales.astype(scale)
    return hgemm.Weights(rng.integers(low, high, (n, k)), scales, code, group=group, **options)


KINDS = [("int4", None), ("uint4", "integer"), ("uint4", "real"), ("int8", None), ("int8", "integer"), ("uint8", "real"), ("uint8", "integer"),
         ("table16", None), ("e4m3", None)]
