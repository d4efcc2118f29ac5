# SPDX-License-Identifier: MIT
"""bfloat16 in hgemm.torch, on CPU tensors: the operator, its gradients, enable(), and whose scales are searched for when."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import hgemm
import hgemm.torch

if not hgemm._c.has_bfloat16():
    pytest.skip("this libhgemm has no bfloat16", allow_module_level=True)

HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
needs_grouped_mm = pytest.mark.skipif(not (hasattr(torch.library, "get_kernel") and hasattr(torch, "_grouped_mm")), reason="this torch has no grouped_mm")


@pytest.fixture(autouse=True)
def seed(request):
    torch.manual_seed(sum(map(ord, request.node.name)))


def integers(*shape):
    return torch.randint(-3, 4, shape).to(HALF)


def wide(*shape):
    """Numbers over 31 binades, each exact beside the others."""
    return torch.ldexp(torch.rand(shape) + 0.5, torch.randint(-15, 16, shape).float()).to(BF16)


def assert_close(result, a, b):
    """Within a rounding to bfloat16 and single precision's sums."""
    expected = a.double() @ b.double()
    worst = ((result.double() - expected).abs() / (2.0**-8 * expected.abs() + 2.0**-16 * (a.double().abs() @ b.double().abs()))).max().item()
    assert result.dtype == BF16 and worst <= 1


def test_bfloat16_operator():
    a, b = wide(6, 40), wide(40, 5)
    meta = hgemm.torch.matmul(a.to("meta"), b.to("meta"))
    for function in (hgemm.matmul, hgemm.torch.matmul):
        for given in ({}, {"scale_b": hgemm.find_scale(b)}, {"scale_a": hgemm.find_scale(a).item(), "scale_b": hgemm.find_scale(b)}):
            result = function(a, b, **given)
            assert_close(result, a, b)
            assert result.dtype == meta.dtype and result.shape == meta.shape
        assert torch.isinf(function(a, b, scale_a=2.0**126, scale_b=hgemm.find_scale(b))).any()
    assert hgemm.torch.matmul(a.to("meta"), b.to("meta"), out_dtype="float32").dtype == torch.float32
    scale = hgemm.find_scale(a.requires_grad_())
    assert scale.shape == () and not scale.requires_grad and hgemm.torch.find_scale(a[:, ::2]).item() == hgemm.find_scale(a[:, ::2].contiguous())
    with pytest.raises(hgemm.NotSupportedError, match="HGEMM_ACCUMULATE_F16 for A and B of HGEMM_TYPE_BF16"):
        hgemm.torch.matmul(a, b, accumulate="float16")


def test_bfloat16_opcheck():
    a, b = integers(3, 4).to(BF16).requires_grad_(), integers(4, 5).to(BF16).requires_grad_()
    utils = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.hgemm.gemm.default, (a, b), {"scale_a_pointer": torch.tensor(4.0), "scale_b": 2.0}, test_utils=utils)
    torch.library.opcheck(torch.ops.hgemm.find_scale.default, (a.detach(),), test_utils=utils)


def test_bfloat16_gradients():
    ours = [integers(*shape).to(BF16).requires_grad_() for shape in ((3, 4), (4, 5), (5,))]
    theirs = [x.detach().float().requires_grad_() for x in ours]
    d = hgemm.linear(ours[0], ours[1].T, ours[2], activation="relu", scale_a=hgemm.find_scale(ours[0]), scale_b=2.0**10)
    expected = torch.relu(theirs[0] @ theirs[1] + theirs[2])
    g = torch.randint(-2, 3, d.shape).to(BF16)
    d.backward(g)
    expected.backward(g.float())
    for mine, want in zip(ours, theirs):
        assert mine.grad.dtype == BF16 and torch.equal(mine.grad.float(), want.grad)
    with torch.autocast("cpu", BF16):
        a, b = wide(3, 4).float().requires_grad_(), wide(4, 5).float()
        result = hgemm.torch.matmul(a, b)
        assert_close(result, a.detach(), b)
        result.sum().backward()
    assert a.grad.dtype == torch.float32


def test_bfloat16_compiles():
    def f(a, b):
        return hgemm.torch.matmul(a, b, scale_b=hgemm.torch.find_scale(b)).relu()
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for factor in (1.0, 2.0**50):
        a, b = wide(3, 4).requires_grad_(), (wide(4, 5) * factor).requires_grad_()
        compiled(a, b).sum().backward()
        assert_close(a.grad, torch.ones(3, 5), b.detach().T)


@pytest.fixture
def searches(monkeypatch):
    """What enable() searched for scales."""
    found, find = [], hgemm._enable.find_scale
    monkeypatch.setattr(hgemm._enable, "find_scale", lambda x: found.append(tuple(x.shape)) or find(x))
    return found


def test_enable_runs_bfloat16():
    a, b, c, v = wide(6, 8), wide(8, 5), integers(6, 5).to(BF16), integers(5).to(BF16)
    x, y = wide(2, 6, 8), wide(2, 8, 5)
    with hgemm.torch.enable(devices=("cpu",), accumulate="float16") as on:  # the emulated T4 has no bfloat16 of its own
        results = [torch.mm(a, b), torch.nn.functional.linear(a, b.T), torch.addmm(c, a, b, beta=0, alpha=1), torch.einsum("ij,jk", a, b)]
        assert_close(torch.addmm(v * 0, a, b), a, b)
        assert_close(torch.bmm(x, y), x, y)
        assert_close(torch.baddbmm(c * 0, x, y), x, y)
        torch.mm(a.float(), b.float())
    for result in results:
        assert_close(result, a, b)
    assert sum(on.ran.values()) == 7 and on.passed == {"torch.float32": 1, "torch.float64": 6}  # 6: those of assert_close
    with hgemm.torch.enable(devices=("cpu",), bfloat16=False) as on:
        torch.mm(a, b)
    assert on.passed == {"torch.bfloat16": 1}
    with hgemm.torch.enable(devices=("cpu",), batch_invariant=True), pytest.raises(hgemm.NotSupportedError, match="whose scale is to be found"):
        torch.mm(a, b)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_a_parameter_pays_once_until_it_changes(mode, searches):
    layer, x = torch.nn.Linear(8, 5, bias=False, dtype=BF16), wide(3, 8)
    with hgemm.torch.enable(devices=("cpu",)) as on:
        layer(x)
        assert not searches  # of what nobody asked for, nothing is kept
        on.find_scales(layer)
        for change in (lambda w: None, lambda w: w.mul_(2.0**60), lambda w: w.T[0].fill_(2.0**-50), lambda w: w.copy_(wide(5, 8))):
            with torch.no_grad():
                change(layer.weight)
            with mode():
                for _ in range(3):
                    assert_close(layer(x), x, layer.weight.detach().T)
        assert [sorted(shape) for shape in searches] == [[5, 8]] * 4
        layer.weight.data = wide(5, 8) * 2.0**70  # other memory
        assert_close(layer(x), x, layer.weight.detach().T)
        layer.weight.data.mul_(2.0**-100)  # which torch does not count
        on.forget_scales()
        assert_close(layer(x), x, layer.weight.detach().T)
        assert len(searches) == 6
        torch.mm(x, wide(8, 5))  # no parameter: the product finds its scale
        assert len(searches) == 6


def test_a_change_that_torch_does_not_count_is_no_fault():
    """An optimizer that steps through .data: by default each product finds its scale; one that is kept has room."""
    layer, x = torch.nn.Linear(8, 5, bias=False, dtype=BF16), wide(3, 8)
    with torch.no_grad(), hgemm.torch.enable(devices=("cpu",)) as on:
        for kept in (False, True):
            layer.weight.data = wide(5, 8)
            if kept:
                on.find_scales(layer)
            for _ in range(2):
                layer(x)
                layer.weight.data.mul_(7.9 if kept else 2.0**40)
                assert_close(layer(x), x, layer.weight.detach().T)
                if kept:
                    break


def test_scales_go_with_their_parameters(searches):
    memory, x = wide(8, 5), wide(3, 8)
    with torch.no_grad(), hgemm.torch.enable(devices=("cpu",)) as on:
        for factor in (1, 2.0**80, 2.0**-90):
            weight = torch.nn.Parameter(memory.data.mul_(factor))  # another parameter in the same memory, each of version 0
            on._scales.find(weight)
            assert_close(x @ weight, x, weight.detach())
            other = torch.nn.Parameter(weight.detach().clone())
            on._scales.find(other)
            assert_close(x @ other, x, weight.detach())
            assert len(on._scales) == 2
            del weight, other
            assert len(on._scales) == 0
        kept = torch.nn.Parameter(memory.data)
        on._scales.find(kept)
        torch.mm(x, kept)
        kept.data = wide(8, 5)
        memory.data.mul_(2.0**90)
        assert on._scales.of(memory) is None  # no longer kept's memory
        one, other = torch.nn.Parameter(memory.data), torch.nn.Parameter(memory.data)  # torch counts their versions apart
        for weight in (one, other):
            on._scales.find(weight)
        assert_close(x @ one, x, memory)
        other.mul_(2.0**-100)
        for weight in (other, one):
            assert_close(x @ weight, x, memory)
    assert len(searches) == 12  # of two in the same memory one is kept


def test_compiled_code_uses_scales_that_were_found_before(searches):
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 5)).to(BF16), wide(3, 8)
    with torch.no_grad(), hgemm.torch.enable(devices=("cpu",)) as on:
        on.find_scales(model)
        assert searches == [(8, 8), (5, 8)]
        bare = [torch.empty(0, dtype=BF16).set_(p.untyped_storage(), 0, p.T.shape, p.T.stride()) for p in (model[0].weight, model[1].weight)]
        scales = [on._scales.of(b).item() for b in bare]  # as compiled code reads them: no views of parameters
        assert scales == [hgemm.find_scale(p).item() / 8 for p in (model[0].weight, model[1].weight)]
        model[0].weight.mul_(2.0**9)
        assert on._scales.of(bare[0]) is None  # changed, and not known whose it is
        torch.compile(model, backend="aot_eager")(x)
        assert "torch.bfloat16" not in on.passed and len(searches) == 3


def test_a_graph_takes_scales_of_frozen_parameters_only(searches, monkeypatch):
    weight = torch.nn.Parameter(wide(8, 5))
    with torch.no_grad(), hgemm.torch.enable(devices=("cpu",)) as on:
        on._scales._asked[id(weight)] = weight
        monkeypatch.setattr(hgemm._parameter_scales, "_capturing", lambda x: True)
        assert on._scales.of(weight) is None and not searches  # a graph would find it in replays only
        monkeypatch.setattr(hgemm._parameter_scales, "_capturing", lambda x: False)
        scale = on._scales.of(weight)
        monkeypatch.setattr(hgemm._parameter_scales, "_capturing", lambda x: True)
        assert on._scales.of(weight) is None  # it may be trained
        assert on._scales.of(weight.requires_grad_(False)) is scale
        assert any(kept is scale for kept in hgemm._parameter_scales._in_graphs)
        weight.mul_(2.0**20)
        assert on._scales.of(weight) is None and len(searches) == 1


@needs_grouped_mm
def test_enable_runs_grouped_mm_of_bfloat16(fused, searches):
    weights, ends = torch.nn.Parameter(integers(3, 16, 8).to(BF16) * 2.0**70), torch.tensor([5, 5, 18], dtype=torch.int32)
    fused(hgemm.grouped, integers(1, 8).to(BF16), weights[:1].mT.detach(), ends[:1] * 0)  # skips where the library has no such groups
    searches.clear()
    with torch.no_grad(), hgemm.torch.enable(devices=("cpu",)) as on:
        on._scales.find(weights)
        for _ in range(2):
            a = integers(18, 8).to(BF16)
            result = torch._grouped_mm(a, weights.mT, offs=ends)
            assert_close(result[:5], a[:5], weights[0].T)
            assert_close(result[5:], a[5:], weights[2].T)
        assert on.ran["_grouped_mm"] == 2 and searches == [(3, 16, 8)]
