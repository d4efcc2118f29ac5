# SPDX-License-Identifier: MIT
"""`out` is written element by element: one of which elements share memory is refused wherever it lies, and stays what it was. What says where an
array lies cannot be changed."""
import copy
import itertools
import pickle

import numpy as np
import pytest

import hgemm
from hgemm._plan import share_memory

SHARED = "^out: some of its elements share memory$"
strided = np.lib.stride_tricks.as_strided


def base(count):
    return np.arange(count, dtype=np.float16)


OUTS = {  # of the shape (3, 4), or with a batch of 2 before it
    "rows that repeat": lambda: strided(base(4), (3, 4), (0, 2)),
    "columns that repeat": lambda: strided(base(3), (3, 4), (2, 0)),
    "one element": lambda: strided(base(1), (3, 4), (0, 0)),
    "windows": lambda: strided(base(6), (3, 4), (2, 2)),
    "rows that overlap": lambda: strided(base(10), (3, 4), (6, 2)),
    "windows, backwards": lambda: strided(base(6), (3, 4), (2, 2))[::-1, ::-1],
    "bytes that overlap": lambda: strided(base(12), (3, 4), (8, 1)),
    "a batch that repeats": lambda: strided(base(12), (2, 3, 4), (0, 8, 2)),
    "a batch that overlaps": lambda: strided(base(16), (2, 3, 4), (8, 8, 2)),
    "a batch that interleaves and meets": lambda: strided(base(40), (2, 3, 4), (8, 16, 4)),
}


def operands(out, integers):
    return integers(*out.shape[:-2], 3, 5), integers(*out.shape[:-2], 5, 4)


@pytest.mark.parametrize("name", OUTS)
def test_shared_elements_are_refused(name, integers):
    out = OUTS[name]()
    a, b = operands(out, integers)
    before = out.copy()
    for options in ({}, {"beta": 1}, {"alpha": 0}):
        with pytest.raises(ValueError, match=SHARED):
            hgemm.matmul(a, b, out=out, **options)
    with pytest.raises(ValueError, match=SHARED):
        hgemm.linear(a, np.ascontiguousarray(b[..., 0, :, :].T if b.ndim == 3 else b.T), out=out)
    if out.ndim == 2:
        with pytest.raises(ValueError, match=SHARED):
            hgemm.grouped(a, b[None], np.array([3], np.int32), out=out)
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("name", [name for name in OUTS if name != "bytes that overlap"])
def test_of_torch_and_on_a_device(name, integers):
    host = OUTS[name]()
    a, b = operands(host, integers)
    strides = tuple(stride // 2 for stride in host.strides)
    on = hgemm.array(base(64))
    view = on._view(host.shape, host.strides, on.pointer + 64)
    with pytest.raises(ValueError, match=SHARED):
        hgemm.matmul(hgemm.array(a), hgemm.array(b), out=view)
    np.testing.assert_array_equal(on.numpy(), base(64))
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if min(strides) < 0:
        return
    out = torch.from_numpy(base(64)).as_strided(host.shape, strides)
    before = out.clone()
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(ValueError, match=SHARED):
            hgemm.matmul(torch.from_numpy(a), torch.from_numpy(b), out=out.view(dtype))
    assert torch.equal(out, before)


def test_whatever_shares_none_is_taken(integers):
    for out in (np.zeros((3, 4), np.float16).T.copy().T, np.zeros((6, 12), np.float16)[::2, ::3], np.zeros((3, 4), np.float16)[::-1, ::-1],
                strided(np.zeros(60, np.float16), (2, 3, 4), (8, 32, 2)), strided(np.zeros(30, np.float16), (3, 4), (4, 6)), np.zeros((0, 4), np.float16)):
        if out.shape[-2] == 0:
            a, b = integers(0, 5), integers(5, 4)
        else:
            a, b = operands(out, integers)
        assert hgemm.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))


def test_sharing_is_found_exactly(rng):
    found = [0, 0]
    for _ in range(3000):
        dims = rng.integers(1, 4)
        shape, strides = rng.integers(1, 5, dims), rng.integers(-7, 8, dims)
        places = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
        shares = len(set(places)) < len(places)
        assert share_memory(strided(np.empty(1, np.uint8), shape, strides)) == shares, (shape, strides)
        found[shares] += 1
    assert min(found) > 300


def test_a_negative_of_torchs_is_not_written():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = torch.ones(4, 4).half()
    out = torch.complex(torch.zeros(4, 4), torch.zeros(4, 4)).conj().imag
    assert out.is_neg()
    with pytest.raises(TypeError, match="out: what is in memory is its negative"):
        hgemm.matmul(a.float(), a.float(), out=out)
    with pytest.raises(TypeError, match="out: what is in memory is its negative"):
        hgemm.matmul(a.float().numpy(), a.float().numpy(), out=out)


def test_attributes_stay(integers):
    x = hgemm.array(integers(3, 4))
    before = x.numpy()
    for name, value in (("shape", (2, 6)), ("strides", (2, 2)), ("dtype", np.dtype(np.float32)), ("pointer", 0), ("_memory", None), ("other", 1)):
        with pytest.raises(AttributeError, match=f"{name}: it says what is in memory, and cannot be set"):
            setattr(x, name, value)
    with pytest.raises(AttributeError):
        x.shape += (1,)
    with pytest.raises(AttributeError):
        del x.shape
    np.testing.assert_array_equal(x.numpy(), before)
    w = hgemm.pack(hgemm.Weights(np.ones((4, 64), int), np.ones((4, 2), np.float16), "int4", group=32))
    for name in ("data", "form", "order", "experts"):
        with pytest.raises(AttributeError, match=f"{name}: it says what is in memory, and cannot be set"):
            setattr(w, name, None)


def test_packed_weights_of_torch_are_copied_and_pickled():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    w = hgemm.pack(hgemm.Weights(np.ones((4, 64), int), np.ones((4, 2), np.float16), "int4", group=32), device="cpu")
    for other in (copy.copy(w), copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert other.form == w.form and torch.equal(other.data, w.data) and other.order is None and other.experts is None
