# SPDX-License-Identifier: MIT
"""Derivatives of the operator, of each order and in each of torch's modes: the formulas in doubles, by torch's own checks; the operator
itself, in halves, beside torch's products in doubles; and numbers that no half holds."""
import random
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import hgemm
import hgemm.torch
from activations import THEIRS
from hgemm._activations import ACTIVATIONS

HALF, FLOAT, DOUBLE, BF16 = torch.float16, torch.float32, torch.float64, torch.bfloat16
PRODUCTS = pytest.mark.parametrize("product", [hgemm.matmul, hgemm.torch.matmul], ids=("matmul", "torch.matmul"))
needs_epilogues = pytest.mark.skipif(not hgemm._c.has_epilogues(), reason="this libhgemm has no epilogues")


@pytest.fixture(autouse=True)
def seed(request):
    torch.manual_seed(sum(map(ord, request.node.name)))
    random.seed(request.node.name)


def theirs(a, b, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", accumulate=None, out_dtype=None, *rest):
    """What the operator computes, by torch."""
    z = alpha * (a @ b)
    z = z if c is None or not beta else z + beta * c
    z = z if bias is None else z + bias
    z = THEIRS[activation](z)
    return z if gate is None else z * gate


@pytest.fixture
def doubles():
    """Lends the operator a kernel for doubles, in which differences say what a derivative is."""
    def kernel(a, *rest):
        rest += hgemm._derivatives._defaults[1 + len(rest):]
        if a.dtype != DOUBLE:
            return hgemm._gemm.gemm(a, *rest)
        alpha_pointer = rest[-2]
        assert rest[8] in (None, DOUBLE) and rest[7] in ("float32", "float16")
        return theirs(a, *rest) if alpha_pointer is None else theirs(a, *rest[:4], float(alpha_pointer), *rest[5:])
    library = torch.library.Library("hgemm", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            library.impl("gemm", kernel, "CPU", allow_override=True)
        except TypeError:  # an older torch
            library.impl("gemm", kernel, "CPU")
    yield
    library._destroy()


def shapes():
    """Of a, b, c, bias and gate, or None for what is not there."""
    batch_a, batch_b, batch = random.choice([((), (), ()), ((2,), (), (2,)), ((), (2,), (2,)), ((2,), (2,), (2,)), ((2, 1), (3,), (2, 3))])
    m, n, k = (random.choice((1, 2, 3)) for _ in range(3))

    def beside(kinds):
        return random.choice([None, None, *kinds])
    return ((*batch_a, m, k), (*batch_b, k, n), beside([(m, n), (n,), (m, 1), (*batch, m, n)]), beside([(n,), (m, 1), (1,)]),
            beside([(m, n), (*batch, m, n), (n,), ()]))


def options(activations=tuple(ACTIVATIONS)):
    return {"alpha": random.choice((1.0, -0.5)), "beta": random.choice((1.0, 0.0, 2.0)), "activation": random.choice(activations)}


def called(function, tensors, given, **more):
    """The function of those tensors that there are."""
    present = [x for x in tensors if x is not None]

    def call(*values):
        values = iter(values)
        return function(*(None if x is None else next(values) for x in tensors), **given, **more)
    return call, present


@pytest.mark.parametrize("case", range(16))
def test_checked_by_differences(case, doubles):
    random.seed(case)
    activation = list(ACTIVATIONS)[case % len(ACTIVATIONS)]
    tensors = [None if shape is None else torch.randn(shape, dtype=DOUBLE, requires_grad=random.random() < 0.9 or i < 2)
               for i, shape in enumerate(shapes())]
    function, inputs = called(torch.ops.hgemm.gemm, tensors, {**options(), "activation": activation})
    check = {"check_forward_ad": True, "check_batched_grad": True}
    assert torch.autograd.gradcheck(function, inputs, check_batched_forward_grad=True, **check)
    assert torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


def same(mine, want, bound=0.01):
    """Within a share of the norm."""
    mine, want = ([x] if isinstance(x, torch.Tensor) else list(x) for x in (mine, want))
    assert len(mine) == len(want)
    for x, y in zip(mine, want):
        if isinstance(x, tuple):
            same(x, y, bound)
            continue
        assert x.shape == y.shape and x.isfinite().all()
        assert (x.double() - y).norm() <= bound * y.norm() + 1e-6, (x, y)


func = torch.func
MODES = {"grad": lambda f, n: func.grad(lambda *x: f(*x).sum(), tuple(range(n))), "jacrev": lambda f, n: func.jacrev(f, tuple(range(n))),
         "jacfwd": lambda f, n: func.jacfwd(f, tuple(range(n))), "hessian": lambda f, n: func.hessian(lambda *x: f(*x).float().square().sum(), (0, 1)),
         "reverse over forward": lambda f, n: func.jacrev(func.jacfwd(f), (0, 1)),
         "vjp": lambda f, n: lambda *x: (lambda d, back: back(torch.ones_like(d)))(*func.vjp(f, *x)),
         "jvp": lambda f, n: lambda *x: func.jvp(f, x, tuple(t.abs() for t in x))[1],
         "jvp of jvp": lambda f, n: lambda *x: func.jvp(lambda *y: func.jvp(f, y, x)[1], x, x)[1]}


@PRODUCTS
@pytest.mark.parametrize("mode", MODES)
def test_transforms(mode, product, fused):
    for activation in ("none", *random.sample(list(ACTIVATIONS)[1:], 2)):
        tensors = [None if shape is None else torch.randn(shape).to(HALF) for shape in shapes()]
        given = options([activation])
        given["beta"] = given["beta"] if tensors[2] is not None else 1.0
        function, inputs = called(lambda a, b, c, bias, gate, beta, **more: product(
            a, b, c=c, bias=bias, gate=gate, beta=None if c is None else beta, out_dtype=FLOAT, **more), tensors, given)
        reference, _ = called(theirs, tensors, given)
        same(fused(MODES[mode](function, len(inputs)), *inputs), MODES[mode](reference, len(inputs))(*(x.double() for x in inputs)))


@PRODUCTS
@needs_epilogues
def test_vmap(product):
    """Over any of the arguments, along any dimension, twice, and of a gradient."""
    for _ in range(12):
        tensors = [None if shape is None else torch.randn(shape).to(HALF) for shape in shapes()]
        given = options()
        given["beta"] = given["beta"] if tensors[2] is not None else 1.0
        function, inputs = called(lambda a, b, c, bias, gate, beta, **more: product(
            a, b, c=c, bias=bias, gate=gate, beta=None if c is None else beta, **more), tensors, given)
        reference, _ = called(theirs, tensors, given)
        dims = [random.choice((None, *range(x.dim() + 1))) for x in inputs]
        at = random.randrange(len(inputs))
        dims[at] = random.randrange(inputs[at].dim() + 1)
        many = [x if dim is None else torch.stack([x, -x, 2 * x], dim) for x, dim in zip(inputs, dims)]
        wide = [x.double() for x in many]
        same(torch.vmap(function, tuple(dims))(*many), torch.vmap(reference, tuple(dims))(*wide))
        again = [None if dim is None else 0 for dim in dims]
        twice = [x if dim is None else torch.stack([x, x.flip(dim)]) for x, dim in zip(many, dims)]
        same(torch.vmap(torch.vmap(function, tuple(dims)), tuple(again))(*twice),
             torch.vmap(torch.vmap(reference, tuple(dims)), tuple(again))(*(x.double() for x in twice)))
        every = tuple(range(len(inputs)))
        same(torch.vmap(func.grad(lambda *x: function(*x).float().sum(), every), tuple(dims))(*many),
             torch.vmap(func.grad(lambda *x: reference(*x).sum(), every), tuple(dims))(*wide))


def test_vmap_of_vectors_factors_and_scales():
    x, w, c = (torch.randn(shape).to(HALF) for shape in ((5, 8), (8, 3), (5, 3)))
    same(torch.vmap(hgemm.torch.matmul, (0, None))(x, w), x.double() @ w.double())
    same(torch.vmap(hgemm.torch.matmul)(x, x), (x.double() * x.double()).sum(1))
    factors = torch.randn(5)
    result = torch.vmap(lambda x, c, f: hgemm.torch.matmul(x, w, c=c, alpha=f, beta=f))(x, c, factors)
    same(result, factors[:, None].double() * (x.double() @ w.double() + c.double()))
    result = torch.vmap(lambda f: hgemm.torch.matmul(x, w, alpha=f))(factors)
    same(result, factors[:, None, None].double() * (x.double() @ w.double()))
    with pytest.raises(ValueError, match="alpha: it requires a gradient, and gets none"):
        func.grad(lambda f: hgemm.torch.matmul(x, w, alpha=f).sum())(factors[0])


@pytest.mark.skipif(not hgemm._c.has_bfloat16(), reason="this libhgemm has no bfloat16")
def test_bfloat16():
    a, b = torch.randn(4, 3, 8).to(BF16) * 2.0**70, torch.randn(8, 5).to(BF16)
    scales = torch.stack([hgemm.find_scale(x) for x in a])
    wide = a.double()
    same(torch.vmap(hgemm.torch.matmul, (0, None))(a, b), wide @ b.double())
    same(torch.vmap(lambda x, s: hgemm.torch.matmul(x, b, scale_a=s))(a, scales), wide @ b.double())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(torch.vmap(hgemm.find_scale)(a), scales.double())
    same(func.jvp(lambda x: hgemm.torch.matmul(x, b), (a,), (a,))[1], wide @ b.double())
    same(torch.vmap(func.grad(lambda x: hgemm.torch.matmul(x, b).float().sum()))(a), torch.ones(4, 3, 5).double() @ b.T.double())
    with pytest.raises(NotImplementedError, match="scale: it has no derivative"):
        func.jvp(lambda s: hgemm.torch.matmul(a[0], b, scale_a=s), (scales[0],), (scales[0],))


@needs_epilogues
@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e6, 1e9, 1e30])
@pytest.mark.parametrize("accumulate", ["float32", "float16"])
def test_gradients_that_no_half_holds(size, accumulate):
    """The gradient that comes in is beyond float16, or below it; the one that goes out is a half."""
    a, b, gate = (torch.randn(shape).to(HALF) for shape in ((6, 8), (8, 4), (6, 4)))
    g = torch.randn(6, 4) * size
    for activation, given in (("none", None), ("none", gate), ("silu", gate), ("gelu", None)):
        factor = 1 / size if size > 1 else 2.0**-10 / size  # so that the end is a half
        inputs = [x.clone().requires_grad_() for x in (a, b)]
        d = hgemm.matmul(*inputs, gate=given, activation=activation, accumulate=accumulate, out_dtype=FLOAT, alpha=factor)
        d.backward(g)
        wide = [x.detach().double().requires_grad_() for x in (a, b)]
        theirs(*wide, gate=None if given is None else given.double(), activation=activation, alpha=factor).backward(g.double())
        same([x.grad for x in inputs], [x.grad for x in wide])


def test_second_derivatives_that_no_half_holds():
    a, b, v = (torch.randn(shape).to(HALF).requires_grad_() for shape in ((6, 8), (8, 4), (6, 8)))
    size = 2.0**40
    ends = []
    for function, inputs in ((lambda a, b: hgemm.matmul(a, b, out_dtype=FLOAT), (a, b, v)),
                             (torch.matmul, [x.detach().double().requires_grad_() for x in (a, b, v)])):
        d = function(*inputs[:2])
        first, = torch.autograd.grad((d * (size * d.detach())).sum() / size, inputs[0], create_graph=True)
        ends.append(torch.autograd.grad((first * inputs[2]).sum(), inputs[1]))
    same(*ends)


def test_a_row_with_an_infinity_spoils_no_other():
    a, b = torch.randn(6, 8).to(HALF).requires_grad_(), torch.randn(8, 4).to(HALF)
    g = torch.randn(6, 4) * 1e6
    g[2, 1] = float("inf")
    hgemm.matmul(a, b, out_dtype=FLOAT, alpha=1e-6).backward(g)
    rows = [0, 1, 3, 4, 5]
    same(a.grad[rows], 1e-6 * (g[rows].double() @ b.T.double()))
    assert not a.grad[2].isfinite().any()


def test_a_batch_is_summed_before_it_is_rounded():
    """Of two gradients whose sum is a half."""
    a, b = torch.full((2, 4, 4), 100.0, dtype=HALF), torch.zeros(1, 4, 4, dtype=HALF, requires_grad=True)
    g = torch.stack([torch.full((4, 4), 500.0), torch.full((4, 4), -499.0)]).to(HALF)
    hgemm.matmul(a, b).backward(g)
    assert (b.grad == 400).all()


@pytest.mark.parametrize("function, words", [
    (lambda a: func.functionalize(lambda x: hgemm.torch.matmul(x, x))(a), "functionalize"),
    (lambda a: torch.vmap(lambda x: hgemm.grouped(x, a[None], torch.tensor([4])))(a[None]), "grouped: it has no derivatives and no batching rule"),
    (lambda a: func.grad(lambda x: hgemm.grouped(x, a[None], torch.tensor([4])).sum())(a), "grouped: it has no gradient"),
    (lambda a: func.jvp(lambda x: hgemm.grouped(x, a[None], torch.tensor([4])), (a,), (a,)), "grouped: it has no derivatives"),
    (lambda a: func.grad(lambda x: hgemm.matmul(x, a, out=a.clone()).sum())(a), "out: it cannot be given where torch records"),
    (lambda a: func.grad(lambda x: torch.ops.hgemm.gemm(x, a[0]).sum())(a), "b: it has 1 dimensions, and the operator's derivatives need matrices"),
    (lambda a: torch.vmap(lambda x: hgemm.torch.matmul(x, a, bias=a[0, :3]))(a[None]), "bias: its shape .* does not broadcast"),
    (lambda a: torch.vmap(lambda x: hgemm.torch.matmul(x, a, gate=a[0, :3]))(a[None]), "gate: its shape .* does not broadcast"),
    (lambda a: func.grad(lambda x: torch.ops.hgemm.gemm(x, a.bfloat16()).sum())(a), "b: its type is torch.bfloat16, and a's is torch.float16")])
def test_what_is_refused_says_so(function, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=words):
        function(torch.ones(4, 4, dtype=HALF))


@PRODUCTS
def test_autocast_under_a_transform(product):
    a, b = torch.randn(4, 8), torch.randn(8, 3)
    with torch.autocast("cpu", HALF):
        d = torch.vmap(product, (0, None))(a[:, None], b)
        g = func.grad(lambda a: product(a, b).float().square().sum())(a)
    assert d.dtype == HALF and g.dtype == FLOAT
    same(d[:, 0], a.double() @ b.double())
    same(g, 2 * (a.double() @ b.double()) @ b.double().T)


def test_constants_of_a_transform_are_left_as_they_are():
    """A transform that follows none of a call's arguments."""
    a = torch.randn(4, 4).to(HALF)
    result = torch.vmap(lambda x: x + hgemm.matmul(a, a).float())(torch.zeros(3, 1))
    same(result[1], a.double() @ a.double())
    ends = torch.tensor([4])
    same(torch.vmap(lambda x: x + hgemm.grouped(a, a[None], ends).float())(torch.zeros(3, 1))[1], a.double() @ a.double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("m, n, k", [(3, 0, 64), (3, 24, 0), (0, 24, 64), (0, 0, 0)])
def test_gradients_of_what_has_no_elements(dtype, m, n, k):
    for shape in ((m, k), (2, m, k)):
        x, w = torch.ones(shape, dtype=dtype, requires_grad=True), torch.ones(n, k, dtype=dtype, requires_grad=True)
        hgemm.torch.linear(x, w).sum().backward()
        assert torch.equal(x.grad, torch.full_like(x, n)) and torch.equal(w.grad, torch.full_like(w, x.numel() // max(k, 1)))
