# SPDX-License-Identifier: MIT
"""matmul and linear: from arrays to calls of hgemm_run_desc."""
import numbers
from ctypes import byref

import numpy as np

from . import _arrays, _c, _device

DTYPES = {"float16": "float16", "float32": "float32", "torch.float16": "float16", "torch.float32": "float32"}


def dtype_name(argument, value):
    """The name of a type of numpy's or torch's, or of a string."""
    text = str(value)
    if text not in DTYPES:
        try:
            text = np.dtype(value).name
        except TypeError:
            pass
    if text not in DTYPES:
        raise TypeError(f"{argument}: {value!r} is neither float16 nor float32")
    return DTYPES[text]


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

    __slots__ = ("view", "strides", "offset")

    def __init__(self, view, strides):
        self.view, self.strides, self.offset = view, list(strides), 0


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


def fold_into_rows(sizes, m, n, operands, by_column):
    """A batch that shares b (and what else has a row's length) is more rows of one product, where rows are evenly spaced."""
    b = operands["b"]
    rows = [op for name, op in operands.items() if name != "b" and not (name == "bias" and by_column)]
    while sizes and b.strides[-3] == 0 and ("bias" not in operands or (by_column and operands["bias"].strides[-3] == 0)):
        size = sizes[-1]
        spaced = all(op.strides[-3] == m * op.strides[-2] or m == 1 for op in rows)
        d = operands["d"].strides
        if not spaced or leading(m * size, n, d[-3] if m == 1 else d[-2], d[-1], False) is None:
            break
        for op in rows:
            op.strides[-3:-1] = [op.strides[-3] if m == 1 else op.strides[-2]]
        for op in operands.values():
            if op not in rows:
                del op.strides[-3]
        m *= size
        sizes.pop()
    return m


# ---- one call ----------------------------------------------------------------------------------------------------


def fill(desc, operands, shape_m, n, k, by_column):
    """Layouts, leading dimensions and pointers of one call; batches are filled in by the caller."""
    m = shape_m
    d = operands["d"].strides
    for column_major in (False, True):
        desc.ldd = leading(m, n, d[-2], d[-1], column_major) or 0
        same = [name for name in ("c", "gate") if name in operands]
        lds = {name: leading(m, n, *operands[name].strides[-2:], column_major) for name in same}
        if desc.ldd and all(lds.values()):
            break
    else:
        if leading(m, n, d[-2], d[-1], False) is None and leading(m, n, d[-2], d[-1], True) is None:
            raise refuse("out", m, n, d[-2:])
        name = next(name for name in same if not lds[name])
        raise refuse(name, m, n, operands[name].strides[-2:], "the layout of out")
    desc.layout = _c.COL_MAJOR if column_major else _c.ROW_MAJOR
    desc.m, desc.n, desc.k = m, n, k
    for name, (rows, columns) in (("a", (m, k)), ("b", (k, n))):
        strides = operands[name].strides[-2:]
        for transposed in (column_major, not column_major):
            ld = leading(rows, columns, *strides, transposed)
            if ld is not None:
                break
        else:
            raise refuse(name, rows, columns, strides)
        setattr(desc, "op_" + name, _c.OP_T if transposed != column_major else _c.OP_N)
        setattr(desc, "ld" + name, ld)
    if "c" in operands:
        desc.ldc = lds["c"]
        desc.type_c = _c.TYPE[operands["c"].view.dtype]
    else:
        desc.ldc = desc.ldd
        desc.type_c = _c.TYPE[operands["d"].view.dtype]
    desc.type_d = _c.TYPE[operands["d"].view.dtype]
    if "gate" in operands:
        desc.ldgate = lds["gate"]
        desc.type_gate = _c.TYPE[operands["gate"].view.dtype]
    if "bias" in operands:
        strides = operands["bias"].strides[-2:]
        along, count = (strides[1], n) if by_column else (strides[0], m)
        if count > 1 and along != 1:
            raise ValueError(f"bias: its elements are {along} apart; they must be contiguous")
        desc.bias_mode = _c.BIAS_PER_COLUMN if by_column else _c.BIAS_PER_ROW
        desc.type_bias = _c.TYPE[operands["bias"].view.dtype]


def calls(desc, sizes, operands):
    """Fills in the batch and yields once for each call that the sizes need: one, unless several dimensions could not be joined."""
    inner = max(range(len(sizes)), key=sizes.__getitem__) if sizes else None
    desc.batch = sizes[inner] if sizes else 1
    for name, op in operands.items():
        setattr(desc, "stride_" + name, op.strides[inner] if sizes else 0)
    outer = [i for i in range(len(sizes)) if i != inner]
    for index in np.ndindex(*(sizes[i] for i in outer)):
        for name, op in operands.items():
            offset = sum(op.strides[i] * at for i, at in zip(outer, index))
            setattr(desc, name, op.view.pointer + offset * (4 if op.view.dtype == "float32" else 2))
        yield


def run(handle, desc):
    handle.call(_c.lib.hgemm_run_desc, byref(desc))


# ---- the public calls --------------------------------------------------------------------------------------------


def scalar(name, value):
    """(number, None), or (1, array) for one that is in device memory."""
    if isinstance(value, numbers.Number):
        return float(value), None
    if _arrays.is_host(name, value) and int(np.prod(value.shape)) == 1:
        return float(value.reshape(())), None
    return 1.0, value


def matmul(a, b, *, out=None, alpha=1.0, beta=None, c=None, bias=None, activation=None, gate=None, accumulate="float32",
           out_dtype=None, batch_invariant=False, kernel=None, stream=None):
    """activation(alpha * a @ b + beta * c + bias) * gate, computed in FP32 and rounded once to the result's type.

    a, b        float16; shapes broadcast as in torch.matmul
    out         where the result goes, of its shape; returned. Without it, a new array of the library that `a` is of
    alpha, beta numbers, or float32 arrays of one element in device memory. beta is 1 by default where there is a c, else 0.
                beta without c: out is read as c
    c           float16 or float32, broadcast to the result's shape; may be `out`. One that out's layout cannot say (a vector, say)
                is first copied into out
    bias        float16 or float32, broadcast to the result: a value for each column (shape n) or each row (shape m, 1)
    activation  None, "relu", "gelu" (by erf), "gelu_tanh", "silu"
    gate        float16 or float32, broadcast over the batch only
    accumulate  "float32", or "float16": sums are rounded to half after every 8 products, and overflow beyond 65504
    out_dtype   "float16" (default; else that of out), "float32"
    batch_invariant  a row of the result has the same bits whatever other rows there are
    kernel      one of hgemm.kernels() by name, instead of the library's choice
    stream      a stream of torch or cupy, or its address: by default the current one

    Arrays in host memory (numpy, CPU tensors) are copied to the default device and the result back. All others are used where
    they are, on the current stream, without waiting; strides must have one contiguous dimension of each matrix. Nothing is
    copied but what is said above. Raises TypeError and ValueError that name the argument, and hgemm.Error."""
    operands = {"a": a, "b": b, "c": c, "bias": bias, "gate": gate, "out": out}
    operands = {name: array for name, array in operands.items() if array is not None}
    if any(_arrays.is_torch(array) for array in operands.values()):
        from . import torch as door
        if door.must_dispatch(operands.values()):
            if out is not None:
                raise ValueError("out: it cannot be given where torch records or traces the call; use the result")
            return door.matmul(a, b, alpha=alpha, beta=beta, c=c, bias=bias, activation=activation, gate=gate,
                               accumulate=accumulate, out_dtype=out_dtype, batch_invariant=batch_invariant)
    if accumulate not in _c.ACCUMULATE:
        raise ValueError(f'accumulate: {accumulate!r} is neither "float32" nor "float16"')
    if activation not in _c.ACTIVATION:
        raise ValueError(f"activation: {activation!r} is none of {', '.join(repr(name) for name in _c.ACTIVATION)}")
    options = {"activation": activation, "accumulate": accumulate, "batch_invariant": batch_invariant, "kernel": kernel}
    if out is None:
        dtype = dtype_name("out_dtype", out_dtype or "float16")
    else:
        dtype = dtype_name("out", getattr(out, "dtype", None) or np.dtype(out.__cuda_array_interface__["typestr"]))
        if out_dtype is not None and dtype_name("out_dtype", out_dtype) != dtype:
            raise TypeError(f"out_dtype: {out_dtype} is not the type of out, {dtype}")
    alpha, alpha_array = scalar("alpha", alpha)
    if beta is None:
        beta = 0.0 if c is None else 1.0
    beta, beta_array = scalar("beta", beta)
    hosts = {name: _arrays.is_host(name, array) for name, array in operands.items()}
    if all(hosts.values()):
        if alpha_array is not None or beta_array is not None:
            raise TypeError(f"{'alpha' if alpha_array is not None else 'beta'}: it is in device memory, and the matrices are not")
        return _host(operands, alpha, beta, dtype, options)
    if any(hosts.values()):
        first, other = (next(name for name in hosts if hosts[name] == on_host) for on_host in (True, False))
        raise ValueError(f"{first}: it is in host memory, and {other} is in a device's")
    return _on_device(operands, (alpha, alpha_array), (beta, beta_array), dtype, options, stream)


def linear(x, weight, bias=None, **options):
    """x @ weight.T + bias, with the options of matmul. weight is (out features, in features), as in torch.nn.functional.linear."""
    if len(weight.shape) == 2:
        weight = weight.T
    elif len(weight.shape) != 1:
        raise ValueError(f"weight: its shape {tuple(weight.shape)} has {len(weight.shape)} dimensions, not 2 or 1")
    return matmul(x, weight, bias=bias, **options)


def compute(operands, alpha, beta, dtype, activation, accumulate, batch_invariant):
    """matmul of torch's tensors, checked by whoever calls: on the device where they are, or copied to the default one."""
    operands = {name: tensor for name, tensor in operands.items() if tensor is not None}
    options = {"activation": activation, "accumulate": accumulate, "batch_invariant": batch_invariant, "kernel": None}
    dtype = dtype_name("out_dtype", dtype or "float16")
    if operands["a"].device.type == "cpu":
        return _host(operands, alpha, beta, dtype, options)
    return _on_device(operands, (alpha, None), (beta, None), dtype, options, None)


def _host(operands, alpha, beta, dtype, options):
    """Copies the operands to the default device, and the result back to `out` or to a new array of a's library."""
    handle = _device.handle_for(None)
    out = operands.get("out")
    arrays = {name: _arrays.to_host(name, array) for name, array in operands.items()}
    shape = Shape(arrays["a"].shape, arrays["b"].shape)
    on_device = {name: _device.upload(array, handle) for name, array in arrays.items() if name in ("a", "b", "bias", "gate")}
    for name in ("c", "gate"):  # on the device they have the result's layout
        if name in arrays:
            broadcast(name, arrays[name].shape, (0,) * arrays[name].ndim, shape.d, "the result's shape")
            on_device[name] = _device.upload(np.broadcast_to(arrays[name], shape.d), handle)
    if out is not None:
        on_device["out"] = _device.DeviceArray.empty(shape.d, dtype, handle)
        if arrays["out"].shape != shape.d:
            raise ValueError(f"out: its shape is {arrays['out'].shape}, the result's is {shape.d}")
        if not arrays["out"].flags.writeable:
            raise ValueError("out: it is read-only")
        if beta and "c" not in arrays:
            on_device["out"].copy_from(arrays["out"])
    result = _on_device(on_device, (alpha, None), (beta, None), dtype, options, None).numpy()
    if out is not None:
        arrays["out"][...] = result
        return out
    if _arrays.is_torch(operands["a"]):
        import torch
        return torch.from_numpy(result)
    return result


def _on_device(arrays, alpha, beta, dtype, options, stream):
    """The product of arrays in one device's memory."""
    (alpha, alpha_array), (beta, beta_array) = alpha, beta
    arrays = dict(arrays)
    if alpha_array is not None:
        arrays["alpha"] = alpha_array
    if beta_array is not None:
        arrays["beta"] = beta_array
    stream = _arrays.stream_for(arrays.values(), stream)
    views = {name: _arrays.view_of(name, array, stream) for name, array in arrays.items()}
    places = {}
    for name, view in views.items():
        if view.place is not None:
            places.setdefault(view.place, name)
    if len(places) > 1:
        (one, first), (other, second) = list(places.items())[:2]
        raise ValueError(f"{first}: it is on {_said(one)}, and {second} is on {_said(other)}")
    place = next(iter(places), None)
    for name, view in views.items():
        wanted = ("float32",) if name in ("alpha", "beta") else ("float16",) if name in ("a", "b") else ("float16", "float32")
        if view.dtype not in wanted:
            raise TypeError(f"{name}: its type is {view.dtype}, not {' or '.join(wanted)}")
    for name in ("alpha", "beta"):
        if name in views and int(np.prod(views[name].shape)) != 1:
            raise ValueError(f"{name}: its shape is {views[name].shape}; it must have one element")

    shape = Shape(views["a"].shape, views["b"].shape)
    stream, others = _arrays.streams_of(list(views.values()), stream)
    handle = place if isinstance(place, _device.Handle) else _device.handle_for(place, stream)
    for other in others:
        _device.synchronize_stream(place, other)

    reads_c = "c" in views and (beta != 0 or "beta" in views)
    if "out" in views:
        if views["out"].shape != shape.d:
            raise ValueError(f"out: its shape is {views['out'].shape}, the result's is {shape.d}")
        result = arrays["out"]
    else:
        if (beta or "beta" in views) and not reads_c:
            raise ValueError("beta: there is nothing to multiply: give c or out")
        result = views["a"].library.empty(shape.d, dtype, views["a"], handle)
        views["out"] = _arrays.view_of("out", result, stream)
    d = views["out"]
    full = {name: Operand(views[name], _full_strides(name, views[name], shape)) for name in views if name not in ("out", "alpha", "beta", "c")}
    full["d"] = Operand(d, shape.matrix_strides(d.strides))
    if any(size > 1 and stride == 0 for size, stride in zip(shape.batch, full["d"].strides)):
        raise ValueError("out: some of its elements share memory")
    by_column = True
    if "bias" in full:
        by_column = _bias_by_column(views["bias"], full["bias"].strides, shape)
    if reads_c:
        c = Operand(views["c"], _full_strides("c", views["c"], shape))
        if views["c"].array is not result and not _says(c, full["d"], shape, views["c"], d):
            views["a"].library.assign(result, views["c"].array)
            c = Operand(d, full["d"].strides)
        full["c"] = c
    elif beta or "beta" in views:
        full["c"] = Operand(d, full["d"].strides)

    sizes = merge_batch(shape.batch, list(full.values()))
    m = fold_into_rows(sizes, shape.m, shape.n, full, by_column) if shape.m else shape.m
    desc = _c.new_desc()
    desc.accumulate = _c.ACCUMULATE[options["accumulate"]]
    desc.kernel = _c.kernel_number(options["kernel"])
    desc.alpha, desc.beta = alpha, beta
    desc.activation = _c.ACTIVATION[options["activation"]]
    desc.flags = _c.FLAG_BATCH_INVARIANT if options["batch_invariant"] else 0
    if "alpha" in views:
        desc.alpha_pointer = views["alpha"].pointer
    if "beta" in views:
        desc.beta_pointer = views["beta"].pointer
    fill(desc, full, m, shape.n, shape.k, by_column)
    _require(desc, full)
    try:
        for _ in calls(desc, sizes, full):
            run(handle, desc)
    except _c.ArgumentError as error:
        raise type(error)(f"{_argument_of(error.status)}{error}", error.status, error.detail) from None
    return result


def _said(place):
    return place if isinstance(place, str) else "an emulated T4"


def _argument_of(status):
    """The Python argument that a status of the C library speaks of."""
    last = status.rsplit("_", 1)[-1]
    names = {"A": "a", "LDA": "a", "B": "b", "LDB": "b", "C": "c", "LDC": "c", "D": "out", "LDD": "out", "BIAS": "bias", "GATE": "gate",
             "LDGATE": "gate", "OVERLAP": "out", "KERNEL": "kernel"}
    return f"{names[last]}: " if last in names else ""


def _full_strides(name, view, shape):
    """Strides over the batch, rows and columns of the product."""
    if name == "a":
        strides = (0, view.strides[0]) if shape.vector_a else view.strides
        return broadcast("a", view.shape[:-2], strides[:-2], shape.batch, "the batch") + tuple(strides[-2:])
    if name == "b":
        strides = (view.strides[0], 1) if shape.vector_b else view.strides
        return broadcast("b", view.shape[:-2], strides[:-2], shape.batch, "the batch") + tuple(strides[-2:])
    return shape.matrix_strides(broadcast(name, view.shape, view.strides, shape.d, "the result's shape"))


def _bias_by_column(view, strides, shape):
    if shape.m <= 1 or strides[-2] == 0:
        return True
    if shape.n <= 1 or strides[-1] == 0:
        return False
    raise ValueError(f"bias: of the shape {view.shape} it has a value for each element; a bias has one for each column or row: use c")


def _says(c, d, shape, view_c, view_d):
    """Whether c can be read where it is: some layout has a leading dimension for it and for out."""
    return any(leading(shape.m, shape.n, *c.strides[-2:], t) is not None and leading(shape.m, shape.n, *d.strides[-2:], t) is not None
               for t in (False, True)) and (view_c.dtype == "float16" or _c.has_epilogues())


def _require(desc, operands):
    """A library of before 0.2 ignores what its descriptor lacks: say so instead."""
    if desc.size > _c.DESC_SIZE_0_1:
        return
    said = [name for name, asked in (
        ("bias", "bias" in operands), ("gate", "gate" in operands), ("activation", desc.activation), ("batch_invariant", desc.flags),
        ("out_dtype: float32", desc.type_d), ("c: float32", desc.type_c), ("alpha: in device memory", desc.alpha_pointer),
        ("beta: in device memory", desc.beta_pointer)) if asked]
    if said:
        raise _c.NotSupportedError(f"{said[0]}: libhgemm {_c.version_text()} does not have it; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")
