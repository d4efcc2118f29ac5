# SPDX-License-Identifier: MIT
"""Groups of rows, each multiplied by a matrix of its own, as a mixture of experts has them: one call, sizes in device memory."""
import numpy as np

from . import _arrays, _c, _packed
from ._activations import activation as row_of
from ._call import asked_type, check_options, compute, given_of, on_host, scalars_of
from ._plan import Calls, Layout, Operand, check_types, fill, packed, refuse_shared

INDICES = ("group_ends", "gather_a", "scatter_d")


def run(find_scale, a, b, group_ends, gather_a=None, scatter_d=None, out=None, alpha=1.0, beta=None, c=None, bias=None, activation=None, gate=None,
        accumulate="float32", out_dtype=None, scale_a=None, scale_b=None, batch_invariant=False, stream=None, accuracy="float32"):
    """hgemm.grouped, past torch's dispatcher. find_scale: hgemm's, or one of tensors alone."""
    weights, kind = None, None
    if isinstance(b, _packed.PackedWeights):
        weights, kind = b, _arrays.type_of("a", a)
        a, b = _of_packed(a, weights, kind, {"accumulate": accumulate, "scale_b": scale_b})
    operands = given_of(a=a, b=b, group_ends=group_ends, gather_a=gather_a, scatter_d=scatter_d, c=c, bias=bias, gate=gate, out=out)
    check_options(accumulate, activation, accuracy, batch_invariant)
    dtype = asked_type(out, out_dtype)
    scales = {"a": scale_a, "b": scale_b}
    factors = (("a", a), ("b", b))[:1 if weights else 2]
    has_floats = "float32" in [_arrays.type_of(name, array) for name, array in factors]
    for name, array in factors:
        if scales[name] is None and not has_floats and _arrays.type_of(name, array) == "bfloat16":
            scales[name] = find_scale(array) if stream is None else find_scale(array, stream=stream)
    scalars = scalars_of(c, alpha, beta, scales["a"], scales["b"])
    if c is None and out is None and scalars["beta"] != 0.0:
        raise ValueError("beta: there is nothing to multiply: give c or out")

    def plan_of(layouts, dtype, reads_c):
        plan = Groups({name: Layout(*layout) for name, *layout in layouts}, dtype, reads_c, accumulate, activation, batch_invariant,
                      accuracy)
        if weights is not None:
            plan.desc = _packed.tell(plan.desc, weights.form, "a")
            plan.desc.stride_b = _packed.bytes_of(weights.form)
        return plan
    if weights is not None:
        first = {name: array for name, array in operands.items() if name != "b"}
        if all(_arrays.is_host(name, array) for name, array in first.items()):
            return on_host(operands, scalars, dtype, shape_of, plan_of, False)
    return compute(operands, scalars, dtype, shape_of, plan_of, stream, writes_all=False)


def _of_packed(a, weights, kind, options):
    """(a, b) of a product with packed weights: a in their order of columns, and what stands for b."""
    _packed.check_experts(weights, options)
    if kind not in ("float16", "bfloat16"):
        raise TypeError(f"a: its type is {kind}, not float16 or bfloat16")
    a = _packed.gathered(a, weights.order, "a")
    if isinstance(a, np.ndarray):
        a = np.ascontiguousarray(a)
    elif _arrays.is_torch(a):
        a = a.contiguous()
    return a, weights.matrix(kind, experts=True)


def shape_of(shapes):
    """The result's shape; raises where the arrays' do not belong together."""
    for name, dims in (("a", 2), ("b", 3), *((name, 1) for name in INDICES)):
        if name in shapes and len(shapes[name]) != dims:
            raise ValueError(f"{name}: its shape {tuple(shapes[name])} has {len(shapes[name])} dimensions, not {dims}")
    (rows, k), (groups, k_b, n) = shapes["a"], shapes["b"]
    if k_b != k:
        raise ValueError(f"b: its matrices have {k_b} rows, and a has {k} columns")
    if shapes["group_ends"] != (groups,):
        raise ValueError(f"group_ends: it has {shapes['group_ends'][0]} elements, and b has {groups} matrices")
    m = shapes["gather_a"][0] if "gather_a" in shapes else rows
    if "scatter_d" in shapes and shapes["scatter_d"] != (m,):
        raise ValueError(f"scatter_d: it has {shapes['scatter_d'][0]} elements for {m} rows")
    given = shapes.get("out", (m, n))
    d = (given[0], n) if "scatter_d" in shapes and len(given) == 2 else (m, n)
    for name in ("out", "c", "gate"):
        if name in shapes and shapes[name] != d:
            raise ValueError(f"{name}: its shape is {tuple(shapes[name])}, the result's is {d}")
    if "bias" in shapes and shapes["bias"] not in ((n,), (groups, n)):
        raise ValueError(f"bias: its shape is {tuple(shapes['bias'])}, not {(groups, n)} or {(n,)}")
    return d


class Groups(Calls):
    """A product of groups."""

    __slots__ = ()

    def __init__(self, layouts, dtype, reads_c, accumulate, activation, batch_invariant, accuracy="float32"):
        if not _c.has_epilogues():
            raise _c.NotSupportedError(f"grouped: libhgemm {_c.version_text()} does not have it; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")
        shapes = {name: tuple(layout.shape) for name, layout in layouts.items()}
        self.shape, self.copies_c = shape_of(shapes), False
        index = self._index_type({name: layouts[name] for name in INDICES if name in layouts})
        matrices = {name: layout for name, layout in layouts.items() if name not in INDICES}
        check_types(matrices)
        out = matrices.pop("out", None) or Layout(dtype, self.shape, packed(self.shape))
        if "out" in layouts:
            refuse_shared(out.shape, out.strides)
        operands = {name: Operand(layout, layout.strides) for name, layout in matrices.items()}
        operands["d"] = Operand(out, out.strides)
        if reads_c and "c" not in operands:
            operands["c"] = operands["d"]
        if "bias" in operands:
            operands["bias"].strides = [*((0,) if len(shapes["bias"]) == 1 else ()), *operands["bias"].strides]
        m = shapes["gather_a"][0] if "gather_a" in shapes else shapes["a"][0]
        desc = self.desc = _c.new_desc()
        desc.accumulate, desc.activation = _c.ACCUMULATE[accumulate], row_of(activation).value
        desc.flags, desc.accuracy = _c.FLAG_BATCH_INVARIANT if batch_invariant else 0, _c.ACCURACY[accuracy]
        fill(desc, operands, m, shapes["b"][2], shapes["b"][1], True, shapes["a"][0], self.shape[0])
        desc.batch, desc.batch_mode, desc.index_type = shapes["b"][0], _c.BATCH_GROUPED, index
        desc.stride_b = operands["b"].strides[0]
        if "bias" in operands:
            desc.stride_bias = operands["bias"].strides[0]
        sources = {name: name if name != "c" or "c" in layouts else "d" for name in operands}
        self.calls = [[(name, sources.get(name, name), 0) for name in (*operands, *(name for name in INDICES if name in layouts))]]

    @staticmethod
    def _index_type(indices):
        check_types(indices)
        for name, layout in indices.items():
            if layout.dtype != indices["group_ends"].dtype:
                raise TypeError(f"{name}: its type is {layout.dtype}, and group_ends' is {indices['group_ends'].dtype}")
            if layout.shape[0] > 1 and layout.strides != (1,):
                raise ValueError(f"{name}: its elements are {layout.strides[0]} apart; they must be contiguous")
        return _c.INDEX[indices["group_ends"].dtype]
