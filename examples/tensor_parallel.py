# SPDX-License-Identifier: MIT
"""A tensor-parallel layer pair: its products run on hgemm in each of two processes, forward and backward.

    python3 examples/tensor_parallel.py                  two GPUs by NCCL; with fewer, two processes with gloo and CPU tensors,
                                                         which hgemm copies to the GPU or the emulated T4
    torchrun --nproc-per-node 2 examples/tensor_parallel.py

The first layer is spread by columns, the second by rows, so that one sum over the devices per pass joins them. Shown in both ways:
torch's own nn.Linear under `hgemm.torch.enable()`, and hgemm's operator on DTensors. Both must agree with one process alone."""
import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import hgemm.torch

BATCH, WIDTH, HIDDEN = 16, 32, 64


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, HIDDEN)
        self.down = torch.nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def close(what, mine, expected):
    torch.testing.assert_close(mine.float().cpu(), expected.float().cpu(), rtol=2e-2, atol=2e-2, msg=lambda text: f"{what}: {text}")


def modules(mesh, device, x, reference):
    """nn.Linear, spread by torch.distributed; its products are torch's mm and addmm, which hgemm takes over."""
    layers = Layers().to(device, torch.float16)
    layers.load_state_dict(reference.state_dict())
    layers = parallelize_module(layers, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    with hgemm.torch.enable(devices=(device.type,)) as on:
        y = layers(x)
        y.square().sum().backward()
    assert sum(on.ran.values()) >= 5, (on.ran, on.passed)
    return y, layers.up.weight.grad.full_tensor()


def operators(mesh, x, reference):
    """hgemm.torch.matmul on DTensors: the rules of torch.ops.hgemm.gemm say what each process computes."""
    x = distribute_tensor(x, mesh, [Replicate()])
    up = distribute_tensor(reference.up.weight.detach(), mesh, [Shard(0)]).requires_grad_()
    down = distribute_tensor(reference.down.weight.detach(), mesh, [Shard(1)])
    hidden = torch.relu(hgemm.torch.matmul(x, up.T))
    assert hidden.placements == (Shard(1),), hidden.placements  # no process has all columns
    y = hgemm.torch.matmul(hidden, down.T)
    assert y.placements[0].is_partial(), y.placements  # each process has one part of the sums
    y.full_tensor().square().sum().backward()
    return y.full_tensor(), up.grad.full_tensor()


def bfloat16(mesh, x, weight):
    """A product in bfloat16, by the scale of a weight that no process has whole: the smallest of its parts' scales."""
    x, weight = distribute_tensor(x, mesh, [Replicate()]), distribute_tensor(weight, mesh, [Shard(0)])
    return hgemm.torch.matmul(x, weight.T, scale_b=hgemm.torch.find_scale(weight)).full_tensor()


def work(rank, size, port, kind):
    for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", port), ("RANK", rank), ("WORLD_SIZE", size)):
        os.environ.setdefault(name, str(value))
    device = torch.device(kind, int(os.environ.get("LOCAL_RANK", rank))) if kind == "cuda" else torch.device("cpu")
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo", rank=rank, world_size=size)
    mesh = init_device_mesh(kind, (size,))
    torch.manual_seed(1)
    reference = Layers().to(device, torch.float16)
    x = torch.randn(BATCH, WIDTH).to(device, torch.float16)

    alone = Layers().to(device)  # one process, single precision
    alone.load_state_dict(reference.state_dict())
    expected = alone(x.float())
    expected.square().sum().backward()
    y, gradient = modules(mesh, device, x, reference)
    close("nn.Linear", y, expected)
    close("nn.Linear: gradient", gradient, alone.up.weight.grad)

    expected = torch.relu(x.float() @ (up := reference.up.weight.detach().float().requires_grad_()).T) @ reference.down.weight.float().T
    expected.square().sum().backward()
    y, gradient = operators(mesh, x, reference)
    close("operator", y, expected)
    close("operator: gradient", gradient, up.grad)

    x, up = x.bfloat16(), reference.up.weight.detach().bfloat16()
    close("bfloat16", bfloat16(mesh, x, up), x.float() @ up.float().T)

    dist.barrier()
    if rank == 0:
        print(f"{size} processes agree with one, on {kind} by {dist.get_backend()}")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.device_count() >= 2 else "cpu")
    kind = parser.parse_args().device
    if "RANK" in os.environ:  # torchrun's
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["MASTER_PORT"], kind)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for interface in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):  # both processes are here, whatever the machine's name leads to
        os.environ.setdefault(interface, "lo")
    torch.multiprocessing.spawn(work, (2, port, kind), nprocs=2)


if __name__ == "__main__":
    main()
