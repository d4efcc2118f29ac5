# SPDX-License-Identifier: MIT
"""GGUF files: metadata, and tensors by name. By the description at ggml's repository, docs/gguf.md; versions 2 and 3, little-endian."""
from __future__ import annotations

import collections.abc
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._types import BFLOAT16
from ._ggml import TYPES, ggml

_SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_PLAIN = {0: ("F32", np.dtype("<f4")), 1: ("F16", np.dtype("<f2")), 30: ("BF16", BFLOAT16), 24: ("I8", np.dtype("i1")),
          25: ("I16", np.dtype("<i2")), 26: ("I32", np.dtype("<i4")), 27: ("I64", np.dtype("<i8")), 28: ("F64", np.dtype("<f8"))}
_BLOCKS = {number: (name, elements, size) for name, (number, elements, size, _, _) in TYPES.items()}
_OTHERS = {10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
           29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0"}


class _Reader:
    """Reads a file's bytes in order; none beyond its end."""

    def __init__(self, path, data):
        self.path, self.data, self.at = path, data, 0

    def bytes(self, count):
        if count > self.data.size - self.at:
            raise ValueError(f"{self.path}: it ends at byte {self.data.size}, in the middle of what byte {self.at} begins")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, kind):
        return struct.unpack("<" + kind, self.bytes(struct.calcsize("<" + kind)))[0]

    def string(self):
        return self.bytes(self.number("Q")).tobytes().decode(errors="replace")

    def value(self, kind, depth=0):
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY and depth < 4:
            kind, count = self.number("I"), self.number("Q")
            if kind in _SCALARS:
                dtype = np.dtype(_SCALARS[kind])
                return self.bytes(count * dtype.itemsize).view(dtype)
            return [self.value(kind, depth + 1) for _ in range(count)]
        if kind not in _SCALARS:
            raise ValueError(f"{self.path}: it has a value of type {kind}, which GGUF does not know")
        dtype = np.dtype(_SCALARS[kind])
        return self.bytes(dtype.itemsize).view(dtype)[0].item()


class GGUF(collections.abc.Mapping):
    """The tensors of a GGUF file by name: hgemm.Weights of those that are quantised, (n, k), arrays of others. Those of experts, of three
    dimensions, are tuples of Weights. A tensor is read when it is asked for.

    metadata  what the file says of the model, by key
    types     the name of each tensor's type
    shapes    of each tensor, rows first"""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if os.path.getsize(self.path) < 24:
            raise ValueError(f"{self.path}: it has {os.path.getsize(self.path)} bytes and is no GGUF file")
        reader = _Reader(self.path, np.memmap(self.path, np.uint8, "r"))
        if reader.bytes(4).tobytes() != b"GGUF":
            raise ValueError(f"{self.path}: it does not begin with GGUF")
        version = reader.number("I")
        if version not in (2, 3):
            raise ValueError(f"{self.path}: it is of version {version}; 2 and 3 are read, of little-endian files")
        tensors, pairs = reader.number("Q"), reader.number("Q")
        self.metadata = {}
        for _ in range(pairs):
            key = reader.string()
            self.metadata[key] = reader.value(reader.number("I"))
        found = []
        for _ in range(tensors):
            name, rank = reader.string(), reader.number("I")
            if rank > 4:
                raise ValueError(f"{name}: it has {rank} dimensions, and GGUF's have up to 4")
            shape = tuple(reader.number("Q") for _ in range(rank))[::-1]
            found.append((name, shape, reader.number("I"), reader.number("Q")))
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"{self.path}: its alignment is {alignment!r}")
        self._data = reader.data[-(-reader.at // alignment) * alignment:]
        self._tensors = {name: rest for name, *rest in found}
        self.shapes = {name: shape for name, shape, _, _ in found}
        self.types = {name: _type_name(kind) for name, _, kind, _ in found}

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __repr__(self) -> str:
        return f"<hgemm.formats.GGUF {self.path!r}, {len(self)} tensors>"

    def __getitem__(self, name: str) -> Any:
        shape, kind, offset = self._tensors[name]
        count = 1
        for size in shape:
            count *= size
        if kind in _PLAIN:
            dtype = _PLAIN[kind][1]
            return self._bytes(name, offset, count * dtype.itemsize).view(dtype).reshape(shape)
        if kind not in _BLOCKS:
            raise NotImplementedError(f"{name}: it is of type {self.types[name]}; read are {', '.join(sorted(TYPES))} and plain numbers")
        type, elements, size = _BLOCKS[kind]
        if len(shape) not in (2, 3) or shape[-1] % elements:
            raise ValueError(f"{name}: its shape is {shape}, not (n, k) or (experts, n, k) with a k that is a multiple of {elements}")
        data = self._bytes(name, offset, count // elements * size)
        if len(shape) == 2:
            return ggml(data, type, shape)
        return tuple(ggml(part, type, shape[1:]) for part in data.reshape(shape[0], data.size // max(shape[0], 1)))

    def _bytes(self, name, offset, count):
        if offset + count > self._data.size:
            raise ValueError(f"{name}: its {count} bytes from {offset} on are not in the file, which has {self._data.size} bytes of tensors")
        return self._data[offset:offset + count]


def _type_name(kind):
    if kind in _PLAIN:
        return _PLAIN[kind][0]
    return _BLOCKS[kind][0] if kind in _BLOCKS else _OTHERS.get(kind, f"number {kind}")
