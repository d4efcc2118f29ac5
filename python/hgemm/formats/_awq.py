# SPDX-License-Identifier: MIT
"""AWQ's layout for GEMM: integers of 32 bits that hold eight columns of n in an order of its own, for each k."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._weights import Weights, wrong_shape
from ._tensors import FLOATS, INTEGERS, group_of, tensor, words_to_bytes

_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # which of eight columns each group of 4 bits is, the lowest bits first


def _spread(words):
    """(rows, n / 8) words to (rows, n) codes."""
    data = words_to_bytes(words).reshape(words.shape[0], -1, 4)
    codes = np.empty((words.shape[0], words.shape[1], 8), np.uint8)
    for i, column in enumerate(_COLUMNS):
        codes[..., column] = data[..., i // 2] >> 4 if i % 2 else data[..., i // 2] & 15
    return codes.reshape(words.shape[0], -1)


def awq(qweight: Any, qzeros: Any, scales: Any, *, group_size: int | None = None) -> Weights:
    """The Weights of an AWQ layer of 4 bits, version "gemm", by the names of its tensors in a checkpoint.

    qweight     int32, (k, n / 8)
    qzeros      int32, (groups, n / 8)
    scales      float16, bfloat16 or float32, (groups, n)
    group_size  needed where the last group may be shorter than the others"""
    qweight = tensor("qweight", qweight, INTEGERS, (None, None))
    k, n = qweight.shape[0], qweight.shape[1] * 8
    scales = tensor("scales", scales, FLOATS, (None, n))
    qzeros = tensor("qzeros", qzeros, INTEGERS, (scales.shape[0], n // 8))
    group = group_of("scales", k, scales.shape[0], group_size)
    if k % 2:
        raise wrong_shape("qweight", qweight.shape, "an even k: two codes of 4 bits fill a byte")
    even, odd = qweight.view(np.uint32)[0::2], qweight.view(np.uint32)[1::2]
    codes = np.empty((n // 8, 8, k // 2), np.uint8)
    for i, column in enumerate(_COLUMNS):
        codes[:, column] = ((even >> 4 * i & 15) | (odd >> 4 * i & 15) << 4).astype(np.uint8).T
    return Weights(codes.reshape(n, k // 2), scales.T, "uint4", group=group, zeros=_spread(qzeros).T, nibbles=True)
