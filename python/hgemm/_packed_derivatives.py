# SPDX-License-Identifier: MIT
"""x W^T with packed weights under torch.func's transforms and forward-mode derivatives: of a product that is linear in x, and of torch's own
operations. backward() has the operators' own gradients, which torch.compile follows as well."""
import torch

from . import _derivatives
from ._activations import activation as row_of


class _Product(torch.autograd.Function):
    """alpha * x W^T or, if it is the adjoint, alpha * x W: computed in the type `half`, with derivatives of every order and mode."""

    @staticmethod
    def forward(x, packed, form, alpha, is_adjoint, half, out_dtype, batch_invariant):
        with torch._C._AutoDispatchBelowAutograd():
            if is_adjoint:
                return torch.ops.hgemm.linear_packed_grad(x, packed, form, half, alpha).to(out_dtype)
            return torch.ops.hgemm.linear_packed(x.to(half), packed, form, alpha=alpha, out_dtype=out_dtype, batch_invariant=batch_invariant)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, packed, ctx.form, ctx.alpha, ctx.is_adjoint, ctx.half, ctx.out_dtype, ctx.batch_invariant = inputs
        ctx.x_dtype = x.dtype
        ctx.save_for_backward(packed)
        ctx.save_for_forward(packed)

    @staticmethod
    def backward(ctx, g):
        packed, = ctx.saved_tensors
        return _Product.apply(g, packed, ctx.form, ctx.alpha, not ctx.is_adjoint, ctx.half, ctx.x_dtype, ctx.batch_invariant), *[None] * 7

    @staticmethod
    def jvp(ctx, of_x, *others):
        packed, = ctx.saved_tensors
        with torch.autograd.forward_ad._set_fwd_grad_enabled(True):  # which torch turns off here, and with it what nested jvp needs
            return _Product.apply(of_x, packed, ctx.form, ctx.alpha, ctx.is_adjoint, ctx.half, ctx.out_dtype, ctx.batch_invariant)

    @staticmethod
    def vmap(info, in_dims, x, packed, *options):
        if in_dims[1] is not None:
            raise NotImplementedError("packed: there is no batching rule for packed weights; hgemm.grouped multiplies by those of experts")
        return _Product.apply(x if in_dims[0] is None else x.movedim(in_dims[0], 0), packed, *options), None if in_dims[0] is None else 0


def composed(x, packed, form, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", out_dtype=None, batch_invariant=False, *scales,
             **named_scales):
    """The operator linear_packed, of what torch differentiates and transforms in every way. Scales of bfloat16 are found."""
    z = _Product.apply(x, packed, tuple(form), alpha, False, x.dtype, torch.float32, batch_invariant)
    d = row_of(activation).formula(torch, _derivatives.added(z, c, beta, bias))
    return (d if gate is None else d * gate.float()).to(out_dtype or x.dtype)
