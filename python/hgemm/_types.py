# SPDX-License-Identifier: MIT
"""Types of elements: of numpy's, torch's and others' names for them, the library's."""
import numpy as np

from . import _c
from ._words import shown

try:  # numpy has no bfloat16
    import ml_dtypes
    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # its bits, to be kept and copied

_NAMES = {prefix + name: name for prefix in ("", "torch.") for name in _c.TYPE}


def type_name(dtype):
    """The name of a type of numpy's, or of the one that stands for bfloat16, in whatever byte order."""
    return "bfloat16" if native(dtype) == BFLOAT16 else dtype.name


def native(dtype):
    """The type of the same numbers in this machine's byte order."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def dtype_name(argument, value):
    """The name of a type of numpy's or torch's, or of a string."""
    text = value if isinstance(value, str) else str(value) if hasattr(value, "__module__") or isinstance(value, np.dtype) else ""
    if text not in _NAMES:
        try:
            dtype = np.dtype(value)
        except (TypeError, ValueError):
            dtype = None
        if dtype is not None and (dtype.isnative or argument == "out"):  # results are made native, but written as out has it
            text = type_name(dtype)
    if text not in _NAMES:
        raise TypeError(f"{argument}: {shown(value)} is none of float16, bfloat16 and float32")
    return _NAMES[text]


WANTED = {**dict.fromkeys(("group_ends", "gather_a", "scatter_d"), ("int32", "int64"))}


def check_type(name, dtype):
    """Refuses an argument for its type. dtype: what type_name says, or another library's word."""
    wanted = WANTED.get(name, ("float16", "bfloat16", "float32"))
    if dtype not in wanted:
        raise TypeError(f"{name}: its type is {dtype}, not {', '.join(wanted[:-1])} or {wanted[-1]}")
