# SPDX-License-Identifier: MIT
"""Packed weights on a GPU: the checks of them that gpu_check.py runs. Beside bitsandbytes and transformers, where these are installed."""
import copy
import statistics

import numpy as np
import torch

import hgemm
import hgemm.torch
from hgemm import _packed
from random_weights import KINDS, made

HALF = torch.float16
CHECKS = []


class Missing(Exception):
    """A package that a check needs is not there."""


def check(function):
    CHECKS.append(function)
    return function


def random():
    return np.random.default_rng(int(torch.randint(0, 2**31, ())))


def integers(*shape, dtype=HALF):
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def error(found, wanted):
    return ((found.double() - wanted.double()).norm() / wanted.double().norm()).item()


@check
def packed_products():
    """Every kind of codes, random shapes: the device packs what the host packs, unpacks the matrix, and products are exact."""
    rng = random()
    for code, zeros in KINDS:
        for _ in range(4):
            n, k, m = int(rng.integers(1, 600)), 2 * int(rng.integers(8, 500)), int(rng.choice([1, 2, 7, 16, 33, 64, 130, 300, 700]))
            weights = made(rng, code, n, k, int(rng.choice([0, 16, 32, 64, 128, 256])), zeros)
            packed = hgemm.pack(weights, device="cuda")
            np.testing.assert_array_equal(packed.data.cpu().numpy(), _packed.pack_on_host(weights, packed.form), f"{weights!r}")
            matrix = torch.from_numpy(weights.dequantize()).cuda()
            assert torch.equal(packed.unpack("float32"), matrix), weights
            x, bias = integers(m, k), integers(n)
            for _ in range(2):  # the second one by the call that was kept
                y = hgemm.linear(x, packed, bias, out_dtype="float32")
                assert torch.equal(y, (x.double() @ matrix.double().T + bias).float()), (weights, m)
            wide = integers(m, k).bfloat16() * 1e5
            y, wanted = hgemm.linear(wide, packed, out_dtype="float32"), wide.double() @ matrix.double().T
            assert torch.isfinite(y).all() and (y.double() - wanted).abs().max() <= 2e-6 * wanted.abs().max(), (weights, m)
            wide[m // 2, k // 2] = 1e20  # of which no scale serves the others, too
            y, wanted = hgemm.linear(wide, packed, out_dtype="float32"), wide.double() @ matrix.double().T
            most = wide.double().abs() @ matrix.double().abs().T
            assert ((y.double() - wanted).abs() <= 2e-5 * most).all(), (weights, m, "an outlier")


@check
def packed_gradients_graphs_and_streams():
    rng = random()
    weights = made(rng, "int4", 512, 1024, 128)
    layer, matrix = hgemm.torch.PackedLinear(weights, torch.ones(512).half(), device="cuda").cuda(), torch.from_numpy(weights.dequantize()).cuda()
    x = integers(3, 40, 1024).requires_grad_()
    y, g = layer(x), integers(3, 40, 512)
    found, = torch.autograd.grad(y, x, g)
    assert torch.equal(y.float(), (x.float() @ matrix.T + 1).half().float()) and error(found, g.double() @ matrix.double()) < 1e-3

    compiled = torch.compile(lambda x: torch.nn.functional.silu(layer(x)), fullgraph=True)
    assert error(compiled(x), torch.nn.functional.silu(y.float())) < 1e-3
    found, = torch.autograd.grad(compiled(x).float().sum(), x)
    assert torch.isfinite(found).all()

    still, graph = x.detach().clone(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        layer(still)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = layer(still)
        still.copy_(integers(3, 40, 1024))
        graph.replay()
        assert torch.equal(out, layer(still))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            other = layer(still)
        torch.cuda.current_stream().wait_stream(stream)
        assert torch.equal(out, other)


@check
def packed_gradients_in_panels():
    """A gradient's matrix is unpacked some columns at a time: the same bits, and no more memory than a panel takes."""
    rng, whole = random(), hgemm._torch_packed.PANEL
    for code, zeros, dtype in (("int4", None, HALF), ("uint4", "integer", torch.bfloat16), ("int8", None, torch.float32), ("table16", None, HALF)):
        n, k = int(rng.integers(300, 900)), 2 * int(rng.integers(300, 900))
        weights = made(rng, code, n, k, 64, zeros)
        packed, matrix = hgemm.pack(weights, device="cuda"), torch.from_numpy(weights.dequantize()).cuda().double()
        x, g = torch.zeros(70, k, device="cuda", dtype=dtype, requires_grad=True), integers(70, n)
        y = hgemm.linear(x, packed, out_dtype="float32")
        found = []
        for hgemm._torch_packed.PANEL in (whole, n * 256 * dtype.itemsize):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            found += torch.autograd.grad(y, x, g.float(), retain_graph=True)
            used = torch.cuda.max_memory_allocated() - before
        hgemm._torch_packed.PANEL = whole
        wanted = g.double() @ matrix
        assert error(found[0], wanted) < {HALF: 1e-3, torch.bfloat16: 6e-3, torch.float32: 1e-6}[dtype], (code, dtype)
        assert torch.equal(*found) or dtype == torch.float32 and error(*found) < 1e-6, (code, dtype)  # whose panels' tiles have scales of their own
        assert used <= n * 256 * dtype.itemsize + 4 * 70 * (n + k) * 4 + (1 << 20), (used, n, k)


@check
def packed_float32():
    """Activations of float32, of any magnitude: as near to the exact product as sums in FP32 are, in graphs and compiled, too."""
    rng = random()
    weights = made(rng, "int4", 512, 1024, 128)
    packed, matrix = hgemm.pack(weights, device="cuda"), torch.from_numpy(weights.dequantize()).cuda()
    x = torch.randn(6, 1024, device="cuda") * torch.tensor([1e-30, 1e-7, 1, 3e4, 8e5, 1e25], device="cuda")[:, None]
    y = hgemm.linear(x, packed)
    bound = x.double().abs() @ matrix.double().abs().T
    assert y.dtype == torch.float32 and ((y - x.double() @ matrix.double().T).abs() <= 1e-6 * bound).all()
    layer, x = hgemm.torch.PackedLinear(packed, torch.ones(512, device="cuda")), torch.randn(5, 1024, device="cuda", requires_grad=True)
    y = layer(x)
    assert error(y, x.double() @ matrix.double().T + 1) < 1e-6 and torch.equal(torch.compile(layer, fullgraph=True)(x), y)
    g = torch.randn_like(y)
    assert error(torch.autograd.grad(y, x, g)[0], g.double() @ matrix.double()) < 1e-6
    still, graph = x.detach().clone(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        layer(still)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = layer(still)
        still.mul_(3e7)
        graph.replay()
        assert torch.equal(out, layer(still))
    tangent = torch.func.jvp(layer, (x.detach().half(),), (torch.ones_like(x).half(),))[1]
    assert error(tangent, torch.ones(5, 1024, device="cuda").double() @ matrix.double().T) < 1e-3


@check
def packed_layers():
    """A layer's state and weight on the GPU: loaded from the CPU's memory, in place for graphs, unpacked by what reads it."""
    rng = random()
    first, second = (made(rng, "int4", 512, 1024, 128) for _ in range(2))
    first, second = (hgemm.Weights(one.codes, one.scales, "int4", group=128, order=rng.permutation(1024), nibbles=True) for one in (first, second))
    layer, other = hgemm.torch.PackedLinear(first, torch.ones(512).half()), hgemm.torch.PackedLinear(second, torch.zeros(512).half(), device="cuda")
    matrix, x = torch.from_numpy(first.dequantize()).cuda(), integers(40, 1024)
    wanted, graph = (x.float() @ matrix.T + 1).half(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        other(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = other(x)
    other.cuda().load_state_dict(layer.state_dict())
    graph.replay()
    assert torch.equal(out, wanted) and torch.equal(other(x), wanted)
    elsewhere = hgemm.torch.PackedLinear(made(rng, "int8", 512, 1024, 64), torch.zeros(512).half()).to("meta")
    padded = torch.zeros(layer.packed.numel() + 8, dtype=torch.uint8, device="cuda")
    padded[8:] = layer.packed.cuda()
    elsewhere.load_state_dict({"packed": padded[8:], "bias": layer.bias.cuda()}, assign=True)  # at an address that no kernel takes
    moved = layer.cuda()
    for one in (elsewhere, moved):
        assert torch.equal(one(x), wanted) and torch.equal(torch.compile(one, fullgraph=True)(x), wanted)
        assert one.weight.is_cuda and one.weight.device == x.device and torch.equal(one.weight.float(), matrix)
        assert error(torch.nn.functional.linear(x, one.weight, one.bias), wanted) < 1e-3
    with torch.no_grad():
        moved.weight.data += 1
    assert type(moved) is torch.nn.Linear and moved.weight.is_cuda and error(moved(x), x.float() @ (matrix + 1).T + 1) < 1e-3


@check
def bitsandbytes_of_8_bits():
    """Linear8bitLt: converted before and after its first product, it is what its rows stand for, with activations as they are."""
    try:
        import bitsandbytes
    except ImportError as why:
        raise Missing(str(why)) from None
    linear, x = torch.nn.Linear(256, 320).half(), torch.randn(7, 256, device="cuda", dtype=HALF)
    wanted = x.double() @ linear.weight.cuda().double().T + linear.bias.cuda().double()
    for runs in (False, True):
        layer = bitsandbytes.nn.Linear8bitLt(256, 320, has_fp16_weights=False)
        layer.load_state_dict(linear.state_dict())
        model = torch.nn.Sequential(layer).cuda()
        theirs = model(x) if runs else None
        done = hgemm.torch.convert(model)
        assert not done.left, done
        mine = error(model(x), wanted)
        assert mine < 1e-2 and (theirs is None or mine <= 1.1 * error(theirs, wanted)), (runs, mine)


@check
def packed_experts():
    """Experts, whole and cut along k as the library chooses: exact sums, rows gathered and scattered."""
    rng = random()
    n, k = 8 * int(rng.integers(10, 100)), int(rng.choice([512, 2048, 8192]))
    weights = [made(rng, "int4", n, k, 128) for _ in range(8)]
    packed = hgemm.pack(weights)
    counts = torch.randint(0, 9, (8,), device="cuda")
    ends = counts.cumsum(0).int()
    x = integers(int(ends[-1]), k)
    y, begin = hgemm.grouped(x, packed, ends, out_dtype="float32"), 0
    for one, end in zip(weights, ends.tolist()):
        assert torch.equal(y[begin:end].double(), x[begin:end].double() @ torch.from_numpy(one.dequantize()).cuda().double().T)
        begin = end
    matrices = torch.stack([torch.from_numpy(one.dequantize()).cuda().double() for one in weights])
    tensors = hgemm.pack(weights, device="cuda")
    assert torch.equal(hgemm.grouped(x, tensors, ends, out_dtype="float32"), y)
    for dtype in (HALF, torch.bfloat16):  # each row takes two experts: gathered, and scattered to where they are added
        for tokens in (1, 3, int(rng.integers(4, 65)), 200):
            x = integers(tokens, k, dtype=dtype)
            chosen = torch.rand(tokens, 8, device="cuda").topk(2).indices
            order = chosen.flatten().argsort(stable=True)
            ends = torch.bincount(chosen.flatten(), minlength=8).cumsum(0).int()
            y = hgemm.grouped(x, tensors, ends, gather_a=(order // 2).int(), scatter_d=order.int(), out_dtype="float32")
            wanted = torch.empty(2 * tokens, n, device="cuda", dtype=torch.float64)
            for expert, matrix in enumerate(matrices):
                its = (chosen.flatten() == expert).nonzero()[:, 0]
                wanted[its] = x[its // 2].double() @ matrix.T
            assert torch.equal(y.double(), wanted), (n, k, tokens, dtype)


@check
def experts_as_a_module():
    """PackedExperts: all experts in one product for halves, in a CUDA graph, too; each by itself for float32 and for a gradient."""
    rng = random()
    up, down = ([made(rng, "e4m3", *shape, 64) for _ in range(8)] for shape in ((384, 256), (256, 192)))

    def gate(z):
        first, second = z.chunk(2, dim=-1)
        return torch.nn.functional.silu(first) * second
    experts = hgemm.torch.PackedExperts(hgemm.pack(up, device="cuda"), hgemm.pack(down, device="cuda"), gate)
    chosen, weights = torch.rand(33, 8, device="cuda").topk(2)[1], torch.rand(33, 2, device="cuda")
    matrices = [torch.stack([torch.from_numpy(one.dequantize()) for one in some]).double().cuda() for some in (up, down)]

    def reference(x):
        inner = gate(torch.einsum("tk,tenk->ten", x, matrices[0][chosen]))
        return torch.einsum("tek,tenk,te->tn", inner, matrices[1][chosen], weights.double())
    for dtype, bound in ((HALF, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 1e-5)):
        x = (torch.randn(33, 256, device="cuda") / 64).to(dtype)
        wanted, y = reference(x.double()), experts(x, chosen, weights)
        assert y.dtype == dtype and error(y, wanted) < bound, (dtype, error(y, wanted))
        mine, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
        g = torch.randn(33, 256, device="cuda")
        found, = torch.autograd.grad(experts(mine, chosen, weights), mine, g.to(dtype))
        assert error(found, torch.autograd.grad(reference(theirs), theirs, g.double())[0]) < 3 * bound, dtype
        if dtype == torch.float32:
            continue
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            again = experts(x, chosen, weights)
        graph.replay()
        assert torch.equal(again, y), dtype


@check
def packed_beyond_4_gib():
    """Weights of more than 4 GiB, which are a small matrix's rows many times over: each copy's results are those of the first."""
    if torch.cuda.mem_get_info()[0] < 9 << 30:
        raise Missing("9 GiB of free memory")
    n, k, times = 3200, 16384, 90
    for code, zeros in (("int8", "integer"), ("uint8", "real")):
        small = hgemm.pack(made(random(), code, n, k, 256, zeros), device="cuda")
        form = (n * times, *small.form[1:])
        whole = torch.empty(_packed.bytes_of(form), dtype=torch.uint8, device="cuda")
        assert whole.numel() > 1 << 32
        at = to = 0
        scale = {0: 2, 1: 4, 2: 2}[small.form[5]]
        for size in (n * k, n * k // 256 * scale, n * k // 256 * (1 if zeros == "integer" else scale)):  # codes, scales, zeros
            whole[to:to + size * times].view(times, size).copy_(small.data[at:at + size])
            at, to = at + size, to + size * times
        for m in (1, 40, 200):
            x = integers(m, k)
            y = hgemm.linear(x, hgemm._torch_packed.PackedTensor(whole, form, None), out_dtype="float32").view(m, times, n)
            assert torch.equal(y, hgemm.linear(x, small, out_dtype="float32")[:, None].expand(m, times, n)), (code, m)
        panel, first = torch.empty(n * times, 128, device="cuda", dtype=HALF), k - 128
        hgemm._torch_packed._unpack_columns(whole, form, first, 128, panel)
        assert torch.equal(panel.view(times, n, 128), small.unpack("float16")[:, first:].expand(times, n, 128)), code
        del whole, panel


@check
def packed_by_the_library():
    """Weights packed without torch, multiplied with arrays of several libraries where they are; with act-order, too."""
    rng = random()
    weights = made(rng, "int4", 320, 512, 128)
    sorted_ = hgemm.Weights(weights.codes, weights.scales, "int4", group=128, order=rng.permutation(512), nibbles=True)
    for one in (weights, sorted_):
        packed, matrix = hgemm.pack(one), torch.from_numpy(one.dequantize()).cuda()
        assert np.array_equal(packed.unpack("float32"), one.dequantize())
        x = integers(9, 512)
        wanted = (x.double() @ matrix.double().T).float()
        assert torch.equal(hgemm.linear(x, packed, out_dtype="float32"), wanted)
        assert np.array_equal(hgemm.linear(x.cpu().numpy(), packed, out_dtype="float32"), wanted.cpu().numpy())
        try:
            import cupy
        except ImportError:
            continue
        assert np.array_equal(cupy.asnumpy(hgemm.linear(cupy.asarray(x), packed, out_dtype="float32")), wanted.cpu().numpy())


def llama(hidden=512, layers=2):
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as why:
        raise Missing(str(why)) from None
    config = LlamaConfig(hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=1024)
    return LlamaForCausalLM(config).to("cuda", HALF).eval()


def replace_linears(model, make):
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear and name != "lm_head":
                setattr(parent, name, make(child))
    return model


def dequantised(model, weight_of):
    """The model in float32 with what quantised layers stand for."""
    def linear(child):
        made = torch.nn.Linear(child.in_features, child.out_features, bias=False, device="cuda")
        made.weight.data = weight_of(child)
        return made
    single = copy.deepcopy(model)
    for parent in list(single.modules()):
        for name, child in list(parent.named_children()):
            if weight_of(child) is not None:
                setattr(parent, name, linear(child))
    return single.float()


@check
def converted_checkpoints():
    """A GPTQ (act-order) and an AWQ checkpoint, written here by rounding a model with random weights: convert() gives its logits."""
    tokens = torch.randint(0, 1000, (2, 33), device="cuda")
    rng = random()

    class Quantised(torch.nn.Module):
        def __init__(self, linear, awq):
            super().__init__()
            self.in_features, self.out_features, self.group_size, groups = linear.in_features, linear.out_features, 128, linear.in_features // 128
            w = linear.weight.detach().float().cpu().numpy()
            g_idx = np.arange(self.in_features) // 128 if awq else rng.permutation(np.arange(self.in_features) // 128)
            codes, scales, zeros = np.zeros(w.shape, np.uint32), np.zeros((groups, len(w)), np.float16), np.zeros((groups, len(w)), np.uint32)
            for g in range(groups):
                part = w[:, g_idx == g]
                low, high = part.min(1), part.max(1)
                scales[g] = (high - low) / 15
                zeros[g] = np.clip(np.round(-low / scales[g].astype(np.float32)), 1, 15)
                codes[:, g_idx == g] = np.clip(np.round(part / scales[g].astype(np.float32)[:, None]) + zeros[g][:, None], 0, 15)
            shifts = 4 * np.arange(8, dtype=np.uint32)

            def join(fields, order=slice(None)):
                """Eight codes along the last dimension to a word."""
                return (fields.reshape(*fields.shape[:-1], -1, 8)[..., order] << shifts).sum(-1, dtype=np.uint32).view(np.int32)
            if awq:
                order = [0, 2, 4, 6, 1, 3, 5, 7]
                tensors = {"qweight": join(codes.T, order), "qzeros": join(zeros, order), "scales": scales}
            else:
                tensors = {"qweight": np.ascontiguousarray(join(codes).T), "qzeros": join(zeros - 1), "scales": scales, "g_idx": g_idx.astype(np.int32)}
            for name, tensor in tensors.items():
                self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(tensor)).cuda())
            stepped = (codes.astype(np.float32) - zeros.T[:, g_idx]) * scales.astype(np.float32).T[:, g_idx]
            self.matrix = torch.from_numpy(stepped)
    for awq in (False, True):
        model = replace_linears(llama(), lambda linear: Quantised(linear, awq))
        single = dequantised(model, lambda child: child.matrix.cuda() if isinstance(child, Quantised) else None)
        plain = copy.deepcopy(single).half()
        done = hgemm.torch.convert(model, gptq_version=1)
        assert len(done.replaced) == 14 and not done.left, done
        with torch.no_grad():
            wanted, mine, theirs = (one(tokens).logits for one in (single, model, plain))
            mine, theirs = error(mine, wanted), error(theirs, wanted)
            print(f"    {'AWQ' if awq else 'GPTQ'}: error of logits to single precision {mine:.2e}; of the model dequantised to halves {theirs:.2e}", flush=True)
            assert mine <= 1.2 * theirs
            assert model.generate(tokens[:, :4], max_new_tokens=8, do_sample=False).shape == (2, 12)


class Lora(torch.nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(8, base.in_features, device="cuda") / 30)
        self.up = torch.nn.Parameter(torch.randn(base.out_features, 8, device="cuda") / 30)

    def forward(self, x):
        return self.base(x) + ((x.float() @ self.down.T) @ self.up.T).to(x.dtype)


@check
def bitsandbytes_models():
    """A model of bitsandbytes' 4 bits under enable(): logits as near to single precision as its own, generation, gradients of a QLoRA step."""
    try:
        import bitsandbytes
    except ImportError as why:
        raise Missing(str(why)) from None
    tokens = torch.randint(0, 1000, (2, 33), device="cuda")
    for kind, nested in (("nf4", True), ("fp4", False)):
        def quantise(linear):
            made = bitsandbytes.nn.Linear4bit(linear.in_features, linear.out_features, bias=False, compute_dtype=HALF, compress_statistics=nested,
                                              quant_type=kind)
            made.weight = bitsandbytes.nn.Params4bit(linear.weight.data.cpu(), requires_grad=False, compress_statistics=nested, quant_type=kind)
            return made.cuda()
        model = replace_linears(llama(), quantise)

        def weight_of(child):
            if not isinstance(child, bitsandbytes.nn.Linear4bit):
                return None
            state = copy.copy(child.weight.quant_state)
            state.dtype = torch.float32  # in which it dequantises
            return bitsandbytes.functional.dequantize_4bit(child.weight.data, state)
        single = dequantised(model, weight_of)
        with torch.no_grad():
            wanted, theirs = single(tokens).logits, model(tokens).logits
            with hgemm.torch.enable() as on:
                mine = model(tokens).logits
                assert on.ran["matmul_4bit"] == 14, (on.ran, on.passed)
                state = model.state_dict()
                assert model.generate(tokens[:, :4], max_new_tokens=8, do_sample=False).shape == (2, 12)
            assert state.keys() == model.state_dict().keys()
            converted = copy.deepcopy(model)
            done = hgemm.torch.convert(converted)
            assert len(done.replaced) == 14, done
            print(f"    {kind}: error of logits to single precision {error(mine, wanted):.2e}, converted {error(converted(tokens).logits, wanted):.2e}, "
                  f"bitsandbytes' {error(theirs, wanted):.2e}", flush=True)
            assert error(mine, wanted) <= 1.2 * error(theirs, wanted) and error(converted(tokens).logits, wanted) <= 1.2 * error(theirs, wanted)
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, bitsandbytes.nn.Linear4bit) and name in ("q_proj", "v_proj"):
                    setattr(parent, name, Lora(child))
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.endswith(("down", "up")))

        def step():
            model.zero_grad()
            model(tokens, labels=tokens).loss.backward()
            return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        theirs = step()
        with hgemm.torch.enable() as on:
            mine = step()
        print(f"    {kind}: a QLoRA step's gradients differ by {error(mine, theirs):.2e} from bitsandbytes' own", flush=True)
        assert on.ran["matmul_4bit"] == 14 and error(mine, theirs) < 2e-2


@check
def packed_speed():
    """Microseconds of a linear layer of 4096 x 4096 on this GPU: packed weights beside torch's halves and bitsandbytes."""
    try:
        import bitsandbytes
    except ImportError:
        bitsandbytes = None
    rng, n, k = random(), 4096, 4096
    packed = {name: hgemm.pack(made(rng, code, n, k, group), device="cuda") for name, code, group in (
        ("INT4, groups of 128", "int4", 128), ("INT8", "int8", 0), ("table, groups of 64", "table16", 64))}
    matrix = torch.randn(n, k, device="cuda", dtype=HALF)
    rows = {}
    for m in (1, 4, 16, 64, 256, 1024):
        x = torch.randn(m, k, device="cuda", dtype=HALF)
        calls = {name: lambda w=w: hgemm.linear(x, w) for name, w in packed.items()}
        calls["torch, halves"] = lambda: torch.nn.functional.linear(x, matrix)
        if bitsandbytes is not None:
            weight, state = bitsandbytes.functional.quantize_4bit(matrix, quant_type="nf4")
            calls["bitsandbytes NF4"] = lambda: bitsandbytes.matmul_4bit(x, weight, state)
        for name, call in calls.items():
            rows.setdefault(name, {})[m] = timed(call)
        g = torch.randn(m, n, device="cuda", dtype=HALF)
        for name in ("INT4, groups of 128", "table, groups of 64"):
            w = packed[name]
            rows.setdefault(f"{name}: gradient", {})[m] = timed(lambda: torch.ops.hgemm.linear_packed_grad(g, w.data, w.form, HALF))
        rows.setdefault("torch, halves: gradient", {})[m] = timed(lambda: g @ matrix)
    for name, times in rows.items():
        print(f"    {name:30}" + "".join(f"  m={m}: {us:8.1f}" for m, us in times.items()), flush=True)
    return rows


@check
def expert_speed():
    """Microseconds of eight experts of 4096 x 4096, of which each token takes two, and how many are hit."""
    rng, n, k = random(), 4096, 4096
    packed = hgemm.pack([made(rng, "int4", n, k, 128) for _ in range(8)], device="cuda")
    rows = {}
    for tokens in (1, 2, 4, 8, 16, 32, 64, 256):
        chosen = torch.rand(tokens, 8, device="cuda").topk(2).indices.flatten()
        gather, ends = (chosen.argsort(stable=True) // 2).int(), torch.bincount(chosen, minlength=8).cumsum(0).int()
        x = torch.randn(tokens, k, device="cuda", dtype=HALF)
        rows[tokens] = timed(lambda: hgemm.grouped(x, packed, ends, gather_a=gather)), len(chosen.unique())
    print("    INT4, experts " + "".join(f"  m={m} ({hit}): {us:8.1f}" for m, (us, hit) in rows.items()), flush=True)
    return rows


def timed(call):
    """Microseconds of a call, by a graph of ten of them: the host takes no part in it."""
    with torch.no_grad():
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(10):
                call()
        times = []
        for _ in range(15):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 100)
    return statistics.median(times)
