# SPDX-License-Identifier: MIT
"""Arrays in a device's memory, for programs that have no other library for that."""
from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _c
from ._device import Handle, Memory, handle_for
from ._types import BFLOAT16, native
from ._words import shown


def packed_strides(shape, itemsize):
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _integer(name, value):
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: {shown(value)} is no integer")
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name}: {shown(value)} is no integer") from None


def _reshaped(shape, strides, wanted, itemsize):
    """Strides by which an array's elements are met in the same order in another shape; raises where there are none."""
    if 0 in shape:
        return packed_strides(wanted, itemsize)
    old = [(size, stride) for size, stride in zip(shape, strides) if size != 1]
    new, step, at = [1] * len(wanted), itemsize, len(wanted)
    while old:  # from the end: the fewest dimensions of both shapes that have as many elements
        size, step = old.pop()
        count = 1
        while count != size or (at and wanted[at - 1] == 1):
            if count < size or wanted[at - 1] == 1:
                at -= 1
                new[at] = step * count
                count *= wanted[at]
            else:
                more, stride = old.pop()
                if stride != step * size:
                    raise ValueError(f"reshape: {shape} with the strides {strides} (in bytes) has no view of the shape {wanted}: "
                                     "reshape a copy")
                size *= more
    for i in range(at):
        new[i] = step
    return tuple(new)


def _refused(what):
    def method(self, *arguments, **options):
        raise TypeError(f"{what}: a hgemm.DeviceArray is in a device's memory, which numpy and Python cannot read: .numpy() is a copy in "
                        "host memory, .copy_from() writes one back")
    return method


class ReadOnly:
    """Attributes say what is in memory: they are set once."""

    __slots__ = ()

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _refuse(self, name: str, value: Any = None) -> NoReturn:
        raise AttributeError(f"{name}: it says what is in memory, and cannot be set")

    __setattr__ = __delattr__ = _refuse


class DeviceArray(ReadOnly):
    """An array in a device's memory: of numpy's types and strides, made by `hgemm.array`, read by `.numpy()`. Slices, `.T`,
    `transpose` and `reshape` are views. Nothing but `.numpy()` and `.copy_from()` reads or writes it: what numpy would do to an array
    raises a TypeError. On a GPU, other libraries can take it by `__cuda_array_interface__`. bfloat16 is ml_dtypes' type; where that is
    not installed, a field "bfloat16" with the bits."""

    __slots__ = ("_memory", "pointer", "shape", "strides", "dtype", "__weakref__")

    _memory: Memory
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, memory: Memory, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._set(_memory=memory, pointer=pointer, shape=shape, strides=strides, dtype=dtype)

    @classmethod
    def empty(cls, shape: Any, dtype: Any, handle: Handle) -> DeviceArray:
        """`dtype`: a type of numpy's or a name."""
        dtype = BFLOAT16 if isinstance(dtype, str) and dtype == "bfloat16" else native(np.dtype(dtype))
        shape = tuple(int(size) for size in shape)
        memory = Memory(handle, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return cls(memory, memory.pointer, shape, packed_strides(shape, dtype.itemsize), dtype)

    def _view(self, shape, strides, pointer=None):
        return DeviceArray(self._memory, self.pointer if pointer is None else pointer, tuple(shape), tuple(strides), self.dtype)

    @property
    def handle(self) -> Handle:
        return self._memory.handle

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def T(self) -> DeviceArray:
        return self.transpose()

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """The device's kind: "cuda" or "t4emu"."""
        return "t4emu" if self.handle.emulated else "cuda"

    # ---- views ----

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: the array has no dimension")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> DeviceArray:
        key = key if isinstance(key, tuple) else (key,)
        taken = sum(k is not None and k is not Ellipsis for k in key)
        if sum(k is Ellipsis for k in key) > 1 or taken > self.ndim:
            raise IndexError(f"key: {shown(key)} is too much for an array of {self.ndim} dimensions")
        if not any(k is Ellipsis for k in key):
            key += (Ellipsis,)
        dims, shape, strides, pointer = iter(zip(self.shape, self.strides)), [], [], self.pointer
        for k in key:
            if k is None:
                shape.append(1)
                strides.append(0)
            elif k is Ellipsis:
                for size, stride in [next(dims) for _ in range(self.ndim - taken)]:
                    shape.append(size)
                    strides.append(stride)
            elif isinstance(k, slice):
                size, stride = next(dims)
                start, stop, step = k.indices(size)
                count = len(range(start, stop, step))
                pointer += start * stride if count else 0
                shape.append(count)
                strides.append(stride * step)
            else:
                try:
                    at = _integer("key", k)
                except TypeError:
                    raise TypeError("key: only slices, integers, None and ..., which make views") from None
                size, stride = next(dims)
                if not -size <= at < size:
                    raise IndexError(f"key: {at} is beyond a dimension of {size}")
                pointer += at % size * stride
        return self._view(shape, strides, pointer)

    def transpose(self, *axes: Any) -> DeviceArray:
        asked: Any = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        if not asked and self.ndim or asked is None:
            asked = range(self.ndim)[::-1]
        order = [_integer("axes", axis) for axis in asked]
        if sorted(axis % self.ndim if -self.ndim <= axis < self.ndim else -1 for axis in order) != list(range(self.ndim)):
            raise ValueError(f"axes: {tuple(order)} is no order of {self.ndim} dimensions")
        return self._view([self.shape[axis] for axis in order], [self.strides[axis] for axis in order])

    def swapaxes(self, one: int, other: int) -> DeviceArray:
        axes = list(range(self.ndim))
        one, other = _integer("one", one), _integer("other", other)
        for name, axis in (("one", one), ("other", other)):
            if not -self.ndim <= axis < self.ndim:
                raise ValueError(f"{name}: {shown(axis)} is none of {self.ndim} dimensions")
        axes[one], axes[other] = axes[other], axes[one]
        return self.transpose(axes)

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view of another shape; raises a ValueError where there is none."""
        asked = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        shape = tuple(_integer("shape", size) for size in asked)
        known = 1
        for size in shape:
            known *= size if size != -1 else 1
        if shape.count(-1) == 1 and known > 0 and self.size % known == 0:
            shape = tuple(self.size // known if size == -1 else size for size in shape)
            known = self.size
        if min(shape, default=0) < 0 or known != self.size:
            raise ValueError(f"reshape: an array of the shape {self.shape} has none of the shape {shape}")
        return self._view(shape, _reshaped(self.shape, self.strides, shape, self.itemsize))

    # ---- copies ----

    def _span(self):
        """Lowest address and length of the bytes that the array lies in."""
        reach = [(size - 1) * stride for size, stride in zip(self.shape, self.strides)]
        low = self.pointer + sum(min(r, 0) for r in reach)
        return low, self.pointer + sum(max(r, 0) for r in reach) + self.itemsize - low

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        low, length = self._span()
        span = np.empty(length, np.uint8)
        self.handle.call(_c.lib.hgemm_download, span.ctypes.data, low, length)
        return np.ndarray(self.shape, self.dtype, span, self.pointer - low, self.strides).copy()

    def copy_from(self, host: Any) -> None:
        """Overwrites the array with one in host memory, broadcast to its shape."""
        host = host_array("host", host)
        try:
            host = np.broadcast_to(host, self.shape)
        except ValueError:
            raise ValueError(f"host: its shape {host.shape} does not broadcast to {self.shape}") from None
        if self.size == 0:
            return
        low, length = self._span()
        span = np.empty(length, np.uint8)
        if length != self.nbytes:  # what lies between the rows stays
            self.handle.call(_c.lib.hgemm_download, span.ctypes.data, low, length)
        np.ndarray(self.shape, self.dtype, span, self.pointer - low, self.strides)[...] = host
        self.handle.call(_c.lib.hgemm_upload, low, span.ctypes.data, length)

    def __repr__(self) -> str:
        return f"hgemm.DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    def _missing(self, name):
        if name == "__cuda_array_interface__" and not self.handle.emulated:
            typestr = "<V2" if self.dtype == BFLOAT16 else self.dtype.str  # as torch and ml_dtypes write it
            return {"version": 3, "shape": self.shape, "typestr": typestr, "data": (self.pointer, False), "strides": self.strides,
                    "stream": self.handle.stream or 1}
        why = ""
        if name == "__cuda_array_interface__":
            why = ": the array is in the memory of an emulated T4"
        elif not name.startswith("_") and hasattr(np.ndarray, name):
            why = ": .numpy() is a copy in host memory, which has it"
        raise AttributeError(f"a hgemm.DeviceArray has no {name}{why}")

    if not TYPE_CHECKING:  # to which any name would be there
        __getattr__ = _missing

    __array__, __array_ufunc__, __array_function__ = _refused("numpy"), _refused("numpy"), _refused("numpy")
    __bool__, __contains__, __setitem__ = _refused("bool"), _refused("in"), _refused("[] =")
    __reduce_ex__ = _refused("copy or pickle")
    __eq__, __ne__ = _refused("=="), _refused("!=")
    __hash__ = object.__hash__


def host_array(name, host):
    """numpy's array of what numpy can make one of, if its numbers are real."""
    if isinstance(host, np.ma.MaskedArray) and host.mask is not np.ma.nomask:
        raise TypeError(f"{name}: masked arrays are not supported")
    host = np.asarray(host)
    if host.dtype.kind not in "biuf" and native(host.dtype) != BFLOAT16:
        raise TypeError(f"{name}: its type is {host.dtype}, not one of real numbers")
    return host


def array(host: Any, device: str | None = None) -> DeviceArray:
    """Copies an array from host memory to a device: a name as hgemm_create takes it, such as "cuda:1", or the default device."""
    host = host_array("host", host)
    if native(host.dtype) not in (np.float16, np.float32, np.int32, np.int64, BFLOAT16):
        raise TypeError(f"host: its type is {host.dtype}; a device array holds float16, bfloat16, float32, int32 or int64")
    return upload(host, handle_for(device))


def upload(host, handle):
    """A copy of a host array in this machine's byte order, packed; stored transposed where the host's is."""
    last = host.size and host.ndim >= 2 and host.strides[-2] == host.itemsize != host.strides[-1]
    packed = np.array(host.swapaxes(-1, -2) if last else host, dtype=native(host.dtype), order="C")
    made = DeviceArray.empty(packed.shape, packed.dtype, handle)
    if packed.size:
        handle.call(_c.lib.hgemm_upload, made.pointer, packed.ctypes.data, packed.nbytes)
    return made.swapaxes(-1, -2) if last else made
