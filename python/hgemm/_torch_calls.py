# SPDX-License-Identifier: MIT
"""hgemm's functions for torch's tensors, by operators, and what hgemm.matmul needs to go past them."""
from __future__ import annotations

import contextlib
import importlib
import sys

import torch

from . import _arrays, _c, _call
from ._annotations import DType, TorchOptions, Unpack
from ._dispatch import casts, must_dispatch, watched
from ._gemm import compute, operator
from ._packed import PackedWeights
from ._prepared import find, given, key_of
from ._tensors import NUMBERS, check, dtype_of, factors, scale, type_for, written
from ._torch_grouped import grouped
from ._torch_packed import linear as linear_packed
from ._torch_packed import pack
from ._words import of_linear

__all__ = ["again", "casts", "compute", "dispatched", "find_scale", "grouped", "linear", "linear_packed", "matmul", "must_dispatch", "pack", "watched"]


def again(a, b, beside, alpha, beta, activation, accumulate, out_dtype, batch_invariant, accuracy):
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
        d = operator(a, b)  # each argument takes time to convert, defaults take less
    else:
        numbers, pointers = zip(scale("scale_a", scale_a), scale("scale_b", scale_b))
        d = operator(a, b, c, bias, gate, alpha, beta, activation or "none", accumulate, out_dtype, batch_invariant, *numbers, *pointers,
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
            return linear_packed(x, weight, bias, **options)
        if not isinstance(weight, torch.Tensor):
            raise _arrays.no_array("weight", weight)
        return matmul(x, weight.mT if weight.dim() > 1 else weight, bias=bias, **options)
    except (TypeError, ValueError, _c.Error) as error:
        of_linear(error, x, weight)
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
