# SPDX-License-Identifier: MIT
"""compressed-tensors: pack-quantized (integers of 32 bits that hold codes of successive k, an offset added) and int-quantized."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._weights import Weights, from_nibbles, nibbles, wrong_shape
from .._words import is_one_of, shown
from . import _fp8
from ._mx import EXPONENTS, nvfp4, of_scales
from ._tensors import FLOATS, INTEGERS, groups_of_index, matrix_shape, tensor, to_numpy, words_to_bytes


def compressed_tensors(*, weight_scale: Any, weight: Any = None, weight_packed: Any = None, weight_shape: Any = None, weight_zero_point: Any = None,
                       weight_g_idx: Any = None, weight_global_scale: Any = None, bits: int = 4, group_size: int | None = None,
                       block: Any = None) -> Weights:
    """The Weights of a layer of compressed-tensors, by the names of its tensors in a checkpoint.

    weight_scale         float16, bfloat16 or float32, (n, groups); (1) for the whole matrix. Of FP8, NVFP4 and MXFP4 as there
    weight_packed        int32, (n, ceil(k * bits / 32)): pack-quantized. uint8 with a weight_global_scale: NVFP4, without: MXFP4
    weight               int8, (n, k): int-quantized; float8_e4m3fn: float-quantized
    weight_shape         (n, k), for weight_packed whose last word is not full
    weight_zero_point    int32, (ceil(n * bits / 32), groups) beside weight_packed; int8, (n, groups) beside weight; int8, (1) for the
                         whole matrix
    weight_g_idx         int32, (k): the group of each k, for act-order. -1 in all places is none
    bits                 of weight_packed: 4 or 8
    group_size           needed where the last group may be shorter than the others
    block                (rows, columns) of a block of FP8"""
    if (weight is None) == (weight_packed is None):
        raise TypeError("weight_packed: give either it or weight")
    if weight_packed is not None and weight_global_scale is not None:
        return nvfp4(weight_packed, weight_scale, weight_global_scale)
    if weight_packed is not None and to_numpy("weight_packed", weight_packed).dtype == np.uint8:
        return _mxfp4(weight_packed, weight_scale)
    if weight is not None and to_numpy("weight", weight).dtype == np.uint8:
        if weight_zero_point is not None and to_numpy("weight_zero_point", weight_zero_point).view(np.uint8).any():
            raise ValueError("weight_zero_point: weights of FP8 have none")
        return _fp8.of_scale("weight_scale", weight, weight_scale, block, group_size)
    if block is not None:
        raise ValueError("block: only scales of FP8 may be of blocks")
    if weight is not None:
        return _integers(weight, weight_scale, weight_zero_point, weight_g_idx, group_size)
    if not is_one_of(bits, 4, 8):
        raise ValueError(f"bits: {shown(bits)} is neither 4 nor 8, of which packed weights have codes")
    return _packed(weight_packed, weight_scale, weight_shape, weight_zero_point, weight_g_idx, bits, group_size)


def _mxfp4(weight_packed, weight_scale):
    codes = tensor("weight_packed", weight_packed, ("uint8",), (None, None))
    n, width = codes.shape
    if to_numpy("weight_scale", weight_scale).shape == (n, width // 8):
        raise ValueError("weight_global_scale: there is none, and weight_packed is uint8 in groups of 16, as that of NVFP4 is, which has one")
    if width % 16:
        raise wrong_shape("weight_packed", codes.shape, "whole groups of 32 codes")
    return of_scales("weight_scale", codes, tensor("weight_scale", weight_scale, EXPONENTS, (n, width // 16)))


def _zeros(weight_zero_point, n, groups):
    """Zeros that are not packed."""
    zeros = tensor("weight_zero_point", weight_zero_point, ("int8",))
    zeros = np.broadcast_to(zeros.reshape(1, 1), (n, 1)) if zeros.size == 1 else zeros[:, None] if zeros.ndim == 1 else zeros
    if zeros.shape != (n, groups):
        raise wrong_shape("weight_zero_point", zeros.shape, (n, groups))
    return zeros


def _scales(weight_scale, n):
    scales = tensor("weight_scale", weight_scale, FLOATS)
    if scales.size == 1:
        scales = np.broadcast_to(scales.reshape(1, 1), (n, 1))
    elif scales.ndim == 1:
        scales = scales[:, None]
    if scales.ndim != 2 or scales.shape[0] != n:
        raise wrong_shape("weight_scale", scales.shape, f"({n}, groups)")
    return scales


def _index(weight_g_idx):
    return None if weight_g_idx is None or np.all(to_numpy("weight_g_idx", weight_g_idx) == -1) else weight_g_idx


def _packed(weight_packed, weight_scale, weight_shape, weight_zero_point, weight_g_idx, bits, group_size):
    words = tensor("weight_packed", weight_packed, INTEGERS, (None, None))
    n, k = words.shape[0], words.shape[1] * 32 // bits
    if weight_shape is not None:
        shape = to_numpy("weight_shape", weight_shape)
        if shape.size != 2:
            raise wrong_shape("weight_shape", shape.shape, (2,))
        shape = matrix_shape("weight_shape", shape.reshape(-1).tolist(), "weight_packed")
        if shape[0] != n or -(-shape[1] * bits // 32) != words.shape[1]:
            raise wrong_shape("weight_packed", words.shape, f"what a weight_shape of {shape} takes with {bits} bits")
        k = shape[1]
    if bits == 4 and k % 2:
        raise wrong_shape("weight_shape", (n, k), "an even k: two codes of 4 bits fill a byte")
    scales = _scales(weight_scale, n)
    groups = scales.shape[1]
    group, order = groups_of_index("weight_g_idx", "weight_scale", _index(weight_g_idx), k, groups, group_size)
    codes = words_to_bytes(words)[:, :k * bits // 8]
    zeros = np.full((n, groups), 1 << bits - 1, np.uint8)  # what is added to signed codes, and to zeros
    if weight_zero_point is not None and to_numpy("weight_zero_point", weight_zero_point).dtype == np.int8:  # of the whole matrix
        zeros = _zeros(weight_zero_point, n, groups).astype(np.int16) + zeros
    elif weight_zero_point is not None:
        packed = tensor("weight_zero_point", weight_zero_point, INTEGERS, (-(-n * bits // 32), groups))
        data = words_to_bytes(packed.T)  # of one group, in each byte those of successive n
        zeros = (from_nibbles(data) if bits == 4 else data)[:, :n].T
    if order is not None:
        codes = nibbles(from_nibbles(codes)[:, order]) if bits == 4 else codes[:, order]
    return Weights(codes, scales, f"uint{bits}", group=group, zeros=zeros, order=order, nibbles=bits == 4)


def _integers(weight, weight_scale, weight_zero_point, weight_g_idx, group_size):
    weight = tensor("weight", weight, ("int8",), (None, None))
    n, k = weight.shape
    scales = _scales(weight_scale, n)
    groups = scales.shape[1]
    group, order = groups_of_index("weight_g_idx", "weight_scale", _index(weight_g_idx), k, groups, group_size)
    zeros = None if weight_zero_point is None else _zeros(weight_zero_point, n, groups)
    if order is not None:
        weight = weight[:, order]
    return Weights(weight, scales, "int8", group=group, zeros=zeros, order=order)
