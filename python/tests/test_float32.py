# SPDX-License-Identifier: MIT
"""Products of float32: as exact as docs/contract.md says, over all of FP32's range."""
import numpy as np
import pytest

import hgemm

F = np.float32


def assert_bounded(result, a, b):
    """Every element is within the contract's bound of a @ b, beside the rounding of a float."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    k, sums, absolute = a.shape[-1], x @ y, np.abs(x) @ np.abs(y)
    units = 40 + min(k / 16, 32) + k / 200 + k / 32
    assert result.dtype == F
    assert (np.abs(result - sums) <= units * 2.0**-24 * absolute + 2.0**-24 * np.abs(sums) + 2.0**-149).all()


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(F)


def spread(rng, *shape):
    """80 binades in each row and column."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-40, 41, shape)).astype(F)


def far_apart(rng, *shape):
    """Rows, and columns, whose magnitudes differ by 2^100."""
    return np.ldexp(rng.standard_normal(shape), np.linspace(-50, 50, shape[0]).astype(int)[:, None]).astype(F)


def tiny(rng, *shape):
    return (rng.standard_normal(shape) * 2.0**-128).astype(F)  # most are subnormal


@pytest.mark.parametrize("draw_a, draw_b", [(normal, normal), (spread, normal), (normal, spread), (far_apart, normal), (tiny, normal)])
@pytest.mark.parametrize("m, n, k", [(40, 33, 72), (5, 64, 300), (130, 70, 64)])
def test_as_exact_as_the_contract_says(draw_a, draw_b, m, n, k, rng):
    a, b = draw_a(rng, m, k), draw_b(rng, n, k).T
    for x, y in ((a, b), (np.ascontiguousarray(a.T).T, np.ascontiguousarray(b))):
        assert_bounded(hgemm.matmul(x, y), a, b)


def units_of(accuracy, k):
    """What the contract promises, in 2^-24 of the sum of magnitudes."""
    return {"16bits": 768 + k / 64 + k / 32, "11bits": 16384 + 1024 + k / 512 + k / 32}[accuracy]


@pytest.mark.parametrize("accuracy", ["16bits", "11bits"])
@pytest.mark.parametrize("draw", [normal, spread, far_apart, tiny])
def test_an_accuracy_is_kept(accuracy, draw, rng):
    a, b = draw(rng, 40, 72), normal(rng, 72, 36)
    x, y = a.astype(np.float64), b.astype(np.float64)
    allowed = units_of(accuracy, 72) * 2.0**-24 * (np.abs(x) @ np.abs(y)) + 2.0**-24 * np.abs(x @ y) + 2.0**-149
    result = hgemm.matmul(a, b, accuracy=accuracy)
    assert result.dtype == F and (np.abs(result - x @ y) <= allowed).all()
    np.testing.assert_array_equal(hgemm.linear(a, b.T, accuracy=accuracy), result)
    np.testing.assert_allclose(hgemm.grouped(a, b[None], np.array([40], np.int32), accuracy=accuracy), x @ y, atol=allowed.max())


def test_an_accuracy_is_made_use_of(rng):
    a, b = normal(rng, 512, 512), normal(rng, 512, 512)  # where a T4 gains by one product, and by two nothing
    assert not np.array_equal(hgemm.matmul(a, b, accuracy="11bits"), hgemm.matmul(a, b))


@pytest.mark.parametrize("halves", ["float16", "bfloat16"])
def test_halves_beside_floats(halves, rng):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    half = np.dtype(np.float16 if halves == "float16" else ml_dtypes.bfloat16)
    a, b = normal(rng, 30, 64), normal(rng, 64, 24).astype(half)
    assert_bounded(hgemm.matmul(a, b), a, b.astype(F))
    assert_bounded(hgemm.matmul(b.T, a.T), b.astype(F).T, a.T)
    assert_bounded(hgemm.grouped(a, b[None], np.array([30], np.int64)), a, b.astype(F))
    assert hgemm.matmul(a, b, out_dtype="float16").dtype == np.float16
    with pytest.raises(ValueError, match="scale_b: .*(beside float32|only bfloat16)"):
        hgemm.matmul(a, b, scale_b=1.0)


def test_rows_do_not_depend_on_others(rng):
    a, b = spread(rng, 40, 96), normal(rng, 96, 24)
    a[::2] = normal(rng, 20, 96)
    whole = hgemm.matmul(a, b, batch_invariant=True)
    assert_bounded(whole, a, b)
    for rows in (slice(3, 4), slice(0, 17), slice(30, 40)):
        np.testing.assert_array_equal(hgemm.matmul(a[rows], b, batch_invariant=True), whole[rows])


def test_exact_integers(rng):
    a, b = rng.integers(-2**11, 2**11, (30, 4)).astype(F), rng.integers(-2**10, 2**10, (4, 20)).astype(F)
    np.testing.assert_array_equal(hgemm.matmul(a, b), a.astype(np.float64) @ b.astype(np.float64))


def test_infinity_and_nan(rng):
    a, b = rng.integers(1, 4, (20, 30)).astype(F), rng.integers(1, 4, (30, 10)).astype(F)
    a[3, 5], a[7, 9], b[2, 4], a[11, 2] = np.inf, np.nan, -np.inf, 3e38
    with np.errstate(invalid="ignore", over="ignore"):
        expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(F)
        np.testing.assert_array_equal(hgemm.matmul(a, b), expected)


@pytest.mark.parametrize("out_dtype", ["float16", "bfloat16", "float32"])
def test_epilogues_batches_and_results_of_any_type(out_dtype, integers):
    a, b, c, bias, gate = (integers(*shape) for shape in ((3, 5, 6), (6, 4), (3, 5, 4), (4,), (5, 4)))
    expected = np.maximum(2 * (a.astype(F) @ b.astype(F)) - c + bias, 0) * gate
    result = hgemm.matmul(a.astype(F), b.astype(F), alpha=2, c=c.astype(F), beta=-1, bias=bias.astype(F), gate=gate, activation="relu",
                          out_dtype=out_dtype)
    assert str(result.dtype) == out_dtype or out_dtype == "bfloat16"
    if out_dtype != "bfloat16":
        np.testing.assert_array_equal(result, expected)


def test_the_result_is_of_float32_or_of_outs_type(integers):
    a, b = integers(5, 6).astype(F), integers(6, 4).astype(F)
    assert hgemm.matmul(a, b).dtype == F and hgemm.linear(a, b.T).dtype == F and hgemm.matmul(a[0], b[:, 0]).shape == ()
    out = np.full((9, 9), np.nan, F)[2:7, 3:7]
    assert hgemm.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    hgemm.matmul(a, b, out=out, alpha=0, beta=-2)
    np.testing.assert_array_equal(out, -2 * (a @ b))
    half = np.empty((5, 4), np.float16)
    np.testing.assert_array_equal(hgemm.matmul(a, b, out=half), a @ b)
    on = hgemm.matmul(hgemm.array(a), hgemm.array(b))
    assert isinstance(on, hgemm.DeviceArray) and on.dtype == F
    np.testing.assert_array_equal(on.numpy(), a @ b)


def test_several_dimensions_of_a_batch(integers):
    """Of which each call of the library has one: addresses are in bytes of floats."""
    a, b = integers(2, 3, 4, 5).astype(F), integers(3, 2, 5, 6).astype(F).swapaxes(0, 1)
    np.testing.assert_array_equal(hgemm.matmul(a, b), a @ b)


def test_groups(integers):
    a, b, bias = integers(9, 5).astype(F), integers(3, 5, 7).astype(F), integers(3, 7).astype(F)
    ends, gather = np.array([2, 2, 7], np.int32), np.array([8, 0, 1, 3, 3, 2, 6], np.int32)
    expected = np.concatenate([a[gather[:2]] @ b[0] + bias[0], a[gather[2:]] @ b[2] + bias[2]])
    result = hgemm.grouped(a, b, ends, gather_a=gather, bias=bias)
    assert result.dtype == F
    np.testing.assert_array_equal(result, expected)


def test_faults(integers):
    a, b = integers(3, 5).astype(F), integers(5, 7).astype(F)
    for kind, words, arguments, options in (
            (hgemm.NotSupportedError, "HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32", (a, b), {"accumulate": "float16"}),
            (hgemm.NotSupportedError, "HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32", (a, b.astype(np.float16)), {"accumulate": "float16"}),
            (ValueError, "accuracy: '12bits' is none of", (a, b), {"accuracy": "12bits"}),
            (ValueError, "scale_a: a is float32, and only bfloat16 has a scale", (a, b), {"scale_a": 1.0}),
            (TypeError, "a: its type is float64, not float16, bfloat16 or float32", (a.astype(np.float64), b), {}),
            (TypeError, "b: its type is int32, not float16, bfloat16 or float32", (a, b.astype(np.int32)), {})):
        with pytest.raises(kind, match=words):
            hgemm.matmul(*arguments, **options)
    with pytest.raises(TypeError, match="x: its type is float32; only bfloat16 has a scale"):
        hgemm.find_scale(a)
