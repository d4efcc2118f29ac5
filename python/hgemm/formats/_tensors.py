# SPDX-License-Identifier: MIT
"""What every converter does with a tensor of a checkpoint: makes it numpy's, and looks at its type and shape."""
import operator

import numpy as np

from .._to_numpy import to_numpy
from .._types import BFLOAT16
from .._weights import wrong_shape
from .._words import shown

INTEGERS = ("int32", "uint32")
FLOATS = ("float16", "bfloat16", "float32")


def tensor(name, array, types, shape=None):
    """numpy's array of one of these types, named as numpy does, and of this shape, in which None is any size. FP8 becomes its bits."""
    float8 = str(getattr(array, "dtype", "")).split(".")[-1]
    array = to_numpy(name, array)
    found = float8 if float8.startswith("float8") else "bfloat16" if array.dtype == BFLOAT16 else array.dtype.name
    if found not in types:
        raise TypeError(f"{name}: its type is {found}, not {' or '.join(types)}")
    if shape is not None:
        check_shape(name, array, shape)
    return array


def check_shape(name, array, shape):
    if array.ndim != len(shape) or any(want is not None and want != have for want, have in zip(shape, array.shape)):
        raise wrong_shape(name, array.shape, "(" + ", ".join("any" if size is None else str(size) for size in shape) + ")")


def matrix_shape(name, shape, of):
    """(n, k) of what a caller or a checkpoint says. of: the tensor that has this shape, for the exception."""
    try:
        n, k = (operator.index(size) for size in shape)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {shown(shape)} is no shape (n, k) of {of}") from None
    if n < 0 or k < 0:
        raise ValueError(f"{name}: {shown(shape)} is no shape (n, k) of {of}")
    return n, k


def words_to_bytes(words):
    """The bytes of integers of 32 bits, the lowest one first: (..., words) becomes (..., 4 * words)."""
    return np.ascontiguousarray(words).astype("<u4", copy=False).view(np.uint8)


def group_of(name, k, groups, group_size):
    """The group along k (0: the whole row) of a tensor that has `groups` of them. group_size: what the caller says, or None."""
    if group_size is not None:
        if not isinstance(group_size, (int, np.integer)):
            raise TypeError(f"group_size: {shown(group_size)} is no number of elements along k")
        size = k if group_size in (-1, 0) else group_size
        if size < 1 or -(-k // size) != groups:
            raise ValueError(f"{name}: it has {groups} groups; k = {k} in groups of {group_size} has {-(-k // max(size, 1))}")
    elif groups == 0 or k % groups:
        raise ValueError(f"{name}: it has {groups} groups, which do not divide k = {k}: say group_size")
    else:
        size = k // groups
        wider = 1 << max(size - 1, 0).bit_length()  # a power of two, as groups mostly are
        if groups > 1 and wider != size and -(-k // wider) == groups:
            raise ValueError(f"{name}: it has {groups} groups along k = {k}, of {size}, or of {wider} with a shorter last one: say group_size")
    return check_group(name, k, groups, size)


def check_group(name, k, groups, size):
    """The group along k, 0 for the whole row, if there is a kernel for it."""
    if groups == 1:
        return 0
    if size % 16:
        raise ValueError(f"{name}: it has {groups} groups of {size} along k = {k}; there are kernels for multiples of 16")
    return size


def groups_of_index(name, scales, g_idx, k, groups, group_size):
    """(group, order) of an index that says for each k its group, or of None. group: 0 for the whole row. order: None where they are in order;
    order[i] is the k that comes i-th. scales: the name of the tensor that has a scale for each group."""
    if g_idx is None:
        return group_of(scales, k, groups, group_size), None
    g_idx = tensor(name, g_idx, ("int32", "int64"), (k,))
    if k and (g_idx.min() < 0 or g_idx.max() >= groups):
        raise ValueError(f"{name}: its groups are {g_idx.min()} to {g_idx.max()}, and {scales} has {groups}: a row shard counts its own from 0")
    counts = np.bincount(g_idx, minlength=groups)
    group = group_of(scales, k, groups, int(counts[0]) if group_size is None and groups and counts[0] and -(-k // counts[0]) == groups else group_size)
    in_order = np.arange(k) // (group or k or 1)
    if np.array_equal(g_idx, in_order):
        return group, None
    order = np.argsort(g_idx, kind="stable")
    if not np.array_equal(g_idx[order], in_order):
        raise ValueError(f"{name}: of its {groups} groups the smallest has {counts.min()} and the largest {counts.max()} of k = {k}, as in a row shard "
                         f"of an act-order layer; packed weights have groups of one size, here {group or k}, but for the last one")
    return group, order
