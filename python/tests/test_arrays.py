# SPDX-License-Identifier: MIT
"""Arrays of other libraries: what __cuda_array_interface__ and DLPack say, and on which stream a call runs. The memory is the
emulated T4's, which passes for that of a GPU named cuda:0."""
import ctypes

import numpy as np
import pytest

import hgemm
from hgemm import _arrays, _device


@pytest.fixture
def handle(monkeypatch):
    """The emulated T4 as cuda:0, its streams 0 and 7."""
    handle = _device.handle_for(None)
    monkeypatch.setattr(_device, "ordinal_of", lambda pointer: 0)
    monkeypatch.setattr(_device, "_handles", {(None, 0): handle, ("cuda:0", 0): handle, ("cuda:0", 7): handle})
    return handle


class Cai:
    """An array that shows __cuda_array_interface__ and nothing else but its shape and type."""

    def __init__(self, array, **more):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__cuda_array_interface__ = {"version": 3, "shape": array.shape, "typestr": array.dtype.str, "strides": array.strides,
                                         "data": (array.pointer, False), **more}


class Dlpack:
    """An array that shows DLPack: the capsule is numpy's, of the same shape and strides, with the device's address put into it."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.streams = array, array.shape, array.dtype, []

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        host = np.lib.stride_tricks.as_strided(np.zeros(4096, self.dtype), self.shape, self.array.strides)
        capsule = host.__dlpack__()
        pointer = _arrays._capsule_pointer(capsule, b"dltensor")
        ctypes.cast(pointer, ctypes.POINTER(_arrays._DLTensor)).contents.data = self.array.pointer
        return capsule


@pytest.mark.parametrize("kind", [Cai, Dlpack])
def test_memory_is_used_where_it_is(kind, handle, integers):
    a, b = integers(6, 12), integers(9, 8)
    on = hgemm.array(a)[1:, 2:10], hgemm.array(b).T
    expected = a[1:, 2:10].astype(np.float32) @ b.T.astype(np.float32)
    result = hgemm.matmul(kind(on[0]), kind(on[1]))
    assert isinstance(result, hgemm.DeviceArray)
    np.testing.assert_array_equal(result.numpy(), expected)
    out = hgemm.array(np.full((5, 12), np.nan, np.float16))[:, 1:10]
    wrapped = kind(out)
    assert hgemm.matmul(kind(on[0]), kind(on[1]), out=wrapped, alpha=2) is wrapped
    np.testing.assert_array_equal(out.numpy(), 2 * expected)
    with pytest.raises(TypeError, match="c: give it in the shape and layout of out"):
        hgemm.matmul(kind(on[0]), kind(on[1]), c=kind(hgemm.array(integers(9))))


def test_dlpack_is_told_the_stream(handle, integers):
    a, b = Dlpack(hgemm.array(integers(4, 4))), Dlpack(hgemm.array(integers(4, 4)))
    hgemm.matmul(a, b)
    hgemm.matmul(a, b, stream=7)
    assert a.streams == b.streams == [1, 7]  # 1: the legacy default stream


def test_streams_of_cuda_array_interface(handle, integers, monkeypatch):
    waited = []
    monkeypatch.setattr(_device, "synchronize_stream", lambda place, stream: waited.append((place, stream)))
    a, b = hgemm.array(integers(4, 4)), hgemm.array(integers(4, 4))
    hgemm.matmul(Cai(a, stream=None), Cai(b, stream=1))
    assert waited == []  # None: nothing to wait for. 1: where the call runs
    hgemm.matmul(Cai(a, stream=7), Cai(b, stream=9))
    assert waited == [("cuda:0", 9)]  # runs where the first is being used
    hgemm.matmul(Cai(a, stream=7), Cai(b, stream=7), stream=7)
    assert len(waited) == 1


def test_what_arrays_may_not_be(handle, integers):
    a, b = hgemm.array(integers(4, 4)), hgemm.array(integers(4, 4))
    with pytest.raises(TypeError, match="b: masked"):
        hgemm.matmul(Cai(a), Cai(b, mask=a))
    with pytest.raises(ValueError, match="out: it is read-only"):
        hgemm.matmul(Cai(a), Cai(b), out=Cai(a, data=(a.pointer, True)))
    with pytest.raises(ValueError, match=r"a: its strides \(8, 1\) are not multiples"):
        hgemm.matmul(Cai(a, strides=(8, 1)), Cai(b))
    with pytest.raises(TypeError, match="b: its type is int16"):
        hgemm.matmul(Cai(a), Cai(b, typestr="<i2"))
    lent = Cai(b)
    del lent.__cuda_array_interface__
    with pytest.raises(TypeError, match="b: a .*Cai is no array"):
        hgemm.matmul(Cai(a), lent)
    other = Dlpack(b)
    other.__class__ = type("Other", (Dlpack,), {"__dlpack_device__": lambda self: (10, 0)})
    with pytest.raises(TypeError, match="b: DLPack says that it is on a device of type 10"):
        hgemm.matmul(Cai(a), other)


def test_the_driver_is_asked_where_a_pointer_lies():
    with pytest.raises(hgemm.DeviceError, match="0x123"):
        _device.ordinal_of(0x123)
