# SPDX-License-Identifier: MIT
"""hgemm for torch.

    hgemm.torch.matmul(a, b, ...)    the arguments of hgemm.matmul without out, kernel and stream; differentiable, compiles,
    hgemm.torch.linear(x, weight)    is captured into CUDA graphs: one operator, torch.ops.hgemm.gemm
    with hgemm.torch.enable():       torch's own mm, addmm, bmm, baddbmm and what is made of them (linear, matmul, einsum) run on
                                     hgemm where the operands are float16, on GPUs that lack bfloat16, bfloat16, and if you say
                                     so, float32; and bitsandbytes' products of 4 bits
    hgemm.torch.convert(model)       packs the quantised layers of a model: hgemm.torch.PackedLinear

Tensors on the CPU are copied to hgemm's default device and back: without a GPU, that is the emulated T4."""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
import threading
import warnings
from typing import Any

import torch

from . import _arrays, _bitsandbytes_door, _c, _call, _derivatives, _grouped, _matmul, _prepared, _scales
from ._annotations import DType, TorchOptions, Unpack
from ._device import handle_for
from ._dispatch import casts, must_dispatch, watched
from ._packed import PackedWeights
from ._parameter_scales import Scales
from ._plan import Layout, Shape, once, plan_for, spread_shape
from ._prepared import find, given, key_of
from ._tensors import NUMBERS, TYPES, check, dtype_of, factors, name_of, scale, storable, type_for, written
from ._types import check_type
from ._words import is_one_of, shown

__all__ = ["PackedExperts", "PackedLinear", "convert", "enable", "find_scale", "linear", "load_state_dict", "matmul"]

# ---- the operator ------------------------------------------------------------------------------------------------

_library = torch.library.Library("hgemm", "DEF")
_library.define("gemm(Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None, Tensor? gate=None, float alpha=1.0, float beta=1.0, "
                'str activation="none", str accumulate="float32", ScalarType? out_dtype=None, bool batch_invariant=False, '
                "float scale_a=0.0, float scale_b=0.0, Tensor? scale_a_pointer=None, Tensor? scale_b_pointer=None, Tensor? alpha_pointer=None, "
                'str accuracy="float32") -> Tensor')
_library.define("find_scale(Tensor x) -> Tensor")
_gemm_op = torch.ops.hgemm.gemm.default


def compute(operands, scalars, dtype, activation, accumulate, batch_invariant, key=None, accuracy="float32"):
    """The product of tensors on the CPU (copied to the default device) or on one GPU (where they are, on the current stream).
    scalars: alpha and beta, and scale_a and scale_b where they are given, which may be tensors. key: what the call is kept by."""
    a = operands["a"]
    if not a.is_cuda:
        scalars = {name: _call.scalar(name, value) for name, value in scalars.items()}
        return _call.on_host(operands, scalars, dtype, _matmul.shape_of, _matmul.plans(activation, accumulate, batch_invariant, None, accuracy))
    index = a.get_device()
    for name, x in operands.items():
        if x.get_device() != index:
            raise ValueError(f"{name}: it is on {x.device}, and a is on {a.device}")
        if x.is_neg() and name == "out":
            raise TypeError("out: what is in memory is its negative (torch.Tensor.is_neg)")
    operands = {name: x.resolve_neg() for name, x in operands.items()}
    for name in ("alpha", "beta"):
        if type(scalars[name]) is float and not -_call.LARGEST < scalars[name] < _call.LARGEST:
            _call.scalar(name, scalars[name])  # which refuses it, unless it is no finite number
    dtype = _call.result_type(dtype, TYPES.get(a.dtype), TYPES.get(operands["b"].dtype))
    if len(scalars) > 2 or type(scalars["alpha"]) is not float:
        scalars = _pointed(scalars, operands)
    layouts = _layouts(operands)
    for name in ("bias", "gate"):
        if name in operands:
            whole = _spread(name, operands)
            if whole is not None:
                operands, key = {**operands, name: whole}, None  # copied in each call
                layouts = _layouts(operands)
    plan = plan_for(layouts, dtype, scalars["beta"] != 0, accumulate, activation, batch_invariant, None, accuracy)
    result = operands.get("out")
    if result is None:
        result = torch.empty(plan.shape, dtype=getattr(torch, dtype), device=a.device)
    if plan.copies_c:
        result.copy_(operands["c"])
    pointers = {name: x.data_ptr() for name, x in operands.items()}
    pointers["d"] = result.data_ptr()
    handle = handle_for(f"cuda:{index}", _prepared.raw_stream(index))
    _call.run(plan, handle, pointers, scalars)
    if key is not None:
        _prepared.keep(key, plan, handle, result.dtype, scalars, "out" not in operands)
    return result


def _layouts(operands):
    return tuple([(name, name_of(x.dtype), x.shape, x.stride()) for name, x in operands.items()])


def _spread(name, operands):
    """A copy of a bias or a gate that the library cannot repeat, or None where it is read where it is."""
    x = operands[name]
    if name == "bias" and x.dim() and x.shape[-1] > 1 and x.stride(-1):
        return None  # a value for each column: nearly every bias
    if x.dtype not in TYPES:
        return None  # which the plan refuses
    layout = Layout(TYPES[x.dtype], x.shape, x.stride())
    shape = spread_shape(name, layout, Shape(operands["a"].shape, operands["b"].shape))
    return None if shape is None else x[once(layout)].expand(shape).contiguous()


def _pointed(scalars, operands):
    """The scalars with the addresses of those that are in the GPU's memory."""
    _call.check_scales(scalars, [name_of(operands[name].dtype) for name in ("a", "b")])
    pointed = {}
    for name, value in scalars.items():
        if isinstance(value, float):
            pointed[name] = value
            continue
        if value.dtype != torch.float32 or value.numel() != 1:
            raise TypeError(f"{name}: in device memory it must be one float32, not {value.dtype} of the shape {tuple(value.shape)}")
        if value.device != operands["a"].device:
            raise ValueError(f"{name}: it is on {value.device}, and a is on {operands['a'].device}")
        pointed[name + "_pointer"] = value.data_ptr()
    return pointed


def _again(a, b, beside, alpha, beta, activation, accumulate, out_dtype, batch_invariant, accuracy):
    """For hgemm.matmul: what to keep the call by and, if one like it was kept, its result; None for what there is not."""
    if watched() or type(alpha) not in NUMBERS or not (beta is None or type(beta) in NUMBERS) or casts():
        return None, None
    if beta is None:
        beta = 0.0 if beside[0] is None else 1.0
    beside = given(*beside)
    key = key_of((activation, accumulate, out_dtype, batch_invariant, beta != 0, accuracy), torch.is_grad_enabled(), a, b, beside)
    try:
        prepared = find(key)
    except TypeError:  # an option of a kind that no option is, which has no hash
        return None, None
    return key, None if prepared is None else prepared(a, b, beside, alpha, beta)


_matmul.again = _again


def _gemm(a, b, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", accumulate="float32", out_dtype=None,
          batch_invariant=False, scale_a=0.0, scale_b=0.0, scale_a_pointer=None, scale_b_pointer=None, alpha_pointer=None,
          accuracy="float32"):
    if c is None or not beta:
        c, beta = None, 0.0
    beside, key = (c, bias, gate, None, scale_a_pointer, scale_b_pointer), None
    if not (scale_a or scale_b) and alpha_pointer is None:
        beside = given(*beside)
        key = key_of((activation, accumulate, out_dtype, batch_invariant, c is not None, accuracy), False, a, b, beside)
        prepared = find(key)
        if prepared is not None:
            return prepared(a, b, beside, alpha, beta)
    operands = {"a": storable(a), "b": storable(b)}
    if c is not None:
        operands["c"] = c
    if bias is not None:
        operands["bias"] = bias
    if gate is not None:
        operands["gate"] = storable(gate)
    if operands["a"] is not a or operands["b"] is not b or operands.get("gate") is not gate:
        key = None  # copies are made for each call
    dtype = None if out_dtype is None else _call.dtype_name("out_dtype", out_dtype)
    scalars = {"alpha": alpha if alpha_pointer is None else alpha_pointer, "beta": beta}
    for name, number, tensor in (("scale_a", scale_a, scale_a_pointer), ("scale_b", scale_b, scale_b_pointer)):
        if number or tensor is not None:
            scalars[name] = number if tensor is None else tensor
    return compute(operands, scalars, dtype, activation, accumulate, batch_invariant, key, accuracy)


_library.impl("gemm", _gemm, "CUDA")
_library.impl("gemm", _gemm, "CPU")


def _fake(a, b, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", accumulate="float32", out_dtype=None,
          *rest, **options):
    for name, x in (("a", a), ("b", b), ("c", c), ("bias", bias), ("gate", gate)):
        if x is not None:
            check_type(name, name_of(x.dtype))
            if x.device != a.device:
                raise ValueError(f"{name}: it is on {x.device}, and a is on {a.device}")
    _derivatives.common_type(a, b)
    dtype = None if out_dtype is None else _call.dtype_name("out_dtype", out_dtype)
    return a.new_empty(Shape(a.shape, b.shape).d, dtype=getattr(torch, _call.result_type(dtype, TYPES[a.dtype], TYPES[b.dtype])))


torch.library.register_fake("hgemm::gemm", _fake, lib=_library)


def _refuse_storage(*arguments, **options):
    for name, x in zip((argument.name for argument in _gemm_op._schema.arguments), arguments):
        if isinstance(x, torch.Tensor) and (x.layout != torch.strided or x.is_quantized or x.is_nested or x.is_mkldnn):
            kind = "quantized" if x.is_quantized else "nested" if x.is_nested else x.layout
            raise TypeError(f"{name}: its elements are stored in a way that is not hgemm's ({kind})")
    raise TypeError("gemm: a tensor's elements are stored in a way that is not hgemm's")


for _way in ("Sparse", "SparseCsr", "Quantized", "NestedTensor"):
    for _device in ("CPU", "CUDA"):
        _library.impl("gemm", _refuse_storage, _way + _device)


def _find_scale(x):
    if not x.is_cuda:
        return _scales.find_scale_on_host(x)
    try:
        lines = _scales.check_scalable(name_of(x.dtype), x.shape, x.stride())
    except ValueError:
        x = x.contiguous()
        lines = _scales.check_scalable("bfloat16", x.shape, x.stride())
    index, scale = x.get_device(), torch.empty((), dtype=torch.float32, device=x.device)
    _scales.write_scale(handle_for(f"cuda:{index}", _prepared.raw_stream(index)), lines, x.data_ptr(), scale.data_ptr())
    return scale


_library.impl("find_scale", _find_scale, "CUDA")
_library.impl("find_scale", _find_scale, "CPU")
torch.library.register_fake("hgemm::find_scale", lambda x: x.new_empty((), dtype=torch.float32), lib=_library)


def _cast(device, *operands):
    """Operands under torch.autocast, as torch has them for its own products: floats are of its type, but for those of 64 bits."""
    dtype = torch.get_autocast_dtype(device)
    if dtype not in (torch.float16, torch.bfloat16):
        return operands
    return [x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in operands]


_derivatives.register(_library, _gemm_op, _gemm, _cast)


def _autocast(device):
    key = torch._C.DispatchKey.AutocastCUDA if device == "cuda" else torch._C.DispatchKey.AutocastCPU

    def gemm(a, b, *rest, **options):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return torch.ops.hgemm.gemm(*_cast(device, a, b), *rest, **options)
    return gemm


_library.impl("gemm", _autocast("cuda"), "AutocastCUDA")
_library.impl("gemm", _autocast("cpu"), "AutocastCPU")


# ---- the public calls ---------------------------------------------------------------------------------------------


def matmul(a: torch.Tensor, b: torch.Tensor, *, alpha: float | torch.Tensor = 1.0, beta: float | torch.Tensor | None = None,
           c: torch.Tensor | None = None, bias: torch.Tensor | None = None, activation: str | None = None, gate: torch.Tensor | None = None,
           accumulate: str = "float32", out_dtype: DType | None = None, scale_a: float | torch.Tensor | None = None,
           scale_b: float | torch.Tensor | None = None, batch_invariant: bool = False, accuracy: str = "float32") -> torch.Tensor:
    """hgemm.matmul for tensors, as an operator that torch differentiates, compiles and shards (DTensor). Here, unlike there, a
    matrix whose strides no leading dimension can say is copied first, as torch.matmul does."""
    if not torch.compiler.is_compiling():
        _know_dtensor()
    _call.check_options(accumulate, activation, accuracy, batch_invariant)
    check((("a", a), ("b", b), ("c", c), ("bias", bias), ("gate", gate)), ("a", "b"))
    alpha, alpha_pointer, beta, c = factors(alpha, beta, c)
    for name, tensor in (("a", a), ("b", b)):
        if tensor.dim() == 0:
            raise ValueError(f"{name}: it has no dimension; a product needs a vector at least")
    row, column = a.dim() == 1, b.dim() == 1
    if row or column:
        a, b = a.unsqueeze(0) if row else a, b.unsqueeze(1) if column else b
        c, bias, gate = _with_row_or_column(c, row, column), _with_row_or_column(bias, row, column), _with_row_or_column(gate, row, column)
    out_dtype = dtype_of(out_dtype)
    if (c is None and bias is None and gate is None and activation is None and out_dtype is None and scale_a is None and scale_b is None
            and alpha == 1 and accumulate == "float32" and not batch_invariant and alpha_pointer is None and accuracy == "float32"):
        d = _gemm_op(a, b)  # each argument takes time to convert, defaults take less
    else:
        numbers, pointers = zip(scale("scale_a", scale_a), scale("scale_b", scale_b))
        d = _gemm_op(a, b, c, bias, gate, alpha, beta, activation or "none", accumulate, out_dtype, batch_invariant, *numbers, *pointers,
                     alpha_pointer, accuracy)
    if column:
        d = d.squeeze(-1)
    return d.squeeze(-1 if column else -2) if row else d


def _with_row_or_column(tensor, row, column):
    """What is added to a vector's product, with the row or column that the product has."""
    if tensor is not None and column:
        tensor = tensor.unsqueeze(-1)
    return tensor.unsqueeze(-2) if tensor is not None and row and tensor.dim() else tensor


def dispatched(a, b, out, *, beta, c, out_dtype, **options):
    """hgemm.matmul by the operator, whose result is copied to `out`, where that is given."""
    if out is None:
        return matmul(a, b, beta=beta, c=c, out_dtype=out_dtype, **options)
    dtype = type_for(out, out_dtype, (a, b, c, beta, *options.values()))
    return written(out, matmul(a, b, beta=beta, c=out if c is None and beta is not None else c, out_dtype=dtype, **options))


def linear(x: torch.Tensor, weight: torch.Tensor | PackedWeights, bias: torch.Tensor | None = None, **options: Unpack[TorchOptions]) -> torch.Tensor:
    """hgemm.linear for tensors: x @ weight.T + bias, with the options of matmul. weight may be what hgemm.pack made."""
    try:
        if isinstance(weight, PackedWeights):
            return packed.linear(x, weight, bias, **options)
        if not isinstance(weight, torch.Tensor):
            raise _arrays.no_array("weight", weight)
        return matmul(x, weight.mT if weight.dim() > 1 else weight, bias=bias, **options)
    except (TypeError, ValueError, _c.Error) as error:
        _matmul.in_words_of_linear(error, x, weight)
        raise


def find_scale(x: torch.Tensor) -> torch.Tensor:
    """hgemm.find_scale for tensors, as an operator: compiled code and CUDA graphs find it each time that they run. A tensor that is
    not evenly spaced lines of contiguous elements is copied first."""
    if not torch.compiler.is_compiling():
        _know_dtensor()
    check([("x", x)], ("x",))
    return torch.ops.hgemm.find_scale(x.detach())


_dtensor_known = False


def _know_dtensor():
    """Registers the rules for DTensors once a program uses those: to import them takes a second."""
    global _dtensor_known
    if not _dtensor_known and "torch.distributed.tensor" in sys.modules:
        _dtensor_known = True
        with contextlib.suppress(ImportError):  # torch 2.4 has no register_sharding
            importlib.import_module("._dtensor", __package__)


_know_dtensor()

packed = importlib.import_module("._torch_packed", __package__)  # once the operator is there
grouped = importlib.import_module("._torch_grouped", __package__).grouped
PackedLinear = importlib.import_module("._packed_linear", __package__).PackedLinear
PackedExperts = importlib.import_module("._packed_experts", __package__).PackedExperts
convert = importlib.import_module("._convert", __package__).convert
load_state_dict = importlib.import_module("._replace", __package__).load_state_dict

# ---- torch's own products -----------------------------------------------------------------------------------------
#
# enable() replaces torch's kernels in the dispatcher, by torch.library, rather than entering a TorchDispatchMode or a
# TorchFunctionMode: below autograd, autocast and DTensor it also gets the products that C++ code, backward passes and compiled
# graphs call, other operators cost nothing more, and torch.compile does not see it. The price: it acts on all threads. A kernel that
# another thread is in cannot be taken away, so they are registered once for a device type, and stay: where no enable() is entered for
# that, they pass on.

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
        self._scales = Scales(_find_scale)
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
            return _grouped.run(a, b, offs, accumulate=self._sums(a), batch_invariant=self.batch_invariant, scale_a=scale_a, scale_b=scale_b,
                                accuracy=self._accuracy(a)), None
