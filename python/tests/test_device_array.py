# SPDX-License-Identifier: MIT
"""DeviceArray: views, what it refuses, memory that finalizers free, forks, byte orders."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import hgemm
from hgemm import _c, _device

# The names of numpy.ndarray's that DeviceArray has: those that give a view or a number, and those that raise a TypeError.
RIGHT = set("T shape strides dtype ndim itemsize size nbytes device transpose swapaxes reshape __len__ __iter__ __getitem__ __repr__".split())
REFUSED = set("__array__ __array_ufunc__ __array_function__ __bool__ __contains__ __setitem__ __reduce_ex__ __eq__ __ne__".split())
OF_OBJECT = set(dir(object))


@pytest.fixture
def host(integers):
    return integers(3, 4, 5)


def test_every_name_of_numpys(host):
    """numpy must not reach a device's memory by any name that an array of its own has, nor by one that it gets later."""
    array = hgemm.array(host)
    has = {name for name in dir(np.ndarray) if hasattr(array, name)}
    assert has <= RIGHT | REFUSED | OF_OBJECT, "names of numpy's arrays that nobody has looked at"
    assert not isinstance(array, np.ndarray)
    for name in ("__array_interface__", "__array_struct__", "__dlpack__", "data", "ctypes", "base", "copy", "sum", "astype", "view", "flat"):
        with pytest.raises(AttributeError, match=name):
            getattr(array, name)


@pytest.mark.parametrize("use", [
    np.asarray, np.array, np.sum, np.copy, bool, bytes, memoryview, float, lambda x: x + 1, lambda x: np.ones(2) * x, lambda x: x == x,
    lambda x: 1 in x, lambda x: x.__setitem__(0, 1), lambda x: np.zeros((3, 4, 5)).__setitem__(0, x), lambda x: np.copyto(np.zeros((3, 4, 5)), x),
    lambda x: np.broadcast_to(x, (2, 3, 4, 5)), lambda x: [x] == [x[0]], lambda x: __import__("copy").copy(x),
    lambda x: __import__("copy").deepcopy(x), lambda x: __import__("pickle").dumps(x), lambda x: x[True], lambda x: x[np.True_],
    lambda x: x[[0, 1]], lambda x: x[np.zeros(3, bool)], lambda x: x[0.0], lambda x: x["a"]])
def test_what_would_read_the_device_is_refused(use, host):
    with pytest.raises(TypeError):
        use(hgemm.array(host))


def test_views_are_numpys(host, rng):
    """Random chains of views: the same shapes and elements as numpy's, or an error where numpy copies."""
    for _ in range(300):
        array, expected = hgemm.array(host), host
        for _ in range(rng.integers(1, 5)):
            kind = rng.integers(4)
            if kind == 0:
                key = tuple(
                    (np.s_[::-1], np.s_[1:], np.s_[::2], np.s_[-1:0:-2], np.s_[5:], None, Ellipsis)[i] for i in
                    (*rng.integers(0, 6, rng.integers(0, expected.ndim + 1)), *[6] * rng.integers(2)))
                if sum(k is not None and k is not Ellipsis for k in key) > expected.ndim or expected.ndim > 6:
                    continue
                array, expected = array[key], expected[key]
            elif kind == 1:
                axes = tuple(int(axis) for axis in rng.permutation(expected.ndim))
                array, expected = array.transpose(*axes), expected.transpose(axes)
            elif kind == 2 and len(expected.shape) > 1:
                array, expected = array.T, expected.T
            elif expected.size:
                shape = (-1,) if rng.integers(2) else (1, *expected.shape[::-1])
                viewed = expected.reshape(shape)
                if not np.shares_memory(viewed, expected):
                    with pytest.raises(ValueError, match="reshape: .* reshape a copy"):
                        array.reshape(shape)
                    continue
                array, expected = array.reshape(shape), viewed
            assert (array.shape, array.ndim, array.size, array.nbytes) == (expected.shape, expected.ndim, expected.size, expected.nbytes)
            np.testing.assert_array_equal(array.numpy(), expected)
    assert len(hgemm.array(host)) == 3 and [x.shape for x in hgemm.array(host)] == [(4, 5)] * 3
    array = hgemm.array(host).swapaxes(0, 2)
    np.testing.assert_array_equal(array.numpy(), host.swapaxes(0, 2))


@pytest.mark.parametrize("call", [
    lambda x: x[0, 0, 0, 0], lambda x: x[3], lambda x: x[..., ...], lambda x: x.reshape(7), lambda x: x.reshape(-1, -1),
    lambda x: x.transpose(0, 0, 1), lambda x: x.transpose(0, 1)])
def test_views_that_are_not(call, host):
    with pytest.raises((ValueError, IndexError)):
        call(host)
    with pytest.raises((ValueError, IndexError)):
        call(hgemm.array(host))


# ---- byte order --------------------------------------------------------------------------------------------------


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


def test_other_byte_orders_are_converted(integers, fused):
    a, b, c, bias, gate = integers(5, 6), integers(6, 4), integers(5, 4), integers(4), integers(5, 4)
    expected = hgemm.matmul(a, b, c=c, bias=bias, gate=gate, alpha=2)
    for i in range(5):
        operands = [swapped(x) if i == j else x for j, x in enumerate((a, b, c, bias, gate))]
        np.testing.assert_array_equal(hgemm.matmul(operands[0], operands[1], c=operands[2], bias=operands[3], gate=operands[4], alpha=2), expected)
    out = swapped(np.zeros((5, 4), np.float16))
    assert hgemm.matmul(a, b, out=out, c=c, bias=bias, gate=gate, alpha=2) is out
    np.testing.assert_array_equal(out, expected)
    array = hgemm.array(swapped(a))
    assert array.dtype.isnative
    np.testing.assert_array_equal(array.numpy(), a)
    array.copy_from(swapped(2 * a))
    np.testing.assert_array_equal(array.numpy(), 2 * a)
    x, w, ends = integers(6, 8), integers(2, 8, 4), np.array([2, 6], np.int32)
    np.testing.assert_array_equal(fused(hgemm.grouped, x, w, swapped(ends)), hgemm.grouped(x, w, ends))


# ---- finalizers and forks ----------------------------------------------------------------------------------------


def run(program, seconds):
    root = os.path.dirname(os.path.dirname(hgemm.__file__))
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program], env={**os.environ, "HGEMM_DEVICE": "t4emu", "PYTHONPATH": path}, timeout=seconds,
                          capture_output=True, text=True)


CYCLES = """
import gc, hgemm, numpy as np
from hgemm import _device
class Cycle: pass
x = np.ones((2, 2), np.float16)
for i in range(60000):
    one = Cycle(); one.me, one.array = one, hgemm.array(x)
del one
gc.collect()
handle = _device.handle_for(None)
hgemm.array(x)
print(len(handle._unused))
"""


def test_finalizers_wait_for_no_lock():
    """A collection may run in the thread that holds the handle's lock: see DeviceArrays in cycles."""
    done = run(CYCLES, 120)
    assert done.returncode == 0 and done.stdout == "0\n", done.stderr


def test_memory_is_freed_while_another_thread_calls(host, monkeypatch):
    handle, freed, arrays = _device.handle_for(None), [], [hgemm.array(host) for _ in range(8)]
    pointers = [array.pointer for array in arrays]
    free = _c.lib.hgemm_free

    def note(handle, pointer):
        freed.append(pointer)
        return free(handle, pointer)
    monkeypatch.setattr(_c.lib, "hgemm_free", note)
    thread = threading.Thread(target=arrays.clear)
    with handle.lock:  # as in a call
        thread.start()
        thread.join(20)
        assert not thread.is_alive() and not freed
    hgemm.array(host)
    assert set(pointers) <= set(freed)


FORK = """
import os, signal, threading, time
import numpy as np
import hgemm
from hgemm import _device
a = np.ones((256, 256), np.float16)
kept, stop = hgemm.array(a[:8, :8]), threading.Event()
def work():
    while not stop.is_set():
        hgemm.matmul(a, a)
def call():
    with kept.handle.lock:
        held.set()
        stop.wait()
held = threading.Event()
thread = threading.Thread(target=call if HELD else work)
thread.start()
held.wait() if HELD else time.sleep(0.05)
answers = []
for _ in range(1 if HELD else 6):
    time.sleep(0.01)
    child = os.fork()
    if not child:
        signal.alarm(20)
        one = np.ones((4, 4), np.float16)
        good = (hgemm.matmul(one, one) == 4).all() and (hgemm.array(one).numpy() == 1).all()
        try:
            read = (kept.numpy() == 1).all()
            good = good and read and not HELD
        except hgemm.DeviceError as error:
            good = good and "another thread was in a call" in str(error)
        del kept
        os._exit(0 if good else 1)
    answers.append(os.waitpid(child, 0)[1])
stop.set(); thread.join()
print(answers, (kept.numpy() == 1).all())
"""


@pytest.mark.parametrize("held", (True, False))
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_was_forked_in_a_call(held):
    done = run(FORK.replace("HELD", str(held)), 200)
    assert done.stdout == f"{[0] * (1 if held else 6)} True\n", done.stdout + done.stderr
