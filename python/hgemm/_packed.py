# SPDX-License-Identifier: MIT
"""Weights in the packed form that products take, and products with it."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from ctypes import byref
from typing import Any

import numpy as np

from . import _arrays, _c, _call, _device
from ._annotations import DType
from ._device_array import DeviceArray, ReadOnly, upload
from ._plan import Shape, plan_for
from ._types import BFLOAT16, dtype_name, type_name
from ._weights import Weights, wrong_shape
from ._words import kind

_CODES = {number: name for name, number in _c.CODE.items()}
_SCALES = {number: name for name, number in _c.TYPE.items()}

# ---- the form: what hgemm_weights_t says, as a tuple of integers: n, k, code, group, zero, type of scales, bits of 16 halves ------

FORM = 22


def form_of(weights):
    zero = _c.ZERO_CODE if weights.zeros is not None else _c.ZERO_OFFSET if weights.offsets is not None else _c.ZERO_NONE
    table = [0] * 16 if weights.table is None else weights.table.view(np.uint16).tolist()
    return (weights.n, weights.k, _c.CODE[weights.code], weights.group, zero, _c.TYPE[type_name(weights.scales.dtype)], *table)


@functools.lru_cache(maxsize=None)
def struct_of(form):
    """The hgemm_weights_t of a form. It is kept: descriptors point to it."""
    if not _c.has_weights():
        raise _c.NotSupportedError(f"pack: libhgemm {_c.version_text()} does not have it; 0.3 does", "HGEMM_STATUS_NOT_SUPPORTED")
    if len(form) != FORM:
        raise ValueError(f"form: it has {len(form)} numbers, and what packed weights are takes {FORM}")
    made = _c.WeightsForm()
    _c.lib.hgemm_weights_init_sized(byref(made), ctypes.sizeof(made))
    made.n, made.k, made.code, made.group, made.zero, made.type_scale = form[:6]
    made.table[:] = form[6:]
    return made


@functools.lru_cache(maxsize=None)
def bytes_of(form):
    count = ctypes.c_size_t()
    _c.check(_c.lib.hgemm_weights_bytes(byref(struct_of(form)), byref(count)))
    return count.value


def aligned_bytes(count):
    """numpy's bytes at a multiple of 16, as the library wants them."""
    made = np.zeros(count + 16, np.uint8)
    start = -made.ctypes.data % 16
    return made[start:start + count]


def parts(weights):
    """What is packed, in the library's order: codes, scales, and zeros or offsets."""
    zeros = weights.offsets if weights.zeros is None else weights.zeros
    return [weights.codes, weights.scales] + ([] if zeros is None else [zeros])


def pack_on_host(weights, form):
    packed = aligned_bytes(bytes_of(form))
    _c.check(_c.lib.hgemm_pack_weights(None, byref(struct_of(form)), *pointers([part.ctypes.data for part in parts(weights)]), packed.ctypes.data))
    return packed


def pointers(given):
    return [*given, *[None] * (3 - len(given))]


def unpack_on_host(form, packed, dtype, first=0, count=None):
    """The matrix, or `count` of its columns."""
    aligned = aligned_bytes(packed.size)
    aligned[:] = packed
    count = form[1] if count is None else count
    matrix = np.empty((form[0], count), BFLOAT16 if dtype == "bfloat16" else dtype)
    _c.check(_c.lib.hgemm_unpack_weights(None, byref(struct_of(form)), aligned.ctypes.data, first, count, _c.TYPE[dtype],
                                          matrix.ctypes.data, max(count, 1)))
    return matrix


# ---- packed weights -----------------------------------------------------------------------------------------------


def joint(weights):
    """(a list of Weights, their form, their order of columns): experts have all of these in common."""
    many = list(weights) if isinstance(weights, Iterable) and not isinstance(weights, np.ndarray) else [weights]
    for one in many:
        if not isinstance(one, Weights):
            raise TypeError(f"weights: a {kind(one)} is no hgemm.Weights; hgemm.formats makes them")
    if not many:
        raise ValueError("weights: there are none")
    form, order = form_of(many[0]), many[0].order
    for i, one in enumerate(many):
        if form_of(one) != form:
            raise ValueError(f"weights: number {i} is {one!r}, and number 0 is {many[0]!r}; experts are packed together only where they agree")
        if (one.order is None) != (order is None) or order is not None and not np.array_equal(one.order, order):
            raise ValueError(f"weights: the columns of number {i} are in another order than those of number 0")
    return many, form, order


def pack(weights):
    """hgemm.pack on hgemm's default device."""
    many, form, order = joint(weights)
    handle = _device.handle_for(None)
    size = bytes_of(form)
    data = DeviceArray.empty((len(many), size), np.uint8, handle)
    for i, one in enumerate(many):
        if handle.emulated:  # which takes its time over what the host does as well
            packed = pack_on_host(one, form)
            if size:
                handle.call(_c.lib.hgemm_upload, data.pointer + i * size, packed.ctypes.data, size)
        else:
            copies = [upload(part.view(np.uint8), handle) for part in parts(one)]
            handle.call(_c.lib.hgemm_pack_weights, byref(struct_of(form)), *pointers([copy.pointer for copy in copies]), data.pointer + i * size)
    return PackedWeights(data, form, order, None if isinstance(weights, Weights) else len(many))


class PackedWeights(ReadOnly):
    """Packed weights of a linear layer, or of experts. `data` has the bytes, in a DeviceArray or, of those that were packed for torch, in a tensor;
    they are the same on every device.

    shape      (n, k), or (experts, n, k)
    form       what the bytes are, as integers: hgemm_weights_t's n, k, code, group, zero, type_scale and the 16 of its table
    order      (k), or None: column i of what is packed is column order[i] of the matrix, and so of x
    nbytes     what they take"""

    __slots__ = ("data", "form", "order", "experts")

    data: Any
    form: tuple[int, ...]
    order: Any
    experts: int | None

    def __init__(self, data: Any, form: tuple[int, ...], order: Any, experts: int | None = None) -> None:
        self._set(data=data, form=form, order=order, experts=experts)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self._set(**state[1])

    @property
    def n(self) -> int:
        return self.form[0]

    @property
    def k(self) -> int:
        return self.form[1]

    @property
    def code(self) -> str:
        return _CODES[self.form[2]]

    @property
    def group(self) -> int:
        return self.form[3] or self.form[1]

    @property
    def shape(self) -> tuple[int, ...]:
        return (() if self.experts is None else (self.experts,)) + self.form[:2]

    @property
    def nbytes(self) -> int:
        return (self.experts or 1) * bytes_of(self.form)

    def __repr__(self) -> str:
        return (f"<hgemm.PackedWeights {'x'.join(map(str, self.shape))}, {self.code}, groups of {self.group}, "
                f"{('no zeros', 'zeros', 'offsets')[self.form[4]]}, scales of {_SCALES[self.form[5]]}, {self.nbytes} bytes>")

    def unpack(self, dtype: DType = "float16") -> Any:
        """The matrix in float16, bfloat16 or float32: a tensor where the bytes are in one, else numpy's. Elements are computed in float32 and
        rounded once."""
        dtype = dtype_name("dtype", dtype)
        found = [unpack_on_host(self.form, packed, dtype) for packed in self.data.numpy()]
        matrix = found[0] if self.experts is None else np.stack(found)
        if self.order is not None:
            matrix = matrix[..., np.argsort(self.order)]
        return matrix

    def matrix(self, dtype: str, experts: bool = False) -> Any:
        """For plans: what stands for B, k x n, where the packed bytes are. Nothing but a plan looks at it. A tensor of the CPU's is copied to
        the default device."""
        element: np.dtype[Any] = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
        n, k = self.form[:2]
        width, line = element.itemsize, max(k, 1) * element.itemsize
        shape: tuple[int, ...] = (k, n)
        strides: tuple[int, ...] = (width, line)
        if experts:
            shape, strides = (self.experts or 0, *shape), (n * line, *strides)
        data = self.data
        if _arrays.is_torch(data):
            if data.is_cuda:
                return _Lent(data, shape, strides, element)
            data = upload(data.detach().numpy(), _device.handle_for(None))
        return DeviceArray(data._memory, data.pointer, shape, strides, element)


class _Lent:
    """What stands for B where its bytes are in a tensor of the GPU's, in words that arrays of all libraries understand."""

    def __init__(self, data, shape, strides, dtype):
        self.data, self.dtype = data, "bfloat16" if dtype == BFLOAT16 else dtype
        self.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": "|V2" if dtype == BFLOAT16 else dtype.str,
                                         "data": (data.data_ptr(), True), "version": 3}


# ---- plans --------------------------------------------------------------------------------------------------------

def plan_of(form, layouts, dtype, reads_c, activation, batch_invariant, kernel, make=plan_for):
    """The plan of x W^T: that of a matrix whose columns are W's rows, which is told of the weights."""
    _c.kernel_number(kernel)  # refuses what is no kernel's name
    return make(layouts, dtype, reads_c, "float32", activation, batch_invariant, kernel, form=form, tell=tell)


def tell(desc, form, name="x"):
    """A copy of a descriptor of x W^T that says that W is packed. name: of the argument x."""
    if desc.layout != _c.ROW_MAJOR:
        raise ValueError("out: with packed weights its rows are contiguous; pass out.T of an array of the shape of out.T")
    if desc.op_a != _c.OP_N and desc.m > 1:
        raise ValueError(f"{name}: with packed weights its rows are contiguous; pass a contiguous copy")
    desc = _c.Desc.from_buffer_copy(desc)
    if desc.op_a != _c.OP_N:
        desc.op_a, desc.lda = _c.OP_N, desc.k
    desc.op_b, desc.ldb = _c.OP_T, form[1]
    desc.weights = ctypes.addressof(struct_of(form))
    return desc


# ---- products -----------------------------------------------------------------------------------------------------


def check_x(w, shape, options):
    """Refuses what packed weights cannot be multiplied by. shape: of x."""
    if w.experts is not None:
        raise ValueError(f"weight: it is packed for {w.experts} experts, which hgemm.grouped takes")
    if not shape or shape[-1] != w.k:
        raise wrong_shape("x", shape, f"(..., {w.k}), as the packed weights are {w.n} x {w.k}")
    refuse(options)


def check_experts(w, options):
    """The same for grouped."""
    if w.experts is None:
        raise ValueError("b: it is not packed for experts: pack a sequence of hgemm.Weights")
    refuse(options)


def refuse(options):
    if options.get("accumulate", "float32") != "float32":
        raise _c.NotSupportedError('accumulate: sums with packed weights are "float32"', "HGEMM_STATUS_NOT_SUPPORTED")
    if options.get("scale_b") is not None:
        raise ValueError("scale_b: packed weights have scales of their own")


def gathered(x, order, name="x"):
    """x with its columns in the order of the packed weights."""
    if order is None:
        return x
    if _arrays.is_torch(x):
        return x.index_select(-1, (order if _arrays.is_torch(order) else _arrays.to_torch(order)).to(x.device))
    if _arrays.is_torch(order):
        order = order.cpu().numpy()
    if isinstance(x, np.ndarray):
        return np.take(x, order, axis=-1)
    if type(x).__module__.split(".")[0] == "cupy":
        return x[..., order]
    raise TypeError(f"{name}: the weights' columns were sorted (act-order), and arrays of {type(x).__module__} cannot be: give numpy's, "
                    "torch's or cupy's")


def linear(x, w, bias=None, *, out=None, alpha=1.0, beta=None, c=None, activation=None, gate=None, accumulate="float32", out_dtype=None,
           scale_a=None, scale_b=None, batch_invariant=False, kernel=None, stream=None, accuracy="float32"):
    """hgemm.linear with packed weights, where they are hgemm's own. A lower accuracy than x has is more than it asks for."""
    if _arrays.is_torch(w.data):
        raise TypeError("x: the weights are packed in a tensor of torch's; pack(weights) packs for other arrays")
    host = _arrays.is_host("x", x)
    _call.check_options(accumulate, activation, accuracy, batch_invariant)
    check_x(w, tuple(x.shape), {"accumulate": accumulate, "scale_b": scale_b})
    x = gathered(x, w.order)
    if host:
        x = np.ascontiguousarray(_arrays.to_host("x", x))
    kind = _arrays.type_of("x", x)
    if kind not in ("float16", "bfloat16"):
        raise TypeError(f"x: its type is {kind}, not float16 or bfloat16")
    others = {name: array for name, array in (("c", c), ("bias", bias), ("gate", gate), ("out", out)) if array is not None}
    dtype = _call.asked_type(out, out_dtype)
    scalars = _call.scalars_of(c, alpha, beta, scale_a, None)

    def plan(layouts, dtype, reads_c):
        return plan_of(w.form, layouts, dtype, reads_c, activation, batch_invariant, kernel)
    operands = {"a": x, "b": w.matrix(kind), **others}
    if host:
        for name, array in others.items():
            if not _arrays.is_host(name, array):
                raise ValueError(f"{name}: it is in a device's memory, and x is in host memory")
        return _call.on_host(operands, scalars, dtype, lambda shapes: Shape(shapes["a"], shapes["b"]).d, plan)
    for name, array in others.items():
        if _arrays.is_host(name, array):
            raise ValueError(f"{name}: it is in host memory, and x is in a device's")
    return _call.on_device(operands, scalars, dtype, plan, stream)
