# SPDX-License-Identifier: MIT
"""Packed weights from numpy, on the emulated T4: what is unpacked is the matrix, and products are those with it."""
import numpy as np
import pytest

import hgemm
from hgemm import _c, formats
from random_weights import KINDS, made, words

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")


@pytest.mark.parametrize("code, zeros", KINDS)
@pytest.mark.parametrize("n, k, group", [(40, 96, 32), (24, 80, 16), (9, 130, 0), (33, 300, 128)])
def test_unpacked_it_is_the_matrix(rng, code, zeros, n, k, group):
    scale = ("float16", "float32", "bfloat16")[(n + len(code)) % 3 if zeros != "real" else n % 2]
    weights = made(rng, code, n, k, group, zeros, scale)
    packed = hgemm.pack(weights)
    assert packed.shape == (n, k) and packed.code == weights.code and packed.group == (group or k)
    assert packed.data.nbytes == packed.nbytes
    np.testing.assert_array_equal(packed.unpack("float32"), weights.dequantize())
    np.testing.assert_array_equal(packed.unpack(), weights.dequantize().astype(np.float16))


@pytest.mark.parametrize("code, zeros", KINDS)
@pytest.mark.parametrize("shape", [(1, 96), (3, 7, 96), (96,), (40, 96)])
def test_linear(rng, code, zeros, shape):
    weights = made(rng, code, 40, 96, 32, zeros)
    x = rng.integers(-2, 3, shape).astype(np.float16)
    y = hgemm.linear(x, hgemm.pack(weights), out_dtype="float32")
    np.testing.assert_array_equal(y, (x.astype(np.float64) @ weights.dequantize().astype(np.float64).T).astype(np.float32))


def test_everything_beside_the_product(rng):
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights), weights.dequantize().astype(np.float64)
    x, c = rng.integers(-2, 3, (2, 3, 64)).astype(np.float16), rng.integers(-3, 4, (2, 3, 24)).astype(np.float32)
    bias, gate = rng.integers(-3, 4, 24).astype(np.float16), rng.integers(-1, 2, (3, 24)).astype(np.float16)
    out = np.zeros((2, 3, 24), np.float32)
    wanted = np.maximum(2 * (x.astype(np.float64) @ matrix.T) + 0.5 * c + bias, 0) * gate
    assert hgemm.linear(x, packed, bias, c=c, alpha=2, beta=0.5, activation="relu", gate=gate, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(hgemm.linear(x, packed, batch_invariant=True), (x.astype(np.float64) @ matrix.T).astype(np.float16))
    device = hgemm.linear(hgemm.array(x), packed, out_dtype="float32")
    assert isinstance(device, hgemm.DeviceArray)
    np.testing.assert_array_equal(device.numpy(), x.astype(np.float64) @ matrix.T)
    transposed = np.asfortranarray(x[0])
    np.testing.assert_array_equal(hgemm.linear(transposed, packed, out_dtype="float32"), x[0].astype(np.float64) @ matrix.T)


def test_bfloat16(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    weights = made(rng, "int4", 24, 64, 32)
    x = (rng.integers(-2, 3, (5, 64)) * 1e5).astype(ml_dtypes.bfloat16)
    y = hgemm.linear(x, hgemm.pack(weights), out_dtype="float32")
    wanted = x.astype(np.float64) @ weights.dequantize().astype(np.float64).T
    assert np.isfinite(y).all() and np.abs(y - wanted).max() <= 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("code, zeros", KINDS)
def test_an_outlier_among_activations_of_bfloat16(rng, code, zeros):
    """No scale serves a row of 1e20 and the others: each row is right."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    weights = made(rng, code, 40, 96, 32, zeros)
    packed, matrix = hgemm.pack(weights), weights.dequantize().astype(np.float64)
    x = rng.standard_normal((7, 96))
    x[3, 11] = 1e20
    x = x.astype(ml_dtypes.bfloat16)
    y, wanted = hgemm.linear(x, packed, out_dtype="float32"), x.astype(np.float64) @ matrix.T
    assert (np.abs(y - wanted) <= 2.0**-17 * (np.abs(x.astype(np.float64)) @ np.abs(matrix).T)).all()


@pytest.mark.parametrize("m, n, k", [(0, 24, 64), (3, 0, 64), (3, 24, 0), (0, 0, 0)])
def test_sizes_of_0(m, n, k):
    weights = hgemm.Weights(np.ones((n, k), int), np.ones((n, 2 if k else 0), np.float16), "int4", group=32)
    packed, x, bias = hgemm.pack(weights), np.ones((m, k), np.float16), np.full(n, 2, np.float16)
    np.testing.assert_array_equal(hgemm.linear(x, packed, bias, accuracy="16bits"), np.full((m, n), 2 + k, np.float16))
    assert packed.unpack().shape == (n, k)
    np.testing.assert_array_equal(hgemm.grouped(x, hgemm.pack([weights, weights]), np.array([0, m], np.int32)), np.full((m, n), k, np.float16))


@pytest.mark.parametrize("code, zeros", KINDS)
def test_infinities_and_nan(rng, code, zeros):
    """As IEEE 754 has them. Beside offsets an infinity may be NaN, and no more than its row is touched."""
    weights = made(rng, code, 50, 128, 32, zeros)
    x = rng.integers(-2, 3, (5, 128)).astype(np.float16)
    x[0, 5], x[1, 7], x[2, 9] = np.inf, np.nan, -np.inf
    y = hgemm.linear(x, hgemm.pack(weights), out_dtype="float32")
    with np.errstate(invalid="ignore"):
        wanted = (x.astype(np.float64) @ weights.dequantize().T.astype(np.float64)).astype(np.float32)
    if zeros == "real":
        assert not np.isfinite(y[:3]).any() and np.isnan(y[1]).all()
        y[:3] = wanted[:3]
    np.testing.assert_array_equal(y, wanted)


def test_act_order(rng):
    n, k, groups = 16, 128, 4
    weights = formats.gptq(words(rng, k // 8, n), words(rng, groups, n // 8), np.exp2(rng.integers(-5, 0, (groups, n))).astype(np.float16),
                           rng.permutation(np.arange(k) // 32).astype(np.int32), version=2)
    packed = hgemm.pack(weights)
    assert packed.order is not None
    np.testing.assert_array_equal(packed.unpack("float32"), weights.dequantize())
    x = rng.integers(-2, 3, (3, k)).astype(np.float16)
    np.testing.assert_array_equal(hgemm.linear(x, packed, out_dtype="float32"), x.astype(np.float64) @ weights.dequantize().astype(np.float64).T)
    with pytest.raises(TypeError, match="act-order"):
        hgemm.linear(hgemm.array(x), packed)


@pytest.mark.parametrize("code, zeros", [("int4", None), ("uint4", "integer"), ("table16", None)])
def test_experts(rng, code, zeros):
    weights = [made(rng, code, 40, 64, 32, zeros) for _ in range(3)]
    packed = hgemm.pack(weights)
    assert packed.shape == (3, 40, 64) and packed.unpack("float32").shape == (3, 40, 64)
    x, ends = rng.integers(-2, 3, (11, 64)).astype(np.float16), np.array([4, 4, 11], np.int32)
    wanted = np.concatenate([x[begin:end].astype(np.float64) @ one.dequantize().astype(np.float64).T
                             for one, begin, end in zip(weights, (0, 4, 4), ends)])
    np.testing.assert_array_equal(hgemm.grouped(x, packed, ends, out_dtype="float32"), wanted)
    gather, scatter = rng.integers(0, 11, 11).astype(np.int32), rng.permutation(11).astype(np.int32)
    wanted = np.concatenate([x[gather][begin:end].astype(np.float64) @ one.dequantize().astype(np.float64).T
                             for one, begin, end in zip(weights, (0, 4, 4), ends)])
    found = hgemm.grouped(x, packed, ends, gather_a=gather, scatter_d=scatter, out_dtype="float32")
    np.testing.assert_array_equal(found[scatter], wanted)


def test_what_is_refused(rng):
    weights = made(rng, "int4", 24, 64, 32)
    packed, x = hgemm.pack(weights), rng.integers(-2, 3, (5, 64)).astype(np.float16)
    for arguments, error, match in (
            ({"x": x[:, :63]}, ValueError, r"x: its shape is \(5, 63\), not \(..., 64\)"), ({"x": x.astype(np.float32)}, TypeError, "x: its type is float32"),
            ({"accumulate": "float16"}, hgemm.NotSupportedError, "accumulate"), ({"scale_b": 1.0}, ValueError, "scale_b"),
            ({"bias": np.zeros(23, np.float16)}, ValueError, "bias: its shape"), ({"c": hgemm.array(x)}, ValueError, "c: it is in a device's"),
            ({"scale_a": 1.0}, ValueError, "scale_a"), ({"activation": "tanh"}, ValueError, "activation"), ({"accuracy": 1}, ValueError, "accuracy"),
            ({"out": np.zeros((24, 5), np.float16).T[:4]}, ValueError, "out: its shape")):
        with pytest.raises(error, match=match):
            hgemm.linear(**{"x": x, "weight": packed, **arguments})
    for wrong, error, match in (([], ValueError, "there are none"), (x, TypeError, "no hgemm.Weights"), (None, TypeError, "no hgemm.Weights"),
                                ([weights, made(rng, "int8", 24, 64, 32)], ValueError, "number 1 is <hgemm.Weights 24x64, int8")):
        with pytest.raises(error, match=match):
            hgemm.pack(wrong)
    with pytest.raises(ValueError, match="packed for 2 experts"):
        hgemm.linear(x, hgemm.pack([weights, weights]))
    with pytest.raises(ValueError, match="not packed for experts"):
        hgemm.grouped(x, packed, np.array([5], np.int32))
    for call, words_ in ((lambda: hgemm.matmul(x, packed), "PackedWeights is no array: .* the weight of hgemm.linear"),
                         (lambda: hgemm.linear(x, weights), r"weight: a .*Weights is no array: hgemm.pack\(...\) packs it"),
                         (lambda: hgemm.matmul(x, weights), r"b: a .*Weights is no array: hgemm.pack"),
                         (lambda: hgemm.grouped(x, [weights, weights], np.array([2, 5])), "b: a builtins.list is no array: hgemm.pack.* hgemm.grouped"),
                         (lambda: hgemm.grouped(x, (packed,), np.array([5])), "b: a builtins.tuple is no array: .*packed together, the b of hgemm.grouped")):
        with pytest.raises(TypeError, match=words_):
            call()
