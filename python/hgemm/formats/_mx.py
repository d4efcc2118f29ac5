# SPDX-License-Identifier: MIT
"""MXFP4 and NVFP4: E2M1 codes, whose sixteen values are halves, with scales for groups of 32 or 16."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._types import BFLOAT16
from .._weights import E4M3, Weights, wrong_shape
from ._tensors import check_shape, tensor

EXPONENTS = ("uint8", "float8_e8m0fnu")
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float16)


def powers_of_two(name, exponents):
    """E8M0, 2^(e - 127), as bfloat16, which has them all."""
    if np.any(exponents == 255):
        raise ValueError(f"{name}: a scale of 255 is NaN")
    bits = np.where(exponents == 0, 0x40, exponents.astype(np.uint16) << 7)  # 2^-127 is subnormal
    return bits.astype(np.uint16).view(BFLOAT16)


def mxfp4(blocks: Any, scales: Any) -> Weights:
    """The Weights of an MXFP4 layer.

    blocks  uint8, (n, k / 2), or as gpt-oss has them (n, k / 32, 16): two codes in a byte, the one with the smaller k in the low bits
    scales  uint8 or float8_e8m0fnu, (n, k / 32): exponents, 127 for 1"""
    blocks = tensor("blocks", blocks, ("uint8",))
    if blocks.ndim == 3:
        check_shape("blocks", blocks, (None, None, 16))
        blocks = blocks.reshape(blocks.shape[0], 16 * blocks.shape[1])
    elif blocks.ndim != 2:
        raise wrong_shape("blocks", blocks.shape, "(n, k / 2) or (n, k / 32, 16)")
    n, k = blocks.shape[0], 2 * blocks.shape[1]
    if k % 32:
        raise wrong_shape("blocks", blocks.shape, "whole groups of 32 codes")
    return of_scales("scales", blocks, tensor("scales", scales, EXPONENTS, (n, k // 32)))


def of_scales(name, codes, exponents):
    """The same, where a checkpoint calls the scales so."""
    return Weights(codes, powers_of_two(name, exponents), "table16", group=32, table=E2M1, nibbles=True)


def nvfp4(weight_packed: Any, weight_scale: Any, weight_global_scale: Any) -> Weights:
    """The Weights of an NVFP4 layer, as compressed-tensors stores it. Its two scales are composed in float32.

    weight_packed        uint8, (n, k / 2): two codes in a byte, the one with the smaller k in the low bits
    weight_scale         float8_e4m3fn, or its bits, (n, k / 16)
    weight_global_scale  float32, one: what the scales are divided by"""
    packed = tensor("weight_packed", weight_packed, ("uint8",), (None, None))
    n, k = packed.shape[0], 2 * packed.shape[1]
    if k % 16:
        raise wrong_shape("weight_packed", packed.shape, "whole groups of 16 codes")
    scale = E4M3[tensor("weight_scale", weight_scale, ("uint8", "float8_e4m3fn"), (n, k // 16))]
    whole = tensor("weight_global_scale", weight_global_scale, ("float32",))
    if whole.size != 1:
        raise wrong_shape("weight_global_scale", whole.shape, (1,))
    if not np.isfinite(whole).all() or not whole.all():
        raise ValueError(f"weight_global_scale: scales are divided by it, and it is {whole.reshape(())}")
    return Weights(packed, scale / whole.reshape(()), "table16", group=16, table=E2M1, nibbles=True)
