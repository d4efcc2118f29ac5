# SPDX-License-Identifier: MIT
"""hgemm.grouped: groups of rows, each by a matrix of its own, with gathered and scattered rows. Integers: bit for bit."""
import numpy as np
import pytest

import hgemm
from hgemm import _c

if not _c.has_epilogues():
    pytest.skip("this libhgemm has no groups", allow_module_level=True)

SIZES = [(5, 0, 7, 6), (0, 0, 9), (1,), (40, 3, 70)]


def product(a, b, sizes):
    """Rows that no group has are 0."""
    d, begin = np.zeros((len(a), b.shape[2]), np.float32), 0
    for size, matrix in zip(sizes, b):
        d[begin:begin + size] = a[begin:begin + size].astype(np.float32) @ matrix.astype(np.float32)
        begin += size
    return d


def ends(sizes, dtype=np.int32):
    return np.cumsum(sizes).astype(dtype)


def same(result, expected):
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(result, np.float32), expected)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_groups(sizes, transposed, dtype, integers):
    a, b = integers(sum(sizes) + 2, 24), integers(len(sizes), 24, 17)
    if transposed:
        b = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)
    result = hgemm.grouped(a, b, ends(sizes, dtype))
    assert result.dtype == np.float16
    same(result, product(a, b, sizes))
    out = np.full((len(a), 17), 7, np.float16)
    assert hgemm.grouped(a, b, ends(sizes, dtype), out=out) is out
    same(out[:-2], product(a, b, sizes)[:-2])
    assert (out[-2:] == 7).all()  # no group's
    on = [hgemm.array(x) for x in (a, b, ends(sizes, dtype))]
    same(hgemm.grouped(*on, alpha=2).numpy()[:-2], 2 * product(a, b, sizes)[:-2])
    wide = hgemm.array(np.full((len(a), 21), 7, np.float16))
    hgemm.grouped(*on, out=wide[:, 2:19])
    same(wide[:-2, 2:19].numpy(), product(a, b, sizes)[:-2])
    assert (wide[:, :2].numpy() == 7).all() and (wide[:, 19:].numpy() == 7).all() and (wide[-2:].numpy() == 7).all()


def test_epilogue(integers):
    sizes, n = (5, 0, 12), 16
    a, b, bias, c, gate = integers(17, 24), integers(3, 24, n), integers(3, n), integers(17, n), integers(17, n)
    expected = np.maximum(product(a, b, sizes) + 2 * c + np.repeat(bias, sizes, 0), 0) * gate
    same(hgemm.grouped(a, b, ends(sizes), c=c, beta=2, bias=bias, activation="relu", gate=gate, out_dtype="float32"), expected)
    same(hgemm.grouped(a, b, ends(sizes), bias=bias[0]), product(a, b, sizes) + bias[0])
    out = c.copy()
    same(hgemm.grouped(a, b, ends(sizes), out=out, beta=-1), product(a, b, sizes) - c)
    on = [hgemm.array(x) for x in (a, b, ends(sizes))]
    scale = hgemm.array(np.array([3], np.float32))
    same(hgemm.grouped(*on, alpha=scale, c=hgemm.array(c), accumulate="float16").numpy(), 3 * product(a, b, sizes) + c)
    same(hgemm.grouped(a, b, ends(sizes), bias=np.asfortranarray(bias)), product(a, b, sizes) + np.repeat(bias, sizes, 0))


def test_experts(rng, integers):
    """Two experts for each token: rows gathered by expert, scattered back to where each token's choices are."""
    tokens, experts, n = 20, 5, 24
    x, w, residual = integers(tokens, 32), integers(experts, 32, n), integers(tokens * 2, n)
    choice = np.stack([rng.permutation(experts)[:2] for _ in range(tokens)]).reshape(-1)
    order = np.argsort(choice, kind="stable").astype(np.int32)
    gather, sizes = (order // 2).astype(np.int32), np.bincount(choice, minlength=experts)
    expected = np.stack([x[i // 2].astype(np.float32) @ w[choice[i]].astype(np.float32) for i in range(2 * tokens)])
    same(hgemm.grouped(x, w, ends(sizes), gather_a=gather, scatter_d=order), expected)
    same(hgemm.grouped(x, w, ends(sizes), gather_a=gather), expected[order])
    out = np.full((2 * tokens + 6, n), 7, np.float16)
    hgemm.grouped(x, w, ends(sizes), gather_a=gather, scatter_d=order + 3, out=out)
    same(out[3:-3], expected)
    assert (out[:3] == 7).all() and (out[-3:] == 7).all()
    same(hgemm.grouped(x, w, ends(sizes), gather_a=gather, scatter_d=order, c=residual, activation="relu"), np.maximum(expected + residual, 0))


def test_one_row_of_many(integers):
    """A single row says nothing of how far apart the stored ones are."""
    x, w, out = integers(9, 40), integers(1, 32, 8), np.full((7, 13), 7, np.float16)
    for at, to in ((0, 0), (5, 3)):
        on = hgemm.array(out)
        hgemm.grouped(hgemm.array(x)[:, 3:35], hgemm.array(w), hgemm.array(ends((1,))), gather_a=hgemm.array(np.array([at], np.int32)),
                      scatter_d=hgemm.array(np.array([to], np.int32)), out=on[:, 2:10])
        expected = out.astype(np.float32)
        expected[to, 2:10] = x[at, 3:35].astype(np.float32) @ w[0].astype(np.float32)
        same(on.numpy(), expected)


def test_a_row_does_not_depend_on_its_group(rng):
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((50, 192), (3, 192, 40)))
    whole = hgemm.grouped(a, b, ends((20, 29, 1)), batch_invariant=True)
    np.testing.assert_array_equal(hgemm.grouped(a[20:25], b[1:2], ends((5,)), batch_invariant=True), whole[20:25])


def test_bfloat16(rng, fused):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
    sizes = (5, 0, 12)
    a, b = (np.ldexp(rng.integers(-3, 4, shape), power).astype(bfloat16) for shape, power in (((17, 24), 60), ((3, 24, 16), -50)))
    expected = product(a, b, sizes)
    same(fused(hgemm.grouped, a, b, ends(sizes), out_dtype="float32"), expected)
    on = [hgemm.array(x) for x in (a, b, ends(sizes))]
    result = hgemm.grouped(*on, scale_b=hgemm.find_scale(on[1]), gather_a=hgemm.array(np.arange(17, dtype=np.int32)[::-1]))
    same(result.numpy(), product(a[::-1], b, sizes).astype(bfloat16).astype(np.float32))


H, I = np.float16, np.int32
A, B, ENDS = np.zeros((6, 8), H), np.zeros((2, 8, 5), H), np.array([2, 6], I)


@pytest.mark.parametrize("arguments, options, kind, words", [
    ((A[0], B, ENDS), {}, ValueError, r"a: its shape \(8,\) has 1 dimensions, not 2"),
    ((A, B[0], ENDS), {}, ValueError, r"b: its shape \(8, 5\) has 2 dimensions, not 3"),
    ((A[:, :7], B, ENDS), {}, ValueError, "b: its matrices have 8 rows, and a has 7 columns"),
    ((A, B, ENDS[:1]), {}, ValueError, "group_ends: it has 1 elements, and b has 2 matrices"),
    ((A, B, ENDS.astype(H)), {}, TypeError, "group_ends: its type is float16, not int32 or int64"),
    ((A, B, ENDS), {"gather_a": np.zeros(3, np.int64)}, TypeError, "gather_a: its type is int64, and group_ends' is int32"),
    ((A, B, ENDS), {"scatter_d": np.zeros(3, I)}, ValueError, "scatter_d: it has 3 elements for 6 rows"),
    ((A, B, ENDS), {"out": np.zeros((7, 5), H)}, ValueError, r"out: its shape is \(7, 5\), the result's is \(6, 5\)"),
    ((A, B, ENDS), {"gate": np.zeros((1, 5), H)}, ValueError, r"gate: its shape is \(1, 5\), the result's is \(6, 5\)"),
    ((A, B, ENDS), {"bias": np.zeros((6, 5), H)}, ValueError, r"bias: its shape is \(6, 5\), not \(2, 5\) or \(5,\)"),
    ((A, B.astype(np.float64), ENDS), {}, TypeError, "b: its type is float64, not float16, bfloat16 or float32"),
    ((A, B, ENDS), {"beta": 1}, ValueError, "beta: there is nothing to multiply"),
    ((A, B, ENDS), {"scale_b": 2.0}, ValueError, "scale_b: b is float16"),
    ((A, B, ENDS), {"activation": "tanh"}, ValueError, "activation: 'tanh' is none of")])
def test_faults_name_the_argument(arguments, options, kind, words):
    with pytest.raises(kind, match=words):
        hgemm.grouped(*arguments, **options)


def test_faults_of_device_arrays():
    a, b, by_twos = hgemm.array(A), hgemm.array(B), hgemm.array(np.zeros(4, I))[::2]
    with pytest.raises(ValueError, match="group_ends: its elements are 2 apart"):
        hgemm.grouped(a, b, by_twos)
    with pytest.raises(ValueError, match="group_ends: it is in host memory, and a is in a device's"):
        hgemm.grouped(a, b, ENDS)
    with pytest.raises(hgemm.ArgumentError, match="out: .*OVERLAP"):
        hgemm.grouped(a[:, :5], hgemm.array(B[:, :5]), hgemm.array(ENDS), out=a[:, 3:])
