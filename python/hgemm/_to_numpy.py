# SPDX-License-Identifier: MIT
"""Tensors of a checkpoint, of numpy's or torch's and on whatever device, as numpy's arrays."""
import sys

import numpy as np

from ._types import BFLOAT16, native


def is_torch(array):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def to_numpy(name, array):
    """numpy's array, in this machine's byte order. FP8 becomes its bits."""
    if is_torch(array):
        torch = sys.modules["torch"]
        if array.layout != torch.strided or array.is_nested or array.is_quantized:
            kind = "nested" if array.is_nested else "quantised by torch" if array.is_quantized else f"of layout {array.layout}"
            raise TypeError(f"{name}: it is {kind}; tensors of strided numbers are taken")
        if array.is_meta:
            raise ValueError(f"{name}: it is on meta, where no tensor has numbers; its shape is {tuple(array.shape)}")
        array = array.detach().cpu().resolve_neg()
        if array.dtype == torch.bfloat16:
            return array.contiguous().view(torch.int16).numpy().view(BFLOAT16)
        if str(array.dtype).startswith("torch.float8"):
            return _fp8_bits(name, str(array.dtype)[6:], array.contiguous().view(torch.uint8).numpy())
        return array.resolve_conj().numpy()
    if not hasattr(array, "dtype"):
        raise TypeError(f"{name}: a {type(array).__module__}.{type(array).__qualname__} is no array of numpy's or torch's")
    array = np.asarray(array)
    if array.dtype.name.startswith("float8"):
        return _fp8_bits(name, array.dtype.name, array.view(np.uint8))
    return array.astype(native(array.dtype), copy=False)


def _fp8_bits(name, dtype, bits):
    if dtype not in ("float8_e4m3fn", "float8_e8m0fnu"):
        raise TypeError(f"{name}: its type is {dtype}; of FP8, float8_e4m3fn is taken")
    return bits
