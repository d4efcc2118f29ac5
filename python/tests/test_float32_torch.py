# SPDX-License-Identifier: MIT
"""Products of torch.float32: the operator, its gradients, enable(float32=True), and torch's own samples of what multiplies matrices.
They run on hgemm's default device. gpu_check.py has them on a GPU."""
import copy
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import activations
import hgemm
import hgemm.torch
import opinfo
from hgemm import _c

HALF = torch.float16
MOST = 64 * 2.0**-24  # of the sum of magnitudes, for sums of up to 256 products: docs/contract.md
needs_grouped_mm = pytest.mark.skipif(not (hasattr(torch.library, "get_kernel") and hasattr(torch, "_grouped_mm")),
                                      reason="this torch has no grouped_mm that can be routed")


@pytest.fixture(autouse=True)
def seed(request):
    torch.manual_seed(sum(map(ord, request.node.name)))


@pytest.fixture
def accuracies(monkeypatch):
    """The accuracies that the library is asked for, in order. (Results may have the same bits: which kernels serve is its choice.)"""
    asked, names = [], {number: name for name, number in _c.ACCURACY.items()}

    def run(handle, desc, own=_c.run_desc):
        asked.append(names[getattr(desc, "_obj", desc).accuracy])
        return own(handle, desc)
    monkeypatch.setattr(_c, "run_desc", run)
    return asked


def integers(*shape):
    return torch.randint(-3, 4, shape).float()


def assert_close(result, a, b):
    x, y = a.double(), b.double()
    assert result.dtype == torch.float32
    assert ((result.double() - x @ y).abs() <= MOST * (x.abs() @ y.abs())).all()


def double(x):
    return x.detach().double().requires_grad_(x.requires_grad)


@pytest.mark.parametrize("shape_a, shape_b", [((3, 5), (5, 7)), ((5,), (5, 7)), ((4, 3, 5), (5,)), ((2, 1, 3, 5), (4, 5, 7)), ((0, 5), (5, 7))])
def test_the_operator_is_torchs_matmul(shape_a, shape_b):
    a, b = torch.randn(shape_a), torch.randn(shape_b)
    for function in (hgemm.matmul, hgemm.torch.matmul):
        result = function(a, b)
        assert result.shape == torch.matmul(a, b).shape
        assert_close(result, a, b)
    meta = hgemm.torch.matmul(a.to("meta"), b.to("meta"))
    assert meta.shape == result.shape and meta.dtype == torch.float32
    assert hgemm.torch.matmul(a, b, out_dtype=HALF).dtype == HALF


@pytest.mark.parametrize("activation", activations.THEIRS)
def test_gradients_are_as_exact(activation):
    inputs = [torch.randn(shape).requires_grad_() for shape in ((2, 9, 40), (24, 40), (24,), (9, 24))]
    wanted = [double(x) for x in inputs]
    x, weight, bias, gate = inputs
    result = hgemm.linear(x, weight, bias, activation=activation, gate=gate)
    x, weight, bias, gate = wanted
    expected = activations.THEIRS[activation](torch.nn.functional.linear(x, weight, bias)) * gate
    g = torch.randn(result.shape)
    result.backward(g)
    expected.backward(g.double())
    for mine, want in zip([result, *(x.grad for x in inputs)], [expected, *(x.grad for x in wanted)]):
        assert mine.dtype == torch.float32 and mine.shape == want.shape
        assert (mine.double() - want).norm() <= 1e-6 * want.norm()


def test_second_derivatives():
    a, b = torch.randn(3, 4).requires_grad_(), torch.randn(4, 5).requires_grad_()

    def penalty(product, a, b):
        grad, = torch.autograd.grad(product(a, b).pow(2).sum(), a, create_graph=True)
        return torch.autograd.grad(grad.pow(2).sum(), (a, b))
    for mine, want in zip(penalty(hgemm.torch.matmul, a, b), penalty(torch.matmul, double(a), double(b))):
        assert (mine.double() - want).norm() <= 1e-6 * want.norm()


def test_opcheck():
    torch.library.opcheck(torch.ops.hgemm.gemm.default, (torch.randn(3, 4).requires_grad_(), torch.randn(4, 5).requires_grad_()),
                          test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))


def products(a, b, c, v, x, y, z):
    f = torch.nn.functional
    return [torch.mm(a, b), a @ b, torch.addmm(c, a, b, beta=2, alpha=-1), torch.addmm(v, a, b), torch.bmm(x, y), torch.baddbmm(z, x, y, beta=3),
            torch.einsum("ij,jk->ik", a, b), f.linear(a, b.T), f.linear(a, b.T, v), f.linear(x, b.T, v)]


def test_enable_runs_products_of_float32_where_it_is_asked_to():
    operands = [integers(*shape) for shape in ((6, 8), (8, 5), (6, 5), (5,), (2, 6, 8), (2, 8, 5), (2, 6, 5))]
    expected = products(*operands)
    for allowed in (False, True):
        before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, allowed
        try:
            with hgemm.torch.enable(devices=("cpu",), float32=True, accumulate="float16") as on:
                results = products(*operands)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        assert on.ran == {"mm": 3, "addmm": 4, "bmm": 2, "baddbmm": 1} and not on.passed
        for result, want in zip(results, expected):
            assert torch.equal(result, want)
    with hgemm.torch.enable(devices=("cpu",)) as on:
        products(*operands)
        torch.mm(operands[0].half(), operands[1].half())
    assert on.ran == {"mm": 1} and on.passed == {"torch.float32": 10}


@pytest.mark.parametrize("asked, allowed, accuracy", [(True, False, "float32"), (True, True, "11bits"), ("float32", True, "float32"),
                                                      ("16bits", False, "16bits"), ("11bits", False, "11bits")])
def test_enable_takes_the_accuracy_that_is_asked_for_or_permitted(asked, allowed, accuracy, accuracies):
    a, b = torch.randn(51, 64), torch.randn(64, 52)
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, allowed
    try:
        with hgemm.torch.enable(devices=("cpu",), float32=asked):
            result = a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert accuracies == [accuracy] and torch.equal(result, hgemm.matmul(a, b, accuracy=accuracy))


def test_enable_refuses_what_is_no_accuracy():
    with pytest.raises(ValueError, match="float32: .tf32. is none of"):
        hgemm.torch.enable(float32="tf32")


@pytest.mark.parametrize("half", [HALF, torch.bfloat16])
def test_halves_beside_floats(half):
    x, weight = torch.randn(9, 40).requires_grad_(), torch.randn(24, 40).to(half).requires_grad_()
    wanted = [double(x), double(weight)]
    for function in (hgemm.linear, hgemm.torch.linear):
        result, expected = function(x, weight), torch.nn.functional.linear(*wanted)
        assert result.dtype == torch.float32 and (result.double() - expected).norm() <= 1e-6 * expected.norm()
    g = torch.randn(result.shape)
    result.backward(g)
    expected.backward(g.double())
    assert x.grad.dtype == torch.float32 and (x.grad.double() - wanted[0].grad).norm() <= 1e-6 * wanted[0].grad.norm()
    assert weight.grad.dtype == half and (weight.grad.double() - wanted[1].grad).norm() <= 2.0**-8 * wanted[1].grad.norm()
    meta = hgemm.torch.linear(x.to("meta"), weight.to("meta"))
    assert meta.dtype == torch.float32 and meta.shape == result.shape
    with pytest.raises(TypeError, match="b: its type is torch.bfloat16, and a's is torch.float16"):
        hgemm.torch.matmul(torch.zeros(2, 3, dtype=HALF, device="meta"), torch.zeros(3, 2, dtype=torch.bfloat16, device="meta"))


def test_gradients_have_the_products_accuracy(accuracies):
    x, y = torch.randn(51, 52).requires_grad_(), torch.randn(52, 64).requires_grad_()
    g = torch.randn(51, 64)
    hgemm.torch.matmul(x, y, accuracy="11bits").backward(g)
    assert accuracies == ["11bits"] * 3 and torch.equal(x.grad, hgemm.matmul(g, y.detach().mT, accuracy="11bits"))
    accuracies.clear()
    forward = torch.func.jvp(lambda x: hgemm.torch.matmul(x, y.detach(), accuracy="16bits"), (x.detach(),), (x.detach(),))
    assert set(accuracies) == {"16bits"} and torch.equal(forward[1], hgemm.matmul(x.detach(), y.detach(), accuracy="16bits"))


def test_enable_passes_on_other_types():
    a, b = integers(6, 8), integers(8, 5)
    with hgemm.torch.enable(devices=("cpu",), float32=True) as on:
        assert torch.mm(a.double(), b.double()).dtype == torch.float64
        with pytest.raises(RuntimeError):
            torch.mm(a, b.half())
        torch.mm(a.half(), b.half())
    assert on.ran == {"mm": 1} and on.passed == {"torch.float64": 1, "torch.float16": 1}


def test_rows_do_not_depend_on_others():
    a, b = torch.randn(40, 96), torch.randn(96, 8)
    with hgemm.torch.enable(devices=("cpu",), float32=True, batch_invariant=True):
        assert torch.equal((a @ b)[7:9], a[7:9] @ b)


def test_a_training_step_is_as_exact():
    model = torch.nn.Sequential(torch.nn.Linear(24, 40), torch.nn.GELU(), torch.nn.Linear(40, 8))
    plain = copy.deepcopy(model).double()
    x, target = torch.randn(12, 24), torch.randn(12, 8)
    with hgemm.torch.enable(devices=("cpu",), float32=True) as on:
        torch.nn.functional.mse_loss(model(x), target).backward()
    torch.nn.functional.mse_loss(plain(x.double()), target.double()).backward()
    assert on.ran == {"addmm": 2, "mm": 3} and not on.passed
    for mine, want in zip(model.parameters(), plain.parameters()):
        assert (mine.grad.double() - want.grad).norm() <= 1e-6 * want.grad.norm()


def test_compiled():
    a, b, c = (torch.randn(shape) for shape in ((6, 8), (8, 5), (5,)))

    @torch.compile(fullgraph=True, backend="aot_eager")
    def f(a, b, c):
        return torch.relu(hgemm.torch.matmul(a, b, c=c) * 0.5)
    assert torch.equal(f(a, b, c), torch.relu(hgemm.torch.matmul(a, b, c=c) * 0.5))


def test_torchs_own_samples():
    on = hgemm.torch.enable(devices=("cpu",), float32=True)
    count, faults = opinfo.check("cpu", torch.float32, on)
    assert not faults and count > 100 and sum(on.ran.values()) > 400, (count, faults, on.ran, on.passed)


@needs_grouped_mm
def test_enable_runs_grouped_mm():
    a, b, ends = integers(18, 8), integers(3, 16, 8).mT, torch.tensor([5, 5, 18], dtype=torch.int32)
    with hgemm.torch.enable(devices=("cpu",), float32=True) as on:
        result = torch._grouped_mm(a, b, offs=ends)
    assert on.ran == {"_grouped_mm": 1}, on.passed
    assert torch.equal(result, torch.cat([a[:5] @ b[0], a[5:] @ b[2]]))


def test_autocast_makes_halves():
    a, b = integers(3, 4), integers(4, 5)
    with torch.autocast("cpu", HALF):
        assert hgemm.torch.matmul(a, b).dtype == HALF
    assert hgemm.torch.matmul(a, b).dtype == torch.float32


DTENSORS = """
import torch, torch.distributed
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
import hgemm.torch

torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
a, b = torch.randint(-3, 4, (6, 8)).float(), torch.randint(-3, 4, (8, 10)).float()
x = distribute_tensor(a, mesh, [Replicate()]).requires_grad_()
d = hgemm.torch.matmul(x, distribute_tensor(b, mesh, [Shard(1)]))
assert d.placements == (Shard(1),) and torch.equal(d.to_local(), a @ b)
d.sum().backward()
assert torch.equal(x.grad.full_tensor(), b.sum(1).expand(6, 8))
torch.distributed.destroy_process_group()
print("same")
"""


def test_dtensors():
    pytest.importorskip("torch.distributed.tensor.experimental", reason="this torch has no rules for DTensors")
    ran = subprocess.run([sys.executable, "-c", DTENSORS], capture_output=True, text=True)
    assert ran.stdout == "same\n", ran.stderr
