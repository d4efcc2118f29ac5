# SPDX-License-Identifier: MIT
"""The operators gemm and find_scale: torch.ops.hgemm.gemm has hgemm.matmul's epilogue, kernels for the CPU and for GPUs, a fake one, gradients
(_derivatives) and a rule for autocast."""
import torch

from . import _call, _derivatives, _prepared, _scales
from ._device import handle_for
from ._plan import Layout, Shape, new_plan, once, spread_shape
from ._prepared import find, given, key_of
from ._tensors import TYPES, name_of, storable
from ._types import check_type

_library = torch.library.Library("hgemm", "DEF")
_library.define("gemm(Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None, Tensor? gate=None, float alpha=1.0, float beta=1.0, "
                'str activation="none", str accumulate="float32", ScalarType? out_dtype=None, bool batch_invariant=False, '
                "float scale_a=0.0, float scale_b=0.0, Tensor? scale_a_pointer=None, Tensor? scale_b_pointer=None, Tensor? alpha_pointer=None, "
                'str accuracy="float32") -> Tensor')
_library.define("find_scale(Tensor x) -> Tensor")
operator = torch.ops.hgemm.gemm.default


def compute(operands, scalars, dtype, activation, accumulate, batch_invariant, key=None, accuracy="float32"):
    """The product of tensors on the CPU (copied to the default device) or on one GPU (where they are, on the current stream).
    scalars: alpha and beta, and scale_a and scale_b where they are given, which may be tensors. key: what the call is to be kept by, for which
    nothing is kept; None: it has none of key_of's."""
    a = operands["a"]
    if not a.is_cuda:
        scalars = {name: _call.scalar(name, value) for name, value in scalars.items()}
        return _call.on_host(operands, scalars, dtype, _call.product_shape, _call.plans(activation, accumulate, batch_invariant, None, accuracy))
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
    asked = layouts, dtype, scalars["beta"] != 0, accumulate, activation, batch_invariant, None, accuracy
    return _prepared.run(key or (asked, index, _prepared.raw_stream(index)), key is not None, lambda: new_plan(*asked), operands, scalars, dtype)


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


def gemm(a, b, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", accumulate="float32", out_dtype=None,
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


_library.impl("gemm", gemm, "CUDA")
_library.impl("gemm", gemm, "CPU")


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
    for name, x in zip((argument.name for argument in operator._schema.arguments), arguments):
        if isinstance(x, torch.Tensor) and (x.layout != torch.strided or x.is_quantized or x.is_nested or x.is_mkldnn):
            kind = "quantized" if x.is_quantized else "nested" if x.is_nested else x.layout
            raise TypeError(f"{name}: its elements are stored in a way that is not hgemm's ({kind})")
    raise TypeError("gemm: a tensor's elements are stored in a way that is not hgemm's")


for _way in ("Sparse", "SparseCsr", "Quantized", "NestedTensor"):
    for _device in ("CPU", "CUDA"):
        _library.impl("gemm", _refuse_storage, _way + _device)


def find_scale(x):
    if not x.is_cuda:
        return _scales.find_on_host(x)
    try:
        lines = _scales.check_scalable(name_of(x.dtype), x.shape, x.stride())
    except ValueError:
        x = x.contiguous()
        lines = _scales.check_scalable("bfloat16", x.shape, x.stride())
    index, scale = x.get_device(), torch.empty((), dtype=torch.float32, device=x.device)
    _scales.write_scale(handle_for(f"cuda:{index}", _prepared.raw_stream(index)), lines, x.data_ptr(), scale.data_ptr())
    return scale


_library.impl("find_scale", find_scale, "CUDA")
_library.impl("find_scale", find_scale, "CPU")
torch.library.register_fake("hgemm::find_scale", lambda x: x.new_empty((), dtype=torch.float32), lib=_library)


def _cast(device, *operands):
    """Operands under torch.autocast, as torch has them for its own products: floats are of its type, but for those of 64 bits."""
    dtype = torch.get_autocast_dtype(device)
    if dtype not in (torch.float16, torch.bfloat16):
        return operands
    return [x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in operands]


_derivatives.register(_library, operator, gemm, _cast)


def _autocast(device):
    key = torch._C.DispatchKey.AutocastCUDA if device == "cuda" else torch._C.DispatchKey.AutocastCPU

    def cast(a, b, *rest, **options):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return torch.ops.hgemm.gemm(*_cast(device, a, b), *rest, **options)
    return cast


_library.impl("gemm", _autocast("cuda"), "AutocastCUDA")
_library.impl("gemm", _autocast("cpu"), "AutocastCPU")
