# SPDX-License-Identifier: MIT
"""Calls on CUDA tensors that were made before. Options and the tensors' layouts say what a call is. One that comes again, on the same
stream, has only addresses and factors to set: whatever else could be refused was looked at when it was first made."""
from __future__ import annotations

from ctypes import byref

import torch

from . import _c, _call
from ._dispatch import PLAIN
from ._plan import packed


raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda index: torch.cuda.current_stream(index).cuda_stream)

_LARGEST = _call.LARGEST
_BESIDE = ("c", "bias", "gate", "out", "scale_a_pointer", "scale_b_pointer")  # what may be given beside a and b
_OUT = _BESIDE.index("out")
_calls: dict[tuple, _Prepared] = {}
find = _calls.get


def given(c, bias, gate, out, scale_a, scale_b):
    """What is given beside a and b, as key_of takes it."""
    if c is None and bias is None and gate is None and out is None and scale_a is None and scale_b is None:
        return ()
    return c, bias, gate, out, scale_a, scale_b


def key_of(asked, recording, a, b, beside):
    """The key of a call, or None where it must be looked at each time.

    asked      what is asked for, but for tensors and the values of alpha and beta
    recording  whether tensors that require gradients are to be left to torch's dispatcher
    beside     () or (c, bias, gate, out, scale_a, scale_b), of which each may be None"""
    if type(a) not in PLAIN or type(b) not in PLAIN or not a.is_cuda or not b.is_cuda or recording and (a.requires_grad or b.requires_grad):
        return None
    if a.is_neg() or b.is_neg():  # of which a copy is made first
        return None
    index = a.get_device()
    key = asked, raw_stream(index), index, a.dtype, a.shape, a.stride(), b.get_device(), b.dtype, b.shape, b.stride()
    if not beside:
        return key
    layouts = []
    for x in beside:
        if x is None:
            layouts.append(None)
        elif type(x) in PLAIN and x.is_cuda and not (recording and x.requires_grad) and not x.is_neg():
            layouts.append((x.get_device(), x.dtype, x.shape, x.stride()))
        else:
            return None
    return key, tuple(layouts)


def keep(key, plan, handle, dtype, scalars, makes_result):
    """Keeps a call that has just been made. One that takes several calls of the library, or copies c first, is not kept."""
    if len(plan.calls) == 1 and not plan.copies_c:
        if len(_calls) >= 4096:
            _calls.clear()
        _calls[key] = _Prepared(plan, handle, dtype, scalars, makes_result)


class _Prepared:
    """A descriptor in which only addresses and factors are still to be set, and the handle that runs it and whose lock guards it."""

    __slots__ = ("handle", "lock", "desc", "reference", "shape", "strides", "dtype", "makes_result", "reads_c", "reads_result", "beside")

    def __init__(self, plan, handle, dtype, scalars, makes_result):
        self.handle, self.lock = handle, handle.lock
        self.desc = _c.Desc.from_buffer_copy(plan.desc)
        self.reference = byref(self.desc)
        self.shape, self.strides, self.dtype, self.makes_result = plan.shape, packed(plan.shape), dtype, makes_result
        sources = {field: source for field, source, _ in plan.calls[0]}
        self.reads_c, self.reads_result = "c" in sources, sources.get("c") == "d"
        self.beside = [(name, i) for i, name in enumerate(_BESIDE) if name in scalars or sources.get(name) == name]

    def __call__(self, a, b, beside, alpha, beta):
        result = a.new_empty_strided(self.shape, self.strides, dtype=self.dtype) if self.makes_result else beside[_OUT]
        desc, lock = self.desc, self.lock
        if not (-_LARGEST < alpha < _LARGEST and -_LARGEST < beta < _LARGEST):
            alpha, beta = _call.scalar("alpha", alpha), _call.scalar("beta", beta)
        with lock:
            desc.a, desc.b, desc.d = a.data_ptr(), b.data_ptr(), result.data_ptr()
            desc.alpha, desc.beta = alpha, beta if self.reads_c else 0.0
            if self.reads_result:
                desc.c = desc.d
            for field, i in self.beside:
                setattr(desc, field, beside[i].data_ptr())
            status = _c.run_desc(self.handle.pointer, self.reference)
            failure = _c.error(status, self.handle.pointer) if status else None
        if failure:
            raise _call.of_argument(failure)
        return result
