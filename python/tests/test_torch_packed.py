# SPDX-License-Identifier: MIT
"""Packed weights for torch: the operator, its gradient, modules, models whose layers are replaced. On CPU tensors, by the emulated T4."""
import copy
import pickle
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hgemm
import hgemm.torch
from hgemm import _c, formats
from random_weights import KINDS, halves, made, words, zero_words

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")


def integers(rng, *shape):
    return torch.from_numpy(rng.integers(-2, 3, shape).astype(np.float16))


def matrix_of(weights):
    return torch.from_numpy(weights.dequantize())


@pytest.mark.parametrize("code, zeros", KINDS)
def test_linear_and_its_gradient(rng, code, zeros):
    weights = made(rng, code, 40, 96, 32, zeros)
    with pytest.raises(ValueError, match="device: 'nowhere' is no device of torch's"):
        hgemm.pack(weights, device="nowhere")
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    assert isinstance(packed.data, torch.Tensor)
    assert torch.equal(packed.unpack("float32"), matrix)
    x, bias = integers(rng, 2, 3, 96).requires_grad_(), integers(rng, 40).requires_grad_()
    c = integers(rng, 2, 3, 40).requires_grad_()
    y = hgemm.linear(x, packed, bias, alpha=0.5, c=c, beta=2, out_dtype="float32")
    wanted = 0.5 * x.double() @ matrix.double().T + bias.double() + 2 * c.double()
    assert torch.equal(y.double(), wanted)
    g = integers(rng, 2, 3, 40).float()
    found, expected = torch.autograd.grad(y, (x, bias, c), g), torch.autograd.grad(wanted, (x, bias, c), g.double())
    for one, other in zip(found, expected):
        assert one.dtype == torch.float16 and torch.allclose(one.double(), other.double(), rtol=2e-3, atol=0)
    with torch.no_grad():
        assert torch.equal(hgemm.torch.linear(x, packed, bias, alpha=0.5, c=c, beta=2, out_dtype="float32"), y)


def test_gradients_of_any_size(rng):
    """An incoming gradient in float32 may be beyond halves, or below them; that of a gradient is the product."""
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    for size in (1e-9, 1.0, 1e7):
        x = integers(rng, 5, 64).requires_grad_()
        g = (integers(rng, 5, 24).float() * size).requires_grad_()
        y = hgemm.linear(x, packed, alpha=1 / size, out_dtype="float32")
        found, = torch.autograd.grad(y, x, g, create_graph=True)
        wanted = (g.double() @ matrix.double() / size).detach()
        assert torch.isfinite(found).all() and (found - wanted).abs().max() <= 1e-3 * wanted.abs().max(), size
        seed = integers(rng, 5, 64)
        twice, = torch.autograd.grad(found, g, seed)
        wanted = seed.double() @ matrix.double().T / size
        assert twice.dtype == torch.float32 and (twice - wanted).abs().max() <= 1e-5 * wanted.abs().max()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_gradient_in_panels(rng, monkeypatch, dtype):
    """Of a matrix of more than PANEL bytes some columns are unpacked at a time: the same gradient."""
    weights = made(rng, "uint4", 24, 700, 32, "integer")
    packed = hgemm.pack(weights, device="cpu")
    x = torch.zeros(2, 3, 700, dtype=getattr(torch, dtype), requires_grad=True)
    y = hgemm.linear(x, packed, out_dtype="float32")
    g = integers(rng, 2, 3, 24).float()
    whole, = torch.autograd.grad(y, x, g, retain_graph=True)
    assert whole.shape == x.shape and whole.dtype == x.dtype and torch.allclose(whole.double(), g.double() @ matrix_of(weights).double(), rtol=1e-2)
    monkeypatch.setattr(hgemm._torch_packed, "PANEL", 2 * 24 * 300)
    assert hgemm._torch_packed._panel(24, 700, 2) == 256  # 256, 256 and 188 columns
    assert torch.equal(torch.autograd.grad(y, x, g)[0], whole)
    assert [hgemm._torch_packed._panel(*nk, 2) for nk in ((0, 5), (5, 0), (10, 256), (7200, 300))] == [5, 1, 256, 128]


@pytest.mark.parametrize("activation, gated", [("silu", True), ("gelu", False), (None, True)])
def test_an_epilogue_is_differentiated(rng, activation, gated):
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    x, gate = (integers(rng, 5, 64) / 16).requires_grad_(), integers(rng, 5, 24).requires_grad_() if gated else None
    y = hgemm.linear(x, packed, activation=activation, gate=gate)
    with torch.no_grad():
        assert torch.allclose(y, hgemm.linear(x, packed, activation=activation, gate=gate), rtol=2e-3, atol=1e-6)
    z = x.float() @ matrix.T
    wanted = {"silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, None: lambda z: z}[activation](z)
    wanted = wanted * gate.float() if gated else wanted
    given = [tensor for tensor in (x, gate) if tensor is not None]
    g = integers(rng, 5, 24)
    for one, other in zip(torch.autograd.grad(y, given, g), torch.autograd.grad(wanted, given, g.float())):
        assert torch.allclose(one.float(), other.float(), rtol=1e-2, atol=1e-2)


def test_vectors_and_bfloat16(rng):
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    x = integers(rng, 64)
    assert torch.equal(hgemm.linear(x, packed, out_dtype="float32"), x.float() @ matrix.T)
    x = x.clone().requires_grad_()
    y = hgemm.linear(x, packed, out_dtype="float32")
    assert y.shape == (24,)
    y.sum().backward()
    assert torch.equal(x.grad.float(), matrix.sum(0))
    wide = (integers(rng, 5, 64).float() * 1e5).bfloat16().requires_grad_()
    y = hgemm.linear(wide, packed, out_dtype="float32")
    assert torch.allclose(y, wide.float() @ matrix.T, rtol=1e-5)
    y.sum().backward()
    assert wide.grad.dtype == torch.bfloat16 and torch.allclose(wide.grad.float(), matrix.sum(0).expand(5, 64), rtol=1e-2)


@pytest.mark.parametrize("kind, dtype", [("int4", "float16"), ("table16", "float16"), ("int4", "bfloat16")])
def test_eight_experts_of_which_each_row_takes_two(rng, kind, dtype):
    """As a mixture of experts runs: rows of x gathered for the experts that they chose, results scattered to where they are added."""
    weights = [made(rng, kind, 40, 64, 32) for _ in range(8)]
    packed = hgemm.pack(weights, device="cpu")
    assert packed.shape == (8, 40, 64) and packed.data.shape[0] == 8
    tokens = 5
    x = integers(rng, tokens, 64).to(getattr(torch, dtype))
    chosen = torch.from_numpy(np.stack([rng.permutation(8)[:2] for _ in range(tokens)]))
    order = chosen.flatten().argsort(stable=True)
    ends = torch.bincount(chosen.flatten(), minlength=8).cumsum(0).int()
    y = hgemm.grouped(x, packed, ends, gather_a=(order // 2).int(), scatter_d=order.int(), out_dtype="float32")
    wanted = torch.stack([x[i].double() @ matrix_of(weights[expert]).double().T for i in range(tokens) for expert in chosen[i]])
    assert isinstance(y, torch.Tensor) and torch.equal(y.double(), wanted)
    ends = torch.tensor([0, 0, 3, 3, 3, 3, 5, 5], dtype=torch.int32)
    if dtype == "float16":  # experts without rows, packed for any arrays: the same
        same = [hgemm.grouped(x, w, ends, activation="silu") for w in (packed, hgemm.pack(weights))]
        assert torch.equal(*same) and same[0].dtype == torch.float16
    sorted_ = [hgemm.Weights(one.codes, one.scales, kind, group=32, table=one.table, order=np.arange(64)[::-1], nibbles=True) for one in weights]
    y = hgemm.grouped(x, hgemm.pack(sorted_, device="cpu"), ends, out_dtype="float32")
    assert torch.equal(y.double(), torch.cat([x[:3].double() @ matrix_of(sorted_[2]).double().T, x[3:].double() @ matrix_of(sorted_[6]).double().T]))


def test_transforms(rng):
    """Under torch.func's transforms, and forward-mode derivatives, it is the product with the matrix."""
    func = torch.func
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    many, x, t, gate = integers(rng, 4, 3, 64), integers(rng, 3, 64), integers(rng, 3, 64), integers(rng, 3, 24)

    def product(x):
        return hgemm.linear(x, packed, alpha=0.5, gate=gate.to(x.dtype), activation="silu", out_dtype="float32")

    def reference(x):
        return torch.nn.functional.silu(0.5 * x.float() @ matrix.T) * gate.float()
    modes = {"grad": lambda f: func.grad(lambda x: f(x).sum())(x), "jvp": lambda f: func.jvp(f, (x,), (t,))[1], "vmap": lambda f: func.vmap(f, 1)(
        many.movedim(0, 1)), "vmap of grad": lambda f: func.vmap(func.grad(lambda x: f(x).sum()))(many), "vjp": lambda f: func.vjp(f, x)[1](
            torch.ones(3, 24))[0], "jvp of grad": lambda f: func.jvp(func.grad(lambda x: f(x).sum()), (x,), (t,))[1],
        "jvp of jvp": lambda f: func.jvp(lambda x: func.jvp(f, (x,), (t,))[1], (x,), (t,))[1], "jacrev": lambda f: func.jacrev(f)(x[:1] * 1)}
    for name, mode in modes.items():
        if name == "jacrev":
            gate = gate[:1]
        found, wanted = mode(product), mode(reference)
        assert found.shape == wanted.shape and (found.float() - wanted.float()).abs().max() <= 2e-3 * wanted.abs().max() > 0, name
    with torch.autograd.forward_ad.dual_level():
        y = hgemm.linear(torch.autograd.forward_ad.make_dual(x, t), packed, out_dtype="float32")
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(y).tangent, t.float() @ matrix.T)
    operator = lambda x: torch.ops.hgemm.linear_packed(x, packed.data, packed.form, out_dtype=torch.float32)
    assert torch.equal(func.jvp(operator, (x,), (t,))[1], t.float() @ matrix.T)
    with pytest.raises(NotImplementedError, match="packed: there is no batching rule"):
        func.vmap(lambda data: torch.ops.hgemm.linear_packed(x, data, packed.form))(packed.data.expand(2, -1))
    layer = hgemm.torch.PackedLinear(weights).to("meta")
    assert layer(x.to("meta")).shape == (3, 24)


def test_float32(rng):
    """The product is as near to the exact one as float32's sums are, whatever a row's magnitude."""
    weights = made(rng, "int4", 24, 320, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights)
    sizes = torch.tensor([1e-30, 1e-7, 1.0, 3e4, 8e5, 1e25])[:, None]
    x = (torch.from_numpy(rng.standard_normal((6, 320)).astype(np.float32)) * sizes).requires_grad_()
    bias, gate, c = (torch.from_numpy(rng.standard_normal(shape).astype(np.float32)) for shape in ((24,), (6, 24), (6, 24)))
    y = hgemm.linear(x, packed)
    wanted, bound = x.double() @ matrix.double().T, x.double().abs() @ matrix.double().abs().T
    assert y.dtype == torch.float32 and ((y - wanted).abs() <= 1e-6 * bound).all()
    assert ((hgemm.linear(x.detach().bfloat16(), packed, out_dtype="float32") - wanted).abs() > 1e-5 * bound).any()  # which halves do not
    g = torch.from_numpy(rng.standard_normal((6, 24)).astype(np.float32))
    found, = torch.autograd.grad(y, x, g)
    wanted = g.double() @ matrix.double()
    assert found.dtype == torch.float32 and (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()
    x, c, gate = x.detach()[1:3], c[1:3], gate[1:3]
    y = hgemm.linear(x, packed, bias, c=c, beta=0.5, alpha=2, activation="gelu", gate=gate, out_dtype="float16")
    wanted = torch.nn.functional.gelu(2 * (x @ matrix.T) + 0.5 * c + bias) * gate
    assert y.dtype == torch.float16 and torch.allclose(y.float(), wanted, rtol=1e-3, atol=1e-2)
    assert torch.equal(hgemm.linear(x[0], packed), hgemm.linear(x, packed)[0])
    assert torch.equal(hgemm.linear(torch.zeros(0, 320), packed), torch.zeros(0, 24))
    odd = torch.ones(3, 320)
    odd[0, 0], odd[1, 5] = torch.inf, torch.nan
    found, wanted = hgemm.linear(odd, packed), odd @ matrix.T
    assert torch.equal(found.isnan(), wanted.isnan()) and torch.equal(found.isinf(), wanted.isinf())
    layer = hgemm.torch.PackedLinear(packed)
    assert layer(x).dtype == torch.float32 and torch.equal(layer(x), hgemm.linear(x, packed))
    layer.compute_dtype = torch.float16
    assert torch.equal(layer(x), hgemm.linear(x.half(), packed, out_dtype="float32"))


def test_float32_in_rows_of_any_width(rng):
    """docs/weights.md's bound, where a feature is far above the others and some outputs do not use it; and that it is no looser than need be."""
    n, k = 40, 192
    codes = rng.integers(-8, 8, (n, k)).astype(np.int8)
    codes[: n // 2, 0] = 0
    packed = hgemm.pack(hgemm.Weights(codes, rng.uniform(0.01, 0.02, (n, k // 64)).astype(np.float32), "int4", group=64), device="cpu")
    matrix, worst = packed.unpack("float32").double(), 0.0
    for width in (0, 12, 27, 28, 29, 35, 45, 60, 90, 120):
        x = torch.from_numpy(rng.standard_normal((6, k)).astype(np.float32))
        x *= torch.from_numpy(np.exp2(-rng.integers(0, 14, (6, k))).astype(np.float32))
        x[:, 0] = torch.tensor([1, -1, 1.9, 0.5, 0, 1e-30]) * 2.0**width
        x *= torch.exp2(torch.tensor([0, 5, -20, 0, 40, -100]))[:, None]
        error = (hgemm.linear(x, packed).double() - x.double() @ matrix.T).abs()
        sums, floor = x.double().abs() @ matrix.abs().T, 2.0**-50 * x.double().abs().amax(1, keepdim=True) * matrix.abs().sum(1)
        assert (error <= (96 + k / 64 + 8) * 2.0**-24 * sums + floor + k * 2.0**-150).all(), width
        worst = max(worst, ((error - (96 + k / 64 + 8) * 2.0**-24 * sums) / floor).max().item())
    assert worst > 2.0**-6  # floats of one row by themselves do not come to that: x has fewer bits there


def test_float32_beyond_what_halves_and_alpha_hold(rng):
    """x, scaled, times alpha alone is no result: each may be far from 1 where that is not."""
    weights = made(rng, "int4", 24, 64, 32)
    packed, matrix = hgemm.pack(weights, device="cpu"), matrix_of(weights).double()
    for size, alpha in ((1.0, 1e38), (1e38, 1e-38), (1e-37, 3e38), (1e38, 1e-10), (3e-39, 1e38), (1e-20, -1e20), (2.0**-140, 2.0**120)):
        x = torch.from_numpy(rng.standard_normal((5, 64))).float().clamp(-3, 3) * size
        exact, most = alpha * (x.double() @ matrix.T), abs(alpha) * (x.double().abs() @ matrix.abs().T)
        y, fits = hgemm.linear(x, packed, alpha=alpha).double(), exact.abs() < 3.4e38
        assert fits.any() and ((y - exact).abs() <= 2.0**-20 * most)[fits].all() and y[exact.abs() > 3.5e38].isinf().all(), (size, alpha)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_bias_of_any_shape_that_linear_takes(rng, dtype):
    weights = made(rng, "int4", 40, 96, 32)
    packed, x = hgemm.pack(weights, device="cpu"), integers(rng, 3, 96).to(dtype)
    wanted = x.float() @ matrix_of(weights).T
    for bias in (integers(rng, 40), integers(rng, 1, 40), integers(rng, 3, 1), integers(rng, 1, 1), integers(rng, 1), integers(rng, 1)[0],
                 integers(rng, 80)[::2], integers(rng, 1).expand(40)):
        assert torch.equal(hgemm.linear(x, packed, bias, out_dtype="float32"), wanted + bias.float()), bias.shape
        if dtype != torch.float32:
            other = hgemm.linear(x.numpy(), hgemm.pack(weights), bias.numpy(), out_dtype="float32")
            assert np.array_equal(other, wanted + bias.float()), bias.shape
    for bias in (integers(rng, 41), integers(rng, 2, 1), integers(rng, 2, 3, 1)):
        with pytest.raises(ValueError, match="^bias: its shape"):
            hgemm.linear(x, packed, bias)
    with pytest.raises(TypeError, match="bias: a numpy.ndarray is no tensor"):
        hgemm.torch.PackedLinear(weights, np.ones(40))
    with pytest.raises(ValueError, match="form: it has 3 numbers"):
        torch.ops.hgemm.linear_packed(x.half(), packed.data, [1, 2, 3])
    with pytest.raises(ValueError, match=r"x: its shape is \(3, 90\)"):
        torch.ops.hgemm.linear_packed(x[:, :90].to("meta"), packed.data.to("meta"), list(packed.form))


def test_tensors_that_are_negatives_in_memory(rng):
    """What torch makes of a conjugate's imaginary part."""
    x = torch.complex(torch.randn(3, 64), torch.randn(3, 64)).conj().imag
    b, weights = torch.randn(64, 24), made(rng, "int4", 24, 64, 32)
    assert x.is_neg()
    for result in (hgemm.matmul(x, b), hgemm.torch.matmul(x, b)):
        assert torch.equal(result, hgemm.matmul(x.clone(), b))
    packed = hgemm.pack(weights, device="cpu")
    assert torch.equal(hgemm.linear(x, packed), hgemm.linear(x.clone(), packed))
    half = torch._neg_view(integers(rng, 3, 64))
    assert torch.equal(hgemm.linear(half, packed), hgemm.linear(half.clone(), packed))
    codes, scales = torch.from_numpy(rng.integers(-8, 8, (4, 32))), torch._neg_view(torch.ones(4, 1))
    assert torch.equal(hgemm.pack(hgemm.Weights(codes, scales, "int4"), device="cpu").unpack("float32"), -codes.float())


def test_weights_of_torchs_tensors(rng):
    codes, scales = torch.from_numpy(rng.integers(-8, 8, (4, 32))), torch.tensor([[0.5, 2]] * 4)
    for of in (scales, scales.half(), scales.bfloat16(), torch.nn.Parameter(scales)):
        found = hgemm.Weights(codes, of, "int4", group=16).dequantize()
        np.testing.assert_array_equal(found, (codes * scales.repeat_interleave(16, 1)).numpy())
    with pytest.raises(ValueError, match="scales: it is on meta"):
        hgemm.Weights(codes, scales.to("meta"), "int4", group=16)
    with pytest.raises(TypeError, match="codes: it is of layout torch.sparse_coo"):
        hgemm.Weights(codes.to_sparse(), scales, "int4", group=16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("m, n, k", [(0, 24, 64), (3, 0, 64), (3, 24, 0), (0, 0, 0)])
def test_sizes_of_0(dtype, m, n, k):
    packed = hgemm.pack(hgemm.Weights(np.ones((n, k), int), np.ones((n, 2 if k else 0), np.float16), "int4", group=32), device="cpu")
    x, bias = torch.ones(m, k, dtype=dtype, requires_grad=True), torch.full((n,), 2.0)
    y = hgemm.linear(x, packed, bias, accuracy="11bits")
    assert torch.equal(y, torch.full((m, n), 2.0 + k, dtype=dtype))
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((m, k), float(n), dtype=dtype))
    with torch.no_grad():
        assert torch.equal(hgemm.torch.PackedLinear(packed)(x), torch.full((m, n), float(k), dtype=dtype))


def test_what_is_refused(rng):
    weights = made(rng, "int4", 24, 64, 32)
    packed, x = hgemm.pack(weights, device="cpu"), integers(rng, 5, 64)
    for arguments, error, match in (
            ({"x": x[:, :62]}, ValueError, r"x: its shape is \(5, 62\)"), ({"x": x.double()}, TypeError, "x: its type is torch.float64"),
            ({"x": x.float(), "bias": torch.zeros(23)}, ValueError, r"bias: its shape"),
            ({"x": x.float(), "gate": torch.zeros(5, 24, dtype=torch.int32)}, TypeError, "gate: its type"),
            ({"x": x.float(), "scale_a": 1.0}, ValueError, "scale_a: x is float32"),
            ({"bias": torch.zeros(23)}, ValueError, r"bias: its shape"), ({"gate": torch.zeros(4, 24)}, ValueError, "gate: its shape"),
            ({"out": torch.zeros(5, 24)}, ValueError, "out"), ({"scale_b": 1.0}, ValueError, "scale_b"),
            ({"accumulate": "float16"}, NotImplementedError, "accumulate"), ({"c": torch.zeros(5, 24, dtype=torch.int32)}, TypeError, "c: its type")):
        with pytest.raises(error, match=match):
            hgemm.linear(**{"x": x, "weight": packed, **arguments})
    for linear in (hgemm.linear, hgemm.torch.linear):
        with pytest.raises(TypeError, match=r"weight: a hgemm._weights.Weights is no array: hgemm.pack"):
            linear(x, weights)
    with pytest.raises(ValueError, match="packed: it is a tensor of torch.uint8"):
        torch.ops.hgemm.linear_packed(x, packed.data[:-1], packed.form)
    with pytest.raises(NotImplementedError, match="no gradient; hgemm.torch.linear has"):
        torch.ops.hgemm.linear_packed(x.requires_grad_(), packed.data, packed.form, activation="relu")


def test_operator_checks(rng):
    """What torch asks of an operator: its schema, its fake kernel, its autograd."""
    packed = hgemm.pack(made(rng, "int4", 24, 64, 32), device="cpu")
    for x in (integers(rng, 5, 64), integers(rng, 5, 64).requires_grad_()):
        torch.library.opcheck(torch.ops.hgemm.linear_packed, (x, packed.data, list(packed.form)),
                              test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
    for g in (integers(rng, 5, 24), integers(rng, 2, 3, 24).float().requires_grad_()):
        torch.library.opcheck(torch.ops.hgemm.linear_packed_grad, (g, packed.data, list(packed.form), torch.float16, 0.5),
                              test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
    torch.library.opcheck(torch.ops.hgemm.unpack, (packed.data, list(packed.form), torch.float16), test_utils=("test_schema", "test_faketensor"))


def test_compiled(rng):
    weights = made(rng, "int4", 24, 64, 32)
    layer = hgemm.torch.PackedLinear(weights, torch.ones(24, dtype=torch.float16))
    x = integers(rng, 5, 64).requires_grad_()
    compiled = torch.compile(lambda x: torch.relu(layer(x)), fullgraph=True, backend="aot_eager")
    y = compiled(x)
    assert torch.equal(y, torch.relu(layer(x)))
    y.sum().backward()
    assert torch.isfinite(x.grad).all() and x.grad.abs().max() > 0


def test_module(rng):
    weights = formats.gptq(words(rng, 16, 24), words(rng, 4, 3), halves(rng, 4, 24), rng.permutation(np.arange(128) // 32).astype(np.int32), version=2)
    layer = hgemm.torch.PackedLinear(weights, torch.arange(24).half())
    x = integers(rng, 3, 128)
    wanted = layer(x)
    assert torch.allclose(wanted.float(), x.float() @ matrix_of(weights).T + torch.arange(24), rtol=2e-3, atol=0.1)
    with pytest.raises(ValueError, match=r"x: its shape is \(\)"):
        layer(torch.tensor(1.0))
    with pytest.raises(TypeError, match="x: its layout is torch.sparse_coo"):
        layer(x.to_sparse())
    assert layer.half().packed.dtype == torch.uint8 and layer.in_features == 128 and layer.out_features == 24
    assert torch.allclose(layer(x.float()), wanted.float(), rtol=2e-3, atol=0.1) and layer(x.float()).dtype == torch.float32
    layer.compute_dtype = torch.float16
    assert layer(x.float()).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x.float()).dtype == torch.bfloat16


# ---- convert ------------------------------------------------------------------------------------------------------


class Layer(torch.nn.Module):
    """A quantised layer of some package's: the tensors that its checkpoint has."""

    def __init__(self, bias=None, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor if isinstance(tensor, torch.Tensor) else torch.from_numpy(tensor))
        self.bias = bias


def quantised(rng, n=32, k=128):
    """(name, layer, its Weights) of each format that convert knows."""
    groups = k // 32
    gptq = {"qweight": words(rng, k // 8, n), "qzeros": zero_words(rng, groups, n // 8), "scales": halves(rng, groups, n),
            "g_idx": rng.permutation(np.arange(k) // 32).astype(np.int32)}
    awq = {"qweight": words(rng, k, n // 8), "qzeros": words(rng, groups, n // 8), "scales": halves(rng, groups, n)}
    packed = {"weight_packed": words(rng, n, k // 8), "weight_scale": halves(rng, n, groups), "weight_shape": np.array([n, k])}
    eight = {"weight_packed": words(rng, n, k // 4), "weight_scale": halves(rng, n, 1), "weight_shape": np.array([n, k])}
    integer = {"weight": rng.integers(-128, 128, (n, k)).astype(np.int8), "weight_scale": halves(rng, n, 1)}
    fp8 = {"weight": rng.integers(0, 100, (n, k)).astype(np.uint8), "weight_scale_inv": rng.uniform(0.1, 1, (1, 1)).astype(np.float32)}
    bits8 = torch.from_numpy(fp8["weight"]).view(torch.float8_e4m3fn)
    nf4 = rng.integers(0, 256, (n * k // 2, 1)).astype(np.uint8), rng.uniform(0.1, 1, n * k // 64).astype(np.float32)
    state = types.SimpleNamespace(dtype=torch.float16)
    state.as_dict = lambda: {"absmax": torch.from_numpy(nf4[1]), "shape": (n, k), "quant_type": "nf4", "blocksize": 64}
    bnb = Layer(weight=nf4[0])
    bnb.quant_state = state
    return [
        ("gptq", Layer(**gptq, bias=torch.ones(n).half()), formats.gptq(**gptq, version=1)), ("awq", Layer(**awq), formats.awq(**awq)),
        ("packed", Layer(**packed), formats.compressed_tensors(**packed)), ("eight", Layer(**eight), formats.compressed_tensors(**eight, bits=8)),
        ("integer", Layer(**integer), formats.compressed_tensors(**integer)),
        ("fp8", Layer(weight=bits8, weight_scale_inv=fp8["weight_scale_inv"]), formats.fp8(fp8["weight"], fp8["weight_scale_inv"], block=(128, 128))),
        ("bnb", bnb, formats.bitsandbytes(*nf4, (n, k)))]


def test_convert(rng):
    layers = quantised(rng)
    model = torch.nn.ModuleDict({name: torch.nn.Sequential(layer) for name, layer, _ in layers})
    model["again"] = torch.nn.Sequential(layers[1][1])
    model["plain"] = torch.nn.Linear(4, 4)
    model["odd"] = Layer(weight=torch.zeros(4, 4, dtype=torch.int8))
    model["bad"] = Layer(**{"qweight": words(rng, 128, 4), "qzeros": words(rng, 3, 4), "scales": halves(rng, 4, 32)})
    done = hgemm.torch.convert(model)
    assert set(done.replaced) == {f"{name}.0" for name, _, _ in layers if name != "gptq"}
    assert "give gptq_version" in done.left["gptq.0"] and "torch.int8" in done.left["odd"] and "qzeros: its shape is (3, 4), not" in done.left["bad"]
    assert set(done.left) == {"gptq.0", "odd", "bad"} and "plain" not in done.left and "3 left alone" in repr(done)
    assert set(hgemm.torch.convert(model, gptq_version=1).replaced) == {"gptq.0"}
    assert model["again"][0] is model["awq"][0]
    x = integers(rng, 3, 128)
    for name, _, weights in layers:
        layer = model[name][0]
        assert isinstance(layer, hgemm.torch.PackedLinear)
        np.testing.assert_array_equal(layer.weights.unpack("float16").numpy(), hgemm.pack(weights).unpack("float16"))
        wanted = x.float() @ matrix_of(weights).T + (0 if layer.bias is None else 1)
        assert (layer(x).float() - wanted).abs().max() <= 2e-3 * wanted.abs().max()
    assert model["bnb"][0].compute_dtype == torch.float16
    assert "the model itself" in repr(hgemm.torch.convert(layers[1][1]))
    copied = torch.nn.ModuleDict({name: torch.nn.Sequential(layer) for name, layer, _ in quantised(rng)})
    hgemm.torch.convert(copied, gptq_version=2)
    for name in ("plain", "odd", "bad", "again"):
        del model[name]
    copied.load_state_dict(model.state_dict())
    assert torch.equal(copied["nested" if "nested" in copied else "gptq"][0](x), model["gptq"][0](x))


def gptq_layer(rng, n=32, k=128):
    return Layer(qweight=words(rng, k // 8, n), qzeros=zero_words(rng, k // 32, n // 8), scales=halves(rng, k // 32, n))


def test_versions_that_layers_tell(rng):
    """GPTQModel's layers have a method for it, which says what its loader made of a checkpoint's zeros."""
    for says in (1, 2):
        model = torch.nn.Sequential(gptq_layer(rng))
        model[0].qzero_format = lambda: says
        wanted = formats.gptq(model[0].qweight, model[0].qzeros, model[0].scales, version=says).dequantize()
        assert f"says that its zeros are of version {says}" in hgemm.torch.convert(model, gptq_version=3 - says).left["0"]
        assert not hgemm.torch.convert(model).left
        np.testing.assert_array_equal(model[0].weights.unpack("float32").numpy(), wanted)


def test_what_convert_leaves_alone_and_why(rng):
    """Layers whose tensors have familiar names, in another order or form: never taken for what they are not, never passed over in silence."""
    shuffled, old, marlin = gptq_layer(rng), gptq_layer(rng), Layer(B=words(rng, 8, 64), s=halves(rng, 4, 32))
    shuffled.q_handle, old.q4 = 140, 7
    repacked = Layer(qweight=words(rng, 8, 64), scales=halves(rng, 4, 32), qzeros=words(rng, 4, 4), workspace=words(rng, 8))
    sparse = Layer(weight_packed=words(rng, 8, 64), scale_packed=halves(rng, 1, 32), meta=torch.zeros(8, 32, dtype=torch.int16))
    gemv = Layer(qweight=words(rng, 32, 16), qzeros=words(rng, 32, 1), scales=halves(rng, 32, 8))
    float8 = Layer(weight=torch.zeros(32, 128).to(torch.float8_e5m2), weight_scale=torch.ones(1))
    blocks = Layer(weight=torch.zeros(32, 128).to(torch.float8_e4m3fn), weight_scale_inv=torch.ones(2, 3))
    hqq, three = Layer(W_q=torch.zeros(64, 32, dtype=torch.uint8)), Layer(qweight=words(rng, 12, 32), qzeros=words(rng, 4, 3), scales=halves(rng, 4, 32))
    modelopt = Layer(weight=torch.zeros(32, 64, dtype=torch.uint8), weight_scale=torch.zeros(32, 8).to(torch.float8_e4m3fn), weight_scale_2=torch.ones(()))
    experts = Layer(up_proj_blocks=torch.zeros(2, 32, 4, 16, dtype=torch.uint8), up_proj_scales=torch.zeros(2, 32, 4, dtype=torch.uint8))
    class Linear4bit(torch.nn.Linear):
        """bitsandbytes', which quantises its weight when that is moved."""
    model = torch.nn.ModuleDict({"shuffled": shuffled, "old": old, "marlin": marlin, "repacked": repacked, "sparse": sparse, "gemv": gemv,
                                 "float8": float8, "hqq": hqq, "modelopt": modelopt, "experts": experts, "three": three, "blocks": blocks, "later": Linear4bit(64, 32), "plain": torch.nn.Linear(4, 4),
                                 "away": gptq_layer(rng).to("meta")})
    done = hgemm.torch.convert(model, gptq_version=2)
    assert not done.replaced and set(done.left) == set(model) - {"plain"}
    for name, words_ in (("shuffled", "ExLlama's kernels"), ("old", "ExLlama's kernels"), ("marlin", "Marlin's kernels"), ("repacked", "Marlin's"),
                         ("sparse", "Marlin's"), ("gemv", r"not known: it has qweight int32 (32, 16)"), ("float8", "float8_e5m2"),
                         ("hqq", "W_q uint8 (64, 32)"), ("modelopt", "weight uint8 (32, 64)"), ("experts", "hgemm.grouped"), ("three", "bits: 3"), ("blocks", "weight_scale_inv: its shape is (2, 3), not (1, 1)"), ("later", "after that"), ("away", "meta")):
        assert words_ in done.left[name], (name, done.left[name])


def test_layers_that_lack_numbers_are_left_alone(rng):
    """Each of their tensors in turn has no element: the layer says which, and others are converted all the same."""
    def of(kind):
        return {"gptq": lambda: gptq_layer(rng), "awq": lambda: Layer(qweight=words(rng, 64, 4), qzeros=words(rng, 2, 4), scales=halves(rng, 2, 32)),
                "packed": lambda: Layer(weight_packed=words(rng, 32, 8), weight_scale=halves(rng, 32, 2), weight_shape=torch.tensor([32, 64])),
                "int8": lambda: Layer(weight=torch.zeros(32, 64, dtype=torch.int8), weight_scale=halves(rng, 32, 1)),
                "fp8": lambda: Layer(weight=torch.zeros(32, 64).to(torch.float8_e4m3fn), weight_scale=torch.ones(32, 1)),
                "inverse": lambda: Layer(weight=torch.zeros(32, 64).to(torch.float8_e4m3fn), weight_scale_inv=torch.ones(1, 1))}[kind]()
    for kind in ("gptq", "awq", "packed", "int8", "fp8", "inverse"):
        names = [name for name, _ in of(kind).named_buffers() if name not in ("weight_shape", "g_idx", "bias")]
        assert len(names) >= 2
        for name in names:
            layer = of(kind)
            for empty in (getattr(layer, name)[:0], getattr(layer, name)[:, :0]):
                setattr(layer, name, empty)
                done = hgemm.torch.convert(torch.nn.ModuleDict({"empty": layer, "sound": of(kind)}), gptq_version=1)
                assert set(done.replaced) == {"sound"}, (kind, name, done.left)
                assert name.replace("_inv", "") in done.left["empty"] or "format is not known" in done.left["empty"], (kind, name, done.left)


def test_bitsandbytes_of_8_bits(rng):
    """Linear8bitLt: rows of int8, and their largest magnitudes, in the weight or, after its first product, in the layer's state."""
    class Linear8bitLt(torch.nn.Linear):
        pass
    for in_state in (False, True):
        layer = Linear8bitLt(64, 24)
        layer.weight = torch.nn.Parameter(torch.from_numpy(rng.integers(-127, 128, (24, 64)).astype(np.int8)), requires_grad=False)
        scales = torch.from_numpy(rng.uniform(1, 2, 24).astype(np.float32))
        layer.state = types.SimpleNamespace(SCB=scales if in_state else None)
        layer.weight.SCB = None if in_state else scales
        matrix, bias, model = layer.weight.float() * (scales / 127)[:, None], layer.bias.detach(), torch.nn.Sequential(layer)
        assert not hgemm.torch.convert(model).left
        x = integers(rng, 3, 64)
        assert torch.equal(model[0].weights.unpack("float32"), matrix)
        assert torch.allclose(model[0](x).float(), x.float() @ matrix.T + bias, rtol=2e-3, atol=2e-3)


def test_what_convert_is_given():
    with pytest.raises(TypeError, match="model: a builtins.dict is no torch.nn.Module"):
        hgemm.torch.convert({})
    for dtype in ("float16", torch.float64):
        with pytest.raises(ValueError, match="compute_dtype: "):
            hgemm.torch.convert(torch.nn.Sequential(), compute_dtype=dtype)
    with pytest.raises(ValueError, match="gptq_version: 3"):
        hgemm.torch.convert(torch.nn.Sequential(), gptq_version=3)


def test_adapters_stay(rng):
    """PEFT's layers show the tensors of the layer that they wrap as their own."""
    class Adapter(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer, self.down, self.up = base, torch.nn.Linear(128, 4, bias=False), torch.nn.Linear(4, 32, bias=False)

        weight, bias = property(lambda self: self.base_layer.weight), property(lambda self: self.base_layer.bias)
        qweight, qzeros, scales = (property(lambda self, name=name: getattr(self.base_layer, name)) for name in ("qweight", "qzeros", "scales"))
        quant_state = property(lambda self: self.base_layer.quant_state)

        def forward(self, x):
            return self.base_layer(x) + self.up(self.down(x))
    for name, layer, weights in quantised(rng):
        model = torch.nn.Sequential(Adapter(layer))
        done = hgemm.torch.convert(model, gptq_version=1)
        assert list(done.replaced) == ["0.base_layer"] and not done.left, (name, done)
        x = integers(rng, 3, 128).float()
        wanted = x @ (matrix_of(weights) + model[0].up.weight @ model[0].down.weight).T + (name == "gptq")
        assert type(model[0]) is Adapter and (model(x) - wanted).abs().max() <= 2e-3 * wanted.abs().max(), name


def test_modules_as_others_handle_them(rng, tmp_path):
    """Copied, pickled, cast, saved as safetensors, kept small by checkpointing, exported: the same product."""
    order = rng.permutation(64)
    first = made(rng, "int4", 24, 64, 32)
    layer = hgemm.torch.PackedLinear(hgemm.Weights(first.codes, first.scales, "int4", group=32, order=order, nibbles=True), torch.ones(24))
    x = integers(rng, 3, 64)
    wanted = layer(x)
    assert torch.equal(wanted.float(), (x.float() @ matrix_of(first)[:, np.argsort(order)].T + 1).half().float())
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer).half(), copy.deepcopy(layer).bfloat16().float(),
              copy.deepcopy(layer).to("cpu", torch.float16), copy.deepcopy(layer).requires_grad_().eval()]
    for way in (False, True):
        copies.append(hgemm.torch.PackedLinear(made(rng, "int8", 24, 64, 64), torch.zeros(24)))
        copies[-1].load_state_dict(layer.state_dict(), assign=way)
    for i, other in enumerate(copies):
        assert torch.equal(other(x), wanted), i
    with pytest.raises(TypeError, match="bias: its type is torch.float64"):
        copy.deepcopy(layer).double()(x)
    trained = copies[5]
    torch.utils.checkpoint.checkpoint(trained, x, use_reentrant=False).float().sum().backward()
    assert torch.equal(trained.bias.grad, torch.full((24,), 3.0))
    assert torch.equal(torch.func.functional_call(layer, dict(layer.state_dict()), x), wanted)
    assert torch.equal(torch.export.export(layer.eval(), (x,)).module()(x), wanted)
    for device in ("cpu", "meta"):  # into a model that was not converted
        with torch.device(device):
            model = torch.nn.ModuleDict({"a": torch.nn.Sequential(torch.nn.Linear(64, 24)), "b": torch.nn.Linear(64, 24)})
        state = {**{f"a.0.{name}": x for name, x in layer.state_dict().items()}, "b.weight": torch.ones(24, 64), "b.bias": torch.ones(24)}
        hgemm.torch.load_state_dict(model, state, assign=device == "meta")
        assert torch.equal(model["a"][0](x), wanted) and model["b"].weight.sum() == 24 * 64
    with pytest.raises(ValueError, match="the model has no layer a.1"):
        hgemm.torch.load_state_dict(model, {"a.1.packed": layer.packed})
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_model(torch.nn.Sequential(layer), tmp_path / "model")
    loaded = torch.nn.Sequential(copies[6])
    safetensors.load_model(loaded, tmp_path / "model")
    assert torch.equal(loaded(x), wanted)


# ---- bitsandbytes -------------------------------------------------------------------------------------------------


def test_bitsandbytes_under_enable(rng):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    functional = bitsandbytes.functional
    for nested in (False, True):
        weight, state = functional.quantize_4bit(torch.randn(64, 128), quant_type="nf4", compress_statistics=nested)
        matrix = functional.dequantize_4bit(weight, state).float()
        x = integers(rng, 5, 128).requires_grad_()
        with hgemm.torch.enable(devices=("cpu",)) as on:
            y = bitsandbytes.matmul_4bit(x, weight, state, bias=torch.ones(64).half())
            g, = torch.autograd.grad(y.sum(), x)
            assert on.ran["matmul_4bit"] == 1 and not any("matmul" in why for why in on.passed)
            bitsandbytes.matmul_4bit(x.float(), weight, state)
            assert "torch.float32" in on.passed
        wanted = x.float() @ matrix.T + 1
        assert (y.float() - wanted).abs().max() <= 2e-3 * wanted.abs().max()
        assert (g.float() - matrix.sum(0)).abs().max() <= 4e-3 * matrix.sum(0).abs().max()
        count = on.ran["matmul_4bit"]
        bitsandbytes.matmul_4bit(x, weight, state)
        assert on.ran["matmul_4bit"] == count


def test_what_enable_takes_of_bitsandbytes(rng, monkeypatch):
    """Of a module that has the function, without the package: which calls go on to it, and that a changed weight is packed again."""
    class State:  # as bitsandbytes' it is compared by value, and so has no hash
        dtype = torch.float16

        def __init__(self, absmax, blocksize=64):
            self.absmax, self.blocksize = absmax, blocksize

        def __eq__(self, other):
            return True

        def as_dict(self):
            return {"absmax": self.absmax, "shape": (32, 128), "quant_type": "nf4", "blocksize": self.blocksize}
    passed = []
    package = types.SimpleNamespace(matmul_4bit=lambda A, B, quant_state, out=None, bias=None: passed.append(A))
    monkeypatch.setitem(sys.modules, "bitsandbytes", package)
    monkeypatch.setattr(hgemm._bitsandbytes_door, "_own", None)
    weight, state = torch.from_numpy(rng.integers(0, 256, (2048, 1)).astype(np.uint8)), State(torch.rand(64) + 0.1)
    x = integers(rng, 3, 128)

    def wanted():
        return x.float() @ matrix_of(formats.bitsandbytes_state(weight, state)).T
    with hgemm.torch.enable(devices=("cpu",)) as on:
        for B in (weight, weight.t()):
            assert torch.allclose(package.matmul_4bit(x, B, state).float(), wanted(), rtol=2e-3, atol=2e-3)
        weight[:500] ^= 0x77
        assert torch.allclose(package.matmul_4bit(x, weight, state).float(), wanted(), rtol=2e-3, atol=2e-3)
        state.absmax *= 2
        assert torch.allclose(package.matmul_4bit(x, weight, state).float(), wanted(), rtol=2e-3, atol=2e-3)
        state.absmax = state.absmax + 0.5
        assert torch.allclose(package.matmul_4bit(x, weight, state).float(), wanted(), rtol=2e-3, atol=2e-3)
        assert on.ran == {"matmul_4bit": 5} and not passed
        package.matmul_4bit(x, weight, state, out=torch.zeros(3, 32).half())
        package.matmul_4bit(x.float(), weight, state)
        with hgemm.torch.enable(devices=("cpu",), float32=True) as inner:
            y = package.matmul_4bit(x.float(), weight, state)
            assert inner.ran == {"matmul_4bit": 1} and y.dtype == torch.float32 and torch.allclose(y, wanted(), rtol=1e-5, atol=1e-5)
        package.matmul_4bit(x[:, :32], weight, state)
        package.matmul_4bit(x, weight, State(torch.rand(64), blocksize=48))
        assert len(passed) == 4 and set(on.passed) >= {"an out", "torch.float32", "weights of k x n"} and on.ran == {"matmul_4bit": 5}
        with hgemm.torch.enable(devices=("cuda",)):
            package.matmul_4bit(x, weight, state)
        assert len(passed) == 5 and hgemm._bitsandbytes_door._packed_of
        with torch.inference_mode():
            frozen = weight.clone()
            package.matmul_4bit(x, frozen, State(torch.rand(64)))
            scales = State(torch.rand(64))
        assert len(passed) == 6 and any("inference mode" in why for why in on.passed)
        package.matmul_4bit(x, weight, scales)
        assert len(passed) == 7
        del state
        assert len(hgemm._bitsandbytes_door._packed_of) == 0
    package.matmul_4bit(x, weight, None)
    assert len(passed) == 8


def test_what_is_packed_in_inference_mode_serves_training(rng, monkeypatch):
    package = types.SimpleNamespace(matmul_4bit=None)
    monkeypatch.setitem(sys.modules, "bitsandbytes", package)
    monkeypatch.setattr(hgemm._bitsandbytes_door, "_own", None)
    _, layer, weights = quantised(rng)[-1]
    matrix, models = matrix_of(weights), [torch.nn.Sequential(layer)]
    state = type("State", (), {"as_dict": lambda self: layer.quant_state.as_dict()})()
    x = integers(rng, 3, 128)
    with hgemm.torch.enable(devices=("cpu",)):
        with torch.inference_mode():
            before = package.matmul_4bit(x, layer.weight, state)
        mine = x.clone().requires_grad_()
        y = package.matmul_4bit(mine, layer.weight, state)
        y.sum().backward()
        assert torch.equal(before, y) and torch.allclose(mine.grad.float(), matrix.sum(0).expand(3, -1), rtol=2e-3, atol=1e-2)
    with torch.inference_mode():
        assert not hgemm.torch.convert(models[0]).left
        models.append(hgemm.torch.PackedLinear(weights))
        before = models[0](x)
    for model in models:
        mine = x.clone().requires_grad_()
        y = model(mine)
        y.sum().backward()
        assert torch.equal(before, y) and torch.allclose(mine.grad.float(), matrix.sum(0).expand(3, -1), rtol=2e-3, atol=1e-2)
        assert not any(tensor.is_inference() for tensor in model.state_dict().values())
