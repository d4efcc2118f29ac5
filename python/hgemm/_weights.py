# SPDX-License-Identifier: MIT
"""Weights of 4 or 8 bits as all formats are converted to, before they are packed. In host memory, by numpy."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._to_numpy import to_numpy
from ._types import BFLOAT16, type_name
from ._words import shown

GROUPS = (256, 128, 64, 32, 16)  # that have a kernel; 0 is a whole row
BITS = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "table16": 4, "e4m3": 8}
_RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255), "table16": (0, 15), "e4m3": (0, 255)}
_ZERO_RANGES = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 127), "uint8": (0, 255)}


def wrong_shape(name, found, wanted):
    """The exception of a tensor of another shape. wanted: a shape, or words."""
    return ValueError(f"{name}: its shape is {tuple(found)}, not {wanted if isinstance(wanted, str) else tuple(wanted)}")


def to_float32(array):
    """An array's numbers in float32; bfloat16 without ml_dtypes, too."""
    if array.dtype == BFLOAT16:
        return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def nibbles(codes):
    """Codes of 4 bits, two in a byte: the one with the even index in the low bits."""
    return codes[..., 0::2] & 15 | codes[..., 1::2] << 4


def from_nibbles(packed):
    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    codes[..., 0::2], codes[..., 1::2] = packed & 15, packed >> 4
    return codes


def _array(name, given):
    """numpy's array of one of numpy's or torch's, or of a list."""
    return np.asarray(given) if isinstance(given, (list, tuple)) else to_numpy(name, given)


class Weights:
    """The n x k matrix of a linear layer (out features x in features) as codes. Each `group` of them along k has a scale in common:
    an element is scale * code, scale * (code - zero) or scale * code + offset.

    codes    (n, k), a code an element: integers in the range of `code`. With codes of 4 bits also uint8 (n, k / 2), two in a byte,
             the one with the even index in the low bits, if nibbles=True
    scales   (n, ceil(k / group)), float16, bfloat16 or float32
    code     "int4", "uint4", "int8", "uint8"; "table16": numbers of the table's values; "e4m3": bits of FP8
    group    16, 32, 64, 128 or 256, the last one of a row may be shorter; 0: one for the whole row. A multiple of one of these
             is taken, too, and its scales are repeated
    zeros    (n, ceil(k / group)), integers: in the codes' range; for "int4" up to 8, for "uint4" up to 16
    offsets  (n, ceil(k / group)), of the scales' type
    table    16 numbers, which become halves
    order    (k), for codes whose columns were sorted: column i of the codes is column order[i] of the matrix

    Zeros that are all in the middle of an unsigned range are left out: the codes become signed ones, which say the same."""

    codes: np.ndarray[Any, Any]
    scales: np.ndarray[Any, Any]
    code: str
    group: int
    zeros: Any
    offsets: Any
    table: Any
    order: Any
    n: int
    k: int

    __slots__ = ("codes", "scales", "code", "group", "zeros", "offsets", "table", "order", "n", "k")

    def __init__(self, codes: Any, scales: Any, code: str, *, group: int = 0, zeros: Any = None, offsets: Any = None, table: Any = None,
                 order: Any = None, nibbles: bool = False) -> None:
        if not isinstance(code, str) or code not in BITS:
            raise ValueError(f"code: {shown(code)} is none of {', '.join(BITS)}")
        codes = _array("codes", codes)
        if codes.ndim != 2:
            raise wrong_shape("codes", codes.shape, "two dimensions, n x k")
        self.code, self.codes = code, self._bytes(codes, code, nibbles)
        self.n, self.k = codes.shape[0], codes.shape[1] * (2 if nibbles else 1)
        self.group = self._take_groups(group)
        groups = -(-self.k // (group or self.k or 1))
        repeat = group // self.group if self.group else 1
        self.scales = self._of_groups("scales", scales, groups, repeat)
        if type_name(self.scales.dtype) not in ("float16", "bfloat16", "float32"):
            raise TypeError(f"scales: their type is {self.scales.dtype}, not float16, bfloat16 or float32")
        self.zeros = self.offsets = self.table = self.order = None
        if zeros is not None and offsets is not None:
            raise ValueError("offsets: zeros are given, too; weights have one of them or none")
        if (zeros is not None or offsets is not None) and code not in _ZERO_RANGES:
            raise ValueError(f"{'zeros' if offsets is None else 'offsets'}: codes of {code} have none")
        if zeros is not None:
            self._set_zeros(self._of_groups("zeros", zeros, groups, repeat))
        if offsets is not None:
            self.offsets = self._of_groups("offsets", offsets, groups, repeat)
            if self.offsets.dtype != self.scales.dtype:
                raise TypeError(f"offsets: their type is {self.offsets.dtype}, and that of scales {self.scales.dtype}")
        if (table is not None) != (code == "table16"):
            raise ValueError(f"table: codes of {code} have {'one' if table is None else 'none'}")
        if table is not None:
            table = _array("table", table)
            if table.shape != (16,):
                raise wrong_shape("table", table.shape, (16,))
            if table.dtype.kind not in "iuf" and table.dtype != BFLOAT16:
                raise TypeError(f"table: its type is {table.dtype}, not one of numbers")
            table = to_float32(table)
            with np.errstate(over="ignore"):
                self.table = table.astype(np.float16)
            if not np.isfinite(self.table).all():
                raise ValueError(f"table: {table[~np.isfinite(self.table)][0]} is no finite half")
        if order is not None:
            order = _array("order", order)
            if order.shape != (self.k,):
                raise wrong_shape("order", order.shape, (self.k,))
            if not np.array_equal(np.sort(order), np.arange(self.k)):
                raise ValueError(f"order: it is no order of the numbers from 0 to {self.k - 1}")
            self.order = order.astype(np.int32)

    @staticmethod
    def _bytes(codes, code, packed):
        if packed:
            if BITS[code] != 4 or codes.dtype != np.uint8:
                raise TypeError(f"codes: nibbles are uint8 and of a code of 4 bits, not {codes.dtype} and {code}")
            return np.ascontiguousarray(codes)
        low, high = _RANGES[code]
        if codes.dtype.kind not in "iu":
            raise TypeError(f"codes: their type is {codes.dtype}, not one of integers")
        limits = np.iinfo(codes.dtype)
        if codes.size and (limits.min < low or limits.max > high) and (codes.min() < low or codes.max() > high):
            raise ValueError(f"codes: they are from {codes.min()} to {codes.max()}; {code} has {low} to {high}")
        codes = codes.astype(np.int8 if low < 0 else np.uint8, order="C", copy=False).view(np.uint8)
        if BITS[code] == 8:
            return codes
        if codes.shape[1] % 2:
            raise wrong_shape("codes", codes.shape, "an even k: two codes of 4 bits fill a byte")
        return nibbles(codes)

    def _take_groups(self, group):
        if not isinstance(group, (int, np.integer)) or group < 0:
            raise ValueError(f"group: {shown(group)} is no number of elements along k")
        if group == 0 or group >= self.k:
            return 0
        for size in GROUPS:
            if group % size == 0:
                return size
        raise ValueError(f"group: {group} is no multiple of 16, and less than k = {self.k}; there is no kernel for that")

    def _of_groups(self, name, array, groups, repeat):
        array = _array(name, array)
        if array.shape != (self.n, groups):
            raise wrong_shape(name, array.shape, f"{(self.n, groups)}, one for each group")
        if repeat > 1:
            array = np.repeat(array, repeat, axis=1)[:, :-(-self.k // self.group)]
        return np.ascontiguousarray(array)

    def _set_zeros(self, zeros):
        low, high = _ZERO_RANGES[self.code]
        if zeros.dtype.kind not in "iu":
            raise TypeError(f"zeros: their type is {zeros.dtype}, not one of integers")
        if zeros.size and (zeros.min() < low or zeros.max() > high):
            raise ValueError(f"zeros: they are from {zeros.min()} to {zeros.max()}; for {self.code} they may be {low} to {high}")
        middle = {"uint4": 8, "uint8": 128}.get(self.code, 0)
        if np.all(zeros == middle):
            if middle:
                self.code, self.codes = self.code[1:], self.codes ^ np.uint8(0x88 if middle == 8 else 0x80)
            return
        self.zeros = zeros.astype(np.int8 if low < 0 else np.uint8)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.k

    def __repr__(self) -> str:
        zero = "zeros" if self.zeros is not None else "offsets" if self.offsets is not None else "no zeros"
        return (f"<hgemm.Weights {self.n}x{self.k}, {self.code}, groups of {self.group or self.k}, {zero}, scales of "
                f"{type_name(self.scales.dtype)}{'' if self.order is None else ', columns sorted'}>")

    def values(self) -> np.ndarray[Any, Any]:
        """The codes' values without scales and zeros, (n, k) in float32, in the order in which they are stored."""
        codes = from_nibbles(self.codes) if BITS[self.code] == 4 else self.codes
        if self.code == "table16":
            return self.table.astype(np.float32)[codes]
        if self.code == "e4m3":
            return E4M3[codes]
        if self.code == "int4":
            return ((codes ^ 8).astype(np.int8) - 8).astype(np.float32)
        return codes.view(np.int8 if self.code == "int8" else np.uint8).astype(np.float32)

    def dequantize(self) -> np.ndarray[Any, Any]:
        """The matrix, in float32."""
        def wide(array):
            return np.repeat(array, self.group or max(self.k, 1), axis=1)[:, :self.k]
        matrix = self.values()
        if self.zeros is not None:
            matrix -= wide(self.zeros.astype(np.float32))
        matrix *= wide(to_float32(self.scales))
        if self.offsets is not None:
            matrix += wide(to_float32(self.offsets))
        if self.order is not None:
            sorted_columns, matrix = matrix, np.empty_like(matrix)
            matrix[:, self.order] = sorted_columns
        return matrix


def _e4m3():
    bits = np.arange(256)
    exponent, mantissa = bits >> 3 & 15, bits & 7
    value = np.where(exponent == 0, np.ldexp(mantissa / 8, -6), np.ldexp(1 + mantissa / 8, exponent - 7))
    value[bits & 0x7f == 0x7f] = np.nan
    return np.where(bits & 0x80, -value, value).astype(np.float32)


E4M3 = _e4m3()
