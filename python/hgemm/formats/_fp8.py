# SPDX-License-Identifier: MIT
"""FP8 E4M3 with scales for the whole matrix, for each row, for groups along k or for blocks of both."""
import numpy as np

from .._weights import Weights, wrong_shape
from ._tensors import FLOATS, check_group, tensor


def fp8(weight, scale, *, block=None):
    """The Weights of a layer in FP8 E4M3.

    weight  (n, k): float8_e4m3fn of torch's or ml_dtypes', or its bits as uint8
    scale   what the weight is multiplied by, float16, bfloat16 or float32: one, () or (1); one a row, (n) or (n, 1); one a group,
            (n, groups); or, with `block`, (ceil(n / rows), ceil(k / columns)), which DeepSeek's checkpoints call weight_scale_inv
    block   (rows, columns) of a block, such as (128, 128)"""
    return of_scale("scale", weight, scale, block)


def of_scale(name, weight, scale, block):
    """The same, where a checkpoint calls the scale so."""
    weight = tensor("weight", weight, ("uint8", "float8_e4m3fn"), (None, None))
    n, k = weight.shape
    scale = tensor(name, scale, FLOATS)
    if block is not None:
        if not isinstance(block, (tuple, list)) or len(block) != 2 or not all(isinstance(size, int) and size > 0 for size in block):
            raise ValueError(f"block: {block!r} is no shape of a block, (rows, columns)")
        rows, columns = block
        wanted = -(-n // rows), -(-k // columns)
        if scale.shape != wanted:
            raise wrong_shape(name, scale.shape, wanted)
        return Weights(weight, np.repeat(scale, rows, axis=0)[:n], "e4m3", group=columns if columns < k else 0)
    if scale.size == 1:
        scale = np.broadcast_to(scale.reshape(1, 1), (n, 1))
    elif scale.shape == (n,):
        scale = scale[:, None]
    if scale.ndim != 2 or scale.shape[0] != n or scale.shape[1] == 0 or k % scale.shape[1]:
        raise wrong_shape(name, scale.shape, f"(1), ({n}), ({n}, 1) or ({n}, groups that divide {k})")
    groups = scale.shape[1]
    return Weights(weight, scale, "e4m3", group=check_group(name, k, groups, k // groups))
