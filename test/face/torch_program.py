# SPDX-License-Identifier: MIT
"""PyTorch's CUDA wheel on the emulated T4: its own kernels, hgemm's operators on CUDA tensors, and the cuBLAS door's products, all
against the same on the CPU. `torch.sh` runs it."""
import os

import torch
import torch.nn.functional as f

import hgemm
import hgemm.torch

torch.manual_seed(1)


def integers(*shape):
    return torch.randint(-3, 4, shape).half()


def same(result, expected, what):
    assert result.device.type == "cuda", (what, result.device)
    assert torch.equal(result.cpu().double(), expected.double()), what


# PyTorch's own kernels
assert (torch.ones(3, device="cuda") + 1).tolist() == [2, 2, 2]
assert torch.cuda.get_device_capability() == (7, 5)
x = torch.randn(40, 64)
for function in (torch.tanh, lambda x: x.softmax(-1), lambda x: x.sum(0), lambda x: x.sort(1)[0], lambda x: x[x > 0],
                 lambda x: f.layer_norm(x, (64,)), lambda x: x.cumsum(1), lambda x: x.half().float()):
    torch.testing.assert_close(function(x.cuda()).cpu(), function(x))
stream, event = torch.cuda.Stream(), torch.cuda.Event()
with torch.cuda.stream(stream):
    y = x.cuda(non_blocking=True) * 2
    event.record()
event.synchronize()
assert torch.equal(y.cpu(), x * 2)

# hgemm's operators
a, b, v = integers(70, 48), integers(48, 90), integers(90)
p = a.double() @ b.double()
same(hgemm.matmul(a.cuda(), b.cuda()), p, "matmul")
same(hgemm.matmul(a.cuda(), b.cuda(), bias=v.cuda(), activation="relu"), (p + v.double()).relu(), "bias, relu")
same(hgemm.matmul(b.cuda().T, a.cuda().T), p.T, "transposed")
out = torch.full((70, 90), float("nan"), dtype=torch.half, device="cuda")
assert hgemm.matmul(a.cuda(), b.cuda(), out=out) is out
same(out, p, "out")
same(hgemm.torch.matmul(a.cuda(), b.cuda()), p, "the operator")
ours = [t.cuda().requires_grad_() for t in (a, b)]
theirs = [t.double().requires_grad_() for t in (a, b)]
hgemm.matmul(*ours).backward(torch.ones(70, 90, dtype=torch.half, device="cuda"))
(theirs[0] @ theirs[1]).backward(torch.ones(70, 90, dtype=torch.double))
for mine, want in zip(ours, theirs):
    same(mine.grad, want.grad, "gradient")
with hgemm.torch.enable() as on:
    same(torch.mm(a.cuda(), b.cuda()), p, "mm under enable()")
assert sum(on.ran.values()) == 1, on.ran

# PyTorch's products: the door's of halves, and those that it hands on
same(torch.mm(a.cuda(), b.cuda()), p, "mm")
same(f.linear(a.cuda(), b.T.contiguous().cuda(), v.cuda()), p + v.double(), "linear")
same(torch.bmm(a.cuda().expand(3, 70, 48), b.cuda().expand(3, 48, 90)), p.expand(3, 70, 90), "bmm")
same(a.float().cuda() @ b.float().cuda(), p, "FP32")
same(a.double().cuda() @ b[:, 0].double().cuda(), p[:, 0], "FP64, a vector")
same(torch.addmm(p.cuda(), a.double().cuda() * float("nan"), b.double().cuda(), alpha=0), p, "FP64, alpha is 0")
layer = torch.nn.Sequential(torch.nn.Linear(48, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).half()
on_cpu = layer(a)
torch.testing.assert_close(layer.cuda()(a.cuda()).cpu(), on_cpu, rtol=4e-3, atol=4e-3)
log = open(os.environ["HGEMM_CUBLAS_LOG"]).read()
for name in ("cublasGemmEx", "cublasGemmStridedBatchedEx", "cublasLtMatmul"):
    assert f"hit  {name}" in log, (name, log)
print("all as expected")
