# SPDX-License-Identifier: MIT
"""grouped for torch: an operator, which what traces a call sees. It has no derivative."""
import torch

from . import _call, _derivatives, _gemm, _grouped, _packed
from ._tensors import check, dtype_of, factors, scale, type_for, written
from ._torch_packed import PackedTensor, on
from ._types import check_type

_library = torch.library.Library("hgemm", "FRAGMENT")
_library.define("grouped(Tensor a, Tensor b, Tensor group_ends, int[]? form=None, Tensor? gather_a=None, Tensor? scatter_d=None, Tensor? base=None, "
                'Tensor? c=None, Tensor? bias=None, Tensor? gate=None, float alpha=1.0, float beta=1.0, str activation="none", '
                'str accumulate="float32", ScalarType? out_dtype=None, bool batch_invariant=False, float scale_a=0.0, float scale_b=0.0, '
                'Tensor? scale_a_pointer=None, Tensor? scale_b_pointer=None, Tensor? alpha_pointer=None, str accuracy="float32") -> Tensor')


def _run(a, b, group_ends, form=None, gather_a=None, scatter_d=None, base=None, c=None, bias=None, gate=None, alpha=1.0, beta=1.0,
         activation="none", accumulate="float32", out_dtype=None, batch_invariant=False, scale_a=0.0, scale_b=0.0, scale_a_pointer=None,
         scale_b_pointer=None, alpha_pointer=None, accuracy="float32"):
    """form: of packed weights, whose bytes b has. base: what rows that are not written have."""
    if form is not None:
        b = PackedTensor(b, tuple(form), None, b.shape[0])
    scales = [number or pointer for number, pointer in ((scale_a, scale_a_pointer), (scale_b, scale_b_pointer))]
    return _grouped.run(_gemm.find_scale, a, b, group_ends, gather_a, scatter_d, None if base is None else base.clone(),
                        alpha if alpha_pointer is None else alpha_pointer, 0.0 if c is None else beta, c, bias, activation, gate, accumulate,
                        out_dtype, *scales, batch_invariant, None, accuracy)


_library.impl("grouped", _run, "CUDA")
_library.impl("grouped", _run, "CPU")


@torch.library.register_fake("hgemm::grouped", lib=_library)
def _(a, b, group_ends, form=None, gather_a=None, scatter_d=None, base=None, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none",
      accumulate="float32", out_dtype=None, *rest, **options):
    shapes = {name: x.shape for name, x in (("a", a), ("b", b), ("group_ends", group_ends), ("gather_a", gather_a), ("scatter_d", scatter_d),
                                            ("out", base), ("c", c), ("bias", bias), ("gate", gate)) if x is not None}
    if form is not None:
        shapes["b"] = (b.shape[0], form[1], form[0])
    for name, x in (("a", a), ("b", b if form is None else a), ("group_ends", group_ends)):
        check_type(name, str(x.dtype)[6:])
    own = a.dtype if form is not None else _derivatives.common_type(a, b)
    return a.new_empty(_grouped.shape_of(shapes), dtype=out_dtype or (own if base is None else base.dtype))


def _backward(ctx, g):
    raise NotImplementedError("hgemm::grouped: it has no gradient")


torch.library.register_autograd("hgemm::grouped", _backward, lib=_library)


def grouped(a, b, group_ends, *, gather_a, scatter_d, out, alpha, beta, c, bias, activation, gate, accumulate, out_dtype, scale_a, scale_b,
            batch_invariant, accuracy):
    """hgemm.grouped of tensors, by the operator."""
    tensors = {"a": a, "group_ends": group_ends, "gather_a": gather_a, "scatter_d": scatter_d, "c": c, "bias": bias, "gate": gate, "out": out}
    given = [x for x in (*tensors.values(), b, alpha, beta, scale_a, scale_b) if isinstance(x, torch.Tensor)]
    if torch.is_grad_enabled() and any(x.requires_grad for x in given):
        raise ValueError("grouped: it has no gradient, and an argument requires one: call it under torch.no_grad()")
    if _derivatives.transformed() and any(map(_derivatives.is_transformed, given)):
        raise NotImplementedError("grouped: it has no derivatives and no batching rule, and an argument is of a transform (vmap, grad, jvp)")
    check(tensors.items(), ("a", "group_ends"))
    _call.check_options(accumulate, activation, accuracy, batch_invariant)
    form = None
    if isinstance(b, _packed.PackedWeights):
        _packed.check_experts(b, {"accumulate": accumulate, "scale_b": scale_b})
        (b, order), form = on(b, a), b.form
        a = a if order is None else a.index_select(-1, order)
    check([("b", b)], ("b",))
    if out is not None:
        out_dtype = type_for(out, out_dtype, ())
        c = out if c is None and beta is not None else c
    alpha, alpha_pointer, beta, c = factors(alpha, beta, c)
    numbers, pointers = zip(scale("scale_a", scale_a), scale("scale_b", scale_b))
    d = torch.ops.hgemm.grouped(a, b, group_ends, form, gather_a, scatter_d, out, c, bias, gate, alpha, beta, activation or "none", accumulate,
                                dtype_of(out_dtype), batch_invariant, *numbers, *pointers, alpha_pointer, accuracy)
    return d if out is None else written(out, d)
