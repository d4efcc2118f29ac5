# SPDX-License-Identifier: MIT
"""The package's functions of arrays. Each looks at whose arrays it is given, and hands torch's to what is there for them: to an operator, where
torch's dispatcher must see the call, or past that."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _arrays, _c, _grouped, _packed, _scales
from ._annotations import Array, DType, Operand, Options, Scalar, Stream, Unpack
from ._call import asked_type, check_options, compute, given_of, plans, product_shape, scalars_of
from ._packed import PackedWeights
from ._weights import Weights
from ._words import of_linear

_again: Any = None  # makes a call on torch's tensors that was made before


def _torch():
    """What is there for torch's tensors: loaded when the first one is met."""
    global _again
    from . import _torch_calls
    if _again is None:
        _again = _torch_calls.again
    return _torch_calls


def _refuse_unseen(**options):
    """Refuses what no operator has."""
    for name, option in options.items():
        if option is not None:
            raise ValueError(f"{name}: it cannot be given where torch records, transforms or traces the call")


def matmul(a: Array, b: Operand, *, out: Array | None = None, alpha: Scalar = 1.0, beta: Scalar | None = None, c: Operand | None = None,
           bias: Operand | None = None, activation: str | None = None, gate: Operand | None = None, accumulate: str = "float32",
           out_dtype: DType | None = None, scale_a: Scalar | None = None, scale_b: Scalar | None = None, batch_invariant: bool = False,
           kernel: str | None = None, stream: Stream | None = None, accuracy: str = "float32") -> Array:
    """activation(alpha * a @ b + beta * c + bias) * gate, computed in FP32 and rounded once to the result's type.

    a, b        both float16, both bfloat16 or both float32, or one float32 and the other either; shapes broadcast as in torch.matmul.
                Products of float32 are as exact as FP32 arithmetic makes them
    out         where the result goes, of its shape; returned. Without it, a new array of the library that `a` is of
    alpha, beta numbers, or float32 arrays of one element in device memory. beta is 1 by default where there is a c, else 0.
                beta without c: out is read as c
    c           float16, bfloat16 or float32, broadcast to the result's shape; may be `out`. One that out's layout cannot say (a vector, say)
                is first copied into out
    bias        float16, bfloat16 or float32, broadcast to the result: a value for each column (shape n), for each row (shape m, 1), or
                one for all, which is copied to a row
    activation  None, "relu", "gelu" (by erf), "gelu_tanh", "silu"
    gate        float16, bfloat16 or float32, broadcast to the result's shape. One that is the same for all rows or columns is copied
    accumulate  "float32", or "float16": sums are rounded to half after every 8 products, and overflow beyond 65504
    out_dtype   "float16", "bfloat16" or "float32"; by default that of out, else that of a, or float32 if b is
    scale_a, scale_b  of a and b that are bfloat16: powers of two, or what find_scale returned. By default the call finds them,
                for which it reads a and b once more
    batch_invariant  a row of the result has the same bits whatever other rows there are
    accuracy    of float32: "float32"; or what may suffice, "16bits" or "11bits", as if a and b had been rounded to as many significant
                bits, over all of float32's range (11 are those of float16 and of TF32)
    kernel      one of hgemm.kernels() by name, instead of the library's choice
    stream      a stream of torch or cupy, or its address: by default the current one

    Arrays in host memory (numpy, CPU tensors) are copied to the default device and the result back. All others are used where
    they are, on the current stream, without waiting; strides must have one contiguous dimension of each matrix. Nothing is
    copied but what is said above. Raises TypeError and ValueError that name the argument, and hgemm.Error."""
    key = None
    if _again is not None and stream is None and kernel is None:
        key, result = _again(a, b, (c, bias, gate, out, scale_a, scale_b), alpha, beta, activation, accumulate, out_dtype, batch_invariant,
                             accuracy)
        if result is not None:
            return result
    operands: dict[str, Any] = given_of(a=a, b=b, c=c, bias=bias, gate=gate, out=out)
    if any(_arrays.is_torch(array) for array in operands.values()):
        torch = _torch()
        if torch.casts() or torch.must_dispatch([*operands.values(), alpha, beta, scale_a, scale_b]):
            _refuse_unseen(kernel=kernel, stream=stream)
            return torch.dispatched(a, b, out, alpha=alpha, beta=beta, c=c, bias=bias, activation=activation, gate=gate,
                                    accumulate=accumulate, out_dtype=out_dtype, scale_a=scale_a, scale_b=scale_b,
                                    batch_invariant=batch_invariant, accuracy=accuracy)
    check_options(accumulate, activation, accuracy, batch_invariant)
    dtype = asked_type(out, out_dtype)
    scalars = scalars_of(c, alpha, beta, scale_a, scale_b)
    if stream is None and kernel is None and all(_arrays.is_torch(array) and array.is_cuda for array in operands.values()) and all(
            isinstance(value, float) or name.startswith("scale") and _arrays.is_torch(value) for name, value in scalars.items()):
        if scalars["beta"] == 0:
            operands.pop("c", None)
        return torch.compute(operands, scalars, dtype, activation, accumulate, batch_invariant, key, accuracy)
    return compute(operands, scalars, dtype, product_shape, plans(activation, accumulate, batch_invariant, kernel, accuracy), stream)


def linear(x: Array, weight: Operand | PackedWeights, bias: Operand | None = None, *, out: Array | None = None, **options: Unpack[Options]) -> Array:
    """x @ weight.T + bias, with the options of matmul. weight is (out features, in features), as in torch.nn.functional.linear,
    or what hgemm.pack made of such weights."""
    try:
        if isinstance(weight, PackedWeights):
            return _of_packed(x, weight, bias, out=out, **options)
        return matmul(x, _transposed(weight), bias=bias, out=out, **options)
    except (TypeError, ValueError, _c.Error) as error:
        of_linear(error, x, weight)
        raise


def _of_packed(x, w, bias, *, out=None, kernel=None, stream=None, **options):
    if _arrays.is_torch(x):
        torch = _torch()
        given = [array for array in (x, bias, *options.values()) if _arrays.is_torch(array)]
        if _arrays.is_torch(w.data) or not x.is_cuda or torch.must_dispatch(given):
            for name, option in (("out", out), ("kernel", kernel), ("stream", stream)):
                if option is not None:
                    raise ValueError(f"{name}: it cannot be given with packed weights and torch's tensors")
            return torch.linear_packed(x, w, bias, **options)
    return _packed.linear(x, w, bias, out=out, kernel=kernel, stream=stream, **options)


def _transposed(weight):
    shape = getattr(weight, "shape", None)
    if shape is None or isinstance(weight, Weights):
        raise _arrays.no_array("weight", weight)
    if len(shape) not in (1, 2):
        raise ValueError(f"weight: its shape {tuple(shape)} has {len(shape)} dimensions, not 2 or 1")
    return weight.T if len(shape) == 2 else weight


def grouped(a: Array, b: Operand | PackedWeights, group_ends: Operand, *, gather_a: Operand | None = None, scatter_d: Operand | None = None,
            out: Array | None = None, alpha: Scalar = 1.0, beta: Scalar | None = None, c: Operand | None = None, bias: Operand | None = None,
            activation: str | None = None, gate: Operand | None = None, accumulate: str = "float32", out_dtype: DType | None = None,
            scale_a: Scalar | None = None, scale_b: Scalar | None = None, batch_invariant: bool = False, stream: Stream | None = None,
            accuracy: str = "float32") -> Array:
    """activation(alpha * a[i] @ b[g] + beta * c[i] + bias[g]) * gate[i] for each row i of each group g, in one call. The host reads no
    size, so it waits for nothing.

    a           float16, bfloat16 or float32, (rows, k)
    b           of a's type, or one of both is float32, (groups, k, n): the matrix of each group. Or what hgemm.pack made of a weight of each group
    group_ends  int32 or int64, (groups): group g has the rows from group_ends[g - 1] (0 for the first) to group_ends[g] - 1. They must
                not decrease, nor exceed the number of rows. Rows from the last end on are not written
    gather_a    of group_ends' type: row i is a[gather_a[i]], and there are as many rows as it has elements
    scatter_d   of group_ends' type: row i goes to row scatter_d[i] of the result; c and gate are read there, too. No two are the same
    out         (rows, n); with scatter_d of any number of rows. c and gate have its shape
    bias        (groups, n), or (n) for all groups

    All else is as in matmul. Where a bfloat16 operand's scale is not given, it is found first, which reads the whole operand: give that of
    b, which find_scale finds once. There is no gradient. Indices and ends that lead out of an array are the caller's to avoid."""
    if group_ends is None:
        raise TypeError("group_ends: it is None, which is no array")
    given = [x for x in (a, b, group_ends, gather_a, scatter_d, c, bias, gate, out, alpha, beta, scale_a, scale_b) if _arrays.is_torch(x)]
    if given and _torch().must_dispatch(given):
        _refuse_unseen(stream=stream)
        return _torch().grouped(a, b, group_ends, gather_a=gather_a, scatter_d=scatter_d, out=out, alpha=alpha, beta=beta, c=c, bias=bias,
                                activation=activation, gate=gate, accumulate=accumulate, out_dtype=out_dtype, scale_a=scale_a, scale_b=scale_b,
                                batch_invariant=batch_invariant, accuracy=accuracy)
    return _grouped.run(find_scale, a, b, group_ends, gather_a, scatter_d, out, alpha, beta, c, bias, activation, gate, accumulate, out_dtype, scale_a,
                        scale_b, batch_invariant, stream, accuracy)


def find_scale(x: Operand, *, stream: Stream | None = None) -> Any:
    """The scale of a bfloat16 operand, for scale_a or scale_b of matmul: the power of two that brings its largest finite magnitude
    to 2^15 or above, 2^126 at most. For weights, which then need not be read for it in every product.

    Of an array in device memory: one float32 there, as an array of the same library, found on the current stream or on `stream`.
    Of a CPU tensor: a CPU tensor. Of another array in host memory: a float."""
    if _arrays.is_torch(x):
        if stream is None:
            return _torch().find_scale(x)
        if _torch().watched():
            _refuse_unseen(stream=stream)
    if _arrays.is_host("x", x):
        found = _scales.find_on_host(x)
        return found if _arrays.is_torch(x) else float(found)
    return _scales.find_on_device(x, stream)


def pack(weights: Weights | Sequence[Weights], *, device: Any = None) -> PackedWeights:
    """Weights in the form that products take: hgemm.linear(x, pack(weights)).

    weights  hgemm.Weights, as hgemm.formats and hgemm.gguf make them; or a sequence of them that agree in all but numbers: the experts of
             hgemm.grouped
    device   where they are kept: by default, hgemm's default device. A torch.device or its name: in a tensor of torch's there

    Memory is that of codes, scales and zeros, of n rounded up to a multiple of 32 and k to one of 128."""
    return _packed.pack(weights) if device is None else _torch().pack(weights, device)
