# SPDX-License-Identifier: MIT
"""Derivatives of the operator gemm: D = activation(Z) * gate, Z = alpha * A B + beta * C + bias.

For backward() torch records the operator, whose gradient computes Z again instead of keeping it. Under forward-mode derivatives and
torch.func's transforms, the operator is composed of _Product, a product alone, and of torch's own operations: so it has every derivative
that they have."""
import math

import torch

from ._activations import activation as row_of
from ._dispatch import count_flops, transformed
from ._plan import broadcast

_forward_ad = torch.autograd.forward_ad
_BELOW_AUTOGRAD, _CUDA = torch._C._after_autograd_keyset, torch._C.DispatchKey.CUDA
_gemm_op = _kernel = _cast = _defaults = None


def register(library, operator, kernel, cast):
    """kernel: the operator's on a GPU. cast: what autocast makes of its operands, of the device and of them."""
    global _gemm_op, _kernel, _cast, _defaults
    _gemm_op, _kernel, _cast = operator, kernel, cast
    _defaults = tuple(argument.default_value for argument in operator._schema.arguments)
    library.impl("gemm", _differentiable, "Autograd", with_keyset=True)
    library.impl("gemm", _under_transform, "FuncTorchDynamicLayerFrontMode")  # what every operator meets first under a transform


def has_tangent(x):
    return isinstance(x, torch.Tensor) and _forward_ad.unpack_dual(x).tangent is not None


def is_transformed(x):
    """Whether a transform follows a tensor."""
    return torch._C._functorch.is_functorch_wrapped_tensor(x) or has_tangent(x)


def _below_autograd(keyset, arguments):
    count_flops()
    with torch._C._AutoDispatchBelowAutograd():
        return _gemm_op(*arguments) if keyset is None else _gemm_op.redispatch(keyset & _BELOW_AUTOGRAD, *arguments)


def _differentiable(keyset, *arguments):
    """What torch.library.register_autograd makes, but quicker: it takes more time than the rest of a call. Where nothing is to be
    recorded and only the GPU's kernel is left to meet, that is called from here."""
    if _forward_ad._current_level >= 0 and any(map(has_tangent, arguments)):
        return _composed(*arguments)
    if torch.is_grad_enabled():
        for x in arguments:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return _Gemm.apply(keyset, *arguments)
    if (keyset & _BELOW_AUTOGRAD).highestPriorityTypeId() == _CUDA:
        return _kernel(*arguments)
    return _below_autograd(keyset, arguments)


def _wide(dtype):
    """The type of sums, and of what is done to them."""
    return torch.promote_types(dtype, torch.float32)


def common_type(a, b):
    """The type that a product's operands have, or float32 beside another one."""
    if a.dtype != b.dtype and torch.float32 not in (a.dtype, b.dtype):
        raise TypeError(f"b: its type is {b.dtype}, and a's is {a.dtype}")
    return a.dtype if a.dtype == b.dtype else torch.float32


def _reduced(g, like):
    return g.sum_to_size(like.shape).to(like.dtype)


# ---- a product alone ----------------------------------------------------------------------------------------------


def fitted(x, half):
    """A factor of a product in the type `half`, and by what the product must be multiplied then, or None. Of a float32, the largest
    magnitude goes below 2^15, so that neither gradients beyond float16's range nor those below it are lost."""
    if x.dtype == half or half != torch.float16 or x.numel() == 0:
        return x.to(half), None
    rows = torch.linalg.vector_norm(x, math.inf, dim=-1)
    largest = torch.where(rows.isfinite(), rows, 0).amax().clamp(min=2.0**-100)  # a row that has an infinity keeps it in any case
    scale = torch.exp2(14 - largest.log2().floor())
    return (x * scale).to(half), 1 / scale


def _run(x, y, alpha_pointer, scale_x_pointer, scale_y_pointer, scale_x, scale_y, alpha, accumulate, batch_invariant, accuracy, half, out_dtype):
    """alpha * x @ y, or *alpha_pointer times that, of matrices in float32 or in the type `half`, computed in that. Scales: as gemm's."""
    x, of_x = fitted(x, half)
    y, of_y = fitted(y, half)
    for factor in (of_x, of_y):
        if factor is not None:
            alpha_pointer = factor * (alpha if alpha_pointer is None else alpha_pointer)
            accumulate = "float32"  # half sums have no room for such numbers
    return _gemm_op(x, y, None, None, None, alpha, 1.0, "none", accumulate, out_dtype, batch_invariant, scale_x, scale_y,
                    scale_x_pointer, scale_y_pointer, alpha_pointer, accuracy)


def _product(*arguments):
    return _Product.apply(*arguments) if torch.is_grad_enabled() or transformed() else _run(*arguments)


def rows_of(x):
    """A tensor as a matrix of its rows, which may have no elements."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _operands_gradients(g, needs, a, b, alpha_pointer, scale_a_pointer, scale_b_pointer, scale_a, scale_b, *options):
    """Of a product's operands, by the gradient of the product. options: alpha and what follows, but for out_dtype."""
    of_a = of_b = None
    if needs[0]:
        repeated = a.shape[:-2] != g.shape[:-2]
        of_a = _product(g, b.mT, alpha_pointer, None, scale_b_pointer, 0.0, scale_b, *options, _wide(a.dtype) if repeated else a.dtype)
        of_a = _reduced(of_a, a)
    if needs[1]:
        scales = alpha_pointer, scale_a_pointer, None, scale_a, 0.0
        if b.dim() == 2:  # one product over all rows, instead of a batch whose results are added
            of_b = _product(rows_of(a).mT, rows_of(g), *scales, *options, b.dtype)
        else:
            repeated = b.shape[:-2] != g.shape[:-2]
            of_b = _reduced(_product(a.mT, g, *scales, *options, _wide(b.dtype) if repeated else b.dtype), b)
    return of_a, of_b


class _Product(torch.autograd.Function):
    """_run, with derivatives of every order and mode."""

    @staticmethod
    def forward(*arguments):
        with torch._C._AutoDispatchBelowAutograd():
            return _run(*arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.numbers = inputs[5:-1]
        ctx.out_dtype = inputs[-1]
        ctx.save_for_backward(*inputs[:5])
        ctx.save_for_forward(*inputs[:5])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g):
        gradients = None, None
        if g is not None:
            _refuse_pointers(ctx.needs_input_grad[2:5])
            gradients = _operands_gradients(g, ctx.needs_input_grad[:2], *ctx.saved_tensors, *ctx.numbers)
        return *gradients, *[None] * 11

    @staticmethod
    def jvp(ctx, of_x, of_y, *of_others):
        _refuse_pointers(tangent is not None for tangent in of_others[:3])
        # torch turns forward-mode derivatives off for this call, and so would lose those of the call's own result where jvp is nested.
        with _forward_ad._set_fwd_grad_enabled(True):
            x, y, alpha_pointer, scale_x_pointer, scale_y_pointer = (x if x is None else _forward_ad.unpack_dual(x).primal for x in ctx.saved_tensors)
            scale_x, scale_y, *options = ctx.numbers
            wide = _wide(ctx.out_dtype)
            parts = []
            if of_x is not None:
                parts.append(_product(of_x, y, alpha_pointer, None, scale_y_pointer, 0.0, scale_y, *options, wide))
            if of_y is not None:
                parts.append(_product(x, of_y, alpha_pointer, scale_x_pointer, None, scale_x, 0.0, *options, wide))
            return sum(parts[1:], parts[0]).to(ctx.out_dtype) if parts else None

    @staticmethod
    def vmap(info, in_dims, x, y, alpha_pointer, scale_x_pointer, scale_y_pointer, *options):
        of_x, of_y, of_alpha, *of_scales = in_dims[:5]
        rank = max(x.dim() - (of_x is not None), y.dim() - (of_y is not None))
        x, y = _batch_first(x, of_x, rank), _batch_first(y, of_y, rank)
        scales = [pointer if dim is None else pointer.amin(dim) for pointer, dim in zip((scale_x_pointer, scale_y_pointer), of_scales)]
        if of_alpha is None:
            return _product(x, y, alpha_pointer, *scales, *options), None if of_x is None and of_y is None else 0
        scale_x, scale_y, _, *rest, out_dtype = options
        z = _product(x, y, None, *scales, scale_x, scale_y, 1.0, *rest, _wide(out_dtype))
        return (z * alpha_pointer.reshape(-1, *[1] * rank)).to(out_dtype), 0


def _batch_first(x, dim, rank):
    """A tensor with the dimension that vmap hides in front, then the others as if there were `rank` of them."""
    if dim is None:
        return x
    x = x.movedim(dim, 0)
    return x.reshape(x.shape[0], *[1] * (rank + 1 - x.dim()), *x.shape[1:])


def _refuse_pointers(asked):
    for name, differentiated in zip(("alpha", "scale", "scale"), asked):
        if differentiated:
            raise NotImplementedError(f"{name}: it has no derivative: multiply by it outside, or give {name}.detach()")


# ---- the operator -------------------------------------------------------------------------------------------------


def _setup(ctx, inputs, output):
    a, b, c, bias, gate, ctx.alpha, ctx.beta, ctx.activation, ctx.accumulate, _, ctx.batch_invariant, ctx.scale_a, ctx.scale_b, *pointers, ctx.accuracy = inputs
    _refuse_vectors(a, b)
    ctx.save_for_backward(a, b, c, bias, gate, output if ctx.activation == "relu" and gate is None else None, *pointers)


def _refuse_vectors(a, b):
    for name, x in (("a", a), ("b", b)):
        if x.dim() < 2:
            raise ValueError(f"{name}: it has {x.dim()} dimensions, and the operator's derivatives need matrices: call hgemm.torch.matmul")


def _backward(ctx, g):
    a, b, c, bias, gate, output, scale_a, scale_b, alpha_pointer = ctx.saved_tensors
    needs = ctx.needs_input_grad[1:] + (False,) * 16  # the keyset is first; arguments that were left out are not in it
    _refuse_pointers((needs[15], needs[13], needs[14]))
    needs_c, needs_bias, needs_gate = needs[2:5]
    product = (a, b, alpha_pointer, scale_a, scale_b, ctx.scale_a, ctx.scale_b, ctx.alpha, ctx.accumulate, ctx.batch_invariant, ctx.accuracy,
               common_type(a, b))
    wide = _wide(a.dtype)
    grad_gate, activation = None, row_of(ctx.activation)
    if output is not None:
        g = activation.backward(torch.ops.aten, g, output)
    elif ctx.activation != "none" or needs_gate:
        # What the activation was applied to is computed again: keeping it would take as much memory as the result.
        # It may be beyond the range of the result's type.
        recorded = torch.is_grad_enabled() or transformed()  # torch's kernels are quicker, but some have no derivative
        z = added(_product(*product, wide), c, ctx.beta, bias) if recorded else _gemm_op(
            a, b, c, bias, None, ctx.alpha, ctx.beta, "none", ctx.accumulate, wide, ctx.batch_invariant, ctx.scale_a, ctx.scale_b, scale_a, scale_b,
            alpha_pointer, ctx.accuracy)
        g = g.to(wide)
        if needs_gate:
            grad_gate = _reduced(g * (activation.formula if recorded else activation.function)(torch, z), gate)
        if gate is not None:
            g = g * gate.to(wide)
        g = g * activation.slope(torch, z) if recorded else activation.backward(torch.ops.aten, g, z)
    elif gate is not None:
        g = g.to(wide) * gate.to(wide)
    grad_a, grad_b = _operands_gradients(g, needs[:2], *product)
    grad_c = grad_bias = None
    if needs_c:
        grad_c = _reduced(g.to(wide) * ctx.beta, c)
    if needs_bias:
        grad_bias = _reduced(g.to(wide), bias)
    return grad_a, grad_b, grad_c, grad_bias, grad_gate, *[None] * 12


class _Gemm(torch.autograd.Function):
    """The operator, recorded. Its first argument says which kernels of the dispatcher's the call has not met yet."""

    @staticmethod
    def forward(ctx, keyset, *arguments):
        output = _below_autograd(keyset, arguments)
        _setup(ctx, arguments + _defaults[len(arguments):], output)
        return output

    @staticmethod
    def backward(ctx, g):
        return None, *_backward(ctx, g)


def added(z, c, beta, bias):
    if c is not None:  # with a beta of 0 it has a gradient of 0, whatever it holds
        c = c.to(z.dtype)
        z = z + (c if beta else c.nan_to_num()) * beta
    return z if bias is None else z + bias.to(z.dtype)


def _under_transform(a, b, *rest):
    if torch._C._functorch.peek_interpreter_stack().key() == torch._C._functorch.TransformType.Functionalize:
        raise NotImplementedError("hgemm: torch.func.functionalize has no rule for its product")
    if torch.is_autocast_enabled(a.device.type):  # transforms come before it
        a, b = _cast(a.device.type, a, b)
    return _composed(a, b, *rest)


def _composed(*arguments):
    """The operator, of what torch differentiates and transforms in every way."""
    a, b, c, bias, gate, alpha, beta, activation, accumulate, out_dtype, batch_invariant, scale_a, scale_b, scale_a_pointer, scale_b_pointer, \
        alpha_pointer, accuracy = arguments + _defaults[len(arguments):]
    _refuse_vectors(a, b)
    common = common_type(a, b)
    wide = _wide(common)
    z = _Product.apply(a, b, alpha_pointer, scale_a_pointer, scale_b_pointer, scale_a, scale_b, alpha, accumulate, batch_invariant, accuracy,
                       common, wide)
    for name, x in (("c", c), ("bias", bias), ("gate", gate)):
        if x is not None:
            broadcast(name, x.shape, (0,) * x.dim(), z.shape, "the result's shape")
    d = row_of(activation).formula(torch, added(z, c, beta, bias))
    if gate is not None:
        d = d * gate.to(wide)
    return d.to(common if out_dtype is None else out_dtype)
