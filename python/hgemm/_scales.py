# SPDX-License-Identifier: MIT
"""find_scale: the scales of bfloat16 operands."""
from . import _arrays, _c, _call, _device
from ._device_array import upload
from ._plan import lines_of
from ._types import type_name


def find_on_host(x):
    """The scale of an array in host memory, of the same library."""
    host = _arrays.to_host("x", x)
    check_scalable(type_name(host.dtype), (), ())
    found = find_on_device(upload(host, _device.handle_for(None)), None).numpy()
    return _arrays.to_torch(found) if _arrays.is_torch(x) else found


def find_on_device(x, stream):
    stream = _arrays.stream_for([x], stream)
    view = _arrays.view_of("x", x, stream)
    lines = check_scalable(view.dtype, view.shape, view.strides)
    handle, stream = _call.ready([view], view.place, stream)
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
