#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cuBLAS door on a GPU, under programs as they are: PyTorch, transformers, CuPy.

    test/door/gpu.py build/release/libhgemm_cublas.so [--hgemm build/release/libhgemm.so] [--tool build/release/hgemm]

Runs each case in a process without the door and in one with it (HGEMM_CUBLAS=everywhere). Every result is compared
with the same computation in single precision, CPU or GPU, and what is computed in FP32 with double precision: with the door its
error may be at most 1.25 times what it is without (a model's in BF16 or FP32: 1.1 times), plus a rounding of a float, or a part of
one of a half. Cases whose products the door is to take must show hits, and none that hgemm was asked for and did not run. Then the cost of a call to the host, and the policy `faster`
with a file of `hgemm tune`: what the file says hgemm is faster at must be a hit, all else a miss.
Needs torch; says what else (transformers, cupy) is missing and was therefore not run.
"""
import argparse
import concurrent.futures
import copy
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time

EPSILON = 2.0**-11  # half an ulp of a half at 1
EPSILON_FP32 = 2.0**-24  # the same of a float
MOST_ERROR = 0.1  # without the door: more is no computation to compare with
RAISES = 1e9  # in the place of an error
LIMIT = 200  # seconds for a case


# ---- Cases: each gives named pairs (what the program computes in FP16, the same in FP32; or in FP32, and in double precision) ------


def case_products(torch, device):
    def pair(function, *tensors):
        return function(*tensors), function(*[t.float() for t in tensors])

    def random(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float32).to(device, torch.float16)

    generator = torch.Generator().manual_seed(1)
    functional = torch.nn.functional
    a, b, square = random(384, 512), random(512, 256), random(384, 256)
    odd_a, odd_b = random(131, 77), random(77, 93)
    bias, weight = random(256), random(256, 512)
    x = random(4, 96, 512)
    batch_a, batch_b, batch_c = random(6, 64, 80), random(6, 80, 72), random(6, 64, 72)
    yield "mm", pair(torch.mm, a, b)
    yield "mm, both transposed", pair(lambda p, q: torch.mm(p.t(), q.t()), random(512, 384), random(256, 512))
    yield "mm, odd sizes", pair(torch.mm, odd_a, odd_b)
    yield "mm, slices", pair(lambda p, q: torch.mm(p[:, 3:400], q[3:400, :200]), a, b)
    yield "addmm, a matrix", pair(lambda c, p, q: torch.addmm(c, p, q, beta=0.5, alpha=2), square, a, b)
    yield "addmm, a vector", pair(torch.addmm, bias, a, b)
    yield "addmm and ReLU", pair(lambda c, p, q: torch._addmm_activation(c, p, q), bias, a, b)
    gelu = torch.nn.functional.gelu
    yield "addmm and GELU", (
        torch._addmm_activation(bias, a, b / 16, use_gelu=True),
        gelu(torch.addmm(bias.float(), a.float(), (b / 16).float()), approximate="tanh"),
    )
    yield "bmm", pair(torch.bmm, batch_a, batch_b)
    yield "baddbmm", pair(torch.baddbmm, batch_c, batch_a, batch_b)
    yield "linear", pair(functional.linear, x, weight)
    yield "linear, bias", pair(functional.linear, x, weight, bias)
    yield "linear, bias, 2-D", pair(functional.linear, a, weight, bias)
    yield "einsum", pair(lambda p, q: torch.einsum("bik,bkj->bij", p, q), batch_a, batch_b)
    q, k, v = (random(2, 4, 64, 64) for _ in range(3))
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield "attention, math", pair(functional.scaled_dot_product_attention, q, k, v)
    if device == "cuda" and hasattr(torch.backends.cuda.matmul, "allow_fp16_accumulation"):
        torch.backends.cuda.matmul.allow_fp16_accumulation = True
        yield "mm, sums in FP16", pair(torch.mm, a, b)
        torch.backends.cuda.matmul.allow_fp16_accumulation = False


def case_graph(torch, device):
    if device != "cuda":
        return
    torch.manual_seed(2)
    layers = torch.nn.Sequential(torch.nn.Linear(256, 384), torch.nn.ReLU(), torch.nn.Linear(384, 128, bias=False)).half().to(device)
    plain = copy.deepcopy(layers).float()
    x = torch.randn(48, 256, device=device).half()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                layers(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layers(x)
        for step in range(3):
            x.copy_(torch.randn(48, 256, generator=torch.Generator().manual_seed(step)))
            graph.replay()
            torch.cuda.synchronize()
            yield f"graph, replay {step}", (y.clone(), plain(x.float()))
        # Replays beside other work on a stream of its own.
        others = [torch.cuda.Stream() for _ in range(3)]
        weight = layers[0].weight
        outputs = []
        for _ in range(20):
            graph.replay()
            for other in others:
                with torch.cuda.stream(other):
                    outputs.append(x @ weight.t())
        torch.cuda.synchronize()
        yield "graph beside streams", (torch.stack([y.mean(), outputs[0].mean()]), torch.stack([y.float().mean(), (x.float() @ weight.float().t()).mean()]))
        yield "streams beside a graph", (torch.stack(outputs), (x.float() @ weight.float().t()).expand(len(outputs), -1, -1))


def case_bf16(torch, device):
    def pair(function, *tensors):
        return function(*tensors), function(*[t.float() for t in tensors])

    def random(*shape, scale=1.0):
        return (torch.randn(*shape, generator=generator) * scale).to(device, torch.bfloat16)

    generator = torch.Generator().manual_seed(11)
    linear = torch.nn.functional.linear
    a, b, bias, weight = random(384, 512), random(512, 256), random(256), random(256, 512)
    yield "BF16 mm", pair(torch.mm, a, b)
    yield "BF16 mm, transposed", pair(lambda p, q: torch.mm(p.t(), q.t()), random(512, 384), random(256, 512))
    yield "BF16 mm, odd sizes", pair(torch.mm, random(131, 77), random(77, 93))
    yield "BF16 mm, far from 1", pair(torch.mm, random(96, 128, scale=1e30), random(128, 80, scale=1e-34))
    yield "BF16 addmm", pair(lambda c, p, q: torch.addmm(c, p, q, beta=0.5, alpha=2), random(384, 256), a, b)
    yield "BF16 bmm", pair(torch.bmm, random(6, 64, 80), random(6, 80, 72))
    yield "BF16 linear", pair(linear, random(4, 96, 512), weight)
    yield "BF16 linear, bias", pair(linear, random(4, 96, 512), weight, bias)


def case_bf16_graph(torch, device):
    """Its scales are found in a workspace, which captures do not have: cuBLAS runs what is captured."""
    if device != "cuda":
        return
    a, b = (torch.randn(128, 128, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16) for seed in (12, 13))
    yield "BF16 before a graph", (a @ b, a.float() @ b.float())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = a @ b
    graph.replay()
    yield "BF16 in a graph", (c, a.float() @ b.float())


def case_fp32(torch, device):
    def pair(function, *tensors):
        return function(*tensors), function(*[t.double() for t in tensors])

    def random(*shape):
        return torch.randn(*shape, generator=generator).to(device)

    generator = torch.Generator().manual_seed(21)
    linear = torch.nn.functional.linear
    a, b, bias, weight = random(384, 512), random(512, 256), random(256), random(256, 512)
    batch_a, batch_b, batch_c = random(6, 64, 80), random(6, 80, 72), random(6, 64, 72)
    yield "FP32 mm", pair(torch.mm, a, b)
    yield "FP32 mm, both transposed", pair(lambda p, q: torch.mm(p.t(), q.t()), random(512, 384), random(256, 512))
    yield "FP32 mm, odd sizes", pair(torch.mm, random(131, 77), random(77, 93))
    yield "FP32 mm, slices", pair(lambda p, q: torch.mm(p[:, 3:400], q[3:400, :200]), a, b)
    yield "FP32 mm, positive", pair(torch.mm, random(128, 4096).abs(), random(4096, 64).abs())
    rows, columns = torch.logspace(-100, 20, 384, 2).unsqueeze(1).to(device), torch.logspace(-20, 100, 256, 2).to(device)
    yield "FP32 mm, rows and columns far apart", tuple(x / rows / columns for x in pair(torch.mm, a * rows, b * columns))
    spread = torch.exp2(torch.randint(-40, 41, (384, 512), generator=generator).float()).to(device)
    yield "FP32 mm, 80 binades in a row", pair(torch.mm, a * spread, b)
    yield "FP32 addmm, a matrix", pair(lambda c, p, q: torch.addmm(c, p, q, beta=0.5, alpha=2), random(384, 256), a, b)
    yield "FP32 addmm, a vector", pair(torch.addmm, bias, a, b)
    yield "FP32 addmm and ReLU", pair(lambda c, p, q: torch._addmm_activation(c, p, q), bias, a, b)
    yield "FP32 bmm", pair(torch.bmm, batch_a, batch_b)
    yield "FP32 baddbmm", pair(torch.baddbmm, batch_c, batch_a, batch_b)
    yield "FP32 linear", pair(linear, random(4, 96, 512), weight)
    yield "FP32 linear, bias", pair(linear, random(4, 96, 512), weight, bias)
    # A permission, which changes nothing with the door; without it, compared is what is not allowed to be TF32.
    torch.backends.cuda.matmul.allow_tf32 = "HGEMM_CUBLAS" in os.environ
    yield "FP32 mm, TF32 allowed", pair(torch.mm, a, b)
    torch.backends.cuda.matmul.allow_tf32 = False


def case_fp32_graph(torch, device):
    if device != "cuda":
        return
    a, b = (torch.randn(256, 256, generator=torch.Generator().manual_seed(seed)).to(device) for seed in (22, 23))
    yield "FP32 before a graph", (a @ b, a.double() @ b.double())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = a @ b
    for step in range(3):
        a.copy_(torch.randn(256, 256, generator=torch.Generator().manual_seed(step)))
        graph.replay()
        torch.cuda.synchronize()
        yield f"FP32 in a graph, replay {step}", (c.clone(), a.double() @ b.double())


def cublas_function(name, is_real=False):
    """A function as a program finds it that is linked to cuBLAS: the door's, where that is preloaded."""
    libraries = ["libcublas.so.13", "libcublas.so.12"] if is_real else [None, "libcublas.so.13", "libcublas.so.12"]
    for library in libraries:
        try:
            return getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            pass
    raise RuntimeError(f"no {name} was found")


def case_scalars(torch, device):
    """cublasHgemm with alpha and beta on the device, which torch does not call: also captured, and changed between replays."""
    if device != "cuda":
        return
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    a, b, c = (torch.randn(192, 192, generator=torch.Generator().manual_seed(seed)).to(device, torch.float16) for seed in (14, 15, 16))
    scalars = torch.tensor([2.0, 0.5], device=device, dtype=torch.float16)  # beta, alpha

    def product(d):
        blas = torch.cuda.current_blas_handle()  # on the current stream
        cublas_function("cublasSetPointerMode_v2", is_real=True)(pointer(blas), integer(1))
        n = integer(192)  # column-major: d = alpha a b + beta d is that of the transposes
        status = cublas_function("cublasHgemm")(
            pointer(blas), integer(0), integer(0), n, n, n, pointer(scalars.data_ptr() + 2), pointer(b.data_ptr()), n,
            pointer(a.data_ptr()), n, pointer(scalars.data_ptr()), pointer(d.data_ptr()), n)
        cublas_function("cublasSetPointerMode_v2", is_real=True)(pointer(blas), integer(0))
        assert status == 0, f"cublasHgemm: {status}"

    def want():
        return scalars[1].float() * (a.float() @ b.float()) + scalars[0].float() * c.float()

    d = c.clone()
    product(d)
    yield "scalars on the device, sums in FP16", (d, want())
    graph = torch.cuda.CUDAGraph()
    e = c.clone()
    with torch.cuda.graph(graph):
        product(d)
        product(e)
    for step, values in enumerate(([2.0, 0.5], [0.0, -1.0], [-1.5, 0.25])):
        scalars.copy_(torch.tensor(values))
        d.copy_(c)
        e.copy_(c)
        graph.replay()
        yield f"scalars on the device, sums in FP16, replay {step}", (torch.stack([d, e]), torch.stack([want(), want()]))


def case_threads(torch, device):
    import threading

    torch.manual_seed(3)
    a = torch.randn(8, 192, 256).to(device).half()
    b = torch.randn(8, 256, 160).to(device).half()
    results = [None] * 8

    def work(index):
        stream = torch.cuda.Stream() if device == "cuda" else None
        context = torch.cuda.stream(stream) if stream else torch.no_grad()
        if stream:
            stream.wait_stream(torch.cuda.default_stream())
        with context:
            for _ in range(50):
                results[index] = a[index] @ b[index]
        if stream:
            stream.synchronize()

    if device == "cuda":
        torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield "threads", (torch.stack(results), torch.bmm(a.float(), b.float()))


def models(torch):
    import transformers

    small = dict(hidden_size=256, num_attention_heads=4, num_hidden_layers=2, intermediate_size=512)
    bert = transformers.BertConfig(vocab_size=999, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **small)
    yield "BERT", lambda: transformers.BertModel(bert), dict(input_ids=(2, 64)), "last_hidden_state"
    gpt2 = transformers.GPT2Config(vocab_size=999, n_embd=256, n_layer=2, n_head=4, n_positions=128, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    yield "GPT-2", lambda: transformers.GPT2LMHeadModel(gpt2), dict(input_ids=(2, 64)), "logits"
    llama = transformers.LlamaConfig(vocab_size=999, num_key_value_heads=2, max_position_embeddings=128, **small)
    yield "Llama", lambda: transformers.LlamaForCausalLM(llama), dict(input_ids=(2, 64)), "logits"
    whisper = transformers.WhisperConfig(
        vocab_size=999, d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=512, decoder_ffn_dim=512, max_source_positions=50, max_target_positions=64, dropout=0,
        pad_token_id=1, bos_token_id=2, eos_token_id=3, decoder_start_token_id=2)
    yield "Whisper", lambda: transformers.WhisperForConditionalGeneration(whisper), dict(input_features=(2, 80, 100), decoder_input_ids=(2, 32)), "logits"


def case_transformers_bf16(torch, device):
    yield from case_transformers(torch, device, torch.bfloat16)


def case_transformers_fp32(torch, device):
    """Models as they come, beside double precision."""
    for name, make, shapes, output in models(torch):
        torch.manual_seed(25)
        model = make().eval().to(device)
        generator = torch.Generator().manual_seed(26)
        inputs = {}
        for key, shape in shapes.items():
            is_ids = key.endswith("ids")
            inputs[key] = (torch.randint(4, 999, shape, generator=generator) if is_ids else torch.randn(shape, generator=generator)).to(device)
        with torch.no_grad():
            single = getattr(model(**inputs), output).clone()
            doubles = {key: value if value.dtype == torch.int64 else value.double() for key, value in inputs.items()}
            yield "FP32 model, " + name, (single, getattr(model.double()(**doubles), output))


def case_transformers(torch, device, dtype=None):
    dtype = dtype or torch.float16
    prefix = "BF16 model, " if dtype is torch.bfloat16 else ""
    for name, make, shapes, output in models(torch):
        torch.manual_seed(4)
        model = make().eval().to(device)
        generator = torch.Generator().manual_seed(5)
        inputs = {}
        for key, shape in shapes.items():
            is_ids = key.endswith("ids")
            inputs[key] = (torch.randint(4, 999, shape, generator=generator) if is_ids else torch.randn(shape, generator=generator)).to(device)
        with torch.no_grad():
            plain = getattr(model(**inputs), output)
            halves = {key: value if value.dtype == torch.int64 else value.to(dtype) for key, value in inputs.items()}
            yield prefix + name, (getattr(model.to(dtype)(**halves), output), plain)


def case_training(torch, device):
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).to(device)
    x, target = torch.randn(96, 256).to(device), torch.randn(96, 64).to(device)

    def gradients(dtype):
        model.to(dtype).zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to(dtype)).float(), target)
        (loss * 1024).backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = gradients(torch.float32)
    half = gradients(torch.float16)
    for index, (got, want) in enumerate(zip(half, plain)):
        yield f"training step, gradient {index}", (got, want)


def case_training_fp32(torch, device):
    torch.manual_seed(27)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(device)
    x, target = torch.randn(96, 256).to(device), torch.randn(96, 64).to(device)

    def gradients(dtype):
        model.to(dtype).zero_grad()
        torch.nn.functional.mse_loss(model(x.to(dtype)), target.to(dtype)).backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    single = gradients(torch.float32)
    for index, (got, want) in enumerate(zip(single, gradients(torch.float64))):
        yield f"FP32 training step, gradient {index}", (got, want)


def case_cupy(torch, device):
    if device != "cuda":
        return
    import cupy

    a = cupy.random.RandomState(7).standard_normal((320, 256)).astype(cupy.float16)
    b = cupy.random.RandomState(8).standard_normal((256, 192)).astype(cupy.float16)
    got, want = cupy.asnumpy(a @ b), cupy.asnumpy(a.astype(cupy.float32) @ b.astype(cupy.float32))
    yield "CuPy, A @ B", (torch.from_numpy(got), torch.from_numpy(want))
    a, b = a.astype(cupy.float32), b.astype(cupy.float32) / 3
    got, want = cupy.asnumpy(a @ b), cupy.asnumpy(a).astype("float64") @ cupy.asnumpy(b).astype("float64")
    yield "FP32 CuPy, A @ B", (torch.from_numpy(got), torch.from_numpy(want))


def case_opinfo(torch, device):
    """torch's own samples, with gradients: an error for each result, or that torch raises."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "tests"))
    import opinfo

    for dtype in opinfo.ROUNDING:
        for label, op, sample in opinfo.samples(device, dtype):
            results, reference = opinfo.outcome(op, sample), opinfo.outcome(op, sample, torch.float64)
            if isinstance(results, Exception) or isinstance(reference, Exception):
                yield f"{dtype} {label}", RAISES if isinstance(results, Exception) else 0.0
                continue
            for i, (got, want) in enumerate(zip(results, reference)):
                yield f"{dtype} {label}: result {i}", min(opinfo.error_of(got, want), 1e8)


def case_tuned(torch, device):
    """Products for the policy `faster`: each with its time in us in the place of an error."""
    for is_fp32, (m, n, k) in [*((False, shape) for shape in TUNED), *((True, shape) for shape in TUNED_FP32)]:
        a, b = (torch.randn(*shape, device=device).to(torch.float32 if is_fp32 else torch.float16) for shape in ((m, k), (k, n)))
        c = a @ b
        times = []
        for _ in range(7):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(50):
                torch.mm(a, b, out=c)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 50 * 1000)
        yield f"{'FP32 ' if is_fp32 else ''}{m}x{n}x{k}", (torch.tensor(1.0 + sorted(times)[3]), torch.tensor(1.0))


TUNED = [(64, 64, 64), (256, 256, 256), (1023, 1023, 1023), (1024, 1024, 1024), (4096, 4096, 4096), (16, 4096, 4096), (2047, 300, 515)]
TUNED_FP32 = [(64, 64, 64), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (16, 4096, 4096)]

# Which functions must have run on hgemm: regular expressions of what the log says of a hit. (The math path of attention calls
# none of them for FP16.)
BF16 = r" [^\n]*bf16 sums"
FP32 = r" [^\n]*A,B f32 sums"
SGEMM, SGEMMS = "(?:cublasSgemm_v2|cublasGemmEx)", "(?:cublasSgemmStridedBatched|cublasGemmStridedBatchedEx)"  # by the release of torch
CASES = {
    "products": (case_products, ["cublasGemmEx", "cublasGemmStridedBatchedEx", "cublasLtMatmul"]),
    "graph": (case_graph, ["cublasGemmEx", "cublasLtMatmul"]),
    "bf16": (case_bf16, ["cublasGemmEx" + BF16, "cublasGemmStridedBatchedEx" + BF16, "cublasLtMatmul" + BF16]),
    "bf16_graph": (case_bf16_graph, ["cublasGemmEx" + BF16]),
    "fp32": (case_fp32, [SGEMM + FP32, SGEMMS + FP32, "cublasLtMatmul" + FP32]),
    "fp32_graph": (case_fp32_graph, [SGEMM + FP32]),
    "transformers_fp32": (case_transformers_fp32, [SGEMM + FP32, "cublasLtMatmul" + FP32]),
    "training_fp32": (case_training_fp32, [SGEMM + FP32]),
    "scalars": (case_scalars, ["cublasHgemm"]),
    "threads": (case_threads, ["cublasGemmEx"]),
    "transformers": (case_transformers, ["cublasGemmEx", "cublasLtMatmul"]),
    "transformers_bf16": (case_transformers_bf16, ["cublasGemmEx" + BF16, "cublasLtMatmul" + BF16]),
    "training": (case_training, ["cublasGemmEx", "cublasLtMatmul"]),
    "cupy": (case_cupy, ["cublasGemmEx"]),
    "opinfo": (case_opinfo, ["cublasGemmEx", "cublasGemmStridedBatchedEx", SGEMM + FP32, SGEMMS + FP32]),
}
# Reasons for which hgemm may decline what the door gives to it.
MAY_DECLINE = {"bf16_graph": "NOT_SUPPORTED"}


def run_case(name, device):
    """In a process of its own: prints the errors of the case as JSON, relative to the size of what is computed."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    errors = {}
    try:
        case = case_tuned if name == "tuned" else CASES[name][0]
        for label, found in case(torch, device):
            if isinstance(found, float):
                errors[label] = found
                continue
            got, want = found
            got, want = got.double().cpu(), want.double().cpu()
            assert got.shape == want.shape, f"{label}: {got.shape}, not {want.shape}"
            scale = want.norm().item() or 1.0
            error = (got - want).norm().item() / scale
            errors[label] = error if error == error else 1e9
    except ImportError as missing:
        print(json.dumps({"missing": str(missing)}))
        return
    print(json.dumps({"errors": errors}))


# ---- Cost -----------------------------------------------------------------------------------------------------------


def run_cost(door, hgemm, device):
    """In a process of its own: microseconds of the host for a cublasGemmEx by the door and for hgemm's own call."""
    import torch

    assert device == "cuda"
    a, b, c = (torch.randn(64, 64, device="cuda").half() for _ in range(3))
    blas = torch.cuda.current_blas_handle()
    pointer = ctypes.c_void_p
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    door = ctypes.CDLL(door)
    hgemm = ctypes.CDLL(hgemm)
    hgemm.hgemm_create.argtypes = [ctypes.POINTER(pointer), ctypes.c_char_p]
    handle = pointer()
    assert hgemm.hgemm_create(ctypes.byref(handle), b"cuda:0") == 0
    hgemm.hgemm_set_stream.argtypes = [pointer, pointer]
    hgemm.hgemm_set_stream(handle, pointer(torch.cuda.current_stream().cuda_stream))
    integer, big = ctypes.c_int, ctypes.c_int64
    x, y, z = (pointer(t.data_ptr()) for t in (a, b, c))
    gemm_ex = [pointer(blas), integer(0), integer(0), integer(64), integer(64), integer(64), ctypes.byref(one), x, integer(2),
               integer(64), y, integer(2), integer(64), ctypes.byref(zero), z, integer(2), integer(64), integer(68), integer(-1)]
    run = [handle, integer(1), integer(0), integer(0), big(64), big(64), big(64), one, x, big(64), y, big(64), zero, z, big(64)]

    def least(function, arguments):
        best = 1.0
        for _ in range(60):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                function(*arguments)
            best = min(best, (time.perf_counter() - begin) / 200)
            torch.cuda.synchronize()
        return best * 1e6

    assert door.cublasGemmEx(*gemm_ex) == 0 and hgemm.hgemm_run_f32(*run) == 0
    print(json.dumps({"door": least(door.cublasGemmEx, gemm_ex), "hgemm": least(hgemm.hgemm_run_f32, run)}))


# ---- The parent -------------------------------------------------------------------------------------------------------


def child(arguments, door, **extra):
    """Gives what a child printed last, as JSON, and its summary of hits and misses."""
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary")
        environment = dict(os.environ)
        if door:
            environment.update(LD_PRELOAD=door, HGEMM_CUBLAS="everywhere", HGEMM_CUBLAS_SUMMARY=summary)
        environment.update(extra)
        try:
            done = subprocess.run([sys.executable, os.path.abspath(__file__), *arguments], env=environment, capture_output=True, text=True,
                                  timeout=LIMIT)
        except subprocess.TimeoutExpired as late:
            return None, f"not finished in {LIMIT} s: {(late.stderr or b'').decode(errors='replace')[-3000:]}"
        if done.returncode != 0:
            return None, done.stderr[-3000:]
        lines = open(summary).read() if os.path.exists(summary) else ""
        return json.loads(done.stdout.strip().splitlines()[-1]), lines


def compare(name, needed, door, device):
    """(lines to print, what is wrong or None)"""
    began, words = time.monotonic(), []
    arguments = ["--case", name, "--device", device, door]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        (plain, why), (taken, summary) = pool.map(lambda preloaded: child(arguments, preloaded), (None, door))
    if plain is None:
        return words, f"fails without the door:\n{why}"
    if "missing" in plain:
        return [f"{name}: NOT RUN: {plain['missing']}"], None
    if taken is None:
        return words, f"fails with the door:\n{summary}"
    faults = []
    for label, error in taken["errors"].items():
        if name == "opinfo":  # whatever torch's samples are: no error that torch lacks, and none much larger than torch's own
            # As opinfo.py has it.
            factor, rounding = (1.5, 2.0**-8) if "bfloat16" in label else (44, 2.0**-20) if "float32" in label else (1.5, EPSILON)
            if not error <= factor * plain["errors"].get(label, 0.0) + rounding / 8:
                faults.append(f"{label}: the error {error:.2e} is {plain['errors'].get(label, 0.0):.2e} without the door")
            continue
        # Where sums are halves, hgemm rounds them after every 8 products, cuBLAS on newer GPUs than the T4 after 16.
        factor = 2 if "sums in FP16" in label else 1.1 if " model" in label else 1.25
        if not plain["errors"].get(label, 1e9) <= MOST_ERROR:
            faults.append(f"{label}: the error is {plain['errors'].get(label)} without the door")
            continue
        limit = factor * plain["errors"][label] + (EPSILON_FP32 if "FP32" in label else EPSILON / 4)
        words.append(f"{name}: {label}: relative error {error:.2e}, without the door {plain['errors'][label]:.2e}")
        if not error <= limit:
            faults.append(f"{label}: the error {error:.2e} is over {limit:.2e}")
    if name == "opinfo":
        words.append(f"{name}: {len(taken['errors'])} results")
    total = re.search(r"(\d+) hits, (\d+) misses", summary)
    words.append(f"{name}: {total.group(0) if total else 'no summary'}, {time.monotonic() - began:.0f} s")
    for line in summary.splitlines():
        if " miss " in line:
            words.append(f"{name}:    {line.split(':', 1)[1].strip()}")
        if " miss " in line and " sums " in line and not re.search(MAY_DECLINE.get(name, r"(?!)"), line):
            faults.append(f"hgemm did not run {line.split(' miss ', 1)[1]}")
    for function in needed if device == "cuda" else []:
        if not re.search(rf"\d+ hit +{function} ", summary):
            faults.append(f"no {function} ran on hgemm")
    return words, "; ".join(faults) or None


def compare_tuned(door, tool, device):
    """The policy `faster` with a tuning file that compares hgemm with cuBLAS."""
    with tempfile.TemporaryDirectory() as folder:
        tuning = os.path.join(folder, "tuning")
        shapes, problems = os.path.join(folder, "shapes.csv"), {}
        for m, n, k in TUNED:
            problems[f"{m}x{n}x{k}"] = (m, n, k, f"f32 nn {m}x{n}x{k}")
        for m, n, k in TUNED_FP32:
            problems[f"FP32 {m}x{n}x{k}"] = (m, n, k, f"f32 nn {m}x{n}x{k} fused types f32 f32")
        with open(shapes, "w") as file:
            file.write("m,n,k,trans_a,trans_b,batch\n")
            file.writelines(f"# {words}\n{m},{n},{k},0,0,1\n" for m, n, k, words in problems.values())
        done = subprocess.run([tool, "tune", "--device", device, "--shapes", shapes, "--out", tuning], capture_output=True, text=True)
        if done.returncode != 0:
            return f"hgemm tune fails:\n{done.stderr[-3000:]}"
        found = dict(re.findall(r"^(.*?) = .* cublas ([\d.]+)", open(tuning).read(), re.M))
        if not all(words in found for *_, words in problems.values()):
            return f"not all shapes were compared with cuBLAS:\n{done.stderr[-3000:]}"
        ratios = {label: found[words] for label, (*_, words) in problems.items()}
        plain, words = child(["--case", "tuned", "--device", "cuda", door], None)
        taken, summary = child(["--case", "tuned", "--device", "cuda", door], door, HGEMM_CUBLAS="faster", HGEMM_TUNING=tuning)
        if plain is None or taken is None:
            return words if plain is None else summary
    faults = []
    for label, (m, n, k, _) in problems.items():
        function, factors = (SGEMM, FP32) if label.startswith("FP32") else ("cublasGemmEx", "")
        is_hit = re.search(rf"\d+ hit +{function} NN {n}x{m}x{k}{factors or ' '}", summary) is not None
        print(f"faster: {label}: cuBLAS takes {ratios[label]} times as long as hgemm: {'hit' if is_hit else 'miss'}; torch.mm takes "
              f"{taken['errors'][label]:.2f} us, without the door {plain['errors'][label]:.2f} us", flush=True)
        if is_hit != (float(ratios[label]) >= 1):
            faults.append(f"{label} is a {'hit' if is_hit else 'miss'}")
    return "; ".join(faults) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("door", help="libhgemm_cublas.so")
    parser.add_argument("--hgemm", help="libhgemm.so, for the cost of its own call")
    parser.add_argument("--tool", help="the command hgemm, which measures for the policy `faster`")
    parser.add_argument("--device", default="cuda", help="cpu tries this script where there is no GPU")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="cases at a time, each of two processes (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=[*CASES, "tuned"], help="these alone")
    parser.add_argument("--case", choices=[*CASES, "tuned", "cost"], help="one case, in this process")
    arguments = parser.parse_args()
    if arguments.case == "cost":
        return run_cost(arguments.door, arguments.hgemm, arguments.device)
    if arguments.case:
        return run_case(arguments.case, arguments.device)
    door = os.path.abspath(arguments.door)
    faults = {}
    names = sorted((name for name in CASES if arguments.only is None or name in arguments.only), key=lambda name: name != "opinfo")  # the longest first
    with concurrent.futures.ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        running = {pool.submit(compare, name, CASES[name][1], door, arguments.device): name for name in names}
        for done in concurrent.futures.as_completed(running):
            words, fault = done.result()
            if fault:
                faults[running[done]] = fault
                words.append(f"FAILED: {running[done]}: {fault}")
            print(*words, sep="\n", flush=True)
    if arguments.hgemm:
        cost, words = child(["--case", "cost", "--hgemm", os.path.abspath(arguments.hgemm), door], None, HGEMM_CUBLAS="everywhere")
        if cost is None:
            faults["cost"] = words
            print(f"FAILED: cost: {words}", flush=True)
        else:
            print(f"host: {cost['door']:.2f} us by cublasGemmEx, {cost['hgemm']:.2f} us by hgemm_run_f32", flush=True)
            if cost["door"] - cost["hgemm"] > 2:
                faults["cost"] = "over 2 us more than hgemm_run_f32"
                print(f"FAILED: cost: {faults['cost']}", flush=True)
    if arguments.tool and (arguments.only is None or "tuned" in arguments.only):
        fault = compare_tuned(door, os.path.abspath(arguments.tool), arguments.device)
        if fault:
            faults["faster"] = fault
            print(f"FAILED: faster: {fault}", flush=True)
    print(f"FAILED: {', '.join(faults)}" if faults else "all cases passed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
