# SPDX-License-Identifier: MIT
"""GPTQ: integers of 32 bits that hold codes of successive k, for each of n columns."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._weights import Weights, from_nibbles
from .._words import is_one_of, shown
from ._tensors import FLOATS, INTEGERS, groups_of_index, tensor, words_to_bytes


def gptq(qweight: Any, qzeros: Any, scales: Any, g_idx: Any = None, *, version: int, bits: int = 4, group_size: int | None = None,
         borrow: bool | None = None) -> Weights:
    """The Weights of a GPTQ layer, by the names of its tensors in a checkpoint.

    qweight     int32, (k * bits / 32, n)
    qzeros      int32, (groups, n * bits / 32)
    scales      float16, bfloat16 or float32, (groups, n)
    g_idx       int32, (k): the group of each k. With act-order they are in no order: the codes are then sorted by group
    version     1 or 2: version 1 stores zero - 1, version 2 (also "gptq_v2") the zero. Nothing in the tensors tells
    bits        4 or 8
    group_size  needed where g_idx is not given and the last group may be shorter than the others
    borrow      of version 1: whether 1 was subtracted from all zeros of an integer of 32 bits at once, so that a zero of 0 borrows from the
                next one (True), or from each by itself (False). Needed where zeros of 0 make these differ"""
    if not is_one_of(version, 1, 2):
        raise ValueError(f"version: {shown(version)} is neither 1 (stores zero - 1) nor 2 (stores the zero)")
    if not is_one_of(borrow, None, True, False):
        raise ValueError(f"borrow: {shown(borrow)} is none of True, False and None")
    if not is_one_of(bits, 4, 8):
        raise ValueError(f"bits: {shown(bits)} is neither 4 nor 8" + (", and GPTQ of 2 and 3 bits is not read" if is_one_of(bits, 2, 3) else ""))
    per_word = 32 // bits
    qweight = tensor("qweight", qweight, INTEGERS, (None, None))
    k, n = qweight.shape[0] * per_word, qweight.shape[1]
    scales = tensor("scales", scales, FLOATS, (None, n))
    groups = scales.shape[0]
    if n % per_word:
        raise ValueError(f"qweight: its shape is {qweight.shape}; of {bits} bits, its columns are a multiple of {per_word}")
    qzeros = tensor("qzeros", qzeros, INTEGERS, (groups, n // per_word))
    group, order = groups_of_index("g_idx", "scales", g_idx, k, groups, group_size)

    if order is None:  # (k / per_word, n) words are (k / per_word, n, 4) bytes: of one column, each holds k's in order, the lowest bits first
        codes = words_to_bytes(qweight).reshape(k // per_word, n, 4).transpose(1, 0, 2).reshape(n, k * bits // 8)
    else:
        rows = np.empty((k, n), np.uint8)
        for i in range(per_word):
            rows[i::per_word] = qweight.view(np.uint32) >> bits * i & (1 << bits) - 1
        rows = rows[order]
        codes = (rows if bits == 8 else rows[0::2] | rows[1::2] << 4).T
    zeros = _zeros_of_version_1(qzeros, bits, borrow) if version == 1 else _fields(qzeros, bits)
    return Weights(codes, scales.T, "uint4" if bits == 4 else "uint8", group=group, zeros=zeros.T, order=order, nibbles=bits == 4)


def _fields(words, bits):
    """(rows, words) to (rows, codes), the lowest bits first."""
    data = words_to_bytes(words)
    return from_nibbles(data) if bits == 4 else data


def _zeros_of_version_1(qzeros, bits, borrow):
    """What was stored, plus 1: of each zero by itself, modulo 2^bits, or of the whole integer, in which a zero of 0 had borrowed from the next.
    Both are the same where no zero of an integer but its last one is 0."""
    most, ones = (1 << bits) - 1, 0x11111111 if bits == 4 else 0x01010101
    stored = _fields(qzeros, bits)
    each, whole = stored + np.uint8(1) & np.uint8(most), _fields(qzeros.view(np.uint32) + np.uint32(ones), bits)
    if borrow is not None:
        return whole if borrow else each
    differ = np.argwhere(each != whole)
    if not differ.size:
        return each
    group, column = differ[0].tolist()
    all_ones = (stored == most).reshape(*qzeros.shape, -1)
    lost = np.array_equal(all_ones, np.maximum.accumulate(all_ones, axis=2))
    raise ValueError(
        f"qzeros: zeros of 0 are stored as {most}, in two ways. Where 1 was subtracted from integers of 32 bits (GPTQModel, AutoRound), group {group} "
        f"has a zero of {whole[group, column]} in column {column}: say borrow=True. Where it was from each zero by itself (Neural Compressor), "
        f"{each[group, column]}: borrow=False" + (
            f". AutoGPTQ wrote {most} over all that follow of the {32 // bits} zeros of an integer, too: they are lost" if lost else ""))
