# SPDX-License-Identifier: MIT
"""bfloat16 operands: of numpy by ml_dtypes, of other libraries by what their interfaces say. test_bfloat16_torch.py has torch's."""
import ctypes

import numpy as np
import pytest

import hgemm
from hgemm import _arrays, _c, _device, _device_array, _types

if not _c.has_bfloat16():
    pytest.skip("this libhgemm has no bfloat16", allow_module_level=True)

H = np.float16


@pytest.fixture
def bfloat16():
    """numpy's type, of ml_dtypes."""
    return np.dtype(pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16)


def bits(values):
    """float32 numbers that are bfloat16 numbers, as the bits of those."""
    values = np.ascontiguousarray(values, np.float32)
    assert not (values.view(np.uint32) & 0xffff).any()
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def numbers(of_bits):
    return (of_bits.astype(np.uint32) << 16).view(np.float32)


def draw(rng, shape, lowest, highest):
    """Numbers over these binades, as float64, each a bfloat16."""
    values = np.ldexp(rng.uniform(-1, 1, shape), rng.integers(lowest, highest + 1, shape)).astype(np.float32)
    return numbers((values.view(np.uint32) >> 16).astype(np.uint16)).astype(np.float64)


def assert_bounded(result, a, b):
    """Within the bound of docs/contract.md, in single precision, for operands that are read whole: elements below 2^-32 of their
    operand's largest err by 2^-40 of it at most, and each addition of 8 products cuts them to 24 bits."""
    off = [np.where(np.abs(x) < 2.0**-32 * most, 2.0**-40 * most, 0) for x in (a, b) for most in [2.0**np.floor(np.log2(np.abs(x).max()))]]
    sums, absolute = a @ b, np.abs(a) @ np.abs(b)
    converted = off[0] @ np.abs(b) + np.abs(a) @ off[1] + off[0] @ off[1]
    limit = (a.shape[1] / 8 + 3) * 10 * 2.0**-23 * (absolute + converted) + converted + 2.0**-24 * np.abs(sums)
    assert result.dtype == np.float32 and (np.abs(result - sums) <= limit).all()


@pytest.mark.parametrize("range_a, range_b", [((0, 0), (0, 0)), ((-40, 40), (0, 0)), ((0, 0), (-40, 40)), ((100, 110), (-110, -100))])
def test_any_range_with_scales_from_every_source(range_a, range_b, rng, bfloat16):
    a, b = draw(rng, (40, 72), *range_a), draw(rng, (72, 33), *range_b)
    x, y = a.astype(bfloat16), b.astype(bfloat16)
    scales = {"scale_a": hgemm.find_scale(x), "scale_b": hgemm.find_scale(y)}
    for given in ({}, scales, {"scale_b": scales["scale_b"]}, {"scale_a": np.float32(scales["scale_a"])}):
        assert_bounded(hgemm.matmul(x, y, out_dtype="float32", **given), a, b)
    on = [hgemm.array(z) for z in (x, y)]
    found = {"scale_a": hgemm.find_scale(on[0]), "scale_b": hgemm.find_scale(on[1])}
    assert {name: float(scale.numpy()) for name, scale in found.items()} == scales
    result = hgemm.matmul(*on, out_dtype="float32", **found)
    assert isinstance(result, hgemm.DeviceArray)
    assert_bounded(result.numpy(), a, b)


def test_a_scale_that_is_given_is_used(bfloat16):
    a, b = np.array([[1024.0]]).astype(bfloat16), np.array([[1.0]]).astype(bfloat16)
    assert hgemm.matmul(a, b, scale_a=32.0) == 1024
    assert np.isinf(np.float32(hgemm.matmul(a, b, scale_a=64.0)))  # 65536 is no half


def test_infinity_and_nan(rng, bfloat16):
    a, b = rng.integers(1, 4, (20, 30)).astype(np.float64), rng.integers(1, 4, (30, 10)).astype(np.float64)
    a[3, 5], a[7, 9], b[2, 4] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
        result = hgemm.matmul(a.astype(bfloat16), b.astype(bfloat16), out_dtype="float32")
    np.testing.assert_array_equal(result, expected.astype(np.float32))
    assert hgemm.find_scale(a.astype(bfloat16)) == 2.0**14


@pytest.mark.parametrize("type_c, type_out", [("bfloat16", "bfloat16"), ("float16", "bfloat16"), ("bfloat16", "float32"), ("float32", "float16")])
def test_types_mix_in_all_but_a_and_b(type_c, type_out, integers, bfloat16):
    a, b, c, bias, gate = integers(3, 5, 6), integers(6, 4), integers(3, 5, 4), integers(4), integers(5, 4)
    expected = np.maximum(2 * (a.astype(np.float32) @ b.astype(np.float32)) - c + bias, 0) * gate
    assert np.abs(expected).max() <= 512 * (1 if type_out == "bfloat16" else 4)
    a, b, bias, gate = (x.astype(bfloat16) for x in (a, b, bias, gate))
    result = hgemm.matmul(a, b, alpha=2, c=c.astype(bfloat16 if type_c == "bfloat16" else type_c), beta=-1, bias=bias, gate=gate,
                          activation="relu", out_dtype=type_out)
    assert result.dtype == (bfloat16 if type_out == "bfloat16" else type_out)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(result.dtype).astype(np.float32))


def test_the_result_has_the_type_of_a_or_of_out(integers, bfloat16):
    a, b = integers(5, 6), integers(6, 4)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    x, y = a.astype(bfloat16), b.astype(bfloat16)
    assert hgemm.matmul(x, y).dtype == bfloat16 and hgemm.matmul(x, y, out_dtype=bfloat16).dtype == bfloat16
    assert hgemm.linear(x, y.T).dtype == bfloat16
    out = np.full((9, 9), np.nan, bfloat16)[2:7, 3:7]
    assert hgemm.matmul(x, y, out=out) is out
    np.testing.assert_array_equal(out.astype(np.float32), expected)
    hgemm.matmul(x, y, out=out, alpha=0, beta=-2)
    np.testing.assert_array_equal(out.astype(np.float32), -2 * expected)
    c = hgemm.array(np.arange(4, dtype=bfloat16))
    result = hgemm.matmul(hgemm.array(x), hgemm.array(y), c=c, out_dtype="float32")  # c is copied into the result first, and converted
    np.testing.assert_array_equal(result.numpy(), expected + np.arange(4))
    assert hgemm.matmul(hgemm.array(a), hgemm.array(b), out_dtype="bfloat16").dtype == bfloat16


def test_a_c_and_a_gate_stored_by_columns(integers):
    a, b, c, gate = integers(5, 6), integers(6, 4), integers(4, 5).T, integers(4, 5).T
    np.testing.assert_array_equal(hgemm.matmul(a, b, c=c, gate=gate), (a.astype(np.float32) @ b.astype(np.float32) + c) * gate)


def test_find_scale(rng, bfloat16):
    for largest, scale in ((1.0, 2.0**15), (1.5, 2.0**15), (2.0, 2.0**14), (2.0**-126, 2.0**126), (3e38, 2.0**-112), (0.0, 2.0**126)):
        x = np.full((7, 9), largest / 4).astype(bfloat16)
        x[4, 5] = -largest
        assert hgemm.find_scale(x) == scale
    x = np.zeros((4, 6, 10), bfloat16)
    x[2, 3, 7] = 1
    on = hgemm.array(x)
    for view, has_it in ((on, True), (on.transpose(2, 0, 1), True), (on[2], True), (on[2].T, True), (on[:, 3, :8], True), (on[2:3, :, 7], True),
                         (on[2, 3, 7], True), (on[2, 3, :8], True), (on[:2], False), (on[2, :, :7], False), (on[2, 4:], False)):
        assert float(hgemm.find_scale(view).numpy()) == (2.0**15 if has_it else 2.0**126), view.shape
    with pytest.raises(ValueError, match="x: an array of the shape .* is not evenly spaced lines"):
        hgemm.find_scale(on[:, 1:3, :8])
    with pytest.raises(TypeError, match="x: its type is float16; only bfloat16"):
        hgemm.find_scale(np.zeros(3, H))


def test_faults(bfloat16):
    a, b = np.ones((3, 5), bfloat16), np.ones((5, 7), bfloat16)
    for kind, words, arguments, options in (
            (hgemm.NotSupportedError, "No kernel has A of HGEMM_TYPE_F16 beside B of HGEMM_TYPE_BF16", (a.astype(H), b), {}),
            (hgemm.NotSupportedError, "HGEMM_ACCUMULATE_F16 for A and B of HGEMM_TYPE_BF16", (a, b), {"accumulate": "float16"}),
            (hgemm.NotSupportedError, "HGEMM_FLAG_BATCH_INVARIANT for an A", (a, b), {"batch_invariant": True}),
            (hgemm.ArgumentError, "scale_b is 3", (a, b), {"scale_b": 3.0}),
            (ValueError, "scale_a: a is float16, and only bfloat16 has a scale", (a.astype(H), b.astype(H)), {"scale_a": 1.0}),
            (ValueError, r"scale_a: its shape is \(2,\); it must be one number", (a, b), {"scale_a": np.ones(2, np.float32)}),
            (TypeError, "scale_a: it is in device memory, and the matrices are not", (a, b), {"scale_a": hgemm.array(np.float32(1))}),
            (TypeError, "scale_b: in device memory it must be one float32, not float16", (hgemm.array(a), hgemm.array(b)),
             {"scale_b": hgemm.array(H(1))})):
        with pytest.raises(kind, match=words):
            hgemm.matmul(*arguments, **options)
    whole = hgemm.matmul(a, b, batch_invariant=True, scale_a=2.0)
    assert (whole[1:2] == hgemm.matmul(a[1:2], b, batch_invariant=True, scale_a=2.0)).all()


# ---- interfaces: the memory is the emulated T4's, which passes for that of a GPU named cuda:0 ------------------------


@pytest.fixture
def device(monkeypatch):
    handle = _device.handle_for(None)
    monkeypatch.setattr(_device, "ordinal_of", lambda pointer: 0)
    monkeypatch.setattr(_device, "_handles", {(None, 0): handle, ("cuda:0", 0): handle})


class Cai:
    """An array that shows __cuda_array_interface__ as torch does for bfloat16."""

    def __init__(self, array, dtype="torch.bfloat16"):
        self.array, self.shape, self.dtype = array, array.shape, dtype
        self.__cuda_array_interface__ = {"version": 3, "shape": array.shape, "typestr": "<V2", "strides": array.strides,
                                         "data": (array.pointer, False)}


class Dlpack:
    """An array that shows DLPack: the capsule is numpy's, with the device's address and the code of bfloat16 put into it."""

    def __init__(self, array, dtype=None):
        self.array, self.shape, self.dtype = array, array.shape, "bfloat16"

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        host = np.lib.stride_tricks.as_strided(np.zeros(4096, np.uint16), self.shape, self.array.strides)
        capsule = host.__dlpack__()
        tensor = ctypes.cast(_arrays._capsule_pointer(capsule, b"dltensor"), ctypes.POINTER(_arrays._DLTensor)).contents
        tensor.data, tensor.code = self.array.pointer, 4  # kDLBfloat
        return capsule


@pytest.mark.parametrize("kind", [Cai, Dlpack])
@pytest.mark.parametrize("has_ml_dtypes", [True, False])
def test_interfaces(kind, has_ml_dtypes, device, integers, request, monkeypatch):
    if has_ml_dtypes:
        request.getfixturevalue("bfloat16")
    else:
        for module in (_types, _arrays, _device_array):
            monkeypatch.setattr(module, "BFLOAT16", np.dtype([("bfloat16", np.uint16)]))

    def to_numbers(array):
        return numbers(array.numpy().view(np.uint16))
    a, b = integers(6, 8), integers(8, 5)
    on = [_device_array.upload(bits(x).view(_types.BFLOAT16), _device.handle_for(None)) for x in (a, b)]
    result = hgemm.matmul(kind(on[0]), kind(on[1]))
    assert isinstance(result, hgemm.DeviceArray) and result.dtype == _types.BFLOAT16
    np.testing.assert_array_equal(to_numbers(result), a.astype(np.float32) @ b.astype(np.float32))
    wrapped = kind(result)
    assert hgemm.matmul(kind(on[0]), kind(on[1]), out=wrapped, alpha=2) is wrapped
    np.testing.assert_array_equal(to_numbers(result), 2 * (a.astype(np.float32) @ b.astype(np.float32)))
    assert float(hgemm.find_scale(kind(on[0])).numpy()) == 2.0**14
    if not has_ml_dtypes:
        with pytest.raises(TypeError, match="c: without the package ml_dtypes nothing converts"):
            hgemm.matmul(*on, c=on[1][0], out_dtype="float32")


def test_two_bytes_of_no_named_type_are_refused(device, integers):
    on = [hgemm.array(integers(4, 4)) for _ in range(2)]
    with pytest.raises(TypeError, match="a: its type is void16"):
        hgemm.matmul(Cai(on[0], "something"), Cai(on[1]))
