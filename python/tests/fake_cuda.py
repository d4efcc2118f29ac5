# SPDX-License-Identifier: MIT
"""Tensors that torch takes for a GPU's where there is none: they come in by DLPack, which believes what a capsule says."""
import contextlib
import ctypes
import warnings

import torch

from hgemm import _prepared
from hgemm._arrays import _DLTensor


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_CODES = {torch.float16: (2, 16), torch.float32: (2, 32), torch.bfloat16: (4, 16), torch.uint8: (1, 8)}
_kept = []  # torch looks at a structure once more when its tensor ends


def tensor(pointer, shape, strides, dtype):
    """A tensor of "cuda:0" at an address, which must stay good for as long as it lives. Strides count elements."""
    count = len(shape)
    dims, steps = (ctypes.c_int64 * max(count, 1))(*shape), (ctypes.c_int64 * max(count, 1))(*strides)
    code, bits = _CODES[dtype]
    managed = _Managed(_DLTensor(pointer, 2, 0, count, code, bits, 1, dims, steps, 0), None, None)
    _kept.append((managed, dims, steps))
    set_up, torch.cuda._lazy_init = torch.cuda._lazy_init, lambda: None  # it would look for a GPU before the first tensor
    try:
        return torch._C._from_dlpack(_new_capsule(ctypes.addressof(managed), b"dltensor", None))
    finally:
        torch.cuda._lazy_init = set_up


@contextlib.contextmanager
def device(allocate, stream=lambda index: 0):
    """Has torch create empty tensors of "cuda:0" by `allocate(shape, strides, dtype)`; hgemm uses `stream(index)`."""
    def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        steps = [1] * len(size)
        for i in range(len(size) - 1, 0, -1):
            steps[i - 1] = steps[i] * max(size[i], 1)
        return allocate(tuple(size), tuple(steps), dtype)

    def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
        return allocate(tuple(size), tuple(stride), dtype)
    former = _prepared.raw_stream
    library = torch.library.Library("aten", "IMPL")
    _prepared.raw_stream = stream
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch built for CUDA has such kernels
        for name, kernel in (("empty.memory_format", empty), ("empty_strided", empty_strided)):
            try:
                library.impl(name, kernel, "CUDA", allow_override=True)
            except TypeError:  # an older torch
                library.impl(name, kernel, "CUDA")
    try:
        yield
    finally:
        library._destroy()
        _prepared.raw_stream = former
