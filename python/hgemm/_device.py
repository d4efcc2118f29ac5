# SPDX-License-Identifier: MIT
"""Handles, one for each device and stream, which threads share and forks part."""
from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
import warnings
import weakref
from collections import deque
from ctypes import byref, c_void_p

from . import _c
from ._words import shown


class Handle:
    """A handle of the C library and the lock that keeps it to one thread at a time. A signal's handler or a finalizer may run in the
    thread that has the lock: it may take it again, for no call of the library is under way then."""

    def __init__(self, device, stream=0):
        self.pointer = c_void_p()
        self._unused = deque()  # memory to be freed
        status = _c.lib.hgemm_create(byref(self.pointer), device.encode() if device else None)
        if status:
            raise _c.error(status, argument="device" if device else None)
        if stream:
            _c.check(_c.lib.hgemm_set_stream(self.pointer, stream), self.pointer)
        self.device, self.stream = device, stream
        self.lock = threading.RLock()
        _every_handle.add(self)
        info = self.info()
        self.fallback = (info.fallback or b"").decode(errors="replace")
        self.emulated = info.kind != b"cuda"
        named = (device or "").startswith("cuda:") and f"cuda:{int(device[5:])}"
        self._place = self if self.emulated else named or None

    def call(self, function, *arguments):
        with self.lock:
            if self._unused:
                self._free_unused()
            status = function(self.pointer, *arguments)
            if status:
                raise _c.error(status, self.pointer)

    def run(self, desc):
        with self.lock:
            status = _c.run_desc(self.pointer, desc)
            if status:
                raise _c.error(status, self.pointer, _c.hint(desc))

    def free(self, pointer):
        """Frees memory now or, where a call is under way, before the next one that takes or copies memory. Finalizers call it: in any
        thread and at any time, so it waits for nothing."""
        self._unused.append(pointer)
        if self.lock.acquire(False):
            try:
                self._free_unused()
            finally:
                self.lock.release()

    def _free_unused(self):
        while True:
            try:
                pointer = self._unused.popleft()
            except IndexError:  # all are freed
                return
            _c.lib.hgemm_free(self.pointer, pointer)

    @property
    def place(self):
        """Where its memory is: a GPU's name, which other handles share, or an emulated T4, which is this handle's alone."""
        if self._place is None:
            probe = Memory(self, 2)  # kept while the driver is asked of it
            self._place = f"cuda:{ordinal_of(probe.pointer)}"
        return self._place

    def synchronize(self):
        self.call(_c.lib.hgemm_synchronize)

    def info(self):
        info = _c.DeviceInfo()
        self.call(_c.lib.hgemm_get_device_info, byref(info))
        return info


def _callers_level():
    """The stacklevel, for its caller, of the frame that called into this package: torch's frames between the two count as ours."""
    ours = [str(pathlib.Path(__file__).parent) + os.sep]
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "__file__", None):
        ours.append(str(pathlib.Path(torch.__file__).parent) + os.sep)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(tuple(ours)):
        frame, level = frame.f_back, level + 1
    return level


_handles: dict[tuple[str | None, int], Handle] = {}
_handles_lock = threading.RLock()
_every_handle: weakref.WeakSet[Handle] = weakref.WeakSet()
_forked_after_cuda = False


def handle_for(device, stream=0):
    """The handle for a device's name (None: the default device) and a stream. It is kept: graphs may hold its kernels."""
    key = device, stream
    if device is not None and not isinstance(device, str):
        raise TypeError(f'device: {shown(device)} is no name of a device, such as "cuda:1" or "t4emu"')
    handle = _handles.get(key)
    if handle is None:
        with _handles_lock:
            handle = _handles.get(key)
            if handle is None:
                if _forked_after_cuda and not (device or os.environ.get("HGEMM_DEVICE", "")).startswith("t4emu"):
                    raise _c.DeviceError(_NO_FORK)
                handle = _handles[key] = Handle(device, stream)
                if handle.fallback:  # once it is kept: a warning may be an error
                    warnings.warn(f"hgemm uses an emulated T4: {handle.fallback}", stacklevel=_callers_level())
                if not handle.emulated:  # by its other name too: "cuda" and None are "cuda:0", mostly
                    _handles.setdefault((handle.place, stream), handle)
    return handle


# ---- forks -------------------------------------------------------------------------------------------------------
#
# A child has the memory of its parent and one of its threads. Emulated T4s live on in it, but for one that another thread was in
# a call on: that call will not end, so the T4 is lost, and the child gets a new one. A GPU stays the parent's.

_NO_FORK = ("a process that was forked cannot use the GPU that its parent used: CUDA does not allow it. Start it in another way "
            '(multiprocessing.set_start_method("spawn")), or use the GPU in children alone')


class _Lost:
    """Stands in for the lock of a handle that a child cannot use."""

    def __init__(self, why):
        self._why = why

    def __enter__(self):
        raise _c.DeviceError(self._why)

    def __exit__(self, *exception):
        pass

    def acquire(self, wait=True):
        return False


def _in_child():
    global _handles_lock, _forked_after_cuda
    _handles_lock = threading.RLock()
    lost = set()
    for handle in list(_every_handle):
        if not getattr(handle, "emulated", True):
            _forked_after_cuda = True
            handle.lock = _Lost(_NO_FORK)
        elif handle.lock.acquire(False):
            handle.lock.release()
            continue
        else:
            handle.lock = _Lost("another thread was in a call on this emulated T4 when the process was forked, so the child cannot use "
                                "it, nor arrays in its memory: make these again")
        lost.add(handle)
    for key in [key for key, handle in _handles.items() if handle in lost]:
        del _handles[key]


os.register_at_fork(after_in_child=_in_child)


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


class Memory:
    """Memory of a handle's, freed when nothing refers to it."""

    def __init__(self, handle, nbytes):
        pointer = c_void_p()
        handle.call(_c.lib.hgemm_malloc, byref(pointer), nbytes)
        self.handle, self.pointer = handle, pointer.value or 0
        weakref.finalize(self, handle.free, self.pointer).atexit = False


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
