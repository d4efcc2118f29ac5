# SPDX-License-Identifier: MIT
"""Whatever traces, transforms or counts what goes through torch's dispatcher sees an operator in place of each of hgemm's products, and none as a
constant."""
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import hgemm
import hgemm.torch
from random_weights import made

HALF = torch.float16
K, N = 64, 32


def integers(*shape):
    return torch.randint(-3, 4, shape).to(HALF)


def with_out(x, w):
    out = x.new_zeros(x.shape[0], N)
    return hgemm.matmul(x, w, out=out) * 2 + out


def adds_to_out(x, w):
    return hgemm.matmul(x, w, out=(x @ w) * 2, alpha=2, beta=3)


def groups_into(x, w, ends):
    out = (x @ w[0]) * 0 + 7
    return hgemm.grouped(x, w, ends, out=out) + out


def products():
    """{name: (the operator, a function of x, another that it must equal)}"""
    torch.manual_seed(7)
    w, two, ends, bias, gate = integers(K, N), integers(2, K, N), torch.tensor([2, 5], dtype=torch.int32), integers(N), integers(5, N)
    rng = np.random.default_rng(7)
    weights = made(rng, "int4", N, K, 32)
    order = rng.permutation(K)
    sorted_columns = hgemm.Weights(weights.codes, weights.scales, "int4", group=32, order=order, nibbles=True)
    packed, acts = hgemm.pack(weights), hgemm.pack(sorted_columns, device="cpu")
    layer = hgemm.torch.PackedLinear(sorted_columns, bias.float())
    experts = hgemm.pack([weights, weights], device="cpu")
    on_device = hgemm.pack([weights, weights])
    matrix, shuffled = (torch.from_numpy(x.dequantize()) for x in (weights, sorted_columns))
    alpha = torch.tensor(3.0)

    def plain(x):
        return x.float() @ w.float()

    def by_groups(x, first=2):
        return torch.cat([x[:first].float() @ two[0].float(), x[first:].float() @ two[1].float()])
    return {
        "matmul": ("gemm", lambda x: hgemm.matmul(x, w), plain),
        "matmul, epilogue": ("gemm", lambda x: hgemm.matmul(x, w, bias=bias, activation="relu", gate=gate, alpha=2),
                             lambda x: (2 * plain(x) + bias).relu() * gate),
        "matmul, alpha": ("gemm", lambda x: hgemm.matmul(x, w, alpha=alpha * x[0, 0]), lambda x: plain(x) * (3 * x[0, 0].float())),
        "matmul, out": ("gemm", lambda x: with_out(x, w), lambda x: 3 * plain(x)),
        "matmul, adds to out": ("gemm", lambda x: adds_to_out(x, w), lambda x: 8 * plain(x)),
        "matmul, vector": ("gemm", lambda x: hgemm.matmul(x[0], w), lambda x: plain(x[0])),
        "linear": ("gemm", lambda x: hgemm.linear(x, w.T, bias), lambda x: plain(x) + bias),
        "torch.matmul": ("gemm", lambda x: hgemm.torch.matmul(x, w), plain),
        "torch.linear": ("gemm", lambda x: hgemm.torch.linear(x, w.T), plain),
        "grouped": ("grouped", lambda x: hgemm.grouped(x, two, ends), by_groups),
        "grouped, gathered": ("grouped", lambda x: hgemm.grouped(x, two, ends, gather_a=ends.new_tensor([4, 3, 2, 1, 0])), lambda x: by_groups(x.flip(0))),
        "grouped, out": ("grouped", lambda x: groups_into(x, two, ends - 1), lambda x: 2 * torch.cat([by_groups(x[:4], 1), torch.full((1, N), 7.0)])),
        "grouped, packed": ("grouped", lambda x: hgemm.grouped(x, experts, ends, out_dtype="float32"), lambda x: x.float() @ matrix.T),
        "grouped, packed on hgemm's device": ("grouped", lambda x: hgemm.grouped(x, on_device, ends, out_dtype="float32"),
                                              lambda x: x.float() @ matrix.T),
        "PackedLinear": ("linear_packed", layer, lambda x: x.float() @ shuffled.T + bias),
        "PackedLinear, float32": ("linear_packed", lambda x: layer(x.float()), lambda x: x.float() @ shuffled.T + bias),
        "linear, packed": ("linear_packed", lambda x: hgemm.linear(x, acts, out_dtype="float32", activation="relu"),
                           lambda x: (x.float() @ shuffled.T).relu()),
        "linear, packed on hgemm's device": ("linear_packed", lambda x: hgemm.linear(x, packed, out_dtype="float32"), lambda x: x.float() @ matrix.T),
        "find_scale": ("find_scale", lambda x: hgemm.find_scale(x.bfloat16()), lambda x: 2.0**15 / 2 ** x.abs().amax().float().log2().floor()),
    }


PRODUCTS = products()


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


def names_in(graph):
    return [str(node.target) for module in graph.modules() if isinstance(module, torch.fx.GraphModule) for node in module.graph.nodes]


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = function if isinstance(function, torch.nn.Module) else None
        self.function = None if self.layer is not None else function

    def forward(self, x):
        return (self.layer or self.function)(x)


def jit_traced(function, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(function, (x,), check_trace=False)
    return traced, [node.kind() for node in traced.inlined_graph.nodes()]


def fx(**options):
    def traced(function, x):
        graph = make_fx(lambda x: function(x), **options)(x)
        return graph, names_in(graph)
    return traced


def exported(strict):
    def traced(function, x):
        module = torch.export.export(Module(function), (x,), strict=strict).module()
        return module, names_in(module)
    return traced


def compiled(function, x):
    names = []

    def backend(graph, inputs):
        from torch._dynamo.backends.common import aot_autograd

        def inner(graph, inputs):
            names.extend(names_in(graph))
            return graph
        return aot_autograd(fw_compiler=inner)(graph, inputs)
    torch._dynamo.reset()
    made = torch.compile(lambda x: function(x), fullgraph=True, backend=backend)
    made(x)
    return made, names


def dispatched(function, x):
    def run(x):
        with Seen() as seen:
            result = function(x)
        run.names = seen.names
        return result
    run(x)
    return run, run.names


TRACERS = {"jit.trace": jit_traced, "make_fx": fx(), "make_fx, fake": fx(tracing_mode="fake", _allow_non_fake_inputs=True),
           "make_fx, symbolic": fx(tracing_mode="symbolic", _allow_non_fake_inputs=True), "make_fx, pre-dispatch": fx(pre_dispatch=True),
           "export": exported(False), "export, strict": exported(True), "compile": compiled, "TorchDispatchMode": dispatched}


SLOW = ("compile", "export, strict")  # which read Python's bytecode
SOME = ("matmul, epilogue", "matmul, alpha", "adds to out", "grouped, out", "grouped, packed", "PackedLinear", "linear, packed", "find_scale")


@pytest.mark.parametrize("name, tracer", [(name, tracer) for name in PRODUCTS for tracer in TRACERS if tracer not in SLOW or name in SOME])
def test_a_tracer_sees_the_operator(name, tracer):
    torch.manual_seed(5)
    operator, function, expected = PRODUCTS[name]
    x, y = integers(5, K), integers(5, K) * 2
    with torch.no_grad():
        traced, seen = TRACERS[tracer](function, x)
        assert any(f"hgemm::{operator}" in found or f"hgemm.{operator}." in found for found in seen), seen
        for given in (x, y):
            torch.testing.assert_close(traced(given).float(), expected(given).float(), rtol=2e-3, atol=2e-2)


# ---- FLOPs --------------------------------------------------------------------------------------------------------


def flops(function):
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", PRODUCTS)
def test_flops_are_counted(name):
    x, (operator, function, _) = integers(5, K), PRODUCTS[name]
    beside = 2 * 5 * K * N * ({"matmul, adds to out": 1, "grouped, out": 1}.get(name, 0))  # torch's own product, which makes out
    expected = 0 if operator == "find_scale" else 2 * (1 if name == "matmul, vector" else 5) * K * N + beside
    assert flops(lambda: function(x)) == expected


def test_flops_of_gradients_and_of_enable():
    a, b = integers(2, 5, K).requires_grad_(), integers(K, N).requires_grad_()
    one = 2 * 2 * 5 * K * N
    assert flops(lambda: hgemm.matmul(a, b).sum().backward()) == 3 * one
    layer = PRODUCTS["PackedLinear"][1]
    assert flops(lambda: layer(a.detach().requires_grad_()).sum().backward()) == 2 * one
    with hgemm.torch.enable(devices=("cpu",)) as on:
        assert flops(lambda: torch.nn.functional.linear(a, b.T)) == one
        assert sum(on.ran.values()) == 1


def test_flops_where_the_operators_were_not_there_yet(tmp_path):
    import subprocess
    import sys
    program = ("import torch, hgemm; from torch.utils.flop_counter import FlopCounterMode\n"
               "a = torch.ones(4, 8).half()\n"
               "with FlopCounterMode(display=False) as counter: hgemm.matmul(a, a.T)\n"
               "print(counter.get_total_flops())")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "256\n", done.stdout + done.stderr


# ---- what cannot be seen ------------------------------------------------------------------------------------------


def test_what_no_operator_has_is_refused():
    x, w, ends = integers(5, K), integers(K, N), torch.tensor([2, 5], dtype=torch.int32)
    with Seen():
        for options in ({"stream": 7}, {"kernel": "k5_64x64_f32"}):
            with pytest.raises(ValueError, match=f"{next(iter(options))}: it cannot be given where torch"):
                hgemm.matmul(x, w, **options)
        with pytest.raises(ValueError, match="stream: it cannot be given where torch"):
            hgemm.grouped(x, integers(2, K, N), ends, stream=7)
        with pytest.raises(ValueError, match="stream: it cannot be given where torch"):
            hgemm.find_scale(w.bfloat16(), stream=7)
        with pytest.raises(ValueError, match=r"out: its shape is \(5, 31\), the result's is \(5, 32\)"):
            hgemm.matmul(x, w, out=integers(5, N - 1))
        with pytest.raises(TypeError, match="out_dtype: float32 is not the type of out, float16"):
            hgemm.matmul(x, w, out=integers(5, N), out_dtype="float32")
        with pytest.raises(TypeError, match="out: a numpy.ndarray is no tensor"):
            hgemm.matmul(x, w, out=integers(5, N).numpy())
        with pytest.raises(ValueError, match="out: some of its elements share memory"):
            hgemm.matmul(x, w, out=torch.zeros(5 + N, dtype=HALF).as_strided((5, N), (1, 1)))
    with pytest.raises(NotImplementedError, match="it has no gradient"):
        torch.ops.hgemm.grouped(x.requires_grad_(), integers(2, K, N), ends).sum().backward()


def test_a_product_does_not_depend_on_what_is_recorded_under_autocast():
    x, w = integers(5, K).float(), integers(K, N)
    with torch.autocast("cpu", HALF):
        recorded, other = hgemm.matmul(x.clone().requires_grad_(), w), hgemm.matmul(x, w)
        assert recorded.dtype == other.dtype == HALF and torch.equal(recorded, other)
    assert hgemm.matmul(x, w).dtype == torch.float32


def test_operator_checks():
    x, w, ends = integers(5, K), integers(2, K, N), torch.tensor([2, 5], dtype=torch.int32)
    for options in ({}, {"bias": integers(N), "alpha": 2.0, "activation": "relu"}, {"base": integers(5, N), "c": integers(5, N)}):
        torch.library.opcheck(torch.ops.hgemm.grouped.default, (x, w, ends), options, test_utils=("test_schema", "test_faketensor"))
