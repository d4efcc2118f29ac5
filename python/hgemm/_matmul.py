# SPDX-License-Identifier: MIT
"""matmul and linear: arguments are checked, arrays become views, and a plan runs on them."""
import numbers

import numpy as np

from . import _arrays, _c, _device
from ._plan import Shape, broadcast, plan_for

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
    if stream is None and kernel is None and alpha_array is None and beta_array is None and all(
            _arrays.is_torch(array) and array.is_cuda for array in operands.values()):
        if beta == 0:
            operands.pop("c", None)
        return door.compute(operands, alpha, beta, dtype, activation, accumulate, batch_invariant)
    hosts = {name: _arrays.is_host(name, array) for name, array in operands.items()}
    if all(hosts.values()):
        if alpha_array is not None or beta_array is not None:
            raise TypeError(f"{'alpha' if alpha_array is not None else 'beta'}: it is in device memory, and the matrices are not")
        return on_host(operands, alpha, beta, dtype, options)
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


def on_host(operands, alpha, beta, dtype, options):
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
    reads_c = beta != 0 or beta_array is not None
    if not reads_c and "c" in arrays:
        arrays = {name: array for name, array in arrays.items() if name != "c"}
    stream = _arrays.stream_for(arrays.values(), stream)
    views = {name: _arrays.view_of(name, array, stream) for name, array in arrays.items()}
    scalars = {name: _arrays.view_of(name, array, stream) for name, array in (("alpha", alpha_array), ("beta", beta_array)) if array is not None}
    place = _one_place({**views, **scalars})
    for name, view in scalars.items():
        if view.dtype != "float32" or int(np.prod(view.shape)) != 1:
            raise TypeError(f"{name}: in device memory it must be one float32, not {view.dtype} of the shape {view.shape}")
        if not _c.has_epilogues():
            raise _c.NotSupportedError(f"{name}: libhgemm {_c.version_text()} takes none in device memory; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")

    plan = plan_for(tuple((name, view.dtype, view.shape, view.strides) for name, view in views.items()), dtype, reads_c, **options)
    stream, others = _arrays.streams_of([*views.values(), *scalars.values()], stream)
    handle = place if isinstance(place, _device.Handle) else _device.handle_for(place, stream)
    for other in others:
        _device.synchronize_stream(place, other)
    result = arrays.get("out")
    if result is None:
        library = views["a"].library
        result = library.empty(plan.shape, dtype, views["a"], handle)
        views["out"] = _arrays.view_of("out", result, stream)
    if plan.copies_c:
        views["a"].library.assign(result, arrays["c"])
    pointers = {name: view.pointer for name, view in views.items()}
    pointers["d"] = pointers["out"]
    pointers.update((name + "_pointer", view.pointer) for name, view in scalars.items())
    run(plan, handle, pointers, alpha, beta)
    return result


def run(plan, handle, pointers, alpha, beta):
    try:
        plan.run(handle, pointers, alpha, beta)
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
