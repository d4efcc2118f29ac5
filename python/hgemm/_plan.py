# SPDX-License-Identifier: MIT
"""From shapes and strides to descriptors: a plan, which serves every call with the same shapes and strides."""
from __future__ import annotations

from collections import namedtuple
from ctypes import byref
from itertools import product

import numpy as np

from . import _c
from ._activations import activation as row_of
from ._types import check_type

Layout = namedtuple("Layout", "dtype shape strides")  # strides count elements

# ---- shapes ------------------------------------------------------------------------------------------------------


def broadcast(name, shape, strides, target, what):
    """Strides of an array that is broadcast to `target`: 0 along the dimensions that it lacks."""
    extra = len(target) - len(shape)
    if extra < 0 or any(size not in (1, want) for size, want in zip(shape, target[extra:])):
        raise ValueError(f"{name}: its shape {tuple(shape)} does not broadcast to {what} {tuple(target)}")
    return (0,) * extra + tuple(0 if size == 1 and want != 1 else stride for size, want, stride in zip(shape, target[extra:], strides))


def joint_batch(a, b):
    if not b or a == b:
        return a
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    joint = list(longer)
    for i, size in enumerate(shorter, len(longer) - len(shorter)):
        if joint[i] == 1:
            joint[i] = size
        elif size != 1 and size != joint[i]:
            raise ValueError(f"b: its batch {tuple(b)} does not broadcast with a's, {tuple(a)}")
    return tuple(joint)


class Shape:
    """The shapes of a product, as torch.matmul has them: vectors are a row (a) or a column (b); what comes before the last two
    dimensions broadcasts. `d` is the result's."""

    __slots__ = ("batch", "m", "n", "k", "vector_a", "vector_b", "d")

    def __init__(self, a, b):
        for name, shape in (("a", a), ("b", b)):
            if not shape:
                raise ValueError(f"{name}: it has no dimension; a product needs a vector at least")
        self.vector_a, self.vector_b = len(a) == 1, len(b) == 1
        self.m, self.k = (1, a[0]) if self.vector_a else a[-2:]
        k, self.n = (b[0], 1) if self.vector_b else b[-2:]
        if k != self.k:
            raise ValueError(f"b: it has {k} rows, and a has {self.k} columns (shapes {tuple(a)} and {tuple(b)})")
        self.batch = joint_batch(tuple(a[:-2]), tuple(b[:-2]))
        self.d = self.batch + (() if self.vector_a else (self.m,)) + (() if self.vector_b else (self.n,))

    def matrix_strides(self, strides):
        """Strides of an array of the shape `d`, with those of the rows and columns that vectors leave out."""
        strides = tuple(strides)
        if self.vector_b:
            strides += (1,)
        if self.vector_a:
            strides = strides[:-1] + (0,) + strides[-1:]
        return strides


# ---- storage -----------------------------------------------------------------------------------------------------


def leading(rows, columns, row_stride, column_stride, transposed):
    """The leading dimension by which a matrix with these strides is stored row by row (transposed: column by column), or None."""
    if transposed:
        rows, columns, row_stride, column_stride = columns, rows, column_stride, row_stride
    if columns > 1 and column_stride != 1:
        return None
    width = max(columns, 1)
    if rows <= 1:
        return width
    return row_stride if row_stride >= width else None


def refuse(name, rows, columns, strides, why="contiguous rows or columns, at least as far apart as they are long"):
    return ValueError(f"{name}: a {rows}x{columns} matrix with the strides {tuple(strides)} (in elements) has no leading dimension: it "
                      f"needs {why}; pass a contiguous copy")


class Operand:
    """A matrix and its batch. strides: one for each dimension of the batch, then rows', columns'."""

    __slots__ = ("dtype", "strides")

    def __init__(self, layout, strides):
        self.dtype, self.strides = layout.dtype, list(strides)


def merge_batch(batch, operands):
    """Joins dimensions of the batch that every operand walks with one stride. Changes the operands; returns the sizes left."""
    kept = [i for i, size in enumerate(batch) if size != 1]
    for op in operands:
        op.strides = [op.strides[i] for i in kept] + op.strides[-2:]
    sizes = [batch[i] for i in kept]
    i = len(sizes) - 1
    while i > 0:
        if all(op.strides[i - 1] == op.strides[i] * sizes[i] for op in operands):
            sizes[i - 1] *= sizes.pop(i)
            for op in operands:
                del op.strides[i - 1]
        i -= 1
    return sizes


def fold_into_rows(sizes, m, n, k, operands, by_column):
    """A batch that shares b (and what else has a row's length) is more rows of one product, where rows are evenly spaced."""
    b = operands["b"]
    rows = {name: op for name, op in operands.items() if name != "b" and not (name == "bias" and by_column)}
    while sizes and b.strides[-3] == 0 and ("bias" not in operands or (by_column and operands["bias"].strides[-3] == 0)):
        size = sizes[-1]
        apart = {name: op.strides[-3] if m == 1 else op.strides[-2] for name, op in rows.items()}
        spaced = all(op.strides[-3] == m * apart[name] or m == 1 for name, op in rows.items())
        # What one matrix of a batch says, more rows may not: those of a c or gate that is the same for the whole batch.
        said = all(any(leading(m * size, k if name == "a" else n, apart[name], op.strides[-1], transposed) is not None
                       for transposed in ((False, True) if name == "a" else (False,))) for name, op in rows.items())
        if not spaced or not said:
            break
        for name, op in rows.items():
            op.strides[-3:-1] = [apart[name]]
        for name, op in operands.items():
            if name not in rows:
                del op.strides[-3]
        m *= size
        sizes.pop()
    return m


# ---- plans -------------------------------------------------------------------------------------------------------


def fill(desc, operands, m, n, k, by_column, rows_a=None, rows_d=None):
    """Layouts, types and leading dimensions of the matrices. rows_a, rows_d: those that a and d are stored with, if not m."""
    rows_a, rows_d = m if rows_a is None else rows_a, m if rows_d is None else rows_d
    same = [name for name in ("d", "c", "gate") if name in operands]  # of one layout
    orders = [{name: leading(rows_d, n, *operands[name].strides[-2:], column_major) for name in same} for column_major in (False, True)]
    of_d = [lds for lds in orders if lds["d"]]
    if not of_d:
        raise refuse("out", rows_d, n, operands["d"].strides[-2:])
    lds = next((lds for lds in of_d if all(lds.values())), None)
    if lds is None:
        name = next(name for name in same if not of_d[0][name])
        raise refuse(name, rows_d, n, operands[name].strides[-2:], "the layout of out")
    column_major, desc.ldd = lds is orders[1], lds["d"]
    desc.layout = _c.COL_MAJOR if column_major else _c.ROW_MAJOR
    desc.m, desc.n, desc.k = m, n, k
    for name, (rows, columns) in (("a", (rows_a, k)), ("b", (k, n))):
        strides = operands[name].strides[-2:]
        for transposed in (column_major, not column_major):
            ld = leading(rows, columns, *strides, transposed)
            if ld is not None:
                break
        else:
            raise refuse(name, rows, columns, strides)
        setattr(desc, "op_" + name, _c.OP_T if transposed != column_major else _c.OP_N)
        setattr(desc, "ld" + name, ld)
        setattr(desc, "type_" + name, _c.TYPE[operands[name].dtype])
    if "c" in operands:
        desc.ldc = lds["c"]
        desc.type_c = _c.TYPE[operands["c"].dtype]
    else:
        desc.ldc = desc.ldd
        desc.type_c = _c.TYPE[operands["d"].dtype]
    desc.type_d = _c.TYPE[operands["d"].dtype]
    if "gate" in operands:
        desc.ldgate = lds["gate"]
        desc.type_gate = _c.TYPE[operands["gate"].dtype]
    if "bias" in operands:
        strides = operands["bias"].strides[-2:]
        along, count = (strides[1], n) if by_column else (strides[0], m)
        if count > 1 and along != 1:
            raise ValueError(f"bias: its elements are {along} apart; they must be contiguous")
        desc.bias_mode = _c.BIAS_PER_COLUMN if by_column else _c.BIAS_PER_ROW
        desc.type_bias = _c.TYPE[operands["bias"].dtype]


def full_strides(name, layout, shape):
    """Strides over the batch, rows and columns of the product."""
    if name == "a":
        strides = (0, layout.strides[0]) if shape.vector_a else layout.strides
        return broadcast("a", layout.shape[:-2], strides[:-2], shape.batch, "the batch") + tuple(strides[-2:])
    if name == "b":
        strides = (layout.strides[0], 1) if shape.vector_b else layout.strides
        return broadcast("b", layout.shape[:-2], strides[:-2], shape.batch, "the batch") + tuple(strides[-2:])
    return shape.matrix_strides(broadcast(name, layout.shape, layout.strides, shape.d, "the result's shape"))


def bias_by_column(layout, strides, shape):
    if shape.m <= 1 or strides[-2] == 0:
        return True
    if shape.n <= 1 or strides[-1] == 0:
        return False
    raise ValueError(f"bias: of the shape {layout.shape} it has a value for each element; a bias has one for each column or row: use c")


def spread_shape(name, layout, shape):
    """The shape that a bias or a gate has to be copied to because the library has no stride of 0 for it: a bias of one value for all
    columns, a gate of one row, column or value. None where it can be read where it is."""
    strides = full_strides(name, layout, shape)
    rows, columns = shape.m > 1 and strides[-2] == 0, shape.n > 1 and strides[-1] == 0
    if not (columns and bias_by_column(layout, strides, shape) if name == "bias" else rows or columns):
        return None
    whole = shape.d[len(shape.batch):] if name == "gate" else shape.d[-1:]
    apart = len(layout.shape) - len(whole)
    return tuple(size if stride else 1 for size, stride in zip(layout.shape[:max(apart, 0)], layout.strides)) + tuple(whole)


def once(layout):
    """The key by which an array is met without the dimensions that repeat it."""
    return tuple(slice(0, 1) if stride == 0 and size > 1 else slice(None) for size, stride in zip(layout.shape, layout.strides))


def says(c, d, shape):
    """Whether c can be read where it is: some layout has a leading dimension for it and for the result."""
    return any(leading(shape.m, shape.n, *c.strides[-2:], t) is not None and leading(shape.m, shape.n, *d.strides[-2:], t) is not None
               for t in (False, True)) and (c.dtype == "float16" or _c.has_epilogues())


def packed(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def share_memory(array):
    """Whether elements of numpy's array lie where others of it do. It looks at no element."""
    while array.size and array.ndim:  # what differs first is the index along the first dimension, or it is one
        if np.shares_memory(array[:1], array[1:]):
            return True
        array = array[0]
    return False


def refuse_shared(shape, strides):
    """Refuses an `out` of which elements share memory. Strides count elements."""
    if share_memory(np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), shape, strides)):
        raise shared()


def shared():
    return ValueError("out: some of its elements share memory")


def lines_of(name, shape, strides):
    """(lines, width, distance of lines) by which every element of an array is met, in whatever order."""
    dims = sorted(((stride, size) for size, stride in zip(shape, strides) if size > 1 and stride != 0), reverse=True)
    if 0 in shape:
        return 0, 0, 0
    width = dims.pop()[1] if dims and dims[-1][0] == 1 else 1
    if not dims:
        return 1, width, width
    apart, lines = dims.pop()
    while dims and dims[-1][0] == apart * lines:
        lines *= dims.pop()[1]
    if dims or apart < width:
        raise ValueError(f"{name}: an array of the shape {tuple(shape)} with the strides {tuple(strides)} (in elements) is not evenly "
                         "spaced lines of contiguous elements; pass a contiguous copy")
    return lines, width, apart


class Calls:
    """What runs for arrays of given layouts.

    shape     the result's
    copies_c  c has to be copied into the result first, and is then read there
    calls     for each call of the library [(field of the descriptor, array, bytes from the array's begin)]"""

    __slots__ = ("shape", "copies_c", "desc", "calls")

    def run(self, handle, pointers, scalars):
        """pointers: of a, b, d, and of what else the layouts had. scalars: by the field of the descriptor, such as alpha or
        scale_b_pointer."""
        desc = _c.Desc.from_buffer_copy(self.desc)
        for field, value in scalars.items():
            setattr(desc, field, value)
        for call in self.calls:
            for field, source, offset in call:
                setattr(desc, field, pointers[source] + offset)
            handle.run(byref(desc))


def check_types(layouts):
    for name, layout in layouts.items():
        check_type(name, layout.dtype)
    if not _c.has_bfloat16() and any(layout.dtype == "bfloat16" for layout in layouts.values()):
        raise _c.NotSupportedError(f"bfloat16: this libhgemm {_c.version_text()} does not have it", "HGEMM_STATUS_NOT_SUPPORTED")


class Plan(Calls):
    """A product, or a batch of them."""

    __slots__ = ()

    def __init__(self, layouts, dtype, options):
        """layouts: of a and b, and where they are given and read of c, bias, gate and out. beta that is not 0 without c reads out."""
        shape = Shape(layouts["a"].shape, layouts["b"].shape)
        self.shape = shape.d
        if "out" in layouts and layouts["out"].shape != shape.d:
            raise ValueError(f"out: its shape is {tuple(layouts['out'].shape)}, the result's is {shape.d}")
        if options["reads_c"] and "c" not in layouts and "out" not in layouts:
            raise ValueError("beta: there is nothing to multiply: give c or out")
        check_types(layouts)
        out = layouts.get("out") or Layout(dtype, shape.d, packed(shape.d))
        operands = {name: Operand(layouts[name], full_strides(name, layouts[name], shape)) for name in layouts if name != "out"}
        d = operands["d"] = Operand(out, shape.matrix_strides(out.strides))
        if "out" in layouts:
            refuse_shared(out.shape, out.strides)
        sources = {name: name for name in operands}
        self.copies_c = False
        if options["reads_c"]:
            self.copies_c = "c" in operands and not says(operands["c"], d, shape)
            if self.copies_c or "c" not in operands:
                operands["c"], sources["c"] = Operand(out, d.strides), "d"
        by_column = "bias" not in operands or bias_by_column(layouts["bias"], operands["bias"].strides, shape)

        sizes = merge_batch(shape.batch, list(operands.values()))
        m = fold_into_rows(sizes, shape.m, shape.n, shape.k, operands, by_column) if shape.m else 0
        desc = self.desc = _c.new_desc()
        desc.accumulate = _c.ACCUMULATE[options["accumulate"]]
        desc.accuracy = _c.ACCURACY[options["accuracy"]]
        desc.kernel = _c.kernel_number(options["kernel"])
        desc.activation = row_of(options["activation"]).value
        desc.flags = _c.FLAG_BATCH_INVARIANT if options["batch_invariant"] else 0
        fill(desc, operands, m, shape.n, shape.k, by_column)
        self._split(sizes, operands, sources)
        if desc.size == _c.DESC_SIZE_0_1:
            refuse_epilogues(desc, operands)

    def _split(self, sizes, operands, sources):
        """One call, unless several dimensions of the batch could not be joined: the longest is then the batch of each call."""
        inner = max(range(len(sizes)), key=sizes.__getitem__) if sizes else None
        self.desc.batch = sizes[inner] if sizes else 1
        for name, op in operands.items():
            setattr(self.desc, "stride_" + name, op.strides[inner] if sizes else 0)
        outer = [i for i in range(len(sizes)) if i != inner]
        self.calls = [[(name, sources[name], sum(op.strides[i] * at for i, at in zip(outer, index)) * (4 if op.dtype == "float32" else 2))
                       for name, op in operands.items()]
                      for index in product(*(range(sizes[i]) for i in outer))]


def new_plan(layouts, dtype, reads_c, accumulate, activation, batch_invariant, kernel=None, accuracy="float32", form=None, tell=None):
    """A plan for these layouts: ((name, dtype, shape, strides), ...). Of packed weights: their form, and what makes of a descriptor one that
    tells of them."""
    plan = Plan({name: Layout(*layout) for name, *layout in layouts}, dtype,
                {"reads_c": reads_c, "accumulate": accumulate, "activation": activation, "batch_invariant": batch_invariant,
                 "kernel": kernel, "accuracy": accuracy})
    if form is not None:
        plan.desc = tell(plan.desc, form)
    return plan


_plans: dict[tuple, Plan] = {}  # of arrays in host memory or not torch's, and of calls that name a kernel or a stream: _prepared keeps all others


def plan_for(*asked, **more):
    """The same, made once."""
    key = asked, more.get("form")
    plan = _plans.get(key)
    if plan is None:
        plan = new_plan(*asked, **more)
        if len(_plans) >= 4096:
            _plans.clear()
        _plans[key] = plan
    return plan


def refuse_epilogues(desc, operands):
    """A library of before 0.2 ignores what its descriptor lacks: say so instead."""
    said = [name for name, asked in (
        ("a: float32", desc.type_a), ("bias", "bias" in operands), ("gate", "gate" in operands), ("activation", desc.activation), ("batch_invariant", desc.flags),
        ("out_dtype: float32", desc.type_d), ("c: float32", desc.type_c)) if asked]
    if said:
        raise _c.NotSupportedError(f"{said[0]}: libhgemm {_c.version_text()} does not have it; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")
