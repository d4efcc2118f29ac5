#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the tests cannot do without a GPU: hgemm's Python side beside torch, cupy and transformers on one (for a part: two) of them.

    python3 python/tests/gpu_check.py [--out FILE.json] [NAME ...]

Needs the wheel installed (or unpacked, on PYTHONPATH) and torch; checks of what else is not there are reported as skipped. Integers
are compared bit for bit, with new random shapes in each run; its seed is printed and can be given again by HGEMM_SEED.

Checks run in a process of their own: one that takes longer than its limit, ends the process or breaks the device has failed, and
the rest go on in another."""
import argparse
import copy
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import numpy as np
import torch

import activations
import gpu_weights
import hgemm
import hgemm.torch
import opinfo as samples_of_torch
from host_cost import measured

HALF, BFLOAT16 = torch.float16, torch.bfloat16
SEED = int(os.environ.get("HGEMM_SEED") or time.time())
DEVICE = "cuda"
LIMIT = 90  # seconds for a check, of which most take two
LIMITS = {"tensor_parallel": 300, "compiled": 200}  # those that start compilers or processes, on a machine that others may load
CHECKS = []


class Skip(Exception):
    """A check that cannot run here."""


def check(function):
    CHECKS.append(function)
    return function


def integers(*shape, device=None, dtype=HALF):
    return torch.randint(-3, 4, shape, device=device or DEVICE).to(dtype)


def exact(a, b):
    return torch.matmul(a.double(), b.double())


def same(result, expected, what=""):
    assert result.shape == expected.shape, (what, result.shape, expected.shape)
    wrong = (result.double() != expected.double()).sum().item()
    assert not wrong, f"{what}: {wrong} of {result.numel()} elements are wrong"


def supported(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except hgemm.NotSupportedError as error:
        raise Skip(str(error)) from None


def sizes(*limits):
    return [int(torch.randint(1, limit + 1, ())) for limit in limits]


@check
def shapes():
    """Random shapes, batches and broadcasts, both kinds of sums."""
    for _ in range(60):
        m, n, k, x, y = sizes(300, 300, 200, 4, 3)
        for batch_a, batch_b in (((), ()), ((x,), ()), ((), (x,)), ((x,), (x,)), ((y, 1), (x,)), ((y, x), (y, 1)), ((y, x), (y, x))):
            a, b = integers(*batch_a, m, k), integers(*batch_b, k, n)
            for accumulate in ("float32", "float16"):
                same(hgemm.matmul(a, b, accumulate=accumulate), exact(a, b), (a.shape, b.shape, accumulate))
        a, b = integers(k), integers(k, n)
        same(hgemm.matmul(a, b), exact(a, b), "vector times matrix")
        same(hgemm.matmul(b.T, a), exact(b.T, a), "matrix times vector")


@check
def strides():
    """Slices and transposes used where they are; what surrounds the result stays; what is not read may be NaN."""
    for _ in range(40):
        m, n, k, pad_a, pad_b, pad_d = sizes(200, 200, 100, 9, 9, 9)
        for turn in range(8):
            big_a = integers(k + pad_a, m + 3) if turn & 1 else integers(m + 3, k + pad_a)
            big_b = integers(n + pad_b, k + 1) if turn & 2 else integers(k + 1, n + pad_b)
            a = big_a[:k, 3:].T if turn & 1 else big_a[3:, :k]
            b = big_b[:n, :k].T if turn & 2 else big_b[:k, :n]
            big_d = torch.full((n + 2, m + pad_d) if turn & 4 else (m + 2, n + pad_d), float("nan"), dtype=HALF, device="cuda")
            out = big_d[1:-1, :m].T if turn & 4 else big_d[1:-1, :n]
            assert hgemm.matmul(a, b, out=out, alpha=-2) is out
            same(out, -2 * exact(a, b), (m, n, k, turn))
            assert big_d.isnan().sum().item() == big_d.numel() - m * n, "the result's surroundings were written"
            c = integers(m, n)
            same(hgemm.matmul(a, b, c=c, beta=3), exact(a, b) + 3 * c.double(), "c")
            out.copy_(c)
            hgemm.matmul(a, b, out=out, beta=-1)
            same(out, exact(a, b) - c.double(), "beta reads out")


@check
def epilogues():
    """bias, activation, gate, single-precision results, scalars in device memory."""
    for _ in range(20):
        m, n, k = sizes(200, 200, 64)
        a, b, bias, gate = integers(m, k), integers(k, n), integers(n), integers(m, n)
        same(supported(hgemm.matmul, a, b, bias=bias, activation="relu"), (exact(a, b) + bias.double()).relu(), "bias, relu")
        same(supported(hgemm.matmul, a, b, bias=integers(m, 1) * 0 + 2), exact(a, b) + 2, "bias per row")
        same(supported(hgemm.matmul, a, b, gate=gate), exact(a, b) * gate.double(), "gate")
        for name, whole in (("row", gate[..., :1, :]), ("column", gate[..., :1]), ("value", gate.reshape(-1)[0])):
            same(supported(hgemm.matmul, a, b, gate=whole), exact(a, b) * whole.double(), f"gate of a {name}")
        same(supported(hgemm.matmul, a, b, bias=bias.reshape(-1)[:1]), exact(a, b) + bias.reshape(-1)[0].double(), "bias of one value")
        same(supported(hgemm.matmul, a, b, out_dtype="float32", alpha=3), 3 * exact(a, b), "float32")
        for name, function in activations.THEIRS.items():
            torch.testing.assert_close(supported(hgemm.matmul, a, b, bias=bias, activation=name).double(),
                                       function(exact(a, b) + bias.double()), rtol=2e-3, atol=2e-3)
        alpha, beta = torch.tensor(2.0, device="cuda"), torch.tensor([-1.0], device="cuda")
        c = integers(m, n)
        same(supported(hgemm.matmul, a, b, c=c, alpha=alpha, beta=beta), 2 * exact(a, b) - c.double(), "device scalars")


@check
def accuracy():
    """Errors against double precision are no larger than torch's times 1.1."""
    for m, n, k in ((512, 512, 512), (1000, 777, 1111), (2048, 2048, 2048)):
        a, b = (torch.rand(shape, device="cuda").mul(2).sub(1).to(HALF) for shape in ((m, k), (k, n)))
        of = [((d.double() - exact(a, b)).square().mean().sqrt()).item() for d in (hgemm.matmul(a, b), a @ b)]
        assert of[0] <= 1.1 * of[1], (m, n, k, of)


@check
def streams():
    """Calls run on the current stream and wait for nothing: work before and after on the same stream is in order."""
    a, b = integers(512, 256), integers(256, 512)
    for _ in range(20):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            x = a.clone().mul_(2)
            d = hgemm.matmul(x, b)
            x.zero_()
        stream.synchronize()
        same(d, 2 * exact(a, b))
    hgemm.matmul(a, b)  # loads what the default stream's handle has not
    torch.cuda.synchronize()
    begin = time.perf_counter()
    torch.cuda._sleep(200_000_000)
    hgemm.matmul(a, b)
    assert time.perf_counter() - begin < 0.05, "the call waited for the GPU"
    torch.cuda.synchronize()


@check
def again():
    """Calls that come again, on new numbers in new memory and on two streams, by each way to make them: those that differ in one thing
    stay apart."""
    m, n, k = sizes(100, 100, 100)
    ways = {"packed": lambda *shape: integers(*shape), "apart": lambda *shape: integers(shape[0], shape[1] + 3)[:, :-3],
            "by columns": lambda *shape: integers(*shape[::-1]).T, "no leading dimension": lambda *shape: integers(shape[0], 2 * shape[1])[:, ::2]}
    stream = torch.cuda.Stream()
    with hgemm.torch.enable() as on:
        for _ in range(3):
            for where in (torch.cuda.current_stream(), stream):
                torch.cuda.synchronize()
                with torch.cuda.stream(where):
                    for way, make in ways.items():
                        a, b, c, v, out = make(m, k), make(k, n), make(m, n), integers(n), integers(m, n)
                        p = exact(a, b)
                        linear = torch.nn.functional.linear
                        results = {"mm": (torch.mm(a, b), p), "addmm": (torch.addmm(c, a, b), p + c.double()),
                                   "beta": (torch.addmm(c, a, b, beta=-2), p - 2 * c.double()), "no beta": (torch.addmm(c, a, b, beta=0), p),
                                   "vector": (torch.addmm(v, a, b), p + v.double()), "linear": (linear(a, b.T, v), p + v.double()),
                                   "op": (hgemm.torch.matmul(a, b), p), "op, c": (hgemm.torch.matmul(a, b, bias=v), p + v.double())}
                        if way != "no leading dimension":
                            results |= {"matmul": (hgemm.matmul(a, b), p), "c": (hgemm.matmul(a, b, c=c, beta=2), p + 2 * c.double()),
                                        "out": (hgemm.matmul(a, b, out=out), p), "bias": (hgemm.matmul(a, b, bias=v, alpha=-1), v.double() - p),
                                        "relu": (hgemm.matmul(a, b, activation="relu"), p.relu())}
                        for name, (result, want) in results.items():
                            same(result, want, (way, name))
    assert set(on.passed) == {"torch.float64"}, on.passed  # those of exact()


@check
def threads():
    """Eight threads, each with a stream of its own."""
    failures = []

    def work(i):
        try:
            generator = torch.Generator("cuda").manual_seed(i)
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(30):
                    a, b = (torch.randint(-3, 4, s, device="cuda", generator=generator).to(HALF) for s in ((64 + i, 4096), (4096, 48)))
                    same(hgemm.matmul(a, b), exact(a, b), i)
        except Exception:
            failures.append(traceback.format_exc())
    of = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in of:
        thread.start()
    for thread in of:
        thread.join()
    assert not failures, failures[0]


@check
def graphs():
    """CUDA graphs, with and without a call before the capture; replays see new numbers."""
    for warm in (True, False):
        for call in (lambda a, b, c: hgemm.matmul(a, b, c=c), lambda a, b, c: hgemm.torch.matmul(a, b, c=c)):
            m, n = sizes(300, 300)
            a, b, c = integers(m, 4096), integers(4096, n), integers(m, n)
            if warm:
                with torch.cuda.stream(torch.cuda.Stream()):
                    call(a, b, c)
                torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                d = call(a, b, c)
            for _ in range(3):
                for x in (a, b, c):
                    x.copy_(integers(*x.shape))
                graph.replay()
                same(d, exact(a, b) + c.double(), f"warm: {warm}")


@check
def memory():
    """A call with out allocates nothing, neither by torch nor by the library. Other processes change how much of the GPU is free: of
    some rounds, each with a handle of its own, one must leave all of it free."""
    a, b, out = integers(300, 400), integers(400, 200), integers(300, 200)
    taken = []
    for _ in range(10):
        with torch.cuda.stream(torch.cuda.Stream(priority=-1)):  # no other check has streams of that priority
            hgemm.matmul(a, b, out=out)
            torch.cuda.synchronize()
            allocations, free = torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.mem_get_info()[0]
            for _ in range(100):
                hgemm.matmul(a, b, out=out)
            torch.cuda.synchronize()
            taken.append(free - torch.cuda.mem_get_info()[0])
            assert torch.cuda.memory_stats()["allocation.all.allocated"] == allocations, "torch allocated memory"
        if taken[-1] == 0:
            return
    raise AssertionError(f"bytes that 100 calls took from the GPU's free memory, by round: {taken}")


def opinfo_of(dtype):
    """The check of one type: the GPU's compiler is busy with the kernels of each for half a minute when they are new to it."""
    def opinfo():
        on = hgemm.torch.enable(bfloat16=True, float32=True)
        count, faults = samples_of_torch.check(DEVICE, dtype, on)
        assert count > 100 and on.ran and not faults, (dtype, count, on.ran, on.passed, faults[:9])
        print(f"    {dtype}: {count} samples; hgemm ran {on.ran}, torch {on.passed}")
    opinfo.__doc__ = (f"torch's own samples of its products of {dtype} and their gradients under enable(): no error that torch lacks, none "
                      "larger than opinfo.py allows.")
    opinfo.__name__ = f"opinfo_{str(dtype).rpartition('.')[2]}"
    return opinfo


CHECKS.extend(opinfo_of(dtype) for dtype in samples_of_torch.ROUNDING)


@check
def derivatives():
    """In forward mode and under torch.func's transforms, beside torch's in double precision; gradients beyond float16."""
    f = torch.func
    a, b, v, gate = (torch.randn(shape, device=DEVICE).to(HALF) for shape in ((33, 40), (40, 25), (25,), (25,)))

    def mine(a, b):
        return supported(hgemm.matmul, a, b, bias=v, gate=gate, activation="silu", out_dtype=torch.float32)

    def theirs(a, b):
        return torch.nn.functional.silu(a @ b + v.double()) * gate.double()
    for name, way in (("grad", lambda g: lambda a, b: f.grad(lambda *x: g(*x).sum(), (0, 1))(a, b)), ("vmap", lambda g: f.vmap(g, (0, None))),
                      ("jvp", lambda g: lambda a, b: (f.jvp(g, (a, b), (a, b))[1],)),
                      ("hessian", lambda g: lambda a, b: f.jvp(f.grad(lambda *x: g(*x).square().sum(), (0, 1)), (a, b), (a, b))[1])):
        x = a[:, None] if name == "vmap" else a
        for result, want in zip(way(mine)(x, b), way(theirs)(x.double(), b.double())):
            assert (result.double() - want).norm() <= 0.01 * want.norm(), name
    for size in (1e-9, 1e9):
        x, y = (t.clone().requires_grad_() for t in (a, b))
        g = torch.randn(33, 25, device=DEVICE) * size
        hgemm.matmul(x, y, out_dtype=torch.float32, alpha=0.01 / size).backward(g)
        for result, want in ((x.grad, g.double() @ b.double().T), (y.grad, a.double().T @ g.double())):
            assert (result.double() - want * 0.01 / size).norm() <= 0.01 * (want * 0.01 / size).norm(), size


@check
def autograd():
    """Gradients of the operator and under enable(), beside torch's in double precision."""
    for shape_a, shape_b, shape_c in (((33, 40), (40, 25), (33, 25)), ((4, 33, 40), (40, 25), (25,)), ((4, 33, 40), (4, 40, 25), (33, 1))):
        ours = [integers(*shape).requires_grad_() for shape in (shape_a, shape_b, shape_c)]
        theirs = [x.detach().double().requires_grad_() for x in ours]
        d = hgemm.matmul(ours[0], ours[1], c=ours[2], alpha=2)
        expected = 2 * theirs[0] @ theirs[1] + theirs[2]
        g = torch.randint(-1, 2, d.shape, device="cuda").to(HALF)
        d.backward(g)
        expected.backward(g.double())
        for mine, want in zip(ours, theirs):
            same(mine.grad, want.grad, shape_a)


@check
def compiled():
    """torch.compile by Inductor: the operator in one graph, forward and backward; torch's own products under enable(); its CUDA graphs."""
    def f(a, b, c):
        return torch.relu(hgemm.torch.matmul(a, b, c=c) * 0.5)
    for options, rows in (({}, (64,)), ({"mode": "reduce-overhead"}, (96,)), ({"dynamic": True}, (64, 97))):
        g = torch.compile(f, fullgraph=True, **options)
        for m in rows:
            inputs = [integers(m, 80).requires_grad_(), integers(80, 56).requires_grad_(), integers(56)]
            again = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
            for _ in range(3):
                torch.compiler.cudagraph_mark_step_begin()  # what its graphs gave in the step before, gradients as well, is overwritten
                for x in (*inputs, *again):
                    x.grad = None
                result, expected = g(*inputs), f(*again)
                same(result, expected, options)
                result.sum().backward()
                expected.sum().backward()
                same(inputs[0].grad, again[0].grad, options)
                same(inputs[1].grad, again[1].grad, options)
    h = torch.compile(lambda a, b, v: torch.addmm(v, a, b).relu() + torch.mm(a, b))
    a, b, v = integers(64, 48), integers(48, 56), integers(56)
    h(a, b, v)
    with hgemm.torch.enable() as on:
        same(h(a, b, v), (exact(a, b) + v.double()).relu() + exact(a, b))
    if not on.ran and not hasattr(torch.library, "get_kernel"):
        raise Skip("this torch has no torch.library.get_kernel: compiled graphs are not routed")
    assert sum(on.ran.values()) == 2, (on.ran, on.passed)


@check
def enabled():
    """mm, addmm, bmm, baddbmm, linear, matmul, einsum; what is not half goes by; autocast; all is torch's again afterwards."""
    a, b, c, v = integers(60, 80), integers(80, 50), integers(60, 50), integers(50)
    x, y, z = integers(3, 60, 80), integers(3, 80, 50), integers(3, 60, 50)
    f = torch.nn.functional
    with hgemm.torch.enable(bfloat16=False) as on:
        results = [torch.mm(a, b), a @ b, torch.addmm(c, a, b, beta=2, alpha=-1), torch.addmm(v, a, b), torch.bmm(x, y),
                   torch.baddbmm(z, x, y, beta=3), torch.mm(a, b, out=torch.empty(60, 50, dtype=HALF, device="cuda")),
                   torch.einsum("ij,jk->ik", a, b), f.linear(a, b.T), f.linear(a, b.T, v), f.linear(x, b.T, v), torch.matmul(x, b)]
        torch.mm(a.float(), b.float())
        torch.mm(a.bfloat16(), b.bfloat16())
        with torch.autocast("cuda", HALF):
            results.append(f.linear(a.float(), b.T.float(), v.float()))
        assert torch.addmm(c * float("nan"), a, b, beta=0).isfinite().all()
    p, q, r = exact(a, b), exact(x, y), exact(x, b)
    expected = [p, p, 2 * c.double() - p, v.double() + p, q, 3 * z.double() + q, p, p, p, p + v.double(), r + v.double(), r, p + v.double()]
    for i, (result, want) in enumerate(zip(results, expected)):
        same(result, want, i)
    assert sum(on.ran.values()) == len(results) + 1, (on.ran, on.passed)
    assert on.passed == {"torch.float32": 1, "torch.bfloat16": 1}, on.passed
    torch.mm(a, b)
    assert sum(on.ran.values()) == len(results) + 1


def models():
    import transformers as t
    small = {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 1000}
    yield "BERT", t.BertModel(t.BertConfig(intermediate_size=512, attn_implementation="eager", **small))
    yield "GPT-2", t.GPT2LMHeadModel(t.GPT2Config(n_embd=256, n_layer=3, n_head=4, vocab_size=1000, n_positions=256, bos_token_id=1,
                                                   eos_token_id=2, attn_implementation="eager"))
    yield "Llama", t.LlamaForCausalLM(t.LlamaConfig(intermediate_size=512, num_key_value_heads=2, attn_implementation="eager", **small))


@check
def transformers():
    """Models with random weights in half precision: outputs and gradients with enable() are as close to single precision as without."""
    try:
        of = list(models())
    except ImportError as error:
        raise Skip(str(error)) from None
    for name, model in of:
        model = model.to(DEVICE, HALF).eval()
        single = copy.deepcopy(model).float()
        tokens = torch.randint(0, 1000, (2, 77), device=DEVICE)

        def step(model):
            """The output, and all gradients in one vector."""
            model.zero_grad()
            out = model(tokens)[0]
            out.float().square().mean().mul(100).backward()
            return out.detach().double(), torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None])
        wanted, native = step(single), step(model)
        with hgemm.torch.enable() as on:
            results = step(model)
        assert sum(on.ran.values()) >= 20, (name, on.ran, on.passed)
        print(f"    {name}: {on.ran}, passed on: {on.passed}")
        for what, mine, theirs, want in zip(("output", "gradients"), results, native, wanted):
            mine, theirs = (((x - want).norm() / want.norm()).item() for x in (mine, theirs))
            print(f"        error of {what} to single precision {mine:.2e}, torch's {theirs:.2e}", flush=True)
            assert mine <= 1.2 * theirs + 1e-5, (name, what, mine, theirs)


# ---- bfloat16: docs/contract.md has the bounds ---------------------------------------------------------------------


def normal(*shape):
    return torch.randn(shape, device=DEVICE).to(BFLOAT16)


def with_outliers(*shape):
    return (torch.randn(shape, device=DEVICE) * torch.where(torch.rand(shape, device=DEVICE) < 0.01, 8e5, 1.0)).to(BFLOAT16)


def wide(*shape):
    return torch.ldexp(torch.randn(shape, device=DEVICE), torch.randint(-40, 41, shape, device=DEVICE).float()).to(BFLOAT16)


def huge(*shape):
    return (torch.randn(shape, device=DEVICE) * 2.0**110).to(BFLOAT16)


def tiny(*shape):
    return (torch.randn(shape, device=DEVICE) * 2.0**-105).to(BFLOAT16)


def conversion_errors(x):
    """What the elements of an operand may be off by once its scale is found: nothing, or 2^-40 of the power of two below the largest."""
    magnitude = x.double().abs()
    most = torch.ldexp(torch.tensor(1.0, dtype=torch.float64), torch.frexp(magnitude[magnitude.isfinite()].max().cpu())[1] - 1).item()
    return torch.where(magnitude < 2.0**-32 * most, 2.0**-40 * most, 0.0).double()


def assert_bounded(d, a, b, what, rounding=2.0**-24):
    """Every element of d is within the contract's bound of a @ b in double precision. rounding: what one to d's type may be, of it."""
    x, y, off_x, off_y = a.double(), b.double(), conversion_errors(a), conversion_errors(b)
    sums, absolute = x @ y, x.abs() @ y.abs()
    v = (a.shape[-1] / 8 + 3) * 10 * 2.0**-23  # additions of 8 products cut each to 24 bits
    converted = off_x @ y.abs() + x.abs() @ off_y + off_x @ off_y
    limit = v * (absolute + converted) + converted + rounding * sums.abs() * 1.01 + 2.0**-133
    finite = sums.isfinite()
    assert torch.equal(sums.isnan(), d.isnan()), f"{what}: NaN where there is none, or none where there is one"
    assert torch.equal(sums[sums.isinf()], d.double()[sums.isinf()]), f"{what}: infinities differ"
    worst = ((d.double() - sums).abs() / limit)[finite].max().item()
    assert worst <= 1, f"{what}: {worst:.3g} times the bound"
    return ((d.double() - sums)[finite].norm() / absolute[finite].norm()).item()


@check
def bfloat16():
    """Products of bfloat16 within the contract's bound, whatever their range, with scales from all sources; NaN and infinity; epilogues."""
    errors = {}
    for draw_a, draw_b in ((normal, normal), (with_outliers, normal), (normal, with_outliers), (wide, normal), (wide, wide), (huge, tiny)):
        for m, n, k in ((64, 64, 64), tuple(sizes(300, 300, 600)), (1, 512, 2048), (256, 256, 1024)):
            a, b = draw_a(m, k), draw_b(n, k).T if m % 2 else draw_b(k, n)
            what = f"{draw_a.__name__} x {draw_b.__name__}, {m}x{n}x{k}"
            scales = {"scale_a": hgemm.find_scale(a), "scale_b": hgemm.find_scale(b)}
            for said, given in (("found", {}), ("in device memory", scales), ("numbers", {name: scale.item() for name, scale in scales.items()}),
                                ("b's", {"scale_b": scales["scale_b"]})):
                off = assert_bounded(hgemm.matmul(a, b, out_dtype="float32", **given), a, b, f"{what}, scales {said}")
                errors[draw_a.__name__, draw_b.__name__] = max(off, errors.get((draw_a.__name__, draw_b.__name__), 0))
            assert_bounded(hgemm.matmul(a, b), a, b, what, 2.0**-8)
    print("    root mean square of errors over that of sum |a||b|: " + ", ".join(f"{a} x {b} {error:.1e}" for (a, b), error in errors.items()))
    a, b = normal(70, 80), normal(80, 90)
    a[3, 5], a[7, 9], a[9, 11], b[13, 15] = math.inf, math.nan, -math.inf, math.inf
    assert_bounded(hgemm.matmul(a, b, out_dtype="float32"), a, b, "infinity and NaN")
    for _ in range(10):
        m, n, k, batch = *sizes(200, 200, 100), 3
        a, b, c, bias, gate = (integers(*shape, dtype=BFLOAT16) for shape in ((batch, m, k), (k, n), (m, n), (n,), (m, n)))
        want = (exact(a, b) * 2 + c.double() + bias.double()).relu() * gate.double()
        same(hgemm.matmul(a, b, alpha=2, c=c, bias=bias, gate=gate, activation="relu", out_dtype="float32"), want, "epilogue")
        same(hgemm.matmul(a, integers(batch, k, n, dtype=BFLOAT16) * 0 + 1, out_dtype="float32"),
             a.double().sum(-1, keepdim=True).expand(batch, m, n), "batch")
    return {f"{a} x {b}": error for (a, b), error in errors.items()}


@check
def bfloat16_outliers():
    """One row of 1e20, as memory that nobody wrote may hold: all other rows are as exact as ever. Its time is printed."""
    for m, n, k in ((4, 64, 512), (64, 64, 64), (300, 200, 1000), (2048, 2048, 2048), (4096, 4096, 4096)):
        x, w = normal(m, k), normal(n, k)
        usual = hgemm.matmul(x, w.T)
        y = x.clone()
        y[m // 2] = 1e20
        result, rest = hgemm.matmul(y, w.T), [i for i in range(m) if i != m // 2]
        assert_bounded(result[rest], x[rest], w.T, f"{m}x{n}x{k}: rows beside an outlier", 2.0**-8)
        assert_bounded(result[m // 2:m // 2 + 1], y[m // 2:m // 2 + 1], w.T, f"{m}x{n}x{k}: the outlier", 2.0**-8)
        assert_bounded(usual, x, w.T, "without it", 2.0**-8)
        us = []
        for a in (x, y):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            hgemm.matmul(a, w.T, out=result)
            begin.record()
            for _ in range(10):
                hgemm.matmul(a, w.T, out=result)
            end.record()
            end.synchronize()
            us.append(begin.elapsed_time(end) * 100)
        print(f"    {m}x{n}x{k}: {us[0]:.1f} us, with an outlier {us[1]:.1f} us")


@check
def bfloat16_torch():
    """The operator's gradients; enable(bfloat16=True) with parameters that change; torch.compile and CUDA graphs."""
    a, b = normal(40, 64).requires_grad_(), normal(64, 48).requires_grad_()
    hgemm.matmul(a, b, scale_b=hgemm.find_scale(b)).sum().backward()
    ones = torch.ones(40, 48, device=DEVICE, dtype=BFLOAT16)
    assert_bounded(a.grad, ones, b.detach().T, "gradient of a", 2.0**-8)
    assert_bounded(b.grad, a.detach().T, ones, "gradient of b", 2.0**-8)

    layer = torch.nn.Linear(256, 192, bias=False, device=DEVICE, dtype=BFLOAT16)
    x = normal(17, 256)
    with torch.no_grad(), hgemm.torch.enable(bfloat16=True) as on:
        on.find_scales(layer)
        for factor in (1, 2.0**20, 2.0**-60):
            layer.weight.mul_(factor)
            for _ in range(2):
                assert_bounded(layer(x), x, layer.weight.T, f"weights times {factor}", 2.0**-8)
        layer.weight.mul_(2.0**40)
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            other = layer(x)
        torch.cuda.synchronize()
        assert_bounded(other, x, layer.weight.T, "on another stream", 2.0**-8)
        compiled = torch.compile(layer)
        for _ in range(2):
            assert_bounded(compiled(x), x, layer.weight.T, "compiled", 2.0**-8)
        assert sum(on.ran.values()) >= 7 and "torch.bfloat16" not in on.passed, (on.ran, on.passed)
        for frozen in (True, False):
            layer.requires_grad_(not frozen)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = layer(x)
            for factor in (1, 1) if frozen else (1, 2.0**30, 2.0**-50):
                x.copy_(normal(17, 256))
                layer.weight.mul_(factor)
                graph.replay()
                assert_bounded(y, x, layer.weight.T, f"a graph, frozen {frozen}, weights times {factor}", 2.0**-8)


@check
def grouped():
    """Groups whose sizes only the device knows, gathered and scattered, in a CUDA graph; torch's grouped_mm under enable()."""
    def experts(dtype):
        for _ in range(10):
            tokens, k, n, count = *sizes(300, 200, 200), 5
            x, w = integers(tokens, k, dtype=dtype), integers(count, n, k, dtype=dtype).mT
            choice = torch.randint(0, count, (2 * tokens,), device=DEVICE)
            order = torch.argsort(choice, stable=True).int()
            ends = torch.bincount(choice, minlength=count).cumsum(0).int()
            want = torch.bmm(x.double()[torch.arange(2 * tokens, device=DEVICE) // 2].unsqueeze(1), w.double()[choice]).squeeze(1)
            same(supported(hgemm.grouped, x, w, ends, gather_a=order // 2, scatter_d=order, out_dtype="float32"), want, "scattered")
            same(hgemm.grouped(x, w, ends, gather_a=order // 2, out_dtype="float32"), want[order.long()], "gathered")
    experts(HALF)
    x, w, ends = integers(100, 64), integers(3, 64, 48), torch.tensor([10, 10, 100], device=DEVICE, dtype=torch.int32)
    out = hgemm.grouped(x, w, ends)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hgemm.grouped(x, w, ends, out=out)
    for split in ([50, 60, 100], [0, 0, 100], [100, 100, 100]):
        ends.copy_(torch.tensor(split))
        graph.replay()
        same(out, torch.cat([exact(x[i:j], y) for i, j, y in zip([0, *split], split, w)]), f"a graph, ends {split}")
    if hasattr(torch, "_grouped_mm") and hasattr(torch.library, "get_kernel"):
        with hgemm.torch.enable() as on:
            y = torch._grouped_mm(x, w, offs=ends)
        same(y, exact(x, w[0]), "grouped_mm")
        assert on.ran == {"_grouped_mm": 1}, (on.ran, on.passed)
    experts(BFLOAT16)  # last: where the library has no such groups, it alone is skipped


@check
def bfloat16_model():
    """Models with random weights in bfloat16: logits are as close to those of the same weights in single precision as torch's own."""
    try:
        of = [(name, model) for name, model in models() if name != "BERT"]
    except ImportError as error:
        raise Skip(str(error)) from None
    found = {}
    for name, model in of:
        model = model.to(DEVICE, BFLOAT16).eval()
        single = copy.deepcopy(model).float()
        squares = {"hgemm": 0.0, "torch": 0.0}
        with torch.no_grad():
            for _ in range(8):
                tokens = torch.randint(0, 1000, (2, 77), device=DEVICE)
                want = single(tokens)[0].double()
                native = model(tokens)[0]
                with hgemm.torch.enable(bfloat16=True, devices=(DEVICE,)) as on:
                    mine = model(tokens)[0]
                assert sum(on.ran.values()) >= 15 and "torch.bfloat16" not in on.passed, (name, on.ran, on.passed)
                squares["hgemm"] += (mine.double() - want).square().mean().item()
                squares["torch"] += (native.double() - want).square().mean().item()
        rms = {who: math.sqrt(square / 8) for who, square in squares.items()}
        ratio = rms["hgemm"] / rms["torch"]
        print(f"    {name}: error of logits to single precision {rms['hgemm']:.3e}, torch's {rms['torch']:.3e}, ratio {ratio:.3f}; {on.ran}")
        assert math.isfinite(ratio) and ratio <= 1.1, (name, rms)
        found[name] = {**rms, "ratio": ratio}
    return found


@check
def bfloat16_speed():
    """Times of x @ weight.T: bfloat16 with scales found, given, and found of x only (prepared weights), beside hgemm's FP16 with FP32
    sums and torch's bfloat16 and FP32. Printed, not judged."""
    found = {}
    for m, n, k in ((1024,) * 3, (2048,) * 3, (4096,) * 3, (1, 4096, 4096), (16, 4096, 4096), (64, 4096, 4096)):
        x, w = normal(m, k), normal(n, k)
        half, half_w, single, single_w = x.to(HALF), w.to(HALF), x.float(), w.float()
        out = torch.empty(m, n, device=DEVICE, dtype=BFLOAT16)
        half_out, single_out = out.to(HALF), out.float()
        scales = {"scale_a": hgemm.find_scale(x), "scale_b": hgemm.find_scale(w)}
        contestants = {
            "FP16": lambda: hgemm.matmul(half, half_w.T, out=half_out),
            "BF16, scales found": lambda: hgemm.matmul(x, w.T, out=out),
            "BF16, scales given": lambda: hgemm.matmul(x, w.T, out=out, **scales),
            "BF16, weights prepared": lambda: hgemm.matmul(x, w.T, out=out, scale_b=scales["scale_b"]),
            "torch BF16": lambda: torch.mm(x, w.T, out=out),
            "torch FP32": lambda: torch.mm(single, single_w.T, out=single_out),
        }
        for _ in range(3):
            for run in contestants.values():
                run()
        times = {name: [] for name in contestants}
        for _ in range(21):
            for name, run in contestants.items():
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda._sleep(300_000)
                begin.record()
                run()
                end.record()
                end.synchronize()
                times[name].append(begin.elapsed_time(end) * 1000)
        us = {name: statistics.median(of) for name, of in times.items()}
        found[f"{m}x{n}x{k}"] = us
        print(f"    {m}x{n}x{k}, us: " + ", ".join(f"{name} {time:.1f}" for name, time in us.items()), flush=True)
        print("        speed over FP16's: " + ", ".join(f"{name[6:]} {us['FP16'] / us[name]:.2f}" for name in us if name.startswith("BF16")),
              flush=True)
    return found


def spread(*shape):
    return torch.ldexp(torch.randn(shape, device=DEVICE), torch.randint(-40, 41, shape, device=DEVICE).float())


@check
def float32():
    """Products of float32 within the contract's bound, and by root mean square about as exact as torch's; whatever their range;
    epilogues, gradients, graphs."""
    torch.backends.cuda.matmul.allow_tf32 = False
    errors = {}
    for draw, name in ((lambda *shape: torch.randn(shape, device=DEVICE), "normal"), (lambda *shape: torch.rand(shape, device=DEVICE), "positive"),
                       (spread, "80 binades")):
        for m, n, k in ((64, 64, 64), tuple(sizes(300, 300, 600)), (1, 512, 2048), (256, 256, 4096)):
            a, b = draw(m, k), draw(n, k).T if m % 2 else draw(k, n)
            x, y = a.double(), b.double()
            sums, absolute, units = x @ y, x.abs() @ y.abs(), 40 + min(k / 16, 32) + k / 200 + k / 32
            mine, theirs = ((d.double() - sums).abs() for d in (hgemm.matmul(a, b), a @ b))
            assert (mine <= units * 2.0**-24 * absolute + 2.0**-24 * sums.abs() + 2.0**-149).all(), (name, m, n, k)
            mine, theirs = ((error.norm() / absolute.norm()).item() for error in (mine, theirs))
            errors[f"{name} {m}x{n}x{k}"] = mine, theirs
    print("    root mean square of errors over that of sum |a||b|, and torch's: "
          + ", ".join(f"{name} {mine:.1e} {theirs:.1e}" for name, (mine, theirs) in errors.items()))
    assert all(mine <= 1.25 * theirs for name, (mine, theirs) in errors.items() if name.endswith("256x256x4096")), errors
    for _ in range(10):
        m, n, k, batch = *sizes(200, 200, 100), 3
        a, b, c, bias, gate = (integers(*shape, dtype=torch.float32) for shape in ((batch, m, k), (k, n), (m, n), (n,), (m, n)))
        want = (exact(a, b) * 2 + c.double() + bias.double()).relu() * gate.double()
        same(hgemm.matmul(a, b, alpha=2, c=c, bias=bias, gate=gate, activation="relu"), want, "epilogue")
        a.requires_grad_(), b.requires_grad_()
        hgemm.matmul(a, b).sum().backward()
        same(a.grad, b.detach().double().sum(1).expand(batch, m, k), "gradient of a")
        same(b.grad, a.detach().double().sum((0, 1)).unsqueeze(1).expand(k, n), "gradient of b")
    a, b = integers(96, 64, dtype=torch.float32), integers(64, 80, dtype=torch.float32)
    hgemm.matmul(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        d = hgemm.matmul(a, b)
    a.copy_(integers(96, 64))
    graph.replay()
    same(d, exact(a, b), "graph")
    return errors


def float32_data(m, n, k):
    """Pairs of A and B by name: the kinds of numbers that test_f32.c has."""
    def of_two(exponents, shape):
        return torch.randn(shape, device=DEVICE) * torch.exp2(exponents.float()).to(DEVICE)
    normal = torch.randn(m, k, device=DEVICE), torch.randn(k, n, device=DEVICE)
    yield "normal", *normal
    yield "positive", torch.rand(m, k, device=DEVICE) + 2.0**-20, torch.rand(k, n, device=DEVICE) + 2.0**-20
    yield "80 binades", of_two(torch.randint(-40, 41, (m, k)), (m, k)), of_two(torch.randint(-40, 41, (k, n)), (k, n))
    yield "subnormal", torch.randn(m, k, device=DEVICE) * 2.0**-130, (torch.rand(k, n, device=DEVICE) + 2.0**-20) * 2.0**100
    yield "far apart", of_two(torch.arange(m)[:, None] % 2 * 100 - 50, (m, k)), of_two(torch.arange(n) % 3 * 50 - 50, (k, n))
    fall = torch.linspace(60, -60, k)
    yield "graded", of_two(fall, (m, k)), of_two(-fall[:, None], (k, n))
    a, b = (x.clone() for x in normal)
    a[:, 1::2], b[1::2] = -a[:, 0::2], b[0::2] * (1 + 2.0**-12)
    yield "cancelling", a, b


@check
def float32_errors():
    """Root mean squares of errors over sum |a||b|, over the tests' data: all together not above cuBLAS's SGEMM's. Of sums that cancel
    on their way, in which FP32 units round next to nothing, parts of floats leave out more: no kind is above four times."""
    torch.backends.cuda.matmul.allow_tf32 = False
    squares = {}
    for m, n, k in ((40, 72, 96), (36, 20, 60), (64, 64, 64), (7, 512, 2048), (64, 48, 2048), (256, 256, 1024), (256, 256, 4096), (512, 384, 640)):
        for name, a, b in float32_data(m, n, k):
            sums, absolute = exact(a, b), exact(a.abs(), b.abs())
            errors = torch.stack([((d.double() - sums) / absolute).square().mean() for d in (hgemm.matmul(a, b), a @ b)])
            squares.setdefault(name, []).append(errors.cpu())
    kinds = {name: torch.stack(of).mean(0).sqrt().tolist() for name, of in squares.items()}
    together = torch.stack([x for of in squares.values() for x in of]).mean(0).sqrt().tolist()
    for name, (mine, theirs) in {**kinds, "all": together}.items():
        print(f"    {name}: root mean square of errors over sum |a||b| {mine:.2e}, torch's {theirs:.2e}", flush=True)
    assert together[0] <= together[1] and all(mine <= 4 * theirs for mine, theirs in kinds.values()), (together, kinds)
    return {**kinds, "all": together}


@check
def float32_enabled():
    """enable(float32=True): models' outputs and gradients as close to double precision as without; TF32 is not made use of."""
    try:
        of = list(models())
    except ImportError as error:
        raise Skip(str(error)) from None
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, model in of:
        model = model.to(DEVICE).eval()
        plain = copy.deepcopy(model).double()
        tokens = torch.randint(0, 1000, (2, 77), device=DEVICE)

        def step(model):
            """The output, and all gradients in one vector."""
            model.zero_grad()
            out = model(tokens)[0]
            out.square().mean().backward()
            return out.detach().double(), torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None])
        wanted, native = step(plain), step(model)
        torch.backends.cuda.matmul.allow_tf32 = True
        with hgemm.torch.enable(float32=True) as on:
            results = step(model)
        torch.backends.cuda.matmul.allow_tf32 = False
        assert sum(on.ran.values()) >= 20 and not on.passed, (name, on.ran, on.passed)
        for what, mine, theirs, want in zip(("output", "gradients"), results, native, wanted):
            mine, theirs = (((x - want).norm() / want.norm()).item() for x in (mine, theirs))
            print(f"    {name}: error of {what} to double precision {mine:.2e}, torch's {theirs:.2e}", flush=True)
            assert mine <= 1.2 * theirs + 2.0**-24, (name, what, mine, theirs)


@check
def batch_invariance():
    """With the switch, a row has the same bits in batches of any size."""
    a, b = torch.randn(300, 1024, device="cuda").to(HALF), torch.randn(1024, 640, device="cuda").to(HALF)

    def runs():
        with hgemm.torch.enable(batch_invariant=True):
            return torch.mm(a, b), [(i, j, torch.mm(a[i:j], b)) for i, j in ((0, 1), (5, 6), (7, 40), (100, 228), (299, 300))]
    whole, parts = supported(runs)
    for i, j, part in parts:
        assert torch.equal(whole[i:j], part), (i, j)


@check
def cupy():
    """cupy's arrays, on its current stream; a DeviceArray goes to cupy without a copy."""
    try:
        import cupy as cp
        cp.zeros(1)
    except Exception as error:
        raise Skip(f"{type(error).__name__}: {error}") from None
    a, b = (cp.random.randint(-3, 4, shape).astype(cp.float16) for shape in ((65, 47), (47, 33)))
    expected = a.astype(cp.float64) @ b.astype(cp.float64)
    result = hgemm.matmul(a, b)
    assert isinstance(result, cp.ndarray) and (result == expected).all()
    assert (hgemm.matmul(b.T, a.T) == expected.T).all()
    assert (hgemm.matmul(a, b, c=cp.ones(33, cp.float16)) == expected + 1).all()
    with cp.cuda.Stream(non_blocking=True) as stream:
        out = cp.empty((65, 33), cp.float16)
        hgemm.matmul(a * 2, b, out=out)
        stream.synchronize()
        assert (out == 2 * expected).all()
    mine = hgemm.array(np.arange(6, dtype=np.float16).reshape(2, 3))
    assert (cp.asarray(mine) == cp.arange(6).reshape(2, 3)).all()
    try:
        hgemm.matmul(a[:, ::2], b[::2])
    except ValueError as error:
        assert str(error).startswith("a: "), error
    else:
        raise AssertionError("strides that no leading dimension says were taken")


class OnlyDlpack:
    """A tensor that shows nothing but DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    shape = property(lambda self: self.tensor.shape)
    dtype = property(lambda self: self.tensor.dtype)

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class OnlyCai(OnlyDlpack):
    """A tensor that shows nothing but __cuda_array_interface__."""

    __dlpack__ = __dlpack_device__ = property()

    @property
    def __cuda_array_interface__(self):
        return self.tensor.__cuda_array_interface__


@check
def interfaces():
    """DLPack, __cuda_array_interface__ and numpy."""
    a, b, out = integers(65, 47), integers(47, 33), torch.zeros(65, 33, dtype=HALF, device="cuda")
    torch.cuda.synchronize()
    for kind in (OnlyDlpack, OnlyCai):
        result = hgemm.matmul(kind(a), kind(b))
        assert isinstance(result, hgemm.DeviceArray)
        same(torch.from_numpy(result.numpy()), exact(a, b).cpu(), kind.__name__)
        out.zero_()
        torch.cuda.synchronize()
        hgemm.matmul(kind(a), kind(b), out=kind(out))
        torch.cuda.synchronize()
        same(out, exact(a, b), kind.__name__)
    z, w = torch.complex(*(integers(47, dtype=torch.float32) for _ in range(2))), integers(47, 33, dtype=torch.float32)
    for x in (z.imag, z.conj().imag):  # of which the second one is in memory as its negative
        for _ in range(2):
            for call in (hgemm.matmul, hgemm.torch.matmul):
                same(call(x, w), x.double() @ w.double(), "imaginary parts")
    result = hgemm.matmul(a.cpu().numpy(), b.cpu().numpy())
    assert (result == exact(a, b).cpu().numpy()).all()
    same(hgemm.matmul(a.cpu(), b.cpu()), exact(a, b).cpu())


@check
def two_devices():
    """Tensors of another GPU; operands of two GPUs are refused; tensor parallelism by NCCL."""
    if torch.cuda.device_count() < 2:
        raise Skip("there is one GPU")
    a, b = integers(65, 47, device="cuda:1"), integers(47, 33, device="cuda:1")
    same(hgemm.matmul(a, b), exact(a, b))
    try:
        hgemm.matmul(a, b.to("cuda:0"))
    except ValueError as error:
        assert "b: it is on cuda:0" in str(error) or "a: it is on cuda:1" in str(error), error
    else:
        raise AssertionError("operands of two GPUs were taken")


@check
def tensor_parallel():
    """examples/tensor_parallel.py: by NCCL where there are two GPUs, else by gloo with CPU tensors that are copied to the GPU."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tensor_parallel.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=LIMITS["tensor_parallel"] - 10,
                          env={**os.environ, "OMP_NUM_THREADS": "2"})  # as torchrun has it
    assert done.returncode == 0 and "2 processes agree" in done.stdout, (done.stdout + done.stderr)[-3000:]
    print("    " + done.stdout.strip())


@check
def host_cost():
    """Microseconds that the host needs to enqueue a small product. Printed, not judged."""
    found = measured()
    print("    " + ", ".join(f"{name}: {us:.1f} us" for name, us in found.items()))
    return found


@check
def bench():
    """hgemm.bench and hgemm.report run here, and find no wrong product."""
    table = hgemm.bench(["512", "1024", "1023"], kernels="ladder", repetitions=5, progress=False)
    print("    " + str(table).replace("\n", "\n    "))
    assert all(row["us"] > 0 and row["relative_error"] < 5e-3 for row in table.rows)
    path = pathlib.Path(os.environ.get("OUT", "/tmp")) / "hgemm_report.json"
    written = hgemm.report(path, shapes=["512", "1x4096x4096"], repetitions=3, progress=False)
    assert not any(of["wrong_elements"] for of in written["exact_products"])


CHECKS.extend(gpu_weights.CHECKS)  # of packed weights


# ---- running them ---------------------------------------------------------------------------------------------------


def run_one(function):
    torch.manual_seed(SEED)
    begin = time.perf_counter()
    try:
        said, result = "passed", {"result": "passed", "value": function()}
        torch.cuda.synchronize()
    except (Skip, gpu_weights.Missing) as why:
        said, result = f"skipped: {why}", {"result": "skipped", "why": str(why)}
    except Exception:
        said, result = "FAILED\n" + traceback.format_exc(), {"result": "failed", "why": traceback.format_exc()}
    print(f"{function.__name__}: {said} ({time.perf_counter() - begin:.1f} s)", flush=True)
    return result


def work(names, path):
    """Runs the checks of these names and writes a line of JSON to a file when one begins and when it has ended."""
    functions = {function.__name__: function for function in CHECKS}
    with open(path, "a") as log:
        def note(**what):
            print(json.dumps(what), file=log, flush=True)
        for name in names:
            note(begin=name)
            result = run_one(functions[name])
            note(end=name, **result)
            if result["result"] == "failed":
                torch.cuda.synchronize()  # raises where the device is broken


def watch(process, path, done):
    """Waits for a process of work(). Adds what it wrote to `done`; returns the check that it did not end, and why, or None."""
    began, running = time.monotonic(), None
    position = path.stat().st_size
    while True:
        ended = process.poll() is not None
        with open(path) as log:
            log.seek(position)
            for line in iter(log.readline, ""):
                if not line.endswith("\n"):
                    break
                position += len(line.encode())
                what = json.loads(line)
                began, running = time.monotonic(), what.get("begin")
                if "end" in what:
                    done[what.pop("end")] = what
        if ended:
            return running and (running, f"the process ended with {process.returncode}")
        limit = LIMITS.get(running, LIMIT)
        if running and time.monotonic() - began > limit:
            process.send_signal(signal.SIGABRT)  # faulthandler says where it was
            process.wait()
            return running, f"it took longer than {limit} s"
        time.sleep(0.05)


def supervise(names):
    """{name: result}. A process runs check after check; where it ends before its time, another takes the rest."""
    done = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log"
        path.touch()
        while len(done) < len(names):
            rest = [name for name in names if name not in done]
            command = [sys.executable, "-X", "faulthandler", __file__, "--work", str(path), *rest]
            before = len(done)
            lost = watch(subprocess.Popen(command, env={**os.environ, "HGEMM_SEED": str(SEED)}), path, done)
            if lost is None and len(done) == before:
                lost = rest[0], "no process could begin with it"
            if lost:
                name, why = lost
                done[name] = {"result": "failed", "why": why}
                print(f"{name}: FAILED: {why}", flush=True)
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="write the results there, as JSON")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="checks to run: by default all")
    options = parser.parse_args()
    known = [function.__name__ for function in CHECKS]
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    if options.work:
        return work(options.names, options.work)
    about = hgemm.info()
    print(f"hgemm {hgemm.__version__} on {about['device']}, torch {torch.__version__}, HGEMM_SEED={SEED}", flush=True)
    assert not about["emulated"], "there is no GPU"
    results = supervise([name for name in known if not options.names or name in options.names])
    count = {word: sum(result["result"] == word for result in results.values()) for word in ("passed", "failed", "skipped")}
    print(", ".join(f"{number} {word}" for word, number in count.items()))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"device": about, "torch": torch.__version__, "seed": SEED, "checks": results}, indent=1))
    sys.exit(bool(count["failed"]))


if __name__ == "__main__":
    main()
