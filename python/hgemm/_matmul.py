# SPDX-License-Identifier: MIT
"""matmul and linear."""
from __future__ import annotations

from typing import Any

from . import _arrays, _c, _packed
from ._annotations import Array, DType, Operand, Options, Scalar, Stream, Unpack
from ._call import asked_type, check_options, compute, scalars_of
from ._packed import PackedWeights
from ._plan import Shape, plan_for
from ._weights import Weights
from ._words import renamed

again: Any = None  # hgemm.torch's, once that is loaded: makes a call on its tensors that was made before


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
    if again is not None and stream is None and kernel is None:
        key, result = again(a, b, (c, bias, gate, out, scale_a, scale_b), alpha, beta, activation, accumulate, out_dtype, batch_invariant,
                            accuracy)
        if result is not None:
            return result
    operands: dict[str, Any] = given_of(a=a, b=b, c=c, bias=bias, gate=gate, out=out)
    if any(_arrays.is_torch(array) for array in operands.values()):
        from . import torch as door
        if door.casts() or door.must_dispatch([*operands.values(), alpha, beta, scale_a, scale_b]):
            for name, option in (("kernel", kernel), ("stream", stream)):
                if option is not None:
                    raise ValueError(f"{name}: it cannot be given where torch records, transforms or traces the call")
            return door.dispatched(a, b, out, alpha=alpha, beta=beta, c=c, bias=bias, activation=activation, gate=gate,
                                   accumulate=accumulate, out_dtype=out_dtype, scale_a=scale_a, scale_b=scale_b,
                                   batch_invariant=batch_invariant, accuracy=accuracy)
    check_options(accumulate, activation, accuracy, batch_invariant)
    dtype = asked_type(out, out_dtype)
    scalars = scalars_of(c, alpha, beta, scale_a, scale_b)
    if stream is None and kernel is None and all(_arrays.is_torch(array) and array.is_cuda for array in operands.values()) and all(
            isinstance(value, float) or name.startswith("scale") and _arrays.is_torch(value) for name, value in scalars.items()):
        if scalars["beta"] == 0:
            operands.pop("c", None)
        return door.compute(operands, scalars, dtype, activation, accumulate, batch_invariant, key, accuracy)
    return compute(operands, scalars, dtype, shape_of, plans(activation, accumulate, batch_invariant, kernel, accuracy), stream)


def given_of(**arrays):
    """The arrays that are given, by name. a and b are."""
    given = {name: array for name, array in arrays.items() if array is not None}
    for name in ("a", "b"):
        if name not in given:
            raise TypeError(f"{name}: it is None, which is no array")
    return given


def shape_of(shapes):
    return Shape(shapes["a"], shapes["b"]).d


def plans(activation, accumulate, batch_invariant, kernel=None, accuracy="float32"):
    """The plan of given layouts, by plan_for."""
    _c.kernel_number(kernel)  # refuses what is no kernel's name
    return lambda layouts, dtype, reads_c: plan_for(layouts, dtype, reads_c, accumulate, activation, batch_invariant, kernel, accuracy)


def linear(x: Array, weight: Operand | PackedWeights, bias: Operand | None = None, *, out: Array | None = None, **options: Unpack[Options]) -> Array:
    """x @ weight.T + bias, with the options of matmul. weight is (out features, in features), as in torch.nn.functional.linear,
    or what hgemm.pack made of such weights."""
    try:
        if isinstance(weight, PackedWeights):
            return _packed.linear(x, weight, bias, out=out, **options)
        return matmul(x, transposed(weight), bias=bias, out=out, **options)
    except (TypeError, ValueError, _c.Error) as error:
        in_words_of_linear(error, x, weight)
        raise


def transposed(weight):
    shape = getattr(weight, "shape", None)
    if shape is None or isinstance(weight, Weights):
        raise _arrays.no_array("weight", weight)
    if len(shape) not in (1, 2):
        raise ValueError(f"weight: its shape {tuple(shape)} has {len(shape)} dimensions, not 2 or 1")
    return weight.T if len(shape) == 2 else weight


def in_words_of_linear(error, x, weight):
    """Has an error of matmul's speak of x and weight."""
    shapes = [tuple(getattr(array, "shape", ())) for array in (x, weight)]
    if all(shapes) and shapes[0][-1] != shapes[1][-1] and str(error).startswith("b: it has "):
        error.args = f"weight: it has {shapes[1][-1]} in features, and x has {shapes[0][-1]} (shapes {shapes[1]} and {shapes[0]})",
    renamed(error, a="x", b="weight")
