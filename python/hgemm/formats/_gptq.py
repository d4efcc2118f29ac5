# SPDX-License-Identifier: MIT
"""GPTQ: integers of 32 bits that hold codes of successive k, for each of n columns."""
import numpy as np

from .._weights import Weights, from_nibbles
from ._tensors import FLOATS, INTEGERS, group_of, sort_groups, tensor, words_to_bytes


def gptq(qweight, qzeros, scales, g_idx=None, *, version, bits=4, group_size=None):
    """The Weights of a GPTQ layer, by the names of its tensors in a checkpoint.

    qweight     int32, (k * bits / 32, n)
    qzeros      int32, (groups, n * bits / 32)
    scales      float16, bfloat16 or float32, (groups, n)
    g_idx       int32, (k): the group of each k. With act-order they are in no order: the codes are then sorted by group
    version     1 or 2: version 1 stores zero - 1, version 2 (also "gptq_v2") the zero. Nothing in the tensors tells
    bits        4 or 8
    group_size  needed where the last group is shorter than the others"""
    if version not in (1, 2):
        raise ValueError(f"version: {version!r} is neither 1 (stores zero - 1) nor 2 (stores the zero)")
    if bits not in (4, 8):
        raise ValueError(f"bits: {bits!r} is neither 4 nor 8")
    per_word = 32 // bits
    qweight = tensor("qweight", qweight, INTEGERS, (None, None))
    k, n = qweight.shape[0] * per_word, qweight.shape[1]
    scales = tensor("scales", scales, FLOATS, (None, n))
    groups = scales.shape[0]
    if n % per_word:
        raise ValueError(f"qweight: its shape is {qweight.shape}; of {bits} bits, its columns are a multiple of {per_word}")
    qzeros = tensor("qzeros", qzeros, INTEGERS, (groups, n // per_word))
    group = group_of("scales", k, groups, group_size)
    order = None if g_idx is None else sort_groups("g_idx", g_idx, k, group, groups)

    if order is None:  # (k / per_word, n) words are (k / per_word, n, 4) bytes: of one column, each holds k's in order, the lowest bits first
        codes = words_to_bytes(qweight).reshape(k // per_word, n, 4).transpose(1, 0, 2).reshape(n, k * bits // 8)
    else:
        rows = np.empty((k, n), np.uint8)
        for i in range(per_word):
            rows[i::per_word] = qweight.view(np.uint32) >> bits * i & (1 << bits) - 1
        rows = rows[order]
        codes = (rows if bits == 8 else rows[0::2] | rows[1::2] << 4).T
    zeros = words_to_bytes(qzeros)
    zeros = (from_nibbles(zeros) if bits == 4 else zeros).T.astype(np.int32) + (version == 1)
    if bits == 8 and zeros.size and zeros.max() > 255:
        raise ValueError("qzeros: version 1 stores 255 for a zero of 256, which 8 bits do not hold")
    return Weights(codes, scales.T, "uint4" if bits == 4 else "uint8", group=group, zeros=zeros, order=order, nibbles=bits == 4)
