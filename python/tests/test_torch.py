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

import hgemm
import hgemm.torch

HALF = torch.float16
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


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_gradients_through_epilogues(activation, fused):
    a, b, bias, gate = (torch.randn(shape).to(HALF).requires_grad_() for shape in ((6, 8), (8, 4), (4,), (6, 4)))
    theirs = [x.detach().float().requires_grad_() for x in (a, b, bias, gate)]
    d = fused(hgemm.matmul, a, b, bias=bias, gate=gate, activation=activation)
    expected = hgemm.torch._act(activation, theirs[0] @ theirs[1] + theirs[2]) * theirs[3]
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
    with pytest.raises(TypeError, match="a: its type is torch.bfloat16"):
        hgemm.torch.matmul(integers(3, 4).bfloat16(), integers(4, 2))
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
    assert sum(inner.ran.values()) >= 5 and not outer.ran and not hgemm.torch._overrides


def test_batch_invariance_is_a_switch(fused):
    a, b = torch.randn(70, 256).to(HALF), torch.randn(256, 40).to(HALF)

    def rows():
        with hgemm.torch.enable(devices=("cpu",), batch_invariant=True):
            return torch.mm(a, b), torch.mm(a[33:34], b)
    whole, row = fused(rows)
    assert torch.equal(whole[33:34], row)


def test_tensor_parallel_example():
    pytest.importorskip("torch.distributed.tensor.experimental", reason="this torch has no DTensor with rules for operators")
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tensor_parallel.py"
    done = subprocess.run([sys.executable, str(example), "--device", "cpu"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert done.returncode == 0 and "2 processes agree" in done.stdout, done.stdout + done.stderr
