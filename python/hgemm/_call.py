# SPDX-License-Identifier: MIT
"""What every call does: arrays become views, scalars numbers or addresses, and a plan runs on them where they are, or on copies."""
import math
import numbers

import numpy as np

from . import _arrays, _c, _device
from ._activations import activation as row_of
from ._device_array import DeviceArray, upload
from ._plan import Layout, Shape, broadcast, once, plan_for, share_memory, shared, spread_shape
from ._types import check_type, dtype_name, type_name
from ._words import shown

LARGEST = 3.4028235677973366e38  # what is below rounds to a float of 32 bits


def result_type(asked, of_a, of_b):
    """The type of a result: the one asked for, or that of a; of b, if that is float32."""
    if "float32" in (of_a, of_b):
        return asked or "float32"
    return asked or (of_a if of_a in _c.TYPE else "float16")


def check_options(accumulate, activation, accuracy="float32", batch_invariant=False):
    if not isinstance(accumulate, str) or accumulate not in _c.ACCUMULATE:
        raise ValueError(f'accumulate: {shown(accumulate)} is neither "float32" nor "float16"')
    if not isinstance(accuracy, str) or accuracy not in _c.ACCURACY:
        raise ValueError(f'accuracy: {shown(accuracy)} is none of "float32", "16bits" and "11bits"')
    if not isinstance(batch_invariant, (bool, np.bool_)):
        raise TypeError(f"batch_invariant: {shown(batch_invariant)} is neither True nor False")
    row_of(activation)


def asked_type(out, out_dtype):
    """The type of a result that `out` and out_dtype ask for, or None."""
    if out is None:
        return dtype_name("out_dtype", out_dtype) if out_dtype is not None else None
    dtype = getattr(out, "dtype", None)
    if dtype is None and not hasattr(out, "__cuda_array_interface__"):
        raise _arrays.no_array("out", out)
    dtype = dtype_name("out", dtype or np.dtype(out.__cuda_array_interface__["typestr"]))
    if out_dtype is not None and dtype_name("out_dtype", out_dtype) != dtype:
        raise TypeError(f"out_dtype: {out_dtype} is not the type of out, {dtype}")
    return dtype


def given_of(**arrays):
    """The arrays that are given, by name. a and b are."""
    given = {name: array for name, array in arrays.items() if array is not None}
    for name in ("a", "b"):
        if name not in given:
            raise TypeError(f"{name}: it is None, which is no array")
    return given


def scalar(name, value):
    """A number, or the array of one that is in device memory."""
    if not isinstance(value, numbers.Number):
        if _arrays.is_torch(value) and value.requires_grad and _arrays.recording():
            raise ValueError(f"{name}: it requires a gradient, and gets none: multiply by it outside, or give {name}.detach()")
        if not _arrays.is_host(name, value):
            return value
        if int(np.prod(value.shape)) != 1:
            raise ValueError(f"{name}: its shape is {tuple(value.shape)}; it must be one number")
        value = _arrays.to_number(name, value)
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: {shown(value)} is complex; it must be a real number")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if not -LARGEST < number < LARGEST and (math.isfinite(number) or number != value == value):
        raise ValueError(f"{name}: {shown(value)} is beyond what a float of 32 bits holds")
    return number


def scalars_of(c, alpha, beta, scale_a, scale_b):
    """Those that are given, by name. beta is 1 by default where there is a c, else 0."""
    if beta is None:
        beta = 0.0 if c is None else 1.0
    given = {"alpha": alpha, "beta": beta}
    given.update((name, value) for name, value in (("scale_a", scale_a), ("scale_b", scale_b)) if value is not None)
    return {name: scalar(name, value) for name, value in given.items()}


def check_scales(scalars, dtypes):
    """Refuses a scale for what has none. dtypes: of a and b."""
    for name, dtype in zip(("scale_a", "scale_b"), dtypes):
        if name in scalars and dtype != "bfloat16":
            raise ValueError(f"{name}: {name[-1]} is {dtype}, and only bfloat16 has a scale")
        if name in scalars and "float32" in dtypes:
            raise ValueError(f"{name}: beside float32 a bfloat16 has no scale")


def product_shape(shapes):
    return Shape(shapes["a"], shapes["b"]).d


def plans(activation, accumulate, batch_invariant, kernel=None, accuracy="float32"):
    """The plan of given layouts, by plan_for."""
    _c.kernel_number(kernel)  # refuses what is no kernel's name
    return lambda layouts, dtype, reads_c: plan_for(layouts, dtype, reads_c, accumulate, activation, batch_invariant, kernel, accuracy)


def ready(views, place, stream):
    """The handle of a call on these views, and the stream's: what other streams may still write is waited for."""
    stream, others = _arrays.streams_of(views, stream)
    if isinstance(place, _device.Handle) and stream != place.stream:
        raise ValueError(f"stream: {stream:#x} is a GPU's, and the arrays are on an emulated T4, which has none")
    handle = place if isinstance(place, _device.Handle) else _device.handle_for(place, stream)
    for other in others:
        _device.synchronize_stream(place, other)
    return handle, stream


def compute(operands, scalars, dtype, shape_of, plan_of, stream, writes_all=True):
    """The product of arrays in host memory (copied to the default device) or in one device's (where they are).

    shape_of    the shape of the result, of a dict of shapes
    plan_of     the plan, of layouts, the result's type and whether c is read
    writes_all  whether every element of the result is written"""
    hosts = {name: _arrays.is_host(name, array) for name, array in operands.items()}
    if all(hosts.values()):
        if stream is not None:
            raise ValueError("stream: the arrays are in host memory, and such calls are waited for")
        return on_host(operands, scalars, dtype, shape_of, plan_of, writes_all)
    if any(hosts.values()):
        first, other = (next(name for name in hosts if hosts[name] == on_host) for on_host in (True, False))
        raise ValueError(f"{first}: it is in host memory, and {other} is in a device's")
    return on_device(operands, scalars, dtype, plan_of, stream)


def on_host(operands, scalars, dtype, shape_of, plan_of, writes_all=True):
    """Copies the operands to the default device, and the result back to `out` or to a new array of a's library. Elements that are not
    written stay what they were; in a new array they are 0. An operand that is on the default device already is used there."""
    for name, value in scalars.items():
        if not isinstance(value, float):
            raise TypeError(f"{name}: it is in device memory, and the matrices are not")
    handle = _device.handle_for(None)
    out = operands.get("out")
    copies = {name: array for name, array in operands.items() if isinstance(array, DeviceArray)}
    arrays = {name: _arrays.to_host(name, array) for name, array in operands.items() if name not in copies}
    for name, array in arrays.items():
        check_type(name, type_name(array.dtype))
    dtype = result_type(dtype, *(type_name((arrays if name in arrays else copies)[name].dtype) for name in ("a", "b")))
    shape = shape_of({name: array.shape for name, array in (*arrays.items(), *copies.items())})
    if "bias" in arrays:  # whose rows are contiguous on the device, as those of c and gate
        arrays["bias"] = np.ascontiguousarray(arrays["bias"])
    copies.update((name, upload(array, handle)) for name, array in arrays.items() if name not in ("c", "gate", "out"))
    for name in ("c", "gate"):  # on the device they have the result's layout
        if name in arrays:
            broadcast(name, arrays[name].shape, (0,) * arrays[name].ndim, shape, "the result's shape")
            copies[name] = upload(np.ascontiguousarray(np.broadcast_to(arrays[name], shape)), handle)
    if out is not None:
        if arrays["out"].shape != shape:
            raise ValueError(f"out: its shape is {arrays['out'].shape}, the result's is {shape}")
        if not arrays["out"].flags.writeable:
            raise ValueError("out: it is read-only")
        if share_memory(arrays["out"]):
            raise shared()
    if out is not None or not writes_all:
        target = copies["out"] = DeviceArray.empty(shape, dtype, handle)
        if not writes_all or scalars["beta"] and "c" not in arrays:
            target.copy_from(arrays["out"] if out is not None else np.zeros((), target.dtype))
    result = on_device(copies, scalars, dtype, plan_of, None).numpy()
    if out is not None:
        arrays["out"][...] = result
        return out
    if _arrays.is_torch(operands["a"]):
        return _arrays.to_torch(result)
    return result


def on_device(arrays, scalars, dtype, plan_of, stream):
    """The product of arrays where they are."""
    reads_c = not isinstance(scalars["beta"], float) or scalars["beta"] != 0
    if not reads_c and "c" in arrays:
        arrays = {name: array for name, array in arrays.items() if name != "c"}
    stream = _arrays.stream_for(arrays.values(), stream)
    views = {name: _arrays.view_of(name, array, stream) for name, array in arrays.items()}
    pointed = {name: _arrays.view_of(name, value, stream) for name, value in scalars.items() if not isinstance(value, float)}
    place = _one_place({**views, **pointed})
    check_scales(scalars, (views["a"].dtype, views["b"].dtype))
    dtype = result_type(dtype, views["a"].dtype, views["b"].dtype)
    for name, view in pointed.items():
        if view.dtype != "float32" or int(np.prod(view.shape)) != 1:
            raise TypeError(f"{name}: in device memory it must be one float32, not {view.dtype} of the shape {view.shape}")
        if not _c.has_epilogues():
            raise _c.NotSupportedError(f"{name}: libhgemm {_c.version_text()} takes none in device memory; 0.2 does", "HGEMM_STATUS_NOT_SUPPORTED")

    if "group_ends" not in views:
        _spread(arrays, views, [*views.values(), *pointed.values()], place, stream)
    plan = plan_of(tuple((name, view.dtype, view.shape, view.strides) for name, view in views.items()), dtype, reads_c)
    handle, stream = ready([*views.values(), *pointed.values()], place, stream)
    result = arrays.get("out")
    if result is None:
        library = views["a"].library
        result = library.empty(plan.shape, dtype, views["a"], handle)
        views["out"] = _arrays.view_of("out", result, stream)
    if plan.copies_c:
        views["a"].library.assign("c", result, arrays["c"])
    pointers = {name: view.pointer for name, view in views.items()}
    pointers["d"] = pointers["out"]
    run(plan, handle, pointers, {**{name: value for name, value in scalars.items() if name not in pointed},
                                 **{name + "_pointer": view.pointer for name, view in pointed.items()}})
    return result


def _spread(arrays, views, used, place, stream):
    """Puts copies in place of a bias and a gate that the library cannot repeat."""
    for name in ("bias", "gate"):
        if name in views:
            view = views[name]
            layout = Layout(view.dtype, view.shape, view.strides)
            shape = spread_shape(name, layout, Shape(views["a"].shape, views["b"].shape))
            if shape is not None:
                check_type(name, view.dtype)
                handle, stream = ready(used, place, stream)
                copy = view.library.empty(shape, view.dtype, view, handle)
                view.library.assign(name, copy, arrays[name][once(layout)] if view.shape else arrays[name])
                views[name] = _arrays.view_of(name, copy, stream)


def run(plan, handle, pointers, scalars):
    try:
        plan.run(handle, pointers, scalars)
    except _c.ArgumentError as error:
        raise of_argument(error) from None


def of_argument(error):
    """An error of the library with the name of the argument that it speaks of."""
    return type(error)(f"{_argument_of(error.status)}{error}", error.status, error.detail)


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
    return place if isinstance(place, str) else f"the emulated T4 {place.device!r}" if place.device else "the default device, an emulated T4"


def _argument_of(status):
    """The Python argument that a status of the C library speaks of."""
    last = status.rsplit("_", 1)[-1]
    names = {"A": "a", "LDA": "a", "B": "b", "LDB": "b", "C": "c", "LDC": "c", "D": "out", "LDD": "out", "BIAS": "bias", "GATE": "gate",
             "LDGATE": "gate", "OVERLAP": "out", "KERNEL": "kernel"}
    return f"{names[last]}: " if last in names else ""
