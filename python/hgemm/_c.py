# SPDX-License-Identifier: MIT
"""The C library, as hgemm.h declares it: loading, the descriptor, statuses as exceptions. Knows nothing of arrays."""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p

from ._links import LOADED, linked
from ._words import shown

ROW_MAJOR, COL_MAJOR = 0, 1
OP_N, OP_T = 0, 1
ACCUMULATE = {"float16": 0, "float32": 1}
ACCURACY = {"float32": 0, "16bits": 1, "11bits": 2}
TYPE = {"float16": 0, "float32": 1, "bfloat16": 2}
BIAS_PER_COLUMN, BIAS_PER_ROW = 0, 1
BATCH_GROUPED = 2
INDEX = {"int32": 0, "int64": 1}
FLAG_BATCH_INVARIANT = 1


class Desc(ctypes.Structure):
    """hgemm_desc_t of 0.2, whose size a newer library takes. A 0.1 library knows the fields up to stride_d: `size`, which it sets, says so."""

    _fields_ = [
        ("size", c_size_t),
        ("layout", c_int), ("op_a", c_int), ("op_b", c_int), ("accumulate", c_int), ("kernel", c_int),
        ("m", c_int64), ("n", c_int64), ("k", c_int64), ("batch", c_int64),
        ("alpha", c_float), ("beta", c_float),
        ("a", c_void_p), ("lda", c_int64), ("stride_a", c_int64),
        ("b", c_void_p), ("ldb", c_int64), ("stride_b", c_int64),
        ("c", c_void_p), ("ldc", c_int64), ("stride_c", c_int64),
        ("d", c_void_p), ("ldd", c_int64), ("stride_d", c_int64),
        ("type_a", c_int), ("type_b", c_int), ("type_c", c_int), ("type_d", c_int),
        ("activation", c_int), ("flags", c_uint),
        ("bias_mode", c_int), ("type_bias", c_int), ("bias", c_void_p), ("stride_bias", c_int64),
        ("gate", c_void_p), ("ldgate", c_int64), ("stride_gate", c_int64), ("type_gate", c_int),
        ("alpha_pointer", c_void_p), ("beta_pointer", c_void_p),
        ("batch_mode", c_int), ("alignment", c_int),
        ("group_ends", c_void_p), ("gather_a", c_void_p), ("scatter_d", c_void_p), ("index_type", c_int),
        ("scale_a", c_float), ("scale_b", c_float), ("scale_a_pointer", c_void_p), ("scale_b_pointer", c_void_p),
        ("weights", c_void_p), ("accuracy", c_int),  # since 0.3
    ]


CODE = {"int4": 0, "uint4": 1, "int8": 2, "uint8": 3, "table16": 4, "e4m3": 5}
ZERO_NONE, ZERO_CODE, ZERO_OFFSET = 0, 1, 2


class WeightsForm(ctypes.Structure):
    """hgemm_weights_t."""

    _fields_ = [("size", c_size_t), ("n", c_int64), ("k", c_int64), ("code", c_int), ("group", c_int), ("zero", c_int), ("type_scale", c_int),
                ("table", ctypes.c_uint16 * 16)]


DESC_SIZE_0_1 = Desc.type_a.offset


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char * 128), ("kind", c_char * 16), ("compute_major", c_int), ("compute_minor", c_int),
        ("multiprocessors", c_int), ("clock_khz", c_int), ("memory_bytes", c_size_t), ("l2_bytes", c_size_t),
        ("driver_version", c_int),
        ("is_emulated", c_int), ("fallback", c_char * 256),  # since 0.2
        ("later", c_char * 1024),
    ]


class KernelInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("rung", c_char_p), ("accumulate", c_int),
        ("block_m", c_int), ("block_n", c_int), ("block_k", c_int), ("warp_m", c_int), ("warp_n", c_int), ("warp_k", c_int),
        ("stages", c_int), ("threads", c_int), ("registers", c_int), ("shared_bytes", c_int), ("ops", c_uint),
        ("any_alignment", c_int),
        ("later", c_char * 1024),
    ]


class Error(RuntimeError):
    """What the library answered: `status` is the status's name, `detail` what the device said, "" where it said nothing."""

    def __init__(self, message: str, status: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.status, self.detail = status, detail


class ArgumentError(Error, ValueError):
    """An argument that the library refused before it touched anything."""


class NotSupportedError(Error, NotImplementedError):
    """The problem is valid, and this library or device does not cover it."""


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""


class DeviceError(Error):
    """There is no such device, or the device reported an error."""


def _library_path():
    given = os.environ.get("HGEMM_LIBRARY")
    return pathlib.Path(given) if given else pathlib.Path(__file__).with_name("libhgemm.so")


def _load(path):
    if not path.exists():
        raise ImportError(f"{path} is not there: install the hgemm wheel, or name a libhgemm.so in the environment variable HGEMM_LIBRARY")
    try:
        library = ctypes.CDLL(linked(path, LOADED))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from None
    if not hasattr(library, "hgemm_create"):
        raise ImportError(f"{path} is no libhgemm.so")
    handle, status = c_void_p, c_int
    signatures = {
        "hgemm_version": (c_int, []),
        "hgemm_status_name": (c_char_p, [status]),
        "hgemm_status_string": (c_char_p, [status]),
        "hgemm_error_detail": (c_char_p, [handle]),
        "hgemm_create": (status, [POINTER(handle), c_char_p]),
        "hgemm_destroy": (status, [handle]),
        "hgemm_set_stream": (status, [handle, c_void_p]),
        "hgemm_synchronize": (status, [handle]),
        "hgemm_get_device_info": (status, [handle, POINTER(DeviceInfo)]),
        "hgemm_malloc": (status, [handle, POINTER(c_void_p), c_size_t]),
        "hgemm_free": (status, [handle, c_void_p]),
        "hgemm_upload": (status, [handle, c_void_p, c_void_p, c_size_t]),
        "hgemm_download": (status, [handle, c_void_p, c_void_p, c_size_t]),
        "hgemm_run_desc": (status, [handle, POINTER(Desc)]),
        "hgemm_prepare": (status, [handle, POINTER(Desc)]),
        "hgemm_select": (status, [POINTER(Desc), POINTER(c_int)]),
        "hgemm_kernel_count": (c_int, []),
        "hgemm_get_kernel_info": (status, [c_int, POINTER(KernelInfo)]),
        "hgemm_find_kernel": (c_int, [c_char_p]),
    }
    if hasattr(library, "hgemm_find_scale"):  # since 0.2
        signatures["hgemm_find_scale"] = (status, [handle, c_int64, c_int64, c_void_p, c_int64, c_void_p])
    if hasattr(library, "hgemm_activation_name"):
        signatures["hgemm_activation_name"] = (c_char_p, [c_int])
    if hasattr(library, "hgemm_desc_init_sized"):  # since 0.3
        signatures["hgemm_desc_init_sized"] = (None, [POINTER(Desc), c_size_t])
    else:
        signatures["hgemm_desc_init"] = (None, [POINTER(Desc)])
    if hasattr(library, "hgemm_pack_weights"):
        form = POINTER(WeightsForm)
        signatures["hgemm_weights_init_sized"] = (None, [form, c_size_t])
        signatures["hgemm_weights_bytes"] = (status, [form, POINTER(c_size_t)])
        signatures["hgemm_pack_weights"] = (status, [handle, form, c_void_p, c_void_p, c_void_p, c_void_p])
        signatures["hgemm_unpack_weights"] = (status, [handle, form, c_void_p, c_int64, c_int64, c_int, c_void_p, c_int64])
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


path = _library_path()
lib = _load(path)
run_desc = lib["hgemm_run_desc"]  # without types to convert to, which takes a third of a call: give a c_void_p and a byref
version = lib.hgemm_version()


def version_text() -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def new_desc():
    desc = Desc()
    if hasattr(lib, "hgemm_desc_init_sized"):
        lib.hgemm_desc_init_sized(byref(desc), ctypes.sizeof(desc) if has_weights() else Desc.weights.offset)
    else:
        lib.hgemm_desc_init(byref(desc))
    return desc


def has_epilogues():
    """Whether the library's descriptor has the fields of 0.2. Whether the device runs them, the call's status says."""
    return new_desc().size > DESC_SIZE_0_1


def has_bfloat16():
    """Whether the library takes A and B of bfloat16."""
    return hasattr(lib, "hgemm_find_scale")


def has_weights():
    """Whether the library packs weights of 4 and 8 bits."""
    return hasattr(lib, "hgemm_pack_weights")


def check(status, handle=None):
    if status:
        raise error(status, handle)


def hint(desc):
    """What a caller who named a kernel may have meant: its sums are of another type than those that were asked for."""
    desc = getattr(desc, "_obj", desc)  # of a byref
    row = kernels()[desc.kernel - 1] if desc.kernel else None
    if row is None or ACCUMULATE[row["accumulate"]] == desc.accumulate:
        return ""
    return f". accumulate: {row['name']} has {row['accumulate']} sums, accumulate={row['accumulate']!r} asks for them"


def error(status, handle=None, hint="", argument=None):
    """The exception of a status. argument: the one that it is about."""
    name = lib.hgemm_status_name(status).decode()
    detail = lib.hgemm_error_detail(handle).decode(errors="replace")
    message = f"{argument + ': ' if argument else ''}{lib.hgemm_status_string(status).decode()} ({name}{': ' + detail if detail else ''}){hint}"
    short = name[len("HGEMM_STATUS_"):]
    if short == "NOT_SUPPORTED":
        kind = NotSupportedError
    elif short == "OUT_OF_MEMORY":
        kind = OutOfMemoryError
    elif short in ("NO_DRIVER", "NO_DEVICE", "OLD_DEVICE", "INVALID_DEVICE", "DEVICE_ERROR"):
        kind = DeviceError
    else:
        kind = ArgumentError
    return kind(message, name, detail)


def kernel_number(name, argument="kernel"):
    if name is None:
        return 0
    number = lib.hgemm_find_kernel(name.encode()) if isinstance(name, str) else 0
    if not number:
        raise ValueError(f"{argument}: none is called {shown(name)}; hgemm.kernels() lists them")
    return number


def kernels() -> list[dict[str, Any]]:
    """The kernels in the order of the ladder, each as a dict."""
    found = []
    for number in range(1, lib.hgemm_kernel_count() + 1):
        info = KernelInfo()
        check(lib.hgemm_get_kernel_info(number, byref(info)))
        row = {field: getattr(info, field) for field, *_ in info._fields_ if field != "later"}
        row.update(name=info.name.decode(), rung=info.rung.decode(), accumulate=("float16", "float32")[info.accumulate])
        found.append(row)
    return found
