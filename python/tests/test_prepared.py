# SPDX-License-Identifier: MIT
"""Calls on CUDA tensors that come again: as right as the first one, and as choosy. The memory is the emulated T4's, which passes for
that of cuda:0; gpu_check.py does the same on a GPU."""
import gc
import random
import threading
import time
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if torch.cuda.is_available():
    pytest.skip("there is a GPU: gpu_check.py has these calls", allow_module_level=True)

import fake_cuda
import hgemm
import hgemm.torch
from hgemm import _call, _device, _device_array, _plan, _prepared
from random_weights import made

HALF, FLOAT, BF16 = torch.float16, torch.float32, torch.bfloat16
BITS = {HALF: torch.int16, BF16: torch.int16, FLOAT: torch.int32}


def span_of(tensor):
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0


class Gpu:
    """The emulated T4 as cuda:0. What torch allocates there is full of NaN."""

    def __init__(self):
        self.handle, self.arrays, self.stream = _device.handle_for(None), [], 0

    def put(self, host):
        """A tensor with the values and strides of a host tensor; between its lines there is NaN."""
        words = torch.full((span_of(host),), float("nan"), dtype=host.dtype)
        words.as_strided(host.shape, host.stride()).copy_(host)
        self.arrays.append(_device_array.upload(words.view(BITS[host.dtype]).numpy(), self.handle))
        return fake_cuda.tensor(self.arrays[-1].pointer, host.shape, host.stride(), host.dtype)

    def get(self, tensor):
        """A host tensor with the values of a tensor."""
        return self._span(tensor).as_strided(tensor.shape, tensor.stride())

    def _span(self, tensor):
        """All that lies from the first element to the last."""
        span = torch.empty(span_of(tensor), dtype=tensor.dtype)
        if span.numel():
            self.handle.call(hgemm._c.lib.hgemm_download, span.data_ptr(), tensor.data_ptr(), span.numel() * span.element_size())
        return span

    def copy(self, target, source):
        span = self._span(target)
        span.as_strided(target.shape, target.stride())[...] = self.get(source)
        if span.numel():
            self.handle.call(hgemm._c.lib.hgemm_upload, target.data_ptr(), span.data_ptr(), span.numel() * span.element_size())

    def allocate(self, shape, strides, dtype):
        return self.put(torch.full((int(np.prod(shape)),), float("nan"), dtype=dtype).as_strided(shape, strides))


@pytest.fixture
def gpu(monkeypatch, request):
    torch.manual_seed(sum(map(ord, request.node.name)))
    random.seed(request.node.name)
    gpu = Gpu()
    monkeypatch.setattr(_device, "_handles", {(None, 0): gpu.handle, ("cuda:0", 0): gpu.handle, ("cuda:0", 7): gpu.handle})
    copy, contiguous = torch.Tensor.copy_, torch.Tensor.contiguous
    monkeypatch.setattr(torch.Tensor, "copy_", lambda x, source: gpu.copy(x, source) if x.is_cuda else copy(x, source))
    monkeypatch.setattr(torch.Tensor, "contiguous", lambda x: gpu.put(gpu.get(x).clone().contiguous()) if x.is_cuda else contiguous(x))
    _prepared._calls.clear()
    with fake_cuda.device(gpu.allocate, lambda index: gpu.stream):
        yield gpu
    _prepared._calls.clear()


@pytest.fixture
def recorded(monkeypatch):
    """The shapes of operators' calls that torch would record. To record them it asks a GPU for its stream, which there is not."""
    seen = []

    def apply(keyset, *arguments):
        seen.append(tuple(arguments[0].shape))
        return hgemm._derivatives._below_autograd(keyset, arguments)
    monkeypatch.setattr(hgemm._derivatives._Gemm, "apply", apply)
    return seen


@pytest.fixture
def looked_at(monkeypatch):
    """The calls that were not made from what was kept."""
    seen, run = [], _call.run
    monkeypatch.setattr(_call, "run", lambda *arguments: seen.append(arguments) or run(*arguments))
    return seen


def on_gpu(gpu, packed):
    """Packed weights of the emulated T4 as a tensor's."""
    gpu.arrays.append(packed.data)
    return hgemm._torch_packed.PackedTensor(fake_cuda.tensor(packed.data.pointer, (packed.nbytes,), (1,), torch.uint8), packed.form, None)


def integers(*shape, dtype=HALF):
    return torch.randint(-3, 4, shape).to(dtype)


def laid_out(*shape, dtype=HALF, way=None):
    """Integers, packed, with room between lines, or by columns."""
    way = random.randrange(3) if way is None else way
    x = integers(*shape, dtype=dtype)
    if way == 1:
        return torch.nn.functional.pad(x.float(), (0, 3)).to(dtype)[..., :shape[-1]]
    return x.mT.contiguous().mT if way == 2 and len(shape) > 1 else x


def expected(a, b, alpha=1.0, beta=None, c=None, bias=None, activation=None, gate=None, out=None, **options):
    z = alpha * (a.double() @ b.double())
    c = out if c is None and beta else c
    if c is not None and beta != 0:
        z = z + (1.0 if beta is None else beta) * c.double()
    if bias is not None:
        z = z + bias.double()
    z = z.relu() if activation == "relu" else z
    return z * gate.double() if gate is not None else z


def check_again(gpu, calls):
    """Runs each call, of shapes and ways to lay them out, on new numbers in new memory."""
    for operands, options in calls:
        hosts = {name: laid_out(*shape, dtype=dtype, way=way) for name, (shape, dtype, way) in operands.items()}
        want = expected(**hosts, **options)
        on = {name: gpu.put(x) for name, x in hosts.items()}
        result = hgemm.matmul(**on, **options)
        assert torch.equal(gpu.get(result).double(), want), (operands, options)
        assert result is on.get("out", result)
        asked = options.get("out_dtype") or (hosts["out"].dtype if "out" in hosts else HALF)
        assert str(result.dtype).endswith(str(asked)[-7:])


def test_calls_that_differ_in_one_thing(gpu, looked_at):
    def call(a=((8, 8), HALF, 0), b=((8, 8), HALF, 0), **more):
        return {"a": a, "b": b, **{name: x for name, x in more.items() if isinstance(x, tuple)}}, \
            {name: x for name, x in more.items() if not isinstance(x, tuple)}
    matrix = [((8, 8), HALF, 0), ((8, 8), HALF, 1), ((8, 8), FLOAT, 0)]
    calls = [call(), *(call(a=((8, 8), HALF, way)) for way in (1, 2)), *(call(b=((8, 8), HALF, way)) for way in (1, 2)),
             *(call(a=(shape, HALF, 0)) for shape in ((4, 8), (3, 8), (1, 8), (8,), (2, 8, 8), (0, 8))),
             *(call(b=(shape, HALF, 0)) for shape in ((8, 7), (8,), (2, 8, 8))), call(a=((8, 5), HALF, 0), b=((5, 8), HALF, 0)),
             call(a=((2, 3, 8, 8), HALF, 0), b=((2, 1, 8, 8), HALF, 0)), call(a=((2, 1, 8, 8), HALF, 0), b=((3, 8, 8), HALF, 0)),
             *(call(out=x) for x in (*matrix, ((8, 8), HALF, 2))), *(call(out_dtype=x) for x in ("float16", "float32", FLOAT)),
             *(call(c=x, out=y) for x in matrix for y in matrix), *(call(c=((8,), x, 0)) for x in (HALF, FLOAT)),
             *(call(c=matrix[0], beta=x) for x in (0, 0.0, 1, 2.0, -1)), *(call(out=matrix[0], beta=x) for x in (0, 0.0, 2, -1.0)),
             *(call(gate=x) for x in matrix), *(call(bias=(shape, x, 0)) for x in (HALF, FLOAT) for shape in ((8,), (8, 1))),
             call(bias=((8,), HALF, 0), c=matrix[0]), call(gate=matrix[0], c=matrix[0]), call(alpha=2), call(alpha=-1.0),
             call(activation="relu"), call(activation="none"), call(accumulate="float16"), call(batch_invariant=True)]
    for _ in range(3):
        random.shuffle(calls)
        check_again(gpu, calls)
    assert len(looked_at) < 1.4 * len(calls)  # once each, but for those that are several calls or copy c


def test_the_same_tensor_twice(gpu):
    a, b = integers(8, 8), integers(8, 8)
    on_a, on_b = gpu.put(a), gpu.put(b)
    for x, y, on_x, on_y in ((a, a, on_a, on_a), (a, b, on_a, on_b), (b, b, on_b, on_b)):
        assert torch.equal(gpu.get(hgemm.matmul(on_x, on_y)).double(), expected(x, y))


def test_one_cache(gpu, monkeypatch):
    """Whatever a product takes, its plan is made once, and stands in one place."""
    plans, init = [], _plan.Plan.__init__
    monkeypatch.setattr(_plan.Plan, "__init__", lambda *arguments: plans.append(arguments) or init(*arguments))
    monkeypatch.setattr(_plan, "_plans", {})
    x, w, z, row, gaps, far = map(gpu.put, (integers(3, 4, 8), integers(8, 16), integers(3, 4, 16), integers(16), integers(3, 4, 16)[..., ::2],
                                            integers(5, 64)[:, ::2]))
    apart, other = gpu.put(integers(2, 3, 2, 4, 8)[:, :2]), gpu.put(integers(2, 2, 2, 8, 16))
    bf16, more, scale = gpu.put(integers(3, 4, 8, dtype=BF16)), gpu.put(integers(8, 16, dtype=BF16)), gpu.put(torch.ones((), dtype=FLOAT))
    weights, wide = on_gpu(gpu, hgemm.pack(made(np.random.default_rng(3), "int8", 16, 32, 0))), gpu.put(integers(5, 32))
    hgemm.matmul(row, row)  # a process's first call finds what there is for torch
    cases = {
        "as it is": lambda: hgemm.matmul(x, w),
        "c is read": lambda: hgemm.matmul(x, w, c=z, beta=0.5),
        "c is copied": lambda: hgemm.matmul(x, w, c=row),
        "several calls": lambda: hgemm.matmul(apart, other),
        "a number is a scale": lambda: hgemm.matmul(bf16, more, scale_a=1.0, scale_b=0.5),
        "a tensor is a scale": lambda: hgemm.matmul(bf16, more, scale_a=scale, scale_b=scale),
        "the operator copies": lambda: hgemm.torch.matmul(gaps, w),
        "packed weights": lambda: hgemm.linear(wide, weights),
        "packed weights, a is copied": lambda: hgemm.linear(far, weights),
    }
    for name, call in cases.items():
        before = len(plans)
        first, again = gpu.get(call()), gpu.get(call())
        assert torch.equal(first, again) and len(plans) == before + 1, name
    assert not _plan._plans


def test_packed_weights(gpu, looked_at):
    """Weights of one size are told apart, and what is asked of them; a call that comes again is not looked at."""
    rng = np.random.default_rng(5)
    kinds = [made(rng, code, 24, 64, 32, zeros) for code, zeros in (("int4", None), ("uint4", None), ("table16", None), ("int8", None), ("e4m3", None))]
    of = []
    for weights in kinds:
        of.append((on_gpu(gpu, hgemm.pack(weights)), torch.from_numpy(weights.dequantize())))
    assert len({w.nbytes for w, _ in of[:3]}) == 1

    def product(i, dtype, x_way, out_dtype, **options):
        w, matrix = of[i]
        x = laid_out(7, 64, dtype=dtype, way=x_way)
        beside = {name: laid_out(*shape, dtype=kind, way=0) for name, (shape, kind) in options.pop("beside", {}).items()}
        want = expected(x, matrix.T, **beside, **options)
        result = hgemm.linear(gpu.put(x), w, **{name: gpu.put(y) for name, y in beside.items()}, **options, out_dtype=out_dtype)
        assert result.dtype == (out_dtype or dtype), (i, options)
        off = (gpu.get(result).double() - want).abs().max()
        assert off <= {FLOAT: 2.0**-20, HALF: 2.0**-10, BF16: 2.0**-7}[result.dtype] * want.abs().max(), (i, dtype, x_way, options, off)
    calls = [(i, dtype, way, out_dtype, options) for i in range(len(of)) for dtype in (HALF, BF16) for way in (0, 1)
             for out_dtype, options in ((None, {}), (FLOAT, {"alpha": 0.5}), (FLOAT, {"alpha": -2.0, "activation": "relu"}),
                                        (None, {"beside": {"bias": ((24,), HALF)}}), (FLOAT, {"beside": {"bias": ((24,), FLOAT)}}),
                                        (FLOAT, {"beside": {"c": ((7, 24), HALF)}, "beta": 2.0}), (FLOAT, {"beside": {"c": ((7, 24), HALF)}, "beta": 0.0}),
                                        (FLOAT, {"beside": {"gate": ((7, 24), BF16)}}))]
    for turn in range(2):
        random.shuffle(calls)
        for i, dtype, way, out_dtype, options in calls:
            product(i, dtype, way, out_dtype, **options)
        count = len(looked_at) if turn == 0 else count
    assert len(looked_at) == count


def test_streams_devices_and_modes_are_part_of_a_call(gpu, looked_at, recorded):
    a, b = integers(8, 8), integers(8, 8)
    on_a, on_b = gpu.put(a), gpu.put(b)
    for stream, count in ((0, 1), (7, 2), (0, 2), (7, 2)):
        gpu.stream = stream
        assert torch.equal(gpu.get(hgemm.matmul(on_a, on_b)).double(), expected(a, b)) and len(looked_at) == count
    for batch_invariant, count in ((True, 3), (False, 3), (True, 3)):
        hgemm.matmul(on_a, on_b, batch_invariant=batch_invariant)
        assert len(looked_at) == count
    big = gpu.put(torch.full((128, 128), 100.0, dtype=HALF))  # more than tiny kernels take, whose sums are never halves
    for accumulate in ("float16", "float32", "float16"):
        result = gpu.get(hgemm.matmul(big, big, alpha=2.0**-5, accumulate=accumulate))
        assert result.isinf().all() if accumulate == "float16" else (result == 40000).all()
    with pytest.raises(ValueError, match="b: it is on cpu, and a is on cuda:0|b: it is in host memory"):
        hgemm.matmul(on_a, b)
    for parameters, count in (((torch.nn.Parameter(on_a), on_b), 1), ((on_a, torch.nn.Parameter(on_b)), 2)):
        assert torch.equal(gpu.get(hgemm.matmul(*parameters)).double(), expected(a, b)) and len(recorded) == count
        with torch.no_grad():
            hgemm.matmul(*parameters)
            assert len(recorded) == count
    bias = gpu.put(integers(8))
    hgemm.matmul(on_a, on_b, bias=bias)
    hgemm.matmul(on_a, on_b, bias=torch.nn.Parameter(bias))
    assert len(recorded) == 3
    with torch.inference_mode():
        assert hgemm.matmul(on_a, on_b).is_inference()
    assert not hgemm.matmul(on_a, on_b).is_inference()


def test_what_addresses_decide_is_still_refused(gpu):
    a, b, out = (gpu.put(integers(8, 8)) for _ in range(3))
    for _ in range(2):
        assert hgemm.matmul(a, b, out=out) is out
        with pytest.raises(hgemm.ArgumentError, match="^out: .*overlaps") as refused:
            hgemm.matmul(a, b, out=a)
    assert refused.value.status == "HGEMM_STATUS_OVERLAP"
    for _ in range(2):
        with pytest.raises(ValueError, match="b: it has 4 rows, and a has 8 columns"):
            hgemm.matmul(a, gpu.put(integers(4, 8)))
        with pytest.raises(ValueError, match="activation: 'tanh'"):
            hgemm.matmul(a, b, activation="tanh")
        with pytest.raises(TypeError, match="out_dtype: 'int8' is none of"):
            hgemm.matmul(a, b, out_dtype="int8")


def test_factors_are_numbers_of_32_bits_each_time(gpu):
    a, b, c = (gpu.put(integers(8, 8)) for _ in range(3))
    for call in (hgemm.matmul, hgemm.torch.matmul, lambda *operands, **factors: torch.ops.hgemm.gemm(*operands, **{"beta": 1.0, **factors})):
        for _ in range(2):
            call(a, b, alpha=1.0, c=c)
            for name in ("alpha", "beta"):
                with pytest.raises(ValueError, match=f"{name}: 1e[+]300 is beyond what a float of 32 bits holds"):
                    call(a, b, c=c, **{name: 1e300})
        assert gpu.get(call(a, b, c=c, alpha=float("inf"))).isnan().any()
    for _ in range(2):
        with pytest.raises(ValueError, match="accumulate: .*is neither"):
            hgemm.matmul(a, b, accumulate=["float32"])
    with hgemm.torch.enable(bfloat16=False) as on:
        torch.addmm(c, a, b, alpha=1.0)
        with pytest.raises((RuntimeError, NotImplementedError)):  # torch's words, or those of a torch without a GPU
            torch.addmm(c, a, b, alpha=1e300)
        assert on.ran == {"addmm": 1} and list(on.passed) == ["alpha: 1e+300 is beyond what a float of 32 bits holds"]


def test_no_tensor_is_kept(gpu):
    a, b = gpu.put(integers(8, 8)), gpu.put(integers(8, 8))
    d = hgemm.matmul(a, b, bias=gpu.put(integers(8)))
    d = hgemm.matmul(a, b, bias=gpu.put(integers(8)))
    refs = [weakref.ref(x) for x in (a, b, d)]
    del a, b, d
    gc.collect()
    assert not any(ref() is not None for ref in refs)


def test_threads_share_a_call(gpu, looked_at, monkeypatch):
    run = hgemm._c.run_desc
    monkeypatch.setattr(hgemm._c, "run_desc", lambda *arguments: time.sleep(0.001) or run(*arguments))  # others have time to meddle
    pairs = [(integers(8, 8), integers(8, 8)) for _ in range(4)]
    on = [(gpu.put(a), gpu.put(b)) for a, b in pairs]
    outs, wrong = [[gpu.put(integers(8, 8)) for _ in range(10)] for _ in pairs], []
    hgemm.matmul(*on[0], out=outs[0][0])

    def work(i):
        for out in outs[i]:
            hgemm.matmul(*on[i], out=out)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (a, b), results in zip(pairs, outs):
        wrong += [out for out in results if not torch.equal(gpu.get(out).double(), expected(a, b))]
    assert not wrong and len(looked_at) == 1


def test_what_is_copied_is_copied_each_time(gpu):
    """An operand that no leading dimension says, and a tensor of the same layout as its copy."""
    for _ in range(3):
        spread, packed, b, gate = integers(8, 16)[:, ::2], integers(8, 8), integers(8, 8), integers(8, 16)[:, ::2]
        with hgemm.torch.enable(bfloat16=False):
            for a in (spread, packed):
                for result in (hgemm.torch.matmul(gpu.put(a), gpu.put(b)), torch.mm(gpu.put(a), gpu.put(b)), torch.mm(gpu.put(b).mT, gpu.put(a).mT).mT):
                    assert torch.equal(gpu.get(result).double(), expected(a, b) if result.is_contiguous() else expected(b.T, a.T).T)
        result = hgemm.torch.matmul(gpu.put(packed), gpu.put(b), gate=gpu.put(gate))
        assert torch.equal(gpu.get(result).double(), expected(packed, b, gate=gate))


@pytest.mark.skipif(not hgemm._c.has_bfloat16(), reason="this libhgemm has no bfloat16")
def test_scales_are_addresses_too(gpu, looked_at):
    a, b = integers(8, 8, dtype=BF16), integers(8, 8, dtype=BF16)
    on_a, on_b, too_large = gpu.put(a), gpu.put(b), gpu.put(torch.tensor([2.0**126]))
    for count, give in ((1, lambda scale: {}), (2, lambda scale: {"scale_b": scale}), (3, lambda scale: {"scale_a": scale, "scale_b": scale})):
        for call in (hgemm.matmul, hgemm.torch.matmul, hgemm.matmul):
            scale = gpu.put(torch.tensor([4.0]))
            result = gpu.get(call(on_a, on_b, **give(scale)))
            assert result.dtype == BF16 and torch.equal(result.double(), expected(a, b).to(BF16).double())
            scale.copy_(too_large)  # of a call that is over
            if give(scale):
                assert not gpu.get(call(on_a, on_b, **give(scale))).isfinite().all()
    assert len(looked_at) == 2 * count  # matmul and the operator ask by other names
    for _ in range(2):
        with pytest.raises(ValueError, match="scale_a: a is float16, and only bfloat16 has a scale"):
            hgemm.matmul(gpu.put(a.to(HALF)), gpu.put(b.to(HALF)), scale_a=gpu.put(torch.tensor([4.0])))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_operator(gpu, looked_at, recorded, mode):
    a, b, bias, c = integers(2, 8, 8), integers(8, 8), integers(8), integers(2, 8, 8)
    on = {"a": gpu.put(a), "b": gpu.put(b), "bias": gpu.put(bias), "c": gpu.put(c)}
    for _ in range(2):
        with mode():
            results = [hgemm.torch.matmul(on["a"], on["b"]), hgemm.torch.linear(on["a"], on["b"].mT, on["bias"], activation="relu"),
                       hgemm.torch.matmul(on["a"], on["b"], c=on["c"], beta=2), torch.ops.hgemm.gemm(on["a"], on["b"], on["c"], beta=0.0),
                       hgemm.torch.matmul(on["a"], on["b"], out_dtype="float32")]
        wants = [expected(a, b), expected(a, b, bias=bias, activation="relu"), expected(a, b, c=c, beta=2), expected(a, b), expected(a, b)]
        for result, want in zip(results, wants):
            assert torch.equal(gpu.get(result).double(), want)
    assert len(looked_at) == 4 and not recorded  # with beta 0 it is the first one again
    with mode():
        hgemm.torch.matmul(on["a"], torch.nn.Parameter(on["b"]))
    assert len(recorded) == (mode is torch.enable_grad)


def test_enable(gpu, looked_at):
    with hgemm.torch.enable(bfloat16=False) as on:
        for i in range(3):
            if i == 1:
                count = len(looked_at)
            (a, b, c, v), (x, y, z) = hosts = [integers(8, 8) for _ in range(3)] + [integers(8)], [integers(2, 8, 8) for _ in range(3)]
            (ga, gb, gc_, gv), (gx, gy, gz) = [[gpu.put(t) for t in ts] for ts in hosts]
            out = gpu.put(integers(8, 8))
            results = [(torch.mm(ga, gb), expected(a, b)), (torch.mm(ga, ga.mT), expected(a, a.mT)), (torch.mm(ga, ga), expected(a, a)),
                       (torch.addmm(gc_, ga, gb, beta=2, alpha=-1), expected(a, b, alpha=-1, beta=2, c=c)),
                       (torch.addmm(gc_, ga, gb, beta=3), expected(a, b, beta=3, c=c)), (torch.addmm(gc_, ga, gb, beta=0), expected(a, b)),
                       (torch.addmm(gc_, ga, gb), expected(a, b, c=c)), (torch.addmm(gv, ga, gb), expected(a, b, bias=v)),
                       (torch.addmm(gv, ga, gb, beta=0), expected(a, b)), (torch.addmm(gv, ga, gb, beta=2), expected(a, b, bias=2 * v)),
                       (torch.bmm(gx, gy), expected(x, y)), (torch.baddbmm(gz, gx, gy, beta=-1), expected(x, y, c=z, beta=-1)),
                       (torch.nn.functional.linear(ga, gb, gv), expected(a, b.T, bias=v))]
            if hasattr(torch.library, "get_kernel"):
                results.append((torch.mm(ga, gb, out=out), expected(a, b)))
            for k, (result, want) in enumerate(results):
                assert torch.equal(gpu.get(result).double(), want), k
        assert len(looked_at) == count + 2 and sum(on.ran.values()) == 3 * len(results) and not on.passed
        with hgemm.torch.enable(bfloat16=False, accumulate="float16"):
            big = gpu.put(torch.full((128, 128), 100.0, dtype=HALF))  # more than tiny kernels take, whose sums are never halves
            for _ in range(2):
                assert gpu.get(torch.addmm(big, big, big, alpha=2.0**-5)).isinf().all()
        for _ in range(2):
            assert (gpu.get(torch.addmm(big, big, big, alpha=2.0**-5)) == 40096).all()
