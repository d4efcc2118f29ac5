# SPDX-License-Identifier: MIT
"""Products of CUDA tensors that were made before: the one cache that such a product passes. Options and the tensors' layouts say what a
call is. One that comes again, on the same stream, has only addresses and factors to set: whatever else could be refused was looked at
when it was first made."""
from __future__ import annotations

from ctypes import byref

import torch

from . import _c, _call
from ._device import handle_for
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


def run(key, looked_for, make, operands, scalars, dtype):
    """A product whose arguments were looked at: by what is kept for the key or, if there is nothing, by what is kept for it from now on.

    key         one of key_of's, or another of what a plan depends on, the device and the stream
    looked_for  whether nothing is kept for it
    make        makes the plan
    operands    tensors by name: a, b, and of c, bias, gate and out those that are read and written
    scalars     by the field of the descriptor
    dtype       the result's"""
    prepared = None if looked_for else find(key)
    if prepared is not None:
        return prepared.run(operands, scalars)
    plan, index = make(), operands["a"].get_device()
    handle = handle_for(f"cuda:{index}", raw_stream(index))
    kind = _Prepared if len(plan.calls) == 1 and not plan.copies_c else _Several
    prepared = kind(plan, handle, getattr(torch, dtype), scalars, "out" not in operands)
    result = prepared.run(operands, scalars)
    if len(_calls) >= 4096:
        _calls.clear()
    _calls[key] = prepared
    return result


class _Prepared:
    """A descriptor in which only addresses and factors are still to be set, and the handle that runs it and whose lock guards it."""

    __slots__ = ("plan", "handle", "lock", "desc", "reference", "shape", "strides", "dtype", "makes_result", "reads_c", "reads_result", "beside")

    def __init__(self, plan, handle, dtype, scalars, makes_result):
        self.plan, self.handle, self.lock = plan, handle, handle.lock
        self.desc = _c.Desc.from_buffer_copy(plan.desc)
        self.reference = byref(self.desc)
        self.shape, self.strides, self.dtype, self.makes_result = plan.shape, packed(plan.shape), dtype, makes_result
        sources = {field: source for field, source, _ in plan.calls[0]}
        self.reads_c, self.reads_result = "c" in sources, sources.get("c") == "d"
        self.beside = [(name, i) for i, name in enumerate(_BESIDE) if name in scalars or sources.get(name) == name]

    def run(self, operands, scalars):
        """The call by names, whatever it takes."""
        result = operands.get("out")
        if result is None:
            result = torch.empty(self.shape, dtype=self.dtype, device=operands["a"].device)
        if self.plan.copies_c:
            result.copy_(operands["c"])
        pointers = {name: x.data_ptr() for name, x in operands.items()}
        pointers["d"] = result.data_ptr()
        _call.run(self.plan, self.handle, pointers, scalars)
        return result

    def __call__(self, a, b, beside, alpha, beta):
        """The same of what a key was made of, if key_of made one."""
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


class _Several(_Prepared):
    """One that takes several calls of the library, or copies c first."""

    __slots__ = ()

    def __call__(self, a, b, beside, alpha, beta):
        tensors = {name: x for name, x in zip(_BESIDE, beside) if x is not None}
        scalars = {name: tensors.pop(name).data_ptr() for name in ("scale_a_pointer", "scale_b_pointer") if name in tensors}
        scalars["alpha"], scalars["beta"] = _call.scalar("alpha", alpha), _call.scalar("beta", beta) if self.reads_c else 0.0
        return self.run({"a": a, "b": b, **tensors}, scalars)
