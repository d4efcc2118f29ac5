# SPDX-License-Identifier: MIT
"""The blocks of ggml's quantised types, as GGUF files hold them: of 32 or 256 elements along k, scales and codes side by side."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._weights import Weights, wrong_shape
from .._words import shown
from ._mx import E2M1, powers_of_two
from ._tensors import matrix_shape, tensor

_IQ4_NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float16)


def _halves(blocks, start, count=1):
    """count halves of each block, from a byte on."""
    return np.ascontiguousarray(blocks[:, start:start + 2 * count]).view("<f2").astype(np.float16, copy=False)


def _low_high(data):
    """A block of 32: the low 4 bits of 16 bytes, then their high ones."""
    return np.concatenate([data & 15, data >> 4], axis=-1)


def _bits(data, width, parts):
    """Fields of a byte, the lowest bits first, each for all bytes: (..., bytes) becomes (..., parts * bytes)."""
    return np.concatenate([data >> width * i & (1 << width) - 1 for i in range(parts)], axis=-1)


def _fields_in_order(data, width):
    """Fields of a byte, the lowest bits first, byte after byte: (..., bytes) becomes (..., 8 / width * bytes)."""
    return (data[..., None] >> np.arange(0, 8, width, dtype=np.uint8) & (1 << width) - 1).reshape(*data.shape[:-1], -1)


def _fifth_bits(data):
    """The 32 bits of 4 bytes as 0 or 16, the lowest one first."""
    return np.unpackbits(data, axis=-1, bitorder="little") << 4


def _q4_0(b):
    return {"code": "int4", "codes": _low_high(b[:, 2:]).view(np.int8) - 8, "scales": _halves(b, 0)}


def _q4_1(b):
    return {"code": "uint4", "codes": _low_high(b[:, 4:]), "scales": _halves(b, 0), "offsets": _halves(b, 2)}


def _q5_0(b):
    codes = (_low_high(b[:, 6:]) | _fifth_bits(b[:, 2:6])).view(np.int8) - 16
    return {"code": "int8", "codes": codes, "scales": _halves(b, 0)}


def _q5_1(b):
    codes = _low_high(b[:, 8:]) | _fifth_bits(b[:, 4:8])
    return {"code": "uint8", "codes": codes, "scales": _halves(b, 0), "offsets": _halves(b, 2)}


def _q8_0(b):
    return {"code": "int8", "codes": b[:, 2:].view(np.int8), "scales": _halves(b, 0)}


def _iq4_nl(b):
    return {"code": "table16", "codes": _low_high(b[:, 2:]), "scales": _halves(b, 0), "table": _IQ4_NL}


def _iq4_xs(b):
    """d is a half; of the 6 bits of a group's scale the low 4 are in bytes 4 to 7, the high 2 in the 16 bits before these."""
    low, high = _fields_in_order(b[:, 4:8], 4), _fields_in_order(b[:, 2:4], 2)
    scales = _halves(b, 0).astype(np.float32) * ((low | high << 4).view(np.int8) - 32)
    return {"code": "table16", "codes": _low_high(b[:, 8:].reshape(-1, 8, 16)).reshape(-1, 256), "scales": scales, "table": _IQ4_NL}


def _mxfp4(b):
    return {"code": "table16", "codes": _low_high(b[:, 1:]), "scales": powers_of_two("scales", b[:, :1]), "table": E2M1}


def _scale_and_min(b):
    """Of Q4_K and Q5_K: (scales, offsets) of 8 groups. d and dmin are halves, eight numbers of 6 bits for each in 12 bytes: of the first
    four the low 6 bits of bytes 0 to 3 and 4 to 7, of the others 4 bits of bytes 8 to 11 below what is left of the first ones."""
    packed = b[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scale = np.concatenate([first & 63, third & 15 | (first >> 6) << 4], axis=1)
    least = np.concatenate([second & 63, third >> 4 | (second >> 6) << 4], axis=1)
    d = _halves(b, 0, 2).astype(np.float32)
    return d[:, :1] * scale, -(d[:, 1:] * least)


def _q4_k(b):
    scales, offsets = _scale_and_min(b)
    codes = _bits(b[:, 16:].reshape(-1, 4, 32), 4, 2).reshape(-1, 256)
    return {"code": "uint4", "codes": codes, "scales": scales, "offsets": offsets}


def _q5_k(b):
    scales, offsets = _scale_and_min(b)
    low = _bits(b[:, 48:].reshape(-1, 4, 32), 4, 2).reshape(-1, 256)
    return {"code": "uint8", "codes": low | _bits(b[:, 16:48], 1, 8) << 4, "scales": scales, "offsets": offsets}


def _q6_k(b):
    low = _bits(b[:, :128].reshape(-1, 2, 64), 4, 2).reshape(-1, 256)
    high = _bits(b[:, 128:192].reshape(-1, 2, 32), 2, 4).reshape(-1, 256)
    scales = b[:, 192:208].view(np.int8) * _halves(b, 208).astype(np.float32)
    return {"code": "int8", "codes": (low | high << 4).view(np.int8) - 32, "scales": scales}


# name: (number in a file, elements of a block, bytes of a block, elements of a group, what takes blocks apart)
TYPES = {
    "Q4_0": (2, 32, 18, 32, _q4_0), "Q4_1": (3, 32, 20, 32, _q4_1), "Q5_0": (6, 32, 22, 32, _q5_0), "Q5_1": (7, 32, 24, 32, _q5_1),
    "Q8_0": (8, 32, 34, 32, _q8_0), "Q4_K": (12, 256, 144, 32, _q4_k), "Q5_K": (13, 256, 176, 32, _q5_k), "Q6_K": (14, 256, 210, 16, _q6_k),
    "IQ4_NL": (20, 32, 18, 32, _iq4_nl), "IQ4_XS": (23, 256, 136, 32, _iq4_xs), "MXFP4": (39, 32, 17, 32, _mxfp4),
}


def ggml(data: Any, type: str, shape: Any) -> Weights:
    """The Weights of a tensor of one of ggml's quantised types: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS and MXFP4.

    data   uint8: the bytes of the tensor, row by row
    shape  (n, k). A file has them the other way round"""
    if not isinstance(type, str) or type not in TYPES:
        raise ValueError(f"type: {shown(type)} is none of {', '.join(TYPES)}")
    _, elements, size, group, take_apart = TYPES[type]
    n, k = matrix_shape("shape", shape, "data")
    data = tensor("data", data, ("uint8",))
    if k % elements:
        raise wrong_shape("data", (n, k), f"a k that is a multiple of {elements}, the elements of a block of {type}")
    if data.size != n * (k // elements) * size:
        raise wrong_shape("data", data.shape, f"{n * (k // elements) * size} bytes for {type} of the shape {(n, k)}")
    parts = take_apart(np.ascontiguousarray(data).reshape(-1, size))
    code, table = parts.pop("code"), parts.pop("table", None)
    codes = parts.pop("codes").reshape(n, k)
    parts = {name: np.ascontiguousarray(part).reshape(n, k // group) for name, part in parts.items()}
    return Weights(codes, parts.pop("scales"), code, group=group, table=table, **parts)
