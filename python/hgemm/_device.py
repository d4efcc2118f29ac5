# SPDX-License-Identifier: MIT
"""Handles, one for each device and stream, and arrays in the memory of a device."""
import ctypes
import threading
import warnings
import weakref
from ctypes import byref, c_void_p

import numpy as np

from . import _c

try:  # numpy has no bfloat16
    import ml_dtypes
    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # its bits, to be kept and copied


class Handle:
    """A handle of the C library and the lock that keeps it to one thread at a time."""

    def __init__(self, device, stream=0):
        self.pointer = c_void_p()
        _c.check(_c.lib.hgemm_create(byref(self.pointer), device.encode() if device else None))
        if stream:
            _c.check(_c.lib.hgemm_set_stream(self.pointer, stream), self.pointer)
        self.stream = stream
        self.lock = threading.Lock()
        info = self.info()
        self.emulated = info.kind != b"cuda"
        named = (device or "").startswith("cuda:") and f"cuda:{int(device[5:])}"
        self._place = self if self.emulated else named or None
        if info.fallback:
            warnings.warn(f"hgemm uses an emulated T4: {info.fallback.decode(errors='replace')}", stacklevel=4)

    def call(self, function, *arguments):
        with self.lock:
            status = function(self.pointer, *arguments)
            if status:
                raise _c.error(status, self.pointer)

    def run(self, desc):
        with self.lock:
            status = _c.run_desc(self.pointer, desc)
            if status:
                raise _c.error(status, self.pointer)

    @property
    def place(self):
        """Where its memory is: a GPU's name, which other handles share, or an emulated T4, which is this handle's alone."""
        if self._place is None:
            probe = _Memory(self, 2)  # kept while the driver is asked of it
            self._place = f"cuda:{ordinal_of(probe.pointer)}"
        return self._place

    def synchronize(self):
        self.call(_c.lib.hgemm_synchronize)

    def info(self):
        info = _c.DeviceInfo()
        self.call(_c.lib.hgemm_get_device_info, byref(info))
        return info


_handles = {}
_handles_lock = threading.Lock()


def handle_for(device, stream=0):
    """The handle for a device's name (None: the default device) and a stream. It is kept: graphs may hold its kernels."""
    key = device, stream
    handle = _handles.get(key)
    if handle is None:
        with _handles_lock:
            handle = _handles.get(key)
            if handle is None:
                handle = _handles[key] = Handle(device, stream)
                if not handle.emulated:  # by its other name too: "cuda" and None are "cuda:0", mostly
                    _handles.setdefault((handle.place, stream), handle)
    return handle


def synchronize_stream(device, stream):
    """Waits for a stream that is not the one a call runs on, without a handle (and its workspace) for it."""
    handle = handle_for(device, 0)
    with handle.lock:
        _c.check(_c.lib.hgemm_set_stream(handle.pointer, stream), handle.pointer)
        status = _c.lib.hgemm_synchronize(handle.pointer)
        failure = _c.error(status, handle.pointer) if status else None
        _c.check(_c.lib.hgemm_set_stream(handle.pointer, handle.stream or None), handle.pointer)
    if failure:
        raise failure


def type_name(dtype):
    """The name of a type of numpy's, or of the one that stands for bfloat16."""
    return "bfloat16" if dtype == BFLOAT16 else dtype.name


def _free(handle, pointer):
    if handle.pointer:
        with handle.lock:
            _c.lib.hgemm_free(handle.pointer, pointer)


class _Memory:
    def __init__(self, handle, nbytes):
        pointer = c_void_p()
        handle.call(_c.lib.hgemm_malloc, byref(pointer), nbytes)
        self.handle, self.pointer = handle, pointer.value or 0
        weakref.finalize(self, _free, handle, self.pointer).atexit = False


class _Bare:
    def __init__(self, interface):
        self.__array_interface__ = interface


class DeviceArray:
    """An array in a device's memory, for programs that have no other library for that: of numpy's types and strides, made by
    `hgemm.array`, read by `.numpy()`. Slices, `.T`, `transpose` and `reshape` are views. On a GPU, other libraries can take it
    by `__cuda_array_interface__`. bfloat16 is ml_dtypes' type; where that is not installed, a field "bfloat16" with the bits."""

    def __init__(self, memory, view):
        self._memory = memory
        self._view = view  # a numpy array over the device's addresses, never read: it knows shapes and strides

    @classmethod
    def empty(cls, shape, dtype, handle):
        """`dtype`: a type of numpy's or a name."""
        dtype = BFLOAT16 if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)
        memory = _Memory(handle, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        bare = _Bare({"version": 3, "shape": tuple(shape), "typestr": f"<u{dtype.itemsize}", "data": (memory.pointer or 1 << 12, False)})
        return cls(memory, np.asarray(bare).view(dtype))

    shape = property(lambda self: self._view.shape)
    ndim = property(lambda self: self._view.ndim)
    dtype = property(lambda self: self._view.dtype)
    strides = property(lambda self: self._view.strides)
    T = property(lambda self: DeviceArray(self._memory, self._view.T))
    handle = property(lambda self: self._memory.handle)

    @property
    def pointer(self):
        return self._view.__array_interface__["data"][0]

    @property
    def device(self):
        """The device's kind: "cuda" or "t4emu"."""
        return "t4emu" if self.handle.emulated else "cuda"

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is Ellipsis or isinstance(k, (int, slice)) for k in key):
            raise TypeError("key: only slices, integers, None and ..., which make views")
        if not any(k is Ellipsis for k in key):
            key += (Ellipsis,)
        return DeviceArray(self._memory, self._view[key])

    def transpose(self, *axes):
        return DeviceArray(self._memory, self._view.transpose(*axes))

    def reshape(self, *shape):
        view = self._view.view()
        view.shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape  # raises where it would copy
        return DeviceArray(self._memory, view)

    def _span(self):
        """Lowest address and length of the bytes that the array lies in."""
        low, high = np.lib.array_utils.byte_bounds(self._view) if hasattr(np.lib, "array_utils") else np.byte_bounds(self._view)
        return low, high - low

    def numpy(self):
        """A copy in host memory."""
        if self._view.size == 0:
            return np.empty(self.shape, self.dtype)
        low, length = self._span()
        span = np.empty(length, np.uint8)
        self.handle.call(_c.lib.hgemm_download, span.ctypes.data, low, length)
        return np.ndarray(self.shape, self.dtype, span, self.pointer - low, self.strides).copy()

    def copy_from(self, host):
        """Overwrites the array with one in host memory, broadcast to its shape."""
        if self._view.size == 0:
            np.broadcast_to(host, self.shape)
            return
        low, length = self._span()
        span = np.empty(length, np.uint8)
        if length != self._view.size * self.dtype.itemsize:  # what lies between the rows stays
            self.handle.call(_c.lib.hgemm_download, span.ctypes.data, low, length)
        np.ndarray(self.shape, self.dtype, span, self.pointer - low, self.strides)[...] = host
        self.handle.call(_c.lib.hgemm_upload, low, span.ctypes.data, length)

    def __repr__(self):
        return f"hgemm.DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    @property
    def __cuda_array_interface__(self):
        if self.handle.emulated:
            raise AttributeError("the array is in the memory of an emulated T4")
        typestr = "<V2" if self.dtype == BFLOAT16 else self.dtype.str  # as torch and ml_dtypes write it
        return {"version": 3, "shape": self.shape, "typestr": typestr, "data": (self.pointer, False), "strides": self.strides,
                "stream": self.handle.stream or 1}


def array(host, device=None):
    """Copies an array from host memory to a device: a name as hgemm_create takes it, such as "cuda:1", or the default device."""
    host = np.asarray(host)
    if host.dtype not in (np.float16, np.float32, np.int32, np.int64, BFLOAT16):
        raise TypeError(f"host: its type is {host.dtype}; a device array holds float16, bfloat16, float32, int32 or int64")
    return upload(host, handle_for(device))


def upload(host, handle):
    """A copy of a host array, packed; stored transposed where the host's is."""
    last = host.ndim >= 2 and host.strides[-2] == host.itemsize != host.strides[-1]
    packed = np.array(host.swapaxes(-1, -2) if last else host, order="C")
    made = DeviceArray.empty(packed.shape, packed.dtype, handle)
    if packed.size:
        handle.call(_c.lib.hgemm_upload, made.pointer, packed.ctypes.data, packed.nbytes)
    return DeviceArray(made._memory, made._view.swapaxes(-1, -2)) if last else made


def driver():
    """The CUDA driver's library, or None."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def ordinal_of(pointer):
    """The GPU in whose memory a pointer lies. The driver tells it to threads that have a context: any GPU's will do, the first one's
    is taken for as long as that lasts."""
    ordinal, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    cuda = driver()
    failed = (
        cuda is None
        or cuda.cuInit(0)
        or cuda.cuDeviceGet(byref(device), 0)
        or cuda.cuDevicePrimaryCtxRetain(byref(context), device)
    )
    if not failed:
        failed = cuda.cuCtxPushCurrent_v2(context)
        if not failed:
            failed = cuda.cuPointerGetAttribute(byref(ordinal), 9, ctypes.c_uint64(pointer))  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            cuda.cuCtxPopCurrent_v2(byref(context))
        cuda.cuDevicePrimaryCtxRelease_v2(device)
    if failed:
        raise _c.DeviceError(f"the CUDA driver knows no memory at address {pointer:#x}")
    return ordinal.value
