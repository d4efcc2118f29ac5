# SPDX-License-Identifier: MIT
"""enable(): torch's own products on hgemm.

It replaces torch's kernels in the dispatcher, by torch.library, rather than entering a TorchDispatchMode or a TorchFunctionMode: below autograd,
autocast and DTensor it also gets the products that C++ code, backward passes and compiled graphs call, other operators cost nothing more, and
torch.compile does not see it. The price: it acts on all threads. A kernel that another thread is in cannot be taken away, so they are registered
once for a device type, and stay: where no enable() is entered for that, they pass on."""
from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
from typing import Any

import torch

from . import _bitsandbytes_door, _c, _gemm, _grouped
from ._device import handle_for
from ._gemm import compute, find_scale
from ._parameter_scales import Scales
from ._prepared import find, given, key_of
from ._tensors import NUMBERS, storable
from ._words import is_one_of, shown

_NAMES = ("mm", "addmm", "bmm", "baddbmm")
_GROUPED = "_grouped_mm"  # torch.nn.functional.grouped_mm: torch's own needs compute capability 8.0


class _Override:
    """The kernels that stand in for torch's on one device type, and torch's own, to pass on what is not hgemm's."""

    def __init__(self, device):
        self.device, self.own, key = device, {}, device.upper()
        get_kernel = getattr(torch.library, "get_kernel", None)
        overloads = [(name, name) for name in _NAMES]
        if get_kernel is not None:
            overloads += [(name, name + ".out") for name in _NAMES]
            with contextlib.suppress(RuntimeError):  # of a torch that has no such kernel here
                get_kernel("aten::" + _GROUPED, key)
                overloads.append((_GROUPED, _GROUPED))
            self.own = {overload: get_kernel("aten::" + overload, key) for _, overload in overloads}
        self.library = torch.library.Library("aten", "IMPL")
        extra = {"allow_override": True} if "allow_override" in inspect.signature(self.library.impl).parameters else {}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*may also be overrid", UserWarning)  # of a torch without allow_override
            for name, overload in overloads:
                self.library.impl(overload, self.kernel(name, overload), key, with_keyset=True, **extra)

    def passing_on(self, overload):
        """torch's own kernel."""
        if overload in self.own:
            return self.own[overload].call_boxed

        def call(keyset, *arguments, **options):
            # A torch without get_kernel: its kernels that write to an output were left alone, and do the same.
            like = arguments[-1]
            shape = (*arguments[-2].shape[:-1], like.shape[-1])
            return getattr(torch.ops.aten, overload).out(*arguments, **options, out=like.new_empty(shape))
        return call

    def kernel(self, name, overload):
        pass_on = self.passing_on(overload)

        def call(keyset, *arguments, **options):
            entered = _entered
            if not entered:
                return pass_on(keyset, *arguments, **options)
            active = entered[-1]
            if self.device not in active.devices:
                return pass_on(keyset, *arguments, **options)
            try:
                if name == _GROUPED:
                    result, why = active._run_groups(*arguments, **options)
                else:
                    result, why = active._run(name, arguments, options)
            except (TypeError, ValueError, ArithmeticError, _c.Error) as error:  # torch may take it
                if active.batch_invariant and isinstance(error, _c.NotSupportedError):
                    raise
                result, why = None, str(error)
            active._count(name, why)
            return result if why is None else pass_on(keyset, *arguments, **options)
        return call


_entered: tuple[enable, ...] = ()  # the enable()s that are; never changed, but replaced, so that calls need no lock
_overrides: dict[str, _Override] = {}
_lock = threading.Lock()


def _innermost():
    return _entered[-1] if _entered else None


@functools.lru_cache(maxsize=None)
def _lacks_bfloat16(device):
    """Whether the GPU that products of this device's tensors run on has no tensor cores for bfloat16."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) < (8, 0)
    return handle_for(None).info().compute_major < 8


def _permits_tf32():
    """Whether torch may round products of float32 to TF32."""
    try:
        return torch.backends.cuda.matmul.allow_tf32
    except RuntimeError:  # it was set by a newer name
        return torch.backends.cuda.matmul.fp32_precision == "tf32"


class enable(contextlib.ContextDecorator):
    """Runs torch's products of float16 matrices on hgemm while it is entered: mm, addmm, bmm and baddbmm, and so linear, matmul and
    einsum, and grouped_mm of rows by matrices; in eager and compiled code, forward and backward, on every thread. Those of bfloat16
    and of float32, too, where `bfloat16` and `float32` say so. All else, and what hgemm does not support, goes to torch's kernels.

    accumulate       "float32", or "float16": see hgemm.matmul. Sums of bfloat16 and float32 products are float32
    batch_invariant  a row of a result has the same bits whatever other rows the batch has. Raises hgemm.NotSupportedError where the
                     library cannot, as for bfloat16; products that torch runs are without that promise
    devices          device types; with "cpu", products of CPU tensors run on hgemm's default device
    bfloat16         True or False; by default True on GPUs that have no tensor cores for it: those before compute capability 8.0
    float32          False, the default: not because of exactness, but because torch's kernels are the faster for small products and for
                     few rows. Or True: as exact as FP32 arithmetic, and where torch.backends.cuda.matmul.allow_tf32 permits, accuracy "11bits",
                     which has TF32's. Or what accuracy may suffice: "float32", "16bits", "11bits"

    Each product finds the scales of bfloat16 operands. find_scales(module) has those of a module's parameters kept.

    bitsandbytes' matmul_4bit, which its Linear4bit calls, is taken over as well, where bitsandbytes was loaded before. A weight is packed
    when it is first multiplied by, beside bitsandbytes' own: `convert` replaces it. Compiled code keeps to bitsandbytes.

    `ran` counts the products that hgemm ran, by name; `passed` those that torch ran, by reason."""

    def __init__(self, *, accumulate: str = "float32", batch_invariant: bool = False, devices: tuple[str, ...] = ("cuda",), bfloat16: bool | None = None,
                 float32: bool | str = False) -> None:
        if not isinstance(accumulate, str) or accumulate not in _c.ACCUMULATE:
            raise ValueError(f'accumulate: {shown(accumulate)} is neither "float32" nor "float16"')
        if not isinstance(devices, (tuple, list, set, frozenset)):
            raise TypeError(f'devices: {shown(devices)} is no tuple of device types, such as ("cuda", "cpu")')
        devices = tuple(devices)
        for device in devices:
            if not is_one_of(device, "cuda", "cpu"):
                raise ValueError(f'devices: {shown(device)} is neither "cuda" nor "cpu"')
        if not is_one_of(batch_invariant, True, False):
            raise TypeError(f"batch_invariant: {shown(batch_invariant)} is neither True nor False")
        if not is_one_of(bfloat16, None, True, False):
            raise TypeError(f"bfloat16: {shown(bfloat16)} is none of True, False and None")
        if batch_invariant and not _c.has_epilogues():
            raise _c.NotSupportedError(f"batch_invariant: libhgemm {_c.version_text()} does not have it; 0.2 does",
                                       "HGEMM_STATUS_NOT_SUPPORTED")
        if bfloat16 and not _c.has_bfloat16():
            raise _c.NotSupportedError(f"bfloat16: this libhgemm {_c.version_text()} does not have it", "HGEMM_STATUS_NOT_SUPPORTED")
        self.accumulate, self.batch_invariant, self.devices = accumulate, batch_invariant, devices
        self.bfloat16 = bfloat16 if _c.has_bfloat16() else False
        if not is_one_of(float32, True, False, *_c.ACCURACY):
            raise ValueError(f'float32: {shown(float32)} is none of "float32", "16bits" and "11bits", True and False')
        self.float32 = float32
        self._asked = {accuracy: repr((accumulate, batch_invariant, self.devices, self.bfloat16, self.float32, accuracy))
                       for accuracy in _c.ACCURACY}  # a string's hash is found once
        self._scales = Scales(find_scale)
        self.ran: dict[str, int] = {}
        self.passed: dict[str, int] = {}

    def __enter__(self) -> enable:
        global _entered
        with _lock:
            for device in self.devices:
                if device not in _overrides:
                    _overrides[device] = _Override(device)
            _entered += (self,)
        _bitsandbytes_door.enter(_innermost)
        return self

    def find_scales(self, module: torch.nn.Module) -> None:
        """Finds the scales of a module's bfloat16 parameters and has them kept, so that products need not: for weights that change little
        or not at all. A scale is found again when torch's version counter says that its parameter was changed in place. Elements may grow to
        8 times the largest one by ways that are not counted, through `.data` or by replaying a CUDA graph; call forget_scales() after
        any that do more. torch.compile's code and CUDA graphs use scales that were found before."""
        for parameter in module.parameters():
            if parameter.dtype == torch.bfloat16 and parameter.dim() >= 2 and self._takes_bfloat16(parameter):
                self._scales.find(parameter)

    def forget_scales(self) -> None:
        """Has every scale found anew: after parameters were changed in a way that torch does not count."""
        self._scales.clear()

    def __exit__(self, *exception: Any) -> None:
        global _entered
        with _lock:
            if self not in _entered:
                raise RuntimeError("enable: it is left, and was not entered")
            last = len(_entered) - 1 - _entered[::-1].index(self)
            _entered = _entered[:last] + _entered[last + 1:]
            self._scales.end()
        if not _entered:
            _bitsandbytes_door.forget()

    def _count(self, name, why):
        counts, key = (self.ran, name) if why is None else (self.passed, why)
        counts[key] = counts.get(key, 0) + 1

    def _takes_bfloat16(self, tensor):
        if tensor.device.type not in self.devices:
            return False
        return _lacks_bfloat16(tensor.device) if self.bfloat16 is None else self.bfloat16

    def _half(self, a):
        """The type that all operands of a product must have."""
        if self.float32 and a.dtype == torch.float32:
            return torch.float32
        return torch.bfloat16 if a.dtype == torch.bfloat16 and self._takes_bfloat16(a) else torch.float16

    def _run(self, name, arguments, options):
        """(the result, None), or (None, why it is not hgemm's)."""
        a, b = arguments[-2:]
        c = arguments[0] if len(arguments) > 2 else None
        out, alpha, beta = (options.get("out"), options.get("alpha", 1), options.get("beta", 1)) if options else (None, 1, 1)
        scales, key = (None, None) if a.dtype == torch.float16 else self._scales_of(a, b), None
        if type(alpha) in NUMBERS and type(beta) in NUMBERS:
            beside = given(c, c, None, out, *scales)  # what is added may be a c or a bias
            key = key_of((name, self._asked[self._accuracy(a)], beta == 0, beta == 1), False, a, b, beside)
            prepared = find(key)
            if prepared is not None:
                try:
                    return prepared(a, b, beside, alpha, beta), None
                except _c.NotSupportedError:
                    pass  # for these addresses: another way may do
        return self._look_at(name, a, b, c, out, alpha, beta, scales, key)

    def _look_at(self, name, a, b, c, out, alpha, beta, scales, key):
        """The same of a call that was not made before. key: what to keep it by."""
        tensors = [x for x in (a, b, c, out) if x is not None]
        if a.device.type not in self.devices:
            return None, f"on {a.device.type}"
        half = self._half(a)
        if any(x.dtype != half for x in tensors):
            return None, f"{next(x.dtype for x in tensors if x.dtype != half)}"
        if isinstance(alpha, complex) or isinstance(beta, complex):
            return None, "complex scalars"
        shape = (*a.shape[:-1], b.shape[-1])
        rank = 3 if name in ("bmm", "baddbmm") else 2
        if a.dim() != rank or b.dim() != rank or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            return None, "shapes that torch refuses"
        if out is not None and (tuple(out.shape) != shape or storable(out) is not out):
            return None, "out of another shape or layout"
        operands = {"a": storable(a), "b": storable(b)}
        if operands["a"] is not a or operands["b"] is not b:
            key = None  # each such call copies
        if out is not None:
            operands["out"] = out
        scalars = {name: scale for name, scale in zip(("scale_a", "scale_b"), scales) if scale is not None}

        def product(beta, **addend):
            return compute({**operands, **addend}, {"alpha": float(alpha), "beta": float(beta), **scalars}, None, "none",
                           self._sums(a), self.batch_invariant, key, self._accuracy(a)), None
        if c is None or beta == 0:
            return product(0)
        if beta == 1 and c.dim() == 1 and c.stride(0) == 1 and _c.has_epilogues():
            try:
                return product(0, bias=c)
            except _c.NotSupportedError:
                pass  # then as a c, which is copied into the result first, as torch does
        return product(beta, c=c)

    def _sums(self, a):
        return self.accumulate if a.dtype == torch.float16 else "float32"

    def _accuracy(self, a):
        """That of a product of float32: what is asked for, or what torch permits."""
        if a.dtype != torch.float32 or self.float32 is False:
            return "float32"
        if self.float32 is True:
            return "11bits" if _permits_tf32() else "float32"
        return self.float32

    def _scales_of(self, a, b):
        """The scales that are known of operands: of bfloat16, and that are hgemm's."""
        if a.dtype != torch.bfloat16 or b.dtype != torch.bfloat16 or not self._takes_bfloat16(a):
            return None, None
        return self._scales.of(a), self._scales.of(b)

    def _run_groups(self, a, b, offs=None, bias=None, out_dtype=None):
        """The same for grouped_mm."""
        half = self._half(a)
        if a.device.type not in self.devices:
            return None, f"on {a.device.type}"
        if a.dtype != half or b.dtype != half or out_dtype not in (None, half):
            return None, f"grouped_mm of {a.dtype}"
        if a.dim() != 2 or b.dim() != 3 or offs is None or bias is not None or a.shape[1] != b.shape[1] or offs.shape != b.shape[:1]:
            return None, "grouped_mm of other shapes"
        a, b = storable(a), storable(b)
        with torch.no_grad():
            scale_a, scale_b = self._scales_of(a, b)
            return _grouped.run(_gemm.find_scale, a, b, offs, accumulate=self._sums(a), batch_invariant=self.batch_invariant, scale_a=scale_a, scale_b=scale_b,
                                accuracy=self._accuracy(a)), None
