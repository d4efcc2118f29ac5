# SPDX-License-Identifier: MIT
"""matmul and linear: arguments are checked, arrays become views, and a plan runs on them."""
import numbers

import numpy as np

from . import _arrays, _c, _device
from ._plan import Shape, broadcast, lines_of, plan_for

DTYPES = {prefix + name: name for prefix in ("", "torch.") for name in _c.TYPE}


def dtype_name(argument, value):
    """The name of a type of numpy's or torch's, or of a string."""
    text = str(value)
    if text not in DTYPES:
        try:
            text = _device.type_name(np.dtype(value))
        except TypeError:
            pass
    if text not in DTYPES:
        raise TypeError(f"{argument}: {value!r} is neither float16, bfloat16 nor float32")
    return DTYPES[text]


def result_type(asked, of_a):
    """The type of a result: the one asked for, or that of a."""
    return asked or ("bfloat16" if of_a == "bfloat16" else "float16")


# ---- the public calls --------------------------------------------------------------------------------------------


def scalar(name, value):
    """A number, or the array of one that is in device memory."""
    if isinstance(value, numbers.Number):
        return float(value)
    if not _arrays.is_host(name, value):
        return value
    if int(np.prod(value.shape)) != 1:
        raise ValueError(f"{name}: its shape is {tuple(value.shape)}; it must be one number")
    return float(value.reshape(()))


def check_scales(scalars, dtypes):
    """Refuses a scale for what has none. dtypes: of a and b."""
    for name, dtype in zip(("scale_a", "scale_b"), dtypes):
        if name in scalars and dtype != "bfloat16":
            raise ValueError(f"{name}: {name[-1]} is {dtype}, and only bfloat16 has a scale")


def matmul(a, b, *, out=None, alpha=1.0, beta=None, c=None, bias=None, activation=None, gate=None, accumulate="float32",
           out_dtype=None, scale_a=None, scale_b=None, batch_invariant=False, kernel=None, stream=None):
    """activation(alpha * a @ b + beta * c + bias) * gate, computed in FP32 and rounded once to the result's type.

    a, b        both float16 or both bfloat16; shapes broadcast as in torch.matmul
    out         where the result goes, of its shape; returned. Without it, a new array of the library that `a` is of
    alpha, beta numbers, or float32 arrays of one element in device memory. beta is 1 by default where there is a c, else 0.
                beta without c: out is read as c
    c           float16, bfloat16 or float32, broadcast to the result's shape; may be `out`. One that out's layout cannot say (a vector, say)
                is first copied into out
    bias        float16, bfloat16 or float32, broadcast to the result: a value for each column (shape n) or each row (shape m, 1)
    activation  None, "relu", "gelu" (by erf), "gelu_tanh", "silu"
    gate        float16, bfloat16 or float32, broadcast over the batch only
    accumulate  "float32", or "float16": sums are rounded to half after every 8 products, and overflow beyond 65504
    out_dtype   "float16", "bfloat16" or "float32"; by default that of out, else that of a
    scale_a, scale_b  of a and b that are bfloat16: powers of two, or what find_scale returned. By default the call finds them,
                for which it reads a and b once more
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
                               accumulate=accumulate, out_dtype=out_dtype, scale_a=scale_a, scale_b=scale_b,
                               batch_invariant=batch_invariant)
    if accumulate not in _c.ACCUMULATE:
        raise ValueError(f'accumulate: {accumulate!r} is neither "float32" nor "float16"')
    if activation not in _c.ACTIVATION:
        raise ValueError(f"activation: {activation!r} is none of {', '.join(repr(name) for name in _c.ACTIVATION)}")
    options = {"activation": activation, "accumulate": accumulate, "batch_invariant": batch_invariant, "kernel": kernel}
    if out is None:
        dtype = dtype_name("out_dtype", out_dtype) if out_dtype is not None else None
    else:
        dtype = dtype_name("out", getattr(out, "dtype", None) or np.dtype(out.__cuda_array_interface__["typestr"]))
        if out_dtype is not None and dtype_name("out_dtype", out_dtype) != dtype:
            raise TypeError(f"out_dtype: {out_dtype} is not the type of out, {dtype}")
    if beta is None:
        beta = 0.0 if c is None else 1.0
    scalars = {"alpha": alpha, "beta": beta, "scale_a": scale_a, "scale_b": scale_b}
    scalars = {name: scalar(name, value) for name, value in scalars.items() if value is not None}
    if stream is None and kernel is None and all(_arrays.is_torch(array) and array.is_cuda for array in operands.values()) and all(
            isinstance(value, float) or name.startswith("scale") and _arrays.is_torch(value) for name, value in scalars.items()):
        if scalars["beta"] == 0:
            operands.pop("c", None)
        return door.compute(operands, scalars, dtype, activation, accumulate, batch_invariant)
    hosts = {name: _arrays.is_host(name, array) for name, array in operands.items()}
    if all(hosts.values()):
        return on_host(operands, scalars, dtype, options)
    if any(hosts.values()):
        first, other = (next(name for name in hosts if hosts[name] == on_host) for on_host in (True, False))
        raise ValueError(f"{first}: it is in host memory, and {other} is in a device's")
    return _on_device(operands, scalars, dtype, options, stream)


def linear(x, weight, bias=None, **options):
    """x @ weight.T + bias, with the options of matmul. weight is (out features, in features), as in torch.nn.functional.linear."""
    if len(weight.shape) == 2:
        weight = weight.T
    elif len(weight.shape) != 1:
        raise ValueError(f"weight: its shape {tuple(weight.shape)} has {len(weight.shape)} dimensions, not 2 or 1")
    return matmul(x, weight, bias=bias, **options)


def find_scale(x, *, stream=None):
    """The scale of a bfloat16 operand, for scale_a or scale_b of matmul: the power of two that brings its largest finite magnitude
    to 2^15 or above, 2^126 at most. For weights, which then need not be read for it in every product.

    Of an array in device memory: one float32 there, as an array of the same library, found on the current stream or on `stream`.
    Of a CPU tensor: a CPU tensor. Of another array in host memory: a float."""
    if _arrays.is_torch(x) and stream is None:
        from . import torch as door
        return door.find_scale(x)
    if _arrays.is_host("x", x):
        found = find_scale_on_host(x)
        return found if _arrays.is_torch(x) else float(found)
    return _scale_on_device(x, stream)


def find_scale_on_host(x):
    """The scale of an array in host memory, of the same library."""
    host = _arrays.to_host("x", x)
    check_scalable(_device.type_name(host.dtype), (), ())
    found = _scale_on_device(_device.upload(host, _device.handle_for(None)), None).numpy()
    return _arrays.to_torch(found) if _arrays.is_torch(x) else found


def _scale_on_device(x, stream):
    stream = _arrays.stream_for([x], stream)
    view = _arrays.view_of("x", x, stream)
    lines = check_scalable(view.dtype, view.shape, view.strides)
    handle, stream = _ready([view], view.place, stream)
    result = view.library.empty((), "float32", view, handle)
    write_scale(handle, lines, view.pointer, _arrays.view_of("scale", result, stream).pointer)
    return result


def check_scalable(dtype, shape, strides):
    """lines_of what find_scale can take."""
    if dtype != "bfloat16":
        raise TypeError(f"x: its type is {dtype}; only bfloat16 has a scale")
    return lines_of("x", shape, strides)


def write_scale(handle, lines, pointer, scale):
    if not _c.has_bfloat16():
        raise _c.NotSupportedError(f"find_scale: this libhgemm {_c.version_text()} does not have it", "HGEMM_STATUS_NOT_SUPPORTED")
    count, width, apart = lines
    handle.call(_c.lib.hgemm_find_scale, count, width, pointer, apart, scale)


def _ready(views, place, stream):
    """The handle of a call on these views, and the stream's: what other streams may still write is waited for."""
    stream, others = _arrays.streams_of(views, stream)
    handle = place if isinstance(place, _device.Handle) else _device.handle_for(place, stream)
    for other in others:
        _device.synchronize_stream(place, other)
    return handle, stream


def on_host(operands, scalars, dtype, options):
    """Copies the operands to the default device, and the result back to `out` or to a new array of a's library."""
    for name, value in scalars.items():
        if not isinstance(value, float):
            raise TypeError(f"{name}: it is in device memory, and the matrices are not")
    handle = _device.handle_for(None)
    out = operands.get("out")
    arrays = {name: _arrays.to_host(name, array) for name, array in operands.items()}
    dtype = result_type(dtype, _device.type_name(arrays["a"].dtype))
    shape = Shape(arrays["a"].shape, arrays["b"].shape)
    on_device = {name: _device.upload(array, handle) for name, array in arrays.items() if name in ("a", "b", "bias", "gate")}
    for name in ("c", "gate"):  # on the device they have the result's layout
        if name in arrays:
            broadcast(name, arrays[name].shape, (0,) * arrays[name].ndim, shape.d, "the result's shape")
            on_device[name] = _device.upload(np.ascontiguousarray(np.broadcast_to(arrays[name], shape.d)), handle)
    if out is not None:
        on_device["out"] = _device.DeviceArray.empty(shape.d, dtype, handle)
        if arrays["out"].shape != shape.d:
            raise ValueError(f"out: its shape is {arrays['out'].shape}, the result's is {shape.d}")
        if not arrays["out"].flags.writeable:
            raise ValueError("out: it is read-only")
        if scalars["beta"] and "c" not in arrays:
            on_device["out"].copy_from(arrays["out"])
    result = _on_device(on_device, scalars, dtype, options, None).numpy()
    if out is not None:
        arrays["out"][...] = result
        return out
    if _arrays.is_torch(operands["a"]):
        return _arrays.to_torch(result)
    return result


def _on_device(arrays, scalars, dtype, options, stream):
    """The product of arrays in one device's memory."""
    reads_c = not isinstance(scalars["beta"], float) or scalars["beta"] != 0
    if not reads_c and "c" in arrays:
        arrays = {name: array for name, array in arrays.items() if name != "c"}
    stream = _arrays.stream_for(arrays.values(), stream)
    views = {name: _arrays.view_of(name, array, stream) for name, array in arrays.items()}
    on_device = {name: _arrays.view_of(name, value, stream) for name, value in scalars.items() if not isinstance(value, float)}
    place = _one_place({**views, **on_device})
    check_scales(scalars, (views["a"].dtype, views["b"].dtype))
    dtype = result_type(dtype, views["a"].dtype)
    for name, view in on_device.items():
        if view.dtype != "float32" or int(np.prod(view.shape)) != 1:
            raise TypeError(f"{name}: in device memory it must be one float32, not {view.dtype} of the shape {view.shape}")
        if not _c.has_epilogues():
            raise _c.NotSupportedError(f"{name}: libhgemm {_c.version_text()} takes none in device memory; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")

    plan = plan_for(tuple((name, view.dtype, view.shape, view.strides) for name, view in views.items()), dtype, reads_c, **options)
    handle, stream = _ready([*views.values(), *on_device.values()], place, stream)
    result = arrays.get("out")
    if result is None:
        library = views["a"].library
        result = library.empty(plan.shape, dtype, views["a"], handle)
        views["out"] = _arrays.view_of("out", result, stream)
    if plan.copies_c:
        views["a"].library.assign(result, arrays["c"])
    pointers = {name: view.pointer for name, view in views.items()}
    pointers["d"] = pointers["out"]
    run(plan, handle, pointers, {**{name: value for name, value in scalars.items() if name not in on_device},
                                 **{name + "_pointer": view.pointer for name, view in on_device.items()}})
    return result


def run(plan, handle, pointers, scalars):
    try:
        plan.run(handle, pointers, scalars)
    except _c.ArgumentError as error:
        raise type(error)(f"{_argument_of(error.status)}{error}", error.status, error.detail) from None


def _one_place(views):
    places = {}
    for name, view in views.items():
        if view.place is not None:
            places.setdefault(view.place, name)
    if len(places) > 1:
        (one, first), (other, second) = list(places.items())[:2]
        raise ValueError(f"{first}: it is on {_said(one)}, and {second} is on {_said(other)}")
    return next(iter(places), None)


def _said(place):
    return place if isinstance(place, str) else "an emulated T4"


def _argument_of(status):
    """The Python argument that a status of the C library speaks of."""
    last = status.rsplit("_", 1)[-1]
    names = {"A": "a", "LDA": "a", "B": "b", "LDB": "b", "C": "c", "LDC": "c", "D": "out", "LDD": "out", "BIAS": "bias", "GATE": "gate",
             "LDGATE": "gate", "OVERLAP": "out", "KERNEL": "kernel"}
    return f"{names[last]}: " if last in names else ""
