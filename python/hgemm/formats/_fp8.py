# SPDX-License-Identifier: MIT
"""FP8 E4M3 with scales for the whole matrix, for each row, for groups along k or for blocks of both."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._weights import Weights, wrong_shape
from .._words import shown
from ._mx import EXPONENTS, powers_of_two
from ._tensors import FLOATS, group_of, tensor


def fp8(weight: Any, scale: Any, *, block: Any = None, group_size: int | None = None) -> Weights:
    """The Weights of a layer in FP8 E4M3.

    weight      (n, k): float8_e4m3fn of torch's or ml_dtypes', or its bits as uint8
    scale       what the weight is multiplied by, float16, bfloat16, float32, or float8_e8m0fnu, or its bits as uint8: one for all, of any shape; one a
                row, (n) or (n, 1); one a group, (n, groups); or, with `block`, (ceil(n / rows), ceil(k / columns)), which DeepSeek's checkpoints call
                weight_scale_inv
    block       (rows, columns) of a block, such as (128, 128)
    group_size  of groups, needed where the last one may be shorter than the others"""
    return of_scale("scale", weight, scale, block, group_size)


def of_scale(name, weight, scale, block, group_size=None):
    """The same, where a checkpoint calls the scale so."""
    weight = tensor("weight", weight, ("uint8", "float8_e4m3fn"), (None, None))
    n, k = weight.shape
    scale = tensor(name, scale, (*FLOATS, *EXPONENTS))
    if scale.dtype == np.uint8:
        scale = powers_of_two(name, scale)
    if block is not None and group_size is not None:
        raise ValueError("group_size: a block is given, too; scales are of one of them")
    if block is not None:
        rows, columns = check_block("block", block)
        wanted = -(-n // rows), -(-k // columns)
        if scale.shape != wanted and (scale.size != 1 or wanted != (1, 1)):
            raise wrong_shape(name, scale.shape, f"{wanted}, as blocks of {rows}x{columns} have it")
        return Weights(weight, np.repeat(scale.reshape(wanted), rows, axis=0)[:n], "e4m3", group=columns if columns < k else 0)
    if scale.size == 1:
        scale = np.broadcast_to(scale.reshape(1, 1), (n, 1))
    elif scale.shape == (n,):
        scale = scale[:, None]
    if scale.ndim != 2 or scale.shape[0] != n or scale.shape[1] == 0:
        raise wrong_shape(name, scale.shape, f"(1), ({n}), ({n}, 1) or ({n}, groups)")
    return Weights(weight, scale, "e4m3", group=group_of(name, k, scale.shape[1], group_size))


def check_block(name, block):
    """(rows, columns) of a block, as a caller or a layer says them."""
    if not isinstance(block, (tuple, list)) or len(block) != 2 or not all(isinstance(size, int) and size > 0 for size in block):
        raise ValueError(f"{name}: {shown(block)} is no shape of a block, (rows, columns)")
    return tuple(block)
