# SPDX-License-Identifier: MIT
"""Packed weights for torch: operators that are differentiated by x and compiled."""
import math
from ctypes import byref

import torch

from . import _c, _call, _derivatives, _gemm, _packed, _packed_derivatives, _prepared
from ._activations import activation as row_of
from ._device import handle_for
from ._dispatch import count_flops, is_traced, must_dispatch
from ._packed import PackedWeights
from ._plan import Layout, Shape, new_plan, once, spread_shape
from ._tensors import TYPES as _TYPES
from ._tensors import check, dtype_of, factors, scale
from ._weights import Weights
from ._words import shown

_HALVES = (torch.float16, torch.bfloat16)


def _handle(index):
    return handle_for(f"cuda:{index}", _prepared.raw_stream(index))


# ---- packing ------------------------------------------------------------------------------------------------------


@torch.no_grad()
@torch.inference_mode(False)
def pack(weights, device):
    """hgemm.pack into a tensor on a device of torch's: one that backward() may keep, in inference mode, too."""
    many, form, order = _packed.joint(weights)
    experts = not isinstance(weights, Weights)
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise (ValueError if isinstance(device, str) else TypeError)(f"device: {shown(device)} is no device of torch's") from error
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device: {device} is neither a CPU nor a CUDA device")
    try:
        device = torch.empty(0, device=device).device  # with its index
    except (RuntimeError, AssertionError) as error:  # a CUDA device that is not there
        raise ValueError(f"device: {device}: {str(error).splitlines()[0]}") from error
    size = _packed.bytes_of(form)
    data = torch.zeros((len(many), size), dtype=torch.uint8, device=device)  # so is what the library rounds up and does not write
    for one, row in zip(many, data):
        if device.type == "cpu":
            row.copy_(torch.from_numpy(_packed.pack_on_host(one, form)))
        elif size:
            copies = [torch.from_numpy(part.reshape(-1).view("u1")).to(device) for part in _packed.parts(one)]
            _handle(device.index).call(_c.lib.hgemm_pack_weights, byref(_packed.struct_of(form)), *_packed.pointers([x.data_ptr() for x in copies]),
                                       row.data_ptr())
    if order is not None:
        order = torch.from_numpy(order).to(device)
    return PackedTensor(data if experts else data[0], form, order, len(many) if experts else None)


class PackedTensor(PackedWeights):
    """Packed weights in a tensor."""

    __slots__ = ()

    def unpack(self, dtype="float16"):
        dtype = getattr(torch, _call.dtype_name("dtype", dtype))
        rows = self.data if self.experts is not None else self.data.unsqueeze(0)
        found = [torch.ops.hgemm.unpack(row, self.form, dtype) for row in rows]
        matrix = found[0] if self.experts is None else torch.stack(found)
        return matrix if self.order is None else matrix.index_select(-1, torch.argsort(self.order))


# ---- the operators ------------------------------------------------------------------------------------------------

_library = torch.library.Library("hgemm", "FRAGMENT")
_library.define("linear_packed(Tensor x, Tensor packed, int[] form, Tensor? c=None, Tensor? bias=None, Tensor? gate=None, float alpha=1.0, "
                'float beta=1.0, str activation="none", ScalarType? out_dtype=None, bool batch_invariant=False, float scale_a=0.0, '
                "Tensor? scale_a_pointer=None) -> Tensor")
_library.define("unpack(Tensor packed, int[] form, ScalarType dtype) -> Tensor")
_library.define("linear_packed_grad(Tensor g, Tensor packed, int[] form, ScalarType dtype, float alpha=1.0) -> Tensor")


def _check(x, packed, form):
    if x.dtype not in _HALVES:
        raise TypeError(f"x: its type is {x.dtype}, not torch.float16, torch.bfloat16 or torch.float32")
    if packed.dtype != torch.uint8 or packed.numel() < _packed.bytes_of(form) or not packed.is_contiguous():
        raise ValueError(f"packed: it is a tensor of {packed.dtype} of the shape {tuple(packed.shape)}, not {_packed.bytes_of(form)} "
                         "contiguous bytes or more, of which packed weights of this form are the first")
    if packed.device != x.device:
        raise ValueError(f"packed: it is on {packed.device}, and x is on {x.device}")


def run(x, packed, form, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", out_dtype=None, batch_invariant=False,
        scale_a=0.0, scale_a_pointer=None):
    """The product, where nothing is recorded. x's columns are in the order of the packed ones. form: a tuple."""
    if c is None or not beta:
        c, beta = None, 0.0
    if x.dtype == torch.float32:
        if scale_a or scale_a_pointer is not None:
            raise ValueError("scale_a: x is float32, and only bfloat16 has a scale")
        z = _of_floats(x, packed, form, alpha, batch_invariant)
        return _epilogue(z, c, bias, gate, beta, activation).to(out_dtype or torch.float32)
    if x.is_cuda:
        beside = _prepared.given(c, bias, gate, None, scale_a_pointer, None)
        key = _prepared.key_of((form, activation, out_dtype, batch_invariant, scale_a), False, x, packed, beside)
        prepared = _prepared.find(key)
        if prepared is not None:
            return prepared(x, packed, beside, alpha, beta)
    _check(x, packed, form)
    x, c, bias, gate = (None if tensor is None else tensor.resolve_neg() for tensor in (x, c, bias, gate))
    n, k = form[:2]
    operands = {"a": x if x.is_contiguous() or x.dim() == 2 and x.stride(1) == 1 and x.stride(0) >= k else x.contiguous()}
    whole = Shape(x.shape, (k, n)).d
    for name, tensor in (("c", c), ("bias", bias), ("gate", gate)):
        if tensor is not None:
            if tensor.dtype not in _TYPES:
                raise TypeError(f"{name}: its type is {tensor.dtype}, not float16, bfloat16 or float32")
            if name == "bias":
                operands[name] = _bias(tensor, x, form)
                continue
            try:
                spread = tensor.expand(whole)
            except RuntimeError:
                raise _packed.wrong_shape(name, tensor.shape, f"one that broadcasts to {tuple(whole)}") from None
            is_whole = spread.shape == tensor.shape and tensor.is_contiguous()
            operands[name] = tensor if name == "c" or is_whole else spread.contiguous()
    dtype = _TYPES[x.dtype] if out_dtype is None else _call.dtype_name("out_dtype", out_dtype)
    scalars = {"alpha": float(alpha), "beta": float(beta)}

    def plan_of(layouts, dtype, reads_c):
        return _packed.plan_of(form, layouts, dtype, reads_c, activation, batch_invariant, None)
    if not x.is_cuda:
        operands["b"] = PackedTensor(packed, form, None).matrix(_TYPES[x.dtype])
        if scale_a or scale_a_pointer is not None:
            scalars["scale_a"] = scale_a or float(scale_a_pointer)
        return _call.on_host(operands, scalars, dtype, lambda shapes: whole, plan_of)
    for name, tensor in operands.items():
        if tensor.device != x.device:
            raise ValueError(f"{name}: it is on {tensor.device}, and x is on {x.device}")
    if scale_a:
        scalars["scale_a"] = scale_a
    if scale_a_pointer is not None:
        scalars["scale_a_pointer"] = scale_a_pointer.data_ptr()
    if len(scalars) > 2 and x.dtype != torch.bfloat16:
        raise ValueError("scale_a: x is float16, and only bfloat16 has a scale")
    layouts = tuple([(name, _TYPES[tensor.dtype], tensor.shape, tensor.stride()) for name, tensor in operands.items()])
    layouts = (*layouts, ("b", _TYPES[x.dtype], (k, n), (1, max(k, 1))))
    if key is None or any(operands["a" if name == "x" else name] is not tensor for name, tensor in
                          (("x", x), ("c", c), ("bias", bias), ("gate", gate)) if tensor is not None):
        index, key = x.get_device(), None  # copies are made for each call
        asked = form, layouts, dtype, beta != 0, activation, batch_invariant, index, _prepared.raw_stream(index)
    return _prepared.run(key or asked, key is not None,
                         lambda: _packed.plan_of(form, layouts, dtype, beta != 0, activation, batch_invariant, None, new_plan),
                         {**operands, "b": packed}, scalars, dtype)


def _bias(tensor, x, form):
    """A bias as the library reads it: the tensor itself, or a copy."""
    layout = Layout(_TYPES[tensor.dtype], tensor.shape, tensor.stride())
    shape = spread_shape("bias", layout, Shape(x.shape, (form[1], form[0])))
    if shape is not None:
        return tensor[once(layout)].expand(shape).contiguous()
    return tensor if 0 in tensor.stride() or tensor.is_contiguous() else tensor.contiguous()


LOW = 2.0**11


def _of_floats(x, packed, form, alpha, batch_invariant):
    """alpha * x W^T of float32, in float32: each row, times a power of two, is a half and a rest that is 2^11 times larger than it counts
    for. They are rows of one product, so that weights are read once. The power brings the row's largest element to between 2^14 and 2^15.
    From 2^-14 on halves are normal numbers, and x is off by 2^-22 of itself at most; below that by 2^-36, which is 2^-50 of the largest.
    alpha and what undoes the power of two are two factors at the end, of which each may be far from 1 where the result is not."""
    if x.shape[-1] == 0:  # no row has a largest magnitude
        return x.new_zeros((*x.shape[:-1], form[0]))
    row = x.unsqueeze(0) if x.dim() == 1 else x
    finite = torch.where(row.isfinite(), row, 0)
    largest = torch.linalg.vector_norm(finite, math.inf, dim=-1, keepdim=True).clamp(min=2.0**-112)
    scale = torch.exp2((15 - torch.frexp(largest).exponent).float())
    scaled = row * scale
    high = scaled.half()
    low = torch.where(high.isfinite(), (scaled - high.float()) * LOW, 0).half()
    high, low = run(torch.stack((high, low)), packed, form, None, None, None, 1.0, 1.0, "none", torch.float32, batch_invariant)
    factor = alpha / scale.double()
    half = torch.exp2(torch.frexp(factor).exponent.div(2, rounding_mode="floor").double())
    z = torch.where(high.isfinite(), high + low / LOW, high) * half.float() * (factor / half).float()
    return z.squeeze(0) if x.dim() == 1 else z


def _epilogue(z, c, bias, gate, beta, activation):
    """By torch, in float32."""
    for name, tensor in (("c", c), ("bias", bias), ("gate", gate)):
        if tensor is not None and tensor.dtype not in _TYPES:
            raise TypeError(f"{name}: its type is {tensor.dtype}, not float16, bfloat16 or float32")
        try:
            spread = None if tensor is None else tensor.expand(z.shape)
        except RuntimeError:
            raise _packed.wrong_shape(name, tensor.shape, f"one that broadcasts to {tuple(z.shape)}") from None
        if name == "c" and tensor is not None:
            z = z + beta * spread
        elif name == "bias" and tensor is not None:
            z = z + spread
    if activation != "none":
        z = row_of(activation).function(torch, z)
    return z if gate is None else z * gate


def _linear_packed(x, packed, form, *rest, **options):
    return run(x, packed, tuple(form), *rest, **options)


def _unpack(packed, form, dtype):
    form = tuple(form)
    matrix = torch.empty(form[:2], dtype=dtype, device=packed.device)
    _unpack_columns(packed, form, 0, form[1], matrix)
    return matrix


def _unpack_columns(packed, form, first, count, to):
    """`count` columns of the matrix into the first ones of a tensor."""
    if not packed.is_cuda:
        to[:, :count] = torch.from_numpy(_packed.unpack_on_host(form, packed.numpy().reshape(-1), "float32", first, count))
        return
    _handle(packed.get_device()).call(_c.lib.hgemm_unpack_weights, byref(_packed.struct_of(form)), packed.data_ptr(), first, count,
                                      _c.TYPE[_TYPES[to.dtype]], to.data_ptr(), max(to.stride(0), 1))


PANEL = 64 << 20  # bytes of the matrix that are unpacked at a time, for a gradient


def _panel(n, k, size):
    """How many columns of an n x k matrix that is: all, or of panels of nearly one width, in multiples of 128."""
    panels = -(-n * k * size // PANEL)
    return max(k, 1) if panels <= 1 else -(-k // panels // 128) * 128


def _linear_packed_grad(g, packed, form, dtype, alpha=1.0):
    """alpha * g W in dtype: a panel of columns after the other, each unpacked before its product."""
    form = tuple(form)
    n, k = form[:2]
    rows, factor = _derivatives.fitted(_derivatives.rows_of(g), dtype)
    rows = rows.contiguous()
    if factor is not None:
        factor = factor * alpha
    width = _panel(n, k, dtype.itemsize)
    if width >= k:
        d = torch.ops.hgemm.gemm(rows, torch.ops.hgemm.unpack(packed, form, dtype), alpha=alpha, alpha_pointer=factor)
        return d.reshape(*g.shape[:-1], k)
    panel = torch.empty((n, width), dtype=dtype, device=g.device)
    d = torch.empty((rows.shape[0], k), dtype=dtype, device=g.device)
    for first in range(0, k, width):
        count = min(width, k - first)
        _unpack_columns(packed, form, first, count, panel)
        _gemm.compute({"a": rows, "b": panel[:, :count], "out": d[:, first:first + count]},
                     {"alpha": alpha if factor is None else factor, "beta": 0.0}, None, "none", "float32", False)
    return d.reshape(*g.shape[:-1], k)


for _key in ("CUDA", "CPU"):
    _library.impl("linear_packed", _linear_packed, _key)
    _library.impl("unpack", _unpack, _key)
    _library.impl("linear_packed_grad", _linear_packed_grad, _key)


_library.impl("linear_packed", _packed_derivatives.composed, "FuncTorchDynamicLayerFrontMode")  # what it meets first under a transform


@torch.library.register_fake("hgemm::linear_packed", lib=_library)
def _(x, packed, form, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", out_dtype=None, *rest, **options):
    if x.shape[-1] != form[1]:
        raise _packed.wrong_shape("x", x.shape, f"(..., {form[1]})")
    return x.new_empty((*x.shape[:-1], form[0]), dtype=out_dtype or x.dtype)


@torch.library.register_fake("hgemm::unpack", lib=_library)
def _(packed, form, dtype):
    return packed.new_empty((form[0], form[1]), dtype=dtype)


@torch.library.register_fake("hgemm::linear_packed_grad", lib=_library)
def _(g, packed, form, dtype, alpha=1.0):
    return g.new_empty((*g.shape[:-1], form[1]), dtype=dtype)


def _setup(ctx, inputs, output):
    x, packed, form, c, bias, gate, alpha, beta, activation, *_ = inputs
    if activation != "none" or gate is not None:
        raise NotImplementedError("hgemm::linear_packed: with an activation or a gate the operator has no gradient; hgemm.torch.linear has")
    ctx.form, ctx.alpha, ctx.beta, ctx.dtype = form, alpha, beta, x.dtype
    ctx.like = [None if tensor is None else (tensor.shape, tensor.dtype) for tensor in (c, bias)]
    ctx.save_for_backward(packed)


def _backward(ctx, g):
    count_flops()
    grad_x = None
    if ctx.needs_input_grad[0]:
        grad_x = torch.ops.hgemm.linear_packed_grad(g, ctx.saved_tensors[0], ctx.form, ctx.dtype, ctx.alpha)
    grads = [None if like is None else (g * factor if factor != 1 else g).sum_to_size(like[0]).to(like[1])
             for like, factor in zip(ctx.like, (ctx.beta, 1))]
    return grad_x, None, None, *grads, *[None] * 8


torch.library.register_autograd("hgemm::linear_packed", _backward, setup_context=_setup, lib=_library)


def _setup_grad(ctx, inputs, output):
    g, packed, ctx.form, ctx.half, ctx.alpha = inputs
    ctx.dtype = g.dtype
    ctx.save_for_backward(packed)


def _backward_grad(ctx, gg):
    """Of a gradient: the product itself."""
    return torch.ops.hgemm.linear_packed(gg.to(ctx.half), ctx.saved_tensors[0], ctx.form, alpha=ctx.alpha, out_dtype=ctx.dtype), *[None] * 4


torch.library.register_autograd("hgemm::linear_packed_grad", _backward_grad, setup_context=_setup_grad, lib=_library)


# ---- the public calls ---------------------------------------------------------------------------------------------


def linear(x, w, bias=None, *, alpha=1.0, beta=None, c=None, activation=None, gate=None, accumulate="float32", out_dtype=None, scale_a=None,
           scale_b=None, batch_invariant=False, accuracy="float32"):
    """hgemm.linear of tensors with packed weights. Its gradient for x is a product with the matrix, unpacked to x's type:
    at most PANEL bytes of it at a time."""
    _call.check_options(accumulate, activation, accuracy, batch_invariant)
    check((("x", x), ("c", c), ("bias", bias), ("gate", gate)), ("x",))
    _packed.check_x(w, x.shape, {"accumulate": accumulate, "scale_b": scale_b})
    if isinstance(alpha, torch.Tensor) and is_traced():
        raise ValueError("alpha: with packed weights it is a number where torch traces the call")
    alpha = float(_call.scalar("alpha", alpha))
    _, _, beta, c = factors(1.0, beta, c)
    scale_a, scale_a_pointer = scale("scale_a", scale_a)
    packed, order = on(w, x)
    return product(x, packed, w.form, order, bias, c, gate, alpha, beta, activation or "none", dtype_of(out_dtype), batch_invariant,
                   {"scale_a": scale_a, "scale_a_pointer": scale_a_pointer})


def on(w, x):
    """The bytes and the order of packed weights as tensors on the device of x."""
    if isinstance(w.data, torch.Tensor):
        return w.data, w.order
    data = w.data.numpy()
    return (torch.from_numpy(data if w.experts is not None else data[0]).to(x.device),
            None if w.order is None else torch.from_numpy(w.order).to(x.device))


def product(x, packed, form, order, bias, c, gate, alpha, beta, activation, out_dtype, batch_invariant, scales):
    """By the operator where torch records or traces the call, else past the dispatcher."""
    if x.layout != torch.strided:
        raise TypeError(f"x: its layout is {x.layout}, not torch.strided")
    if order is not None:
        x = x.index_select(-1, order)
    given = [tensor for tensor in (x, packed, bias, c, gate) if tensor is not None]
    if not (x.is_meta or must_dispatch(given)):
        return run(x, packed, form, c, bias, gate, alpha, beta, activation, out_dtype, batch_invariant, **scales)
    row = x.dim() == 1
    if row:
        x = x.unsqueeze(0)
    if _derivatives.transformed():
        d = _packed_derivatives.composed(x, packed, form, c, bias, gate, alpha, beta, activation, out_dtype, batch_invariant)
        return d.squeeze(0) if row else d
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    if recorded and (activation != "none" or gate is not None):  # the epilogue by torch, in float32
        z = torch.ops.hgemm.linear_packed(x, packed, form, c, bias, None, alpha, beta, "none", torch.float32, batch_invariant, **scales)
        z = row_of(activation).function(torch, z)
        d = (z if gate is None else z * gate.float()).to(out_dtype or x.dtype)
    else:
        d = torch.ops.hgemm.linear_packed(x, packed, form, c, bias, gate, alpha, beta, activation, out_dtype, batch_invariant, **scales)
    return d.squeeze(0) if row else d
