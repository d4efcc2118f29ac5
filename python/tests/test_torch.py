# SPDX-License-Identifier: MIT
"""hgemm.torch on CPU tensors, which run on hgemm's default device: the operator, its fake kernel and gradient, torch.compile,
autocast, enable(), DTensor. gpu_check.py does the same, and CUDA graphs and streams, on a GPU."""
import copy
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import activations
import hgemm
import hgemm.torch
from hgemm._activations import ACTIVATIONS

HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
OUT_IS_ROUTED = hasattr(torch.library, "get_kernel")


@pytest.fixture(autouse=True)
def seed(request):
    torch.manual_seed(sum(map(ord, request.node.name)))


def integers(*shape):
    return torch.randint(-3, 4, shape).to(HALF)


def exact(a, b):
    return a.float() @ b.float()


@pytest.mark.parametrize("shape_a, shape_b", [((3, 5), (5, 7)), ((5,), (5,)), ((5,), (5, 7)), ((4, 3, 5), (5,)), ((4, 3, 5), (5, 7)),
                                              ((2, 1, 3, 5), (4, 5, 7)), ((0, 5), (5, 7)), ((3, 0), (0, 7)), ((5,), (2, 5, 3))])
def test_the_operator_is_torchs_matmul(shape_a, shape_b):
    a, b = integers(*shape_a), integers(*shape_b)
    for function in (hgemm.matmul, hgemm.torch.matmul):
        result = function(a, b)
        assert result.dtype == HALF and result.shape == torch.matmul(a.float(), b.float()).shape
        assert torch.equal(result.float(), exact(a, b))
    meta = hgemm.torch.matmul(a.to("meta"), b.to("meta"))
    assert meta.shape == result.shape and meta.dtype == result.dtype


def test_strides_that_no_leading_dimension_says_are_copied():
    a, b = integers(4, 12)[:, ::2], integers(1, 5).expand(6, 5)
    assert torch.equal(hgemm.torch.matmul(a, b).float(), exact(a, b))


def test_out(monkeypatch):
    a, b = integers(4, 6), integers(6, 5)
    out = integers(4, 5)
    expected = 2 * exact(a, b) + 3 * out.float()
    assert hgemm.matmul(a, b, out=out, alpha=2, beta=3) is out
    assert torch.equal(out.float(), expected)
    with pytest.raises(ValueError, match="out: it cannot be given where torch records"):
        hgemm.matmul(a.requires_grad_(), b, out=out)


def test_opcheck():
    for arguments in ((integers(3, 4), integers(4, 5)), (integers(2, 3, 4), integers(4, 5), integers(3, 5))):
        arguments = [x.requires_grad_() for x in arguments]
        torch.library.opcheck(torch.ops.hgemm.gemm.default, arguments, {"alpha": 2.0},
                              test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))


@pytest.mark.parametrize("shape_a, shape_b, shape_c", [((3, 4), (4, 5), (3, 5)), ((2, 3, 4), (4, 5), (5,)), ((2, 3, 4), (2, 4, 5), (3, 1)),
                                                      ((3, 4), (2, 4, 5), (2, 1, 5)), ((4,), (4, 5), (5,)), ((3, 4), (4,), (3,))])
def test_gradients(shape_a, shape_b, shape_c):
    ours = [integers(*shape).requires_grad_() for shape in (shape_a, shape_b, shape_c)]
    theirs = [x.detach().float().requires_grad_() for x in ours]
    d = hgemm.matmul(ours[0], ours[1], c=ours[2], alpha=2, beta=-1)
    expected = 2 * torch.matmul(theirs[0], theirs[1]) - theirs[2]
    assert torch.equal(d.float(), expected)
    g = integers(*d.shape)
    d.backward(g)
    expected.backward(g.float())
    for mine, want in zip(ours, theirs):
        assert mine.grad.dtype == HALF and torch.equal(mine.grad.float(), want.grad)


@pytest.mark.skipif(not hasattr(hgemm._c.lib, "hgemm_activation_name"), reason="this libhgemm names no activations")
def test_activations_are_the_librarys():
    names, count = hgemm._c.lib.hgemm_activation_name, len(ACTIVATIONS)
    assert {row.library: row.value for row in ACTIVATIONS.values()} == {names(value).decode(): value for value in range(count)}
    assert names(count) is None


def test_gates_and_biases_that_repeat(fused):
    a, b = integers(4, 6), integers(6, 5)
    for shape in ((), (1,), (5,), (1, 5), (4, 1), (1, 1)):
        gate, bias = integers(*shape).requires_grad_(), integers(1).requires_grad_()
        d = fused(hgemm.torch.matmul, a, b, gate=gate, bias=bias)
        assert torch.equal(d.float(), (exact(a, b) + bias.float()) * gate.float())
        assert torch.equal(hgemm.matmul(a, b, gate=gate.detach(), bias=bias.detach()), d)
        d.sum().backward()
        assert torch.equal(gate.grad.float(), (exact(a, b) + bias.float()).detach().sum_to_size(shape))
        assert bias.grad.item() == gate.expand(4, 5).sum().item()


def test_unknown_activations_have_no_gradient():
    a = torch.ones(4, 4, dtype=HALF, requires_grad=True)
    with pytest.raises(ValueError, match="activation: 'tanh' is none of"):
        torch.ops.hgemm.gemm(a, a, activation="tanh")
    with pytest.raises(ValueError, match="activation: 'tanh' is none of"):
        torch.func.jvp(lambda x: torch.ops.hgemm.gemm(x, x, activation="tanh"), (a.detach(),), (a.detach(),))


@pytest.mark.parametrize("activation", activations.NAMES)
@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_are_finite_where_the_result_is(activation, sign, fused):
    """z, 160,000, is no half: D is, by its type or by its gate."""
    for gated in (False, True):
        a, b = torch.full((8, 40), 100.0 * sign, dtype=HALF, requires_grad=True), torch.full((40, 8), 40.0, dtype=HALF, requires_grad=True)
        gate = torch.full((8, 8), 2.0**-10, dtype=HALF, requires_grad=True) if gated else None
        d = fused(hgemm.matmul, a, b, activation=activation, gate=gate, out_dtype=None if gated else "float32")
        a_, b_, gate_ = (None if x is None else x.detach().float().requires_grad_() for x in (a, b, gate))
        expected = activations.THEIRS[activation](a_ @ b_) * (gate_ if gated else 1)
        (d.sum() * 2.0**-4).backward()
        (expected.sum() * 2.0**-4).backward()
        for x, y in zip((d, a.grad, b.grad, gate.grad if gated else None), (expected, a_.grad, b_.grad, gate_.grad if gated else None)):
            if x is not None:
                assert x.isfinite().all()
                torch.testing.assert_close(x.float(), y, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("activation", activations.NAMES)
def test_second_derivatives_of_activations(activation, fused):
    a, b, v, gate = (torch.randn(shape).to(HALF).requires_grad_() for shape in ((6, 8), (8, 4), (6, 8), (6, 4)))
    theirs = [x.detach().double().requires_grad_() for x in (a, b, v, gate)]
    for given in (None, gate):
        g, = torch.autograd.grad(fused(hgemm.matmul, a, b, activation=activation, gate=given).sum(), a, create_graph=True)
        d = activations.THEIRS[activation](theirs[0] @ theirs[1])
        expected, = torch.autograd.grad((d if given is None else d * theirs[3]).sum(), theirs[0], create_graph=True)
        for x, y in zip(torch.autograd.grad((g * v).sum(), (a, b), materialize_grads=True),
                        torch.autograd.grad((expected * theirs[2]).sum(), theirs[:2], materialize_grads=True)):
            torch.testing.assert_close(x.double(), y, rtol=1e-2, atol=6e-2)


@pytest.mark.parametrize("activation", activations.NAMES)
def test_gradients_through_epilogues(activation, fused):
    a, b, bias, gate = (torch.randn(shape).to(HALF).requires_grad_() for shape in ((6, 8), (8, 4), (4,), (6, 4)))
    theirs = [x.detach().float().requires_grad_() for x in (a, b, bias, gate)]
    d = fused(hgemm.matmul, a, b, bias=bias, gate=gate, activation=activation)
    expected = activations.THEIRS[activation](theirs[0] @ theirs[1] + theirs[2]) * theirs[3]
    torch.testing.assert_close(d.float(), expected, rtol=5e-3, atol=5e-3)
    g = torch.randn_like(d)
    d.backward(g)
    expected.backward(g.float())
    for mine, want in zip((a, b, bias, gate), theirs):
        torch.testing.assert_close(mine.grad.float(), want.grad, rtol=2e-2, atol=2e-2)


def test_second_derivatives():
    a, b = (torch.randint(-2, 3, shape).to(HALF).requires_grad_() for shape in ((3, 4), (4, 5)))
    g = torch.autograd.grad(hgemm.matmul(a, b).sum(), a, create_graph=True)[0]
    (g * g).sum().backward()
    assert torch.equal(b.grad.float(), 2 * 3 * b.float().sum(1, keepdim=True) .expand(4, 5))


def test_linear_and_faults():
    x, w = integers(2, 3, 8), integers(5, 8)
    assert torch.equal(hgemm.linear(x, w).float(), exact(x, w.T))
    with pytest.raises(ValueError, match="b: it has 8 rows"):
        hgemm.torch.matmul(integers(3, 4), integers(8, 2))
    with pytest.raises(TypeError, match="a: its type is torch.float64"):
        hgemm.torch.matmul(integers(3, 4).double(), integers(4, 2))
    with pytest.raises(ValueError, match="activation: 'tanh'"):
        hgemm.torch.matmul(integers(3, 4), integers(4, 2), activation="tanh")


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_has_one_graph(dynamic):
    def f(a, b, c):
        return torch.relu(hgemm.torch.matmul(a, b, c=c)).sum(0) + hgemm.matmul(a[0], b)
    compiled = torch.compile(f, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (3, 6):
        inputs = [integers(rows, 4).requires_grad_(), integers(4, 5).requires_grad_(), integers(5)]
        again = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
        result, expected = compiled(*inputs), f(*again)
        assert torch.equal(result, expected)
        result.sum().backward()
        expected.sum().backward()
        assert torch.equal(inputs[0].grad, again[0].grad) and torch.equal(inputs[1].grad, again[1].grad)


def test_autocast():
    a, b = torch.randint(-3, 4, (3, 4)).float().requires_grad_(), torch.randint(-3, 4, (4, 5)).float()
    with torch.autocast("cpu", torch.float16):
        result = hgemm.torch.matmul(a, b)
    assert result.dtype == HALF and torch.equal(result.float(), (a @ b))
    result.sum().backward()
    assert a.grad.dtype == torch.float32 and torch.equal(a.grad[0], b.sum(1))


def test_autocast_leaves_what_torchs_leaves():
    """torch casts neither doubles nor integers, so products of them and others are refused."""
    half = integers(4, 4)
    for dtype in (torch.float64, torch.int32):
        for function in (torch.mm, hgemm.torch.matmul):
            with torch.autocast("cpu", HALF), pytest.raises((TypeError, RuntimeError)):
                function(half.to(dtype), half)
    with torch.autocast("cpu", torch.bfloat16):
        assert hgemm.torch.matmul(half, half.float()).dtype == BF16


def test_the_fake_kernel_refuses_what_the_kernel_refuses():
    a, b = integers(3, 4), integers(4, 5)
    for options in ({}, {"out_dtype": FLOAT}, {"out_dtype": BF16}, {"c": integers(5).float()}):
        assert torch.ops.hgemm.gemm(*(x.to("meta") for x in (a, b)), **{
            name: x.to("meta") if isinstance(x, torch.Tensor) else x for name, x in options.items()}).dtype == torch.ops.hgemm.gemm(a, b, **options).dtype
    for operands, options in (((a.double(), b), {}), ((a, b.double()), {}), ((a.double(), b.double()), {}), ((a.to(BF16), b), {}), ((a, b.to(BF16)), {}),
                              ((a, b), {"c": integers(5).double()}), ((a, b), {"bias": integers(5).int()}), ((a, b), {"out_dtype": torch.float64}),
                              ((a.int(), b), {}), ((integers(3, 5), b), {})):
        for device in ("cpu", "meta"):
            with pytest.raises((TypeError, ValueError, hgemm.Error)):
                torch.ops.hgemm.gemm(*(x.to(device) for x in operands), **{
                    name: x.to(device) if isinstance(x, torch.Tensor) else x for name, x in options.items()})


def test_enable_runs_torchs_products():
    a, b, c, v = integers(6, 8), integers(8, 5), integers(6, 5), integers(5)
    x, y, z = integers(2, 6, 8), integers(2, 8, 5), integers(2, 6, 5)
    with hgemm.torch.enable(devices=("cpu",)) as on:
        results = [torch.mm(a, b), a @ b, torch.addmm(c, a, b, beta=2, alpha=-1), torch.addmm(v, a, b), torch.bmm(x, y),
                   torch.baddbmm(z, x, y, beta=3), torch.mm(a, b, out=torch.empty(6, 5, dtype=HALF)), torch.einsum("ij,jk->ik", a, b)]
        torch.mm(a.float(), b.float())
        assert torch.addmm(c * float("nan"), a, b, beta=0).isfinite().all()
    p, q = exact(a, b), exact(x, y)
    for result, expected in zip(results, [p, p, 2 * c - p, v + p, q, 3 * z + q, p, p]):
        assert torch.equal(result.float(), expected.float())
    mm = 3 if OUT_IS_ROUTED else 2
    assert on.ran == {"mm": mm, "addmm": 3, "bmm": 2, "baddbmm": 1} and on.passed == {"torch.float32": 1}
    torch.mm(a, b)
    assert on.ran["mm"] == mm  # torch's own again


def test_enable_passes_on_what_torch_refuses():
    with hgemm.torch.enable(devices=("cpu",)) as on:
        with pytest.raises(RuntimeError):
            torch.mm(integers(3, 4), integers(5, 6))
        out = torch.empty(0, dtype=HALF)
        torch.mm(integers(3, 4), integers(4, 6), out=out)
        assert out.shape == (3, 6)
        c, a, b = (torch.randint(-3, 4, shape).float() for shape in ((2, 3, 5), (2, 3, 4), (2, 4, 5)))
        assert torch.equal(torch.addmm(c[0], a[0], b[0], beta=2, alpha=-1), 2 * c[0] - exact(a[0], b[0]))
        assert torch.equal(torch.baddbmm(c, a, b, beta=2, alpha=-1), 2 * c - exact(a, b))
    assert on.ran == {} and sum(on.passed.values()) == 6 - (not OUT_IS_ROUTED)
    with pytest.raises(ValueError, match="devices: 'tpu'"):
        hgemm.torch.enable(devices=("tpu",))


THREADS = """
import threading, time, torch, hgemm.torch
a = torch.ones(8, 8, dtype=torch.float16)
end, faults = time.monotonic() + 2, []
def multiply():
    try:
        while time.monotonic() < end:
            assert (torch.mm(a, a) == 8).all() and (torch.addmm(a, a, a) == 9).all()
    except BaseException as fault:
        faults.append(repr(fault))
thread = threading.Thread(target=multiply)
thread.start()
count = 0
while time.monotonic() < end:
    for _ in range(50):
        with hgemm.torch.enable(devices=("cpu",)):
            pass
    with hgemm.torch.enable(devices=("cpu",)) as on:
        torch.mm(a, a)
    assert on.ran["mm"] >= 1
    count += 1
thread.join()
print(faults, count > 20)
"""


def test_enable_while_others_multiply():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", THREADS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "[] True\n", done.stdout + done.stderr


def test_enable_refuses_nothing_that_torch_takes():
    """c of every shape and stride that torch.addmm and torch.baddbmm broadcast; what torch refuses, it refuses in its words."""
    a, b, c, one = integers(4, 6), integers(6, 5), integers(4, 5), torch.ones(1, dtype=HALF)
    p, x, y = exact(a, b), integers(3, 4, 6), integers(3, 6, 5)
    q = exact(x, y)
    with hgemm.torch.enable(devices=("cpu",)) as on:
        addends = [one, one[0], one.expand(5), one.expand(4, 5), c[:1], c[:, :1], c[:1].expand(4, 5), c[:, :1].expand(4, 5), c[0], c.T.contiguous().T,
                   integers(8, 10)[::2, ::2], integers(10)[::2]]
        for addend in addends:
            for alpha, beta in ((1, 1), (2, -1), (3, 0)):
                assert torch.equal(torch.addmm(addend, a, b, alpha=alpha, beta=beta).float(), alpha * p + beta * addend.float())
                assert torch.equal(torch.baddbmm(addend, x, y, alpha=alpha, beta=beta).float(), alpha * q + beta * addend.float())
        for fault in (lambda dtype: torch.addmm(c.to(dtype), a.to(dtype), b.to(dtype), alpha=1e300),
                      lambda dtype: torch.mm(a.to(dtype), b.to(dtype), out=torch.empty(1, dtype=dtype).expand(4, 5))):
            with pytest.raises(RuntimeError) as theirs:
                fault(torch.float32)
            with pytest.raises(RuntimeError) as ours:
                fault(HALF)
            assert str(ours.value) == str(theirs.value)
    assert on.ran["addmm"] and on.ran["baddbmm"]


def test_enable_trains_and_nests():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).to(HALF)
    twin = copy.deepcopy(model).float()
    x = torch.randn(8, 16)
    with hgemm.torch.enable(devices=("cpu",)) as outer, hgemm.torch.enable(devices=("cpu",), accumulate="float16") as inner:
        model(x.to(HALF)).square().sum().backward()
    twin(x).square().sum().backward()
    for mine, want in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(mine.grad.float(), want.grad, rtol=5e-2, atol=5e-2)
    assert sum(inner.ran.values()) >= 5 and not outer.ran and not hgemm._enable._entered


def test_batch_invariance_is_a_switch(fused):
    a, b = torch.randn(70, 256).to(HALF), torch.randn(256, 40).to(HALF)

    def rows():
        with hgemm.torch.enable(devices=("cpu",), batch_invariant=True):
            return torch.mm(a, b), torch.mm(a[33:34], b)
    whole, row = fused(rows)
    assert torch.equal(whole[33:34], row)


needs_grouped_mm = pytest.mark.skipif(not (OUT_IS_ROUTED and hasattr(torch, "_grouped_mm")), reason="this torch has no grouped_mm")


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_groups(dtype):
    a, b, ends = integers(20, 8), integers(3, 8, 16), torch.tensor([5, 5, 18], dtype=dtype)
    expected = torch.cat([exact(a[:5], b[0]), exact(a[5:18], b[2])])
    assert torch.equal(hgemm.grouped(a, b, ends)[:18].float(), expected)
    out = integers(20, 16)
    last = out[18:].clone()
    assert hgemm.grouped(a, b.mT.contiguous().mT, ends, out=out) is out
    assert torch.equal(out[:18].float(), expected) and torch.equal(out[18:], last)
    with pytest.raises(ValueError, match="grouped: it has no gradient"):
        hgemm.grouped(a.requires_grad_(), b, ends)


@needs_grouped_mm
def test_enable_runs_grouped_mm():
    a, b, ends = integers(18, 8), integers(3, 16, 8).mT, torch.tensor([5, 5, 18], dtype=torch.int32)
    expected = torch.cat([exact(a[:5], b[0]), exact(a[5:18], b[2])])
    gradient = torch.cat([exact(torch.ones(5, 16), b[0].mT), exact(torch.ones(13, 16), b[2].mT)])
    with hgemm.torch.enable(devices=("cpu",)) as on:
        assert torch.equal(torch._grouped_mm(a, b, offs=ends).float(), expected)
        x = a.clone().requires_grad_()
        torch._grouped_mm(x, b, offs=ends).sum().backward()
        assert torch.equal(x.grad.float(), gradient)
        assert on.ran == {"_grouped_mm": 3} and not on.passed
        torch._grouped_mm(a.float(), b.float(), offs=ends)
        assert on.ran == {"_grouped_mm": 3} and on.passed["grouped_mm of torch.float32"] == 1


def test_tensor_parallel_example():
    pytest.importorskip("torch.distributed.tensor.experimental", reason="this torch has no DTensor with rules for operators")
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tensor_parallel.py"
    done = subprocess.run([sys.executable, str(example), "--device", "cpu"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert done.returncode == 0 and "2 processes agree" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("options, kind, words", [
    ({"kernel": "none such"}, ValueError, "kernel: it cannot be given where torch records"),
    ({"stream": 7}, ValueError, "stream: it cannot be given where torch records"),
    ({"alpha": torch.ones((), requires_grad=True)}, ValueError, "alpha: it requires a gradient, and gets none")])
def test_no_option_is_dropped_where_torch_records(options, kind, words):
    a = torch.ones(4, 4, dtype=HALF, requires_grad=True)
    with pytest.raises(kind, match=words):
        hgemm.matmul(a, a, **options)


def test_words_about_tensors():
    a = torch.ones(4, 4, dtype=HALF)
    with pytest.raises(TypeError, match="b: a tensor on meta"):
        hgemm.matmul(a, torch.ones(4, 4, dtype=HALF, device="meta"))
    with pytest.raises(TypeError, match="a: its layout is torch.sparse_coo"):
        hgemm.matmul(a.to_sparse(), a)
    with pytest.raises(TypeError, match="b: a numpy.ndarray is no tensor"):
        hgemm.matmul(torch.nn.Parameter(a), a.numpy())
    with pytest.raises(ValueError, match="c: it is on meta, and a is on cpu"):
        hgemm.torch.matmul(a, a, c=a.to("meta"))
    for stored in (a.to_sparse(), a.float().to_sparse_csr(), torch.quantize_per_tensor(a.float(), 1.0, 0, torch.qint8), torch.nested.nested_tensor([a])):
        with pytest.raises(TypeError, match="b: its elements are stored in a way that is not hgemm's"):
            hgemm.torch.matmul(a, stored)
    for name in ("scale_a", "scale_b", "alpha", "beta"):
        with pytest.raises(TypeError, match=f"^{name}: a builtins.str is no array"):
            hgemm.torch.matmul(a, a, **{"c": a, name: "x"})
    with pytest.raises(ValueError, match="stream: the arrays are in host memory"):
        hgemm.matmul(a, a, stream=7)
    import numpy as np
    assert hgemm.torch.matmul(a, a, out_dtype=np.float32).dtype == FLOAT
    with pytest.raises(TypeError, match="alpha: masked arrays are not supported"):
        hgemm.matmul(a.numpy(), a.numpy(), alpha=np.ma.masked)
