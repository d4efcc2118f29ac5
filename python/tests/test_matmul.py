# SPDX-License-Identifier: MIT
"""hgemm.matmul and hgemm.linear against numpy: shapes, strides, scalars, epilogues, faults. Integers: bit for bit."""
import itertools
import math
import pathlib
import re
import threading

import numpy as np
import pytest

import hgemm
from hgemm import _call, _device, _device_array
from hgemm._activations import ACTIVATIONS


def product(a, b):
    return np.matmul(a.astype(np.float32), b.astype(np.float32))


def same(result, expected):
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(result, np.float32), expected.astype(np.float32))


SHAPES = [  # a, b
    ((3, 5), (5, 7)), ((16, 32), (32, 8)), ((33, 17), (17, 65)), ((1, 1), (1, 1)),
    ((5,), (5,)), ((5,), (5, 7)), ((3, 5), (5,)), ((4, 3, 5), (5,)), ((5,), (4, 5, 7)),
    ((4, 3, 5), (5, 7)), ((3, 5), (4, 5, 7)), ((4, 3, 5), (4, 5, 7)), ((1, 3, 5), (4, 5, 7)), ((4, 3, 5), (1, 5, 7)),
    ((2, 1, 3, 5), (4, 5, 7)), ((2, 4, 3, 5), (2, 1, 5, 7)), ((2, 1, 3, 1, 4, 6), (1, 3, 1, 2, 6, 5)), ((2, 4, 1, 5), (5, 7)),
    ((0, 5), (5, 7)), ((3, 0), (0, 7)), ((3, 5), (5, 0)), ((0, 3, 5), (5, 7)),
]


@pytest.mark.parametrize("shape_a, shape_b", SHAPES)
def test_shapes_broadcast_as_in_numpy(shape_a, shape_b, integers):
    a, b = integers(*shape_a), integers(*shape_b)
    result = hgemm.matmul(a, b)
    assert result.dtype == np.float16
    same(result, product(a, b))


def padded(integers, shape, order, pad):
    """A view of a larger DeviceArray, rows or columns contiguous; and what it holds."""
    big = integers(*shape[:-2], shape[-2] + pad, shape[-1] + pad)
    if order == "columns":
        big = np.ascontiguousarray(big.swapaxes(-1, -2))
    on_device = hgemm.array(big)
    if order == "columns":
        big = big.swapaxes(-1, -2)
        on_device = on_device.transpose(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    cut = (Ellipsis, slice(pad, None), slice(0, shape[-1]))
    return on_device[cut], big[cut]


@pytest.mark.parametrize("order_a, order_b, order_out, batched",
                         list(itertools.product(("rows", "columns"), ("rows", "columns"), ("rows", "columns"), (False, True))))
def test_strides_are_used_where_they_are(order_a, order_b, order_out, batched, integers, monkeypatch):
    batch = (3,) if batched else ()
    a, host_a = padded(integers, batch + (6, 11), order_a, 2)
    b, host_b = padded(integers, batch + (11, 9), order_b, 1)
    out, before = padded(integers, batch + (6, 9), order_out, 5)
    for owner, name in ((_call, "upload"), (hgemm.DeviceArray, "copy_from")):
        monkeypatch.setattr(owner, name, None)  # nothing may be copied
    assert hgemm.matmul(a, b, out=out, alpha=2, beta=-1) is out
    same(out.numpy(), 2 * product(host_a, host_b) - before)


def test_what_lies_between_the_rows_of_out_stays(integers):
    a, b = hgemm.array(integers(4, 8)), hgemm.array(integers(8, 5))
    big = integers(6, 9)
    out = hgemm.array(big)
    hgemm.matmul(a, b, out=out[1:5, 2:7])
    big[1:5, 2:7] = product(a.numpy(), b.numpy())
    same(out.numpy(), big)


def test_a_batch_that_shares_b_is_one_product(integers, monkeypatch):
    seen = []

    def look(handle, desc):
        seen.append(tuple(getattr(desc._obj, field) for field in ("batch", "m", "n", "k")))
    monkeypatch.setattr(_device.Handle, "run", look)
    hgemm.matmul(integers(2, 3, 4, 5), integers(5, 7))
    hgemm.matmul(integers(2, 1, 4, 5), integers(1, 3, 5, 7))
    hgemm.matmul(integers(6, 4, 5), integers(6, 5, 7))
    hgemm.matmul(hgemm.array(integers(2, 3, 8, 5))[:, :, :4], hgemm.array(integers(5, 7)))
    assert seen == [(1, 24, 7, 5), (3, 4, 7, 5), (3, 4, 7, 5), (6, 4, 7, 5), (6, 4, 7, 5)]


def test_c_and_scalars(integers):
    a, b, c = integers(5, 6), integers(6, 4), integers(5, 4)
    same(hgemm.matmul(a, b, c=c), product(a, b) + c)
    same(hgemm.matmul(a, b, c=c, alpha=-2, beta=0.5), -2 * product(a, b) + 0.5 * c)
    same(hgemm.matmul(a, b, c=c[:1], beta=2), product(a, b) + 2 * c[:1])
    same(hgemm.matmul(a, b, c=c[:, :1]), product(a, b) + c[:, :1])
    same(hgemm.matmul(a, b, c=c[0]), product(a, b) + c[0])
    out = c.copy()
    assert hgemm.matmul(a, b, out=out, beta=3) is out
    same(out, product(a, b) + 3 * c)
    out = np.full((8, 8), np.nan, np.float16)[1:6, 2:6]
    same(hgemm.matmul(a, b, out=out), product(a, b))  # beta 0 reads no out
    same(hgemm.matmul(a, b, alpha=np.float32(3)), 3 * product(a, b))


def test_c_of_a_batch_on_the_device(integers):
    a, b, c = integers(3, 5, 6), integers(3, 6, 4), integers(5, 4)
    on = [hgemm.array(x) for x in (a, b, c)]
    same(hgemm.matmul(on[0], on[1], c=on[2]).numpy(), product(a, b) + c)
    same(hgemm.matmul(on[0], on[1], c=on[2][0]).numpy(), product(a, b) + c[0])


def test_linear(integers):
    x, w = integers(2, 3, 8), integers(5, 8)
    same(hgemm.linear(x, w), product(x, w.T))
    same(hgemm.linear(x[0, 0], w), product(x[0, 0], w.T))
    same(hgemm.linear(x, w[0]), product(x, w[0]))


def test_sums_are_single_by_default_and_half_when_asked():
    a, b = np.ones((16, 4096), np.float16), np.ones((4096, 16), np.float16)  # thin products are summed in single precision anyway
    assert (hgemm.matmul(a * np.float16(4), b * np.float16(4), alpha=0.5) == 32768).all()  # the sum, 65536, is no half
    assert np.isinf(hgemm.matmul(a * np.float16(4), b * np.float16(4), alpha=0.5, accumulate="float16")).all()


def test_random_numbers(rng):
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((65, 130), (130, 71)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    limit = 2.0**-11 * np.abs(exact) + 2.0**-20 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)))
    assert (np.abs(hgemm.matmul(a, b) - exact) <= limit).all()


def test_kernels_by_name(integers):
    a, b = integers(32, 16), integers(16, 24)
    names = [kernel["name"] for kernel in hgemm.kernels()]
    assert names[:2] == ["k0_naive", "k1_tiled"]
    for kernel in hgemm.kernels()[:4]:
        same(hgemm.matmul(a, b, kernel=kernel["name"], accumulate=kernel["accumulate"]), product(a, b))
    with pytest.raises(ValueError, match="kernel: none is called 'k9'"):
        hgemm.matmul(a, b, kernel="k9")


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


FUNCTIONS = {"none": lambda x: x, "relu": lambda x: np.maximum(x, 0), "gelu_tanh": gelu_tanh, "silu": lambda x: x / (1 + np.exp(-x)),
             "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, integers, fused):
    a, b, c, bias = integers(5, 6), integers(6, 4), integers(5, 4), integers(4)
    result = fused(hgemm.matmul, a, b, c=c, bias=bias, activation=name)
    np.testing.assert_allclose(result.astype(np.float64), FUNCTIONS[name](product(a, b).astype(np.float64) + c + bias), rtol=2e-3, atol=2e-3)


def test_bias(integers, fused):
    a, b, column, row = integers(3, 5, 6), integers(6, 4), integers(4), integers(5, 1)
    same(fused(hgemm.matmul, a, b, bias=column), product(a, b) + column)
    same(fused(hgemm.matmul, a, b, bias=row), product(a, b) + row)
    same(fused(hgemm.matmul, a, b, bias=integers(3, 1, 4) * 0 + column), product(a, b) + column)
    same(fused(hgemm.matmul, a, b[:, 0], bias=row[:, 0]), product(a, b[:, 0]) + row[:, 0])
    same(fused(hgemm.linear, a, b.T, column.astype(np.float32)), product(a, b) + column)


def test_gate_and_single_precision_results(integers, fused):
    a, b, gate = integers(3, 5, 6), integers(6, 4), integers(3, 5, 4)
    same(fused(hgemm.matmul, a, b, gate=gate), product(a, b) * gate)
    result = fused(hgemm.matmul, a, b, out_dtype="float32", alpha=1 / 3)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, product(a, b) / 3, rtol=1e-6)


def test_single_precision_in_a_batch_of_several_calls(integers, fused):
    a, b, c = integers(2, 1, 3, 5), integers(4, 5, 7), integers(2, 4, 3, 7).astype(np.float32) + np.float32(0.0001)
    result = fused(hgemm.matmul, a, b, c=c, out_dtype="float32")
    np.testing.assert_allclose(result, product(a, b) + c, rtol=1e-6)


def test_scalars_in_device_memory(integers, fused):
    a, b, c = integers(5, 6), integers(6, 4), integers(5, 4)
    on = [hgemm.array(x) for x in (a, b, c)]
    alpha, beta = hgemm.array(np.array([2], np.float32)), hgemm.array(np.array([-1], np.float32))
    same(fused(hgemm.matmul, on[0], on[1], c=on[2], alpha=alpha, beta=beta).numpy(), 2 * product(a, b) - c)


def test_rows_do_not_depend_on_their_batch(rng, fused):
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((70, 256), (256, 40)))
    whole = fused(hgemm.matmul, a, b, batch_invariant=True)
    for row in (0, 33, 69):
        np.testing.assert_array_equal(hgemm.matmul(a[row:row + 1], b, batch_invariant=True), whole[row:row + 1])


H = np.float16
FAULTS = [  # (a, b, options, exception, what it says)
    (np.zeros((3, 5), H), np.zeros((6, 7), H), {}, ValueError, r"b: it has 6 rows, and a has 5 columns"),
    (np.zeros((2, 3, 5), H), np.zeros((3, 5, 7), H), {}, ValueError, r"b: its batch \(3,\) does not broadcast with a's, \(2,\)"),
    (np.zeros((), H), np.zeros((6, 7), H), {}, ValueError, r"a: it has no dimension"),
    (np.zeros((3, 5)), np.zeros((5, 7), H), {}, TypeError, r"a: its type is float64"),
    (np.zeros((3, 5), H), np.zeros((5, 7), np.int32), {}, TypeError, r"b: its type is int32"),
    ([[1]], np.zeros((1, 7), H), {}, TypeError, r"a: a builtins.list is no array"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"out": np.zeros((3, 8), H)}, ValueError, r"out: its shape is \(3, 8\), the result's is \(3, 7\)"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"out": np.zeros((3, 7))}, TypeError, r"out: .*float64.* is none of float16, bfloat16 and float32"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"c": np.zeros((2, 7), H)}, ValueError, r"c: its shape \(2, 7\) does not broadcast"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"bias": np.zeros(3, H)}, ValueError, r"bias: its shape \(3,\) does not broadcast"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"bias": np.zeros((3, 7), H)}, ValueError, r"bias: .* use c"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"beta": 1}, ValueError, r"beta: there is nothing to multiply"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"activation": "tanh"}, ValueError, r"activation: 'tanh' is none of"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"accumulate": "double"}, ValueError, r"accumulate: 'double'"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"out_dtype": "int8"}, TypeError, r"out_dtype: 'int8' is none of"),
    (None, np.zeros((6, 7), H), {}, TypeError, r"a: it is None"),
    (np.zeros((6, 7), H), None, {}, TypeError, r"b: it is None"),
    (np.zeros((3, 5), complex), np.zeros((5, 7), H), {}, TypeError, r"a: its type is complex128"),
    (np.zeros((3, 5), H), np.zeros((5, 7), object), {}, TypeError, r"b: its type is object"),
    (np.zeros((3, 5), H), np.zeros((5, 7), "U2"), {}, TypeError, r"b: its type is <U2"),
    (np.zeros((3, 5), H), "b", {}, TypeError, r"b: a builtins.str is no array"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"c": np.zeros((3, 7), "M8[s]")}, TypeError, r"c: its type is datetime64"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"bias": np.zeros(7, [("x", H)])}, TypeError, r"bias: its type is "),
    (np.ma.masked_equal(np.zeros((3, 5), H), 0), np.zeros((5, 7), H), {}, TypeError, r"a: masked arrays"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": 1j}, TypeError, r"alpha: 1j is complex"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": 1e300}, ValueError, r"alpha: 1e\+300 is beyond"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": 10**400}, ValueError, r"alpha: 10+\.\.\. \(401 characters\) is beyond"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": 10**5000}, ValueError, r"alpha: an integer of 16610 bits is beyond"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": "2"}, TypeError, r"alpha: a builtins.str is no array"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"alpha": np.array("2")}, TypeError, r"alpha: '2' is no number"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"kernel": ["k1_tiled"]}, ValueError, r"kernel: none is called \['k1_tiled'\]"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"kernel": 3}, ValueError, r"kernel: none is called 3"),
    (np.zeros((3, 5), H), np.zeros((5, 7), H), {"activation": ["relu"]}, ValueError, r"activation: \['relu'\] is none of"),
]


@pytest.mark.parametrize("a, b, options, kind, words", FAULTS)
def test_faults_name_the_argument(a, b, options, kind, words):
    out = options.get("out")
    with pytest.raises(kind, match=words):
        hgemm.matmul(a, b, **options)
    assert out is None or not out.any()


def test_faults_of_device_arrays(integers):
    a, b = hgemm.array(integers(4, 6)), hgemm.array(integers(6, 5))
    with pytest.raises(ValueError, match=r"a: a 4x3 matrix with the strides \(6, 2\) .* no leading dimension"):
        hgemm.matmul(a[:, ::2], b[:3])
    with pytest.raises(ValueError, match=r"out: a 4x5 matrix with the strides \(10, 2\)"):
        hgemm.matmul(a, b, out=hgemm.array(integers(4, 10))[:, ::2])
    with pytest.raises(ValueError, match=r"b: it is in host memory, and a is in a device's"):
        hgemm.matmul(a, integers(6, 5))
    with pytest.raises(TypeError, match="key: only slices"):
        a[[1, 2]]
    for stream, kind, words in (("x", TypeError, "neither a stream"), (1.5, TypeError, "neither a stream"), (object(), TypeError, "neither"),
                                (-1, ValueError, "no address"), (2**64, ValueError, "no address"), (4096, ValueError, "0x1000 is a GPU's")):
        if a.device == "t4emu" or kind is TypeError:
            with pytest.raises(kind, match=f"stream: .*{words}"):
                hgemm.matmul(a, b, stream=stream)
    with pytest.raises(TypeError, match=r"out: a builtins.list is no array"):
        hgemm.matmul(a, b, out=[1])
    for call in (lambda device: hgemm.array(integers(2, 2), device), hgemm.info):
        with pytest.raises(TypeError, match="device: 3 is no name of a device"):
            call(3)
    other = _device_array.upload(integers(6, 5), _device.Handle("t4emu"))
    with pytest.raises(ValueError, match="a: it is on the default device, an emulated T4, and b is on the emulated T4 't4emu'"):
        hgemm.matmul(a, other)
    with pytest.raises(hgemm.DeviceError, match='"nonsense"'):
        hgemm.array(integers(2, 2), "nonsense")


def test_overlap_is_refused_by_name(integers):
    big = hgemm.array(integers(8, 8))
    with pytest.raises(hgemm.ArgumentError, match="out: .*OVERLAP"):
        hgemm.matmul(big[:4, :4], big[4:, :4], c=big[:4, 4:], out=big[1:5, 4:])


def test_threads_share_the_default_device(integers):
    a, b = integers(17, 9), integers(9, 12)
    results = [None] * 8

    def work(i):
        results[i] = hgemm.matmul(a, b, alpha=i)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(results):
        same(result, i * product(a, b))


def test_device_arrays(integers):
    host = integers(3, 4, 5)
    on_device = hgemm.array(host)
    assert on_device.device in ("cuda", "t4emu") and on_device.shape == host.shape
    for cut in (np.s_[1], np.s_[:, 1:3, ::2], np.s_[..., 0], np.s_[0, 1, 2], np.s_[None, 2]):
        same(on_device[cut].numpy(), host[cut])
    same(on_device.T.numpy(), host.T)
    same(on_device.reshape(12, 5).numpy(), host.reshape(12, 5))
    same(hgemm.array(host.swapaxes(-1, -2)).numpy(), host.swapaxes(-1, -2))
    on_device[1, :, 1:3].copy_from(np.full(2, 9))
    host[1, :, 1:3] = 9
    same(on_device.numpy(), host)
    assert hgemm.array(np.zeros((0, 3), H)).numpy().shape == (0, 3)
    with pytest.raises(TypeError, match="host: its type is float64"):
        hgemm.array(np.zeros(3))


@pytest.mark.parametrize("place", (lambda x: x, hgemm.array), ids=("host", "device"))
def test_what_the_library_cannot_repeat_is_copied(place, integers, fused):
    def host(result):
        return result if isinstance(result, np.ndarray) else result.numpy()
    a, b = integers(3, 5, 6), integers(6, 4)
    for shape in ((), (1,), (1, 1)):
        bias = np.asarray(integers(*shape))
        same(host(fused(hgemm.matmul, place(a), place(b), bias=place(bias))), product(a, b) + bias)
    for shape in ((), (4,), (5, 1), (3, 1, 4), (3, 5, 1)):
        gate = np.asarray(integers(*shape))
        same(host(fused(hgemm.matmul, place(a), place(b), gate=place(gate))), product(a, b) * gate)
    same(fused(hgemm.matmul, a[0, :1], b, bias=integers(1, 1) * 0 + H(2)), product(a[0, :1], b) + 2)  # (m, 1) with m = 1


@pytest.mark.parametrize("place", (lambda x: x, hgemm.array), ids=("host", "device"))
@pytest.mark.parametrize("batch", ((4,), (3, 2)))
def test_rows_in_a_batch_share_c_and_gate(place, batch, integers, fused):
    """A batch of single rows is one product of all of them, unless something is the same for each."""
    a, b = integers(*batch, 1, 6), integers(6, 5)
    for shape in ((5,), (1, 5), (1, 1), batch + (1, 5), batch[:-1] + (1, 1, 5)):
        for name, expected in (("c", product(a, b).__add__), ("gate", product(a, b).__mul__)):
            x = integers(*shape)
            d = fused(hgemm.matmul, place(a), place(b), **{name: place(x)})
            same(d if isinstance(d, np.ndarray) else d.numpy(), expected(x))


def test_what_lies_otherwise_than_the_result_is_named(integers):
    a, b = hgemm.array(integers(5, 6)), hgemm.array(integers(6, 3))
    by_columns = hgemm.array(integers(3, 5)).T
    for options in ({}, {"out": hgemm.array(integers(5, 3)), "beta": 1}, {"out": hgemm.array(integers(5, 3)), "c": hgemm.array(integers(5, 3))}):
        with pytest.raises(ValueError, match=r"gate: a 5x3 matrix with the strides \(1, 5\) .*the layout of out"):
            hgemm.matmul(a, b, gate=by_columns, **options)
    with pytest.raises(ValueError, match=r"gate: a 5x3 matrix with the strides \(3, 1\) .*the layout of out"):
        hgemm.matmul(a, b, gate=hgemm.array(integers(5, 3)), out=by_columns)


def test_a_batch_of_nothing_has_any_strides(integers):
    a, b = integers(0, 4, 6), integers(6, 3)
    for gate in (integers(4, 3), integers(3, 4).T, integers(4, 6)[:, ::2]):
        assert hgemm.matmul(a, b, gate=gate, c=gate).shape == (0, 4, 3)


def test_words_about_group_ends_and_weights(integers):
    with pytest.raises(TypeError, match="group_ends: it is None"):
        hgemm.grouped(integers(4, 8), integers(2, 8, 4), None)
    with pytest.raises(TypeError, match="weight: a builtins.int is no array"):
        hgemm.linear(integers(4, 8), 3)


def test_the_readmes_lines_run():
    clone = pathlib.Path(__file__).parents[2]
    for page in (clone / "README.md", clone / "python" / "README.md"):
        lines = re.search(r"```python\n(.*?)```", page.read_text(), re.S)[1]
        namespace = {}
        exec(lines, namespace)
        d = namespace["hgemm"].matmul(namespace["a"], namespace["b"])
        assert (np.asarray(d) == 128).all() and d.shape == (64, 32)


def test_a_library_that_is_none_is_refused(tmp_path):
    text = tmp_path / "libhgemm.so"
    text.write_text("text")
    another = pathlib.Path(hgemm.__file__).with_name("libhgemm_cublas.so")
    for path, words in ((tmp_path / "none.so", "is not there"), (text, "cannot be loaded"), (another, "is no libhgemm.so")):
        if path is not another or path.exists():
            with pytest.raises(ImportError, match=f"{path.name} {words}"):
                hgemm._c._load(path)


def test_what_is_there_is_listed():
    assert {"bench", "formats", "info", "matmul", "predictions", "report"} <= set(dir(hgemm)) and "importlib" not in dir(hgemm)


def test_a_kernel_with_other_sums_says_what_to_pass(integers):
    with pytest.raises(hgemm.NotSupportedError, match="accumulate: k1_tiled has float16 sums, accumulate='float16' asks for them"):
        hgemm.matmul(integers(64, 64), integers(64, 64), kernel="k1_tiled")
    with pytest.raises(hgemm.NotSupportedError) as raised:  # other reasons have no hint
        hgemm.matmul(integers(63, 63), integers(63, 63), kernel="k1_tiled", accumulate="float16")
    assert "asks for them" not in str(raised.value)


def test_host_arrays_have_any_strides(integers):
    a, b = integers(64, 96), integers(48, 32)
    same(hgemm.matmul(a[:, ::2], b), product(a[:, ::2], b))


def test_the_pages_name_every_activation():
    root = pathlib.Path(__file__).parents[2]
    for text in ((root / "docs" / "python.md").read_text(), hgemm.matmul.__doc__):
        for name in ACTIVATIONS:
            assert f'"{name}"' in text or name == "none"
    contract = re.findall(r"^\| `(\w+)` \|", (root / "docs" / "contract.md").read_text(), re.M)
    assert {row.library for row in ACTIVATIONS.values()} - {"none"} <= {name.lower() for name in contract}
