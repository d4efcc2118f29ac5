# SPDX-License-Identifier: MIT
"""What hgemm needs to know of an array, whichever library made it, and what it asks that library to do."""
import ctypes
import numbers
import sys

import numpy as np

from . import _device
from ._device_array import DeviceArray, host_array
from ._plan import packed
from ._to_numpy import is_torch
from ._types import BFLOAT16, type_name
from ._weights import Weights
from ._words import kind, shown


class View:
    """Where an array lies. `strides` counts elements; `place` is the device's name, or the handle that owns the memory."""

    __slots__ = ("name", "pointer", "dtype", "shape", "strides", "place", "stream", "library", "array")

    def __init__(self, name, pointer, dtype, shape, strides, place, stream, library, array):
        self.name, self.pointer, self.dtype, self.shape, self.strides = name, pointer, dtype, shape, strides
        self.place, self.stream, self.library, self.array = place, stream, library, array


# ---- libraries: each makes an output, and copies one array into another with broadcasting ------------------------


class _Torch:
    @staticmethod
    def empty(shape, dtype, like, handle):
        import torch
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.array.device)

    @staticmethod
    def assign(name, target, source):
        target.copy_(source)

    @staticmethod
    def stream(place):
        import torch
        return torch.cuda.current_stream(int(place[5:])).cuda_stream


class _Cupy:
    @staticmethod
    def empty(shape, dtype, like, handle):
        import cupy
        with like.array.device:
            return cupy.empty(shape, BFLOAT16 if dtype == "bfloat16" else dtype)

    @staticmethod
    def assign(name, target, source):
        with target.device:
            target[...] = source

    @staticmethod
    def stream(place):
        import cupy
        with cupy.cuda.Device(int(place[5:])):
            return cupy.cuda.get_current_stream().ptr


_LIKE = {"c": "out", "gate": "out", "bias": "a row or column of the result"}


class _Own:
    """DeviceArray, and arrays of libraries that only lend their memory: results are DeviceArrays."""

    @staticmethod
    def empty(shape, dtype, like, handle):
        return DeviceArray.empty(shape, dtype, handle)

    @staticmethod
    def assign(name, target, source):
        if not isinstance(target, DeviceArray) or not isinstance(source, DeviceArray):
            raise TypeError(f"{name}: give it in the shape and layout of {_LIKE[name]}: the arrays' library lends memory only, so nothing can "
                            "be copied")
        if target.dtype != source.dtype and BFLOAT16.names and BFLOAT16 in (target.dtype, source.dtype):
            raise TypeError(f"{name}: without the package ml_dtypes nothing converts between its type and out's: give it in out's type or layout")
        target.copy_from(source.numpy())

    @staticmethod
    def stream(place):
        return None


def recording():
    """Whether torch records what is computed, for gradients."""
    return sys.modules["torch"].is_grad_enabled()


def is_host(name, array):
    """Whether an array is in host memory: numpy's, a CPU tensor of torch, or what DLPack says is on the CPU."""
    if isinstance(array, np.ndarray):
        return True
    if isinstance(array, DeviceArray):
        return False
    if is_torch(array):
        if array.device.type not in ("cpu", "cuda"):
            raise TypeError(f"{name}: a tensor on {array.device}; hgemm takes tensors on the CPU and on CUDA devices")
        return array.device.type == "cpu"
    if hasattr(array, "__cuda_array_interface__"):
        return False
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) == 1  # kDLCPU
    raise no_array(name, array)


def no_array(name, given):
    """The exception of what is no array, which tells what to do with weights that were converted or packed."""
    some = given[0] if isinstance(given, (list, tuple)) and given else given
    hint = "give one of numpy, torch or cupy, a hgemm.DeviceArray, or one with __cuda_array_interface__ or __dlpack__"
    if isinstance(some, Weights):
        hint = "hgemm.pack(...) packs it for hgemm.linear, and a sequence of them for hgemm.grouped"
    elif "PackedWeights" in (of.__name__ for of in type(some).__mro__):
        hint = "packed weights are the weight of hgemm.linear, those of experts, packed together, the b of hgemm.grouped"
    return TypeError(f"{name}: a {kind(given)} is no array: {hint}")


def to_host(name, array):
    """numpy's array of what is in host memory."""
    if isinstance(array, np.ndarray):
        return host_array(name, array)
    if is_torch(array):
        torch = sys.modules["torch"]
        if array.layout != torch.strided:
            raise TypeError(f"{name}: its layout is {array.layout}, not torch.strided")
        if name == "out" and array.is_neg():
            raise TypeError("out: what is in memory is its negative (torch.Tensor.is_neg)")
        array = array.resolve_neg()
        if array.dtype == torch.bfloat16:
            return array.detach().view(torch.int16).numpy().view(BFLOAT16)
        if array.dtype not in (torch.float16, torch.float32, torch.int32, torch.int64):
            raise TypeError(f"{name}: its type is {array.dtype}, not one of floats of 16 or 32 bits or integers of 32 or 64")
        return array.detach().numpy()
    return np.from_dlpack(array)


def to_number(name, array):
    """The number in an array of one in host memory."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name}: masked arrays are not supported")
    number = (array if hasattr(array, "item") else np.from_dlpack(array)).item()
    if not isinstance(number, numbers.Number):
        raise TypeError(f"{name}: {shown(number)} is no number")
    return number


def to_torch(host):
    """The CPU tensor that shares a host array's memory."""
    torch = sys.modules["torch"]
    return torch.from_numpy(host.view(np.int16)).view(torch.bfloat16) if host.dtype == BFLOAT16 else torch.from_numpy(host)


def view_of(name, array, stream=None):
    """The view of an array in device memory. `stream` is where it is about to be used."""
    if is_torch(array):
        if array.layout != sys.modules["torch"].strided:
            raise TypeError(f"{name}: its layout is {array.layout}, not torch.strided")
        if array.is_neg():
            raise TypeError(f"{name}: what is in memory is its negative (torch.Tensor.is_neg): give {name}.resolve_neg()")
        return View(name, array.data_ptr(), str(array.dtype)[6:], tuple(array.shape), array.stride(),
                    f"cuda:{array.device.index}", None, _Torch, array)
    if isinstance(array, DeviceArray):
        handle = array.handle
        return View(name, array.pointer, type_name(array.dtype), array.shape, tuple(s // array.dtype.itemsize for s in array.strides),
                    handle.place, handle.stream or 1, _Own, array)
    if hasattr(array, "__cuda_array_interface__"):
        return _lent(name, array)
    return _dlpack(name, array, stream)


def _lent(name, array):
    cai = array.__cuda_array_interface__
    if cai.get("mask") is not None:
        raise TypeError(f"{name}: masked arrays are not supported")
    dtype = np.dtype(cai["typestr"])
    if not dtype.isnative:
        raise TypeError(f"{name}: its type is {dtype.str}, which is not in the byte order of GPUs")
    shape, strides = tuple(cai["shape"]), cai.get("strides")
    if strides is None:
        strides = packed(shape)
    else:
        if any(s % dtype.itemsize for s in strides):
            raise ValueError(f"{name}: its strides {tuple(strides)} are not multiples of its elements' {dtype.itemsize} bytes")
        strides = tuple(s // dtype.itemsize for s in strides)
    pointer = cai["data"][0] or 0
    named = type_name(dtype)
    if dtype.str[1:] == "V2" and str(getattr(array, "dtype", "")).endswith("bfloat16"):
        named = "bfloat16"  # for which the interface has no name but this one of any two bytes
    is_cupy = type(array).__module__.split(".")[0] == "cupy"
    if is_cupy:
        place = f"cuda:{array.device.id}"
    else:
        place = f"cuda:{_device.ordinal_of(pointer)}" if pointer else None
    if name == "out" and cai["data"][1]:
        raise ValueError("out: it is read-only")
    return View(name, pointer, named, shape, strides, place, None if is_cupy else cai.get("stream"), _Cupy if is_cupy else _Own, array)


def type_of(name, array):
    """The name of an array's type."""
    return type_name(to_host(name, array).dtype) if is_host(name, array) else view_of(name, array).dtype


# ---- DLPack: the C structures of its specification, https://dmlc.github.io/dlpack/latest/c_api.html ----------------


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Borrowed:
    """A DLPack capsule that is looked at and not consumed: it keeps the memory until it is collected."""

    def __init__(self, array, capsule):
        self.array, self.capsule = array, capsule


def _dlpack(name, array, stream):
    kind, ordinal = (int(x) for x in array.__dlpack_device__())
    if kind != 2:  # kDLCUDA
        raise TypeError(f"{name}: DLPack says that it is on a device of type {kind}; hgemm takes the CPU's (1) and CUDA's (2)")
    # A stream makes the producer order its work before ours; 1 is DLPack's word for the legacy default stream.
    capsule = array.__dlpack__(stream=stream or 1)
    tensor = ctypes.cast(_capsule_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents
    dtype = {2: "float", 4: "bfloat", 0: "int"}.get(tensor.code, "code") + str(tensor.bits) + (f"x{tensor.lanes}" if tensor.lanes != 1 else "")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else packed(shape)
    return View(name, (tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, f"cuda:{ordinal}", None, _Own,
                _Borrowed(array, capsule))


# ---- the stream of a call -----------------------------------------------------------------------------------------


def stream_for(arrays, asked):
    """The stream of a call: the one asked for, else the current one of torch or cupy, else None: see streams_of."""
    if asked is not None:
        address = getattr(asked, "cuda_stream", getattr(asked, "ptr", asked))  # torch's, cupy's, or an address
        if not isinstance(address, numbers.Integral):
            raise TypeError(f"stream: {shown(asked)} is neither a stream of torch or cupy nor a stream's address")
        if not 0 <= address < 2**64:
            raise ValueError(f"stream: {shown(asked)} is no address")
        return int(address)
    for array in arrays:
        if is_torch(array) and array.is_cuda:
            return _Torch.stream(f"cuda:{array.device.index}")
        if type(array).__module__.split(".")[0] == "cupy":
            return _Cupy.stream(f"cuda:{array.device.id}")
    return None


def streams_of(views, stream):
    """(stream, others): where a call on these views runs, by default where an array says that it is being used, and the streams
    that may still be writing to the arrays: they must be waited for."""
    if stream is None:
        stream = next((view.stream for view in views if view.stream), 0)
    stream = 0 if stream == 1 else stream  # two names of the legacy default stream
    return stream, {view.stream for view in views if view.stream and (0 if view.stream == 1 else view.stream) != stream}
