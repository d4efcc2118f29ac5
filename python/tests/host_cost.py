#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Microseconds that the host needs to enqueue a product of 64x64x64 from Python, by each way, and what torch's dispatcher takes of it.

    python3 python/tests/host_cost.py                                                       on a GPU
    python3 python/tests/host_cost.py build/release/test/fake_cuda/idle/libcuda.so.1        without one

Without a GPU a driver that does nothing stands in for it, and tensors of memory that nobody reads. torch has nothing there to multiply
by nor to allocate with: torch.mm is left out, and each new tensor costs some two microseconds for a kernel in Python."""
import argparse
import contextlib
import ctypes
import time
import warnings

import torch


def cost(call, count=200, repetitions=60):
    """The least of many measurements: others may use the processor."""
    best = float("inf")
    for _ in range(repetitions):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - begin) / count * 1e6)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return best


def products(a, b, out, bfloat16):
    """(name, call) of each way to multiply two matrices of halves. bfloat16: whether to add one of that type, by a parameter."""
    import hgemm
    import hgemm.torch
    yield "hgemm.matmul", lambda: hgemm.matmul(a, b)
    yield "hgemm.matmul, out", lambda: hgemm.matmul(a, b, out=out)
    yield "hgemm.linear", lambda: hgemm.linear(a, b)
    yield "hgemm.torch.matmul", lambda: hgemm.torch.matmul(a, b)
    yield "torch.ops.hgemm.gemm", lambda: torch.ops.hgemm.gemm(a, b)
    with hgemm.torch.enable():
        yield "torch.mm under enable()", lambda: torch.mm(a, b)
    if bfloat16:
        x, w = a.bfloat16(), torch.nn.Parameter(b.bfloat16())
        with torch.no_grad(), hgemm.torch.enable(bfloat16=True) as on:
            on._scales.find(w)
            yield "the same of bfloat16 by a parameter", lambda: torch.mm(x, w)


def parts(a, b, out):
    """(name, call) of what of the above is torch's: a new tensor, and operators that do nothing."""
    yield "a new tensor", lambda: a.new_empty_strided((64, 64), (64, 1), dtype=torch.half)
    library = torch.library.Library("hgemm_host_cost", "DEF")
    arguments = "(" + str(torch.ops.hgemm.gemm.default._schema).split("(", 1)[1]
    for name, schema in (("two", "(Tensor a, Tensor b) -> Tensor"), ("gemm", arguments), ("recorded", arguments)):
        library.define(name + schema)
        library.impl(name, lambda *arguments: out, "CUDA")
    torch.library.register_autograd("hgemm_host_cost::recorded", lambda ctx, g: (g, g), setup_context=lambda ctx, inputs, output: None,
                                    lib=library)
    operators = torch.ops.hgemm_host_cost
    yield "an operator of two tensors that does nothing", lambda: operators.two(a, b)
    yield "one of torch.ops.hgemm.gemm's arguments", lambda: operators.gemm(a, b)
    yield "the same with torch.library.register_autograd", lambda: operators.recorded(a, b)
    library._destroy()


def replaced(a, b, out):
    """(name, call) of torch.mm without torch's kernel: before enable(), after which an older torch has it replaced by nothing else."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            library.impl("mm", lambda *arguments: out, "CUDA", allow_override=True)
        except TypeError:  # an older torch
            library.impl("mm", lambda *arguments: out, "CUDA")
    yield "torch.mm replaced by a kernel that does nothing", lambda: torch.mm(a, b)
    library._destroy()


def measured():
    """{name: microseconds} on a GPU."""
    a, b, out = (torch.randint(-3, 4, (64, 64), device="cuda").half() for _ in range(3))
    last = {name: cost(call) for name, call in replaced(a, b, out)}
    found = {"torch.mm": cost(lambda: torch.mm(a, b)), "torch.mm, out": cost(lambda: torch.mm(a, b, out=out))}
    found.update((name, cost(call)) for name, call in products(a, b, out, True))
    found["torch.mm after enable(), which passes on"] = cost(lambda: torch.mm(a, b))  # its kernels stay
    found["torch.mm after enable(), out"] = cost(lambda: torch.mm(a, b, out=out))
    found.update((name, cost(call)) for name, call in parts(a, b, out))
    return found | last


@contextlib.contextmanager
def stand_in(driver):
    """(a, b, out) of a GPU that is not there."""
    ctypes.CDLL(driver, mode=ctypes.RTLD_GLOBAL)  # it is libcuda.so.1 now
    import fake_cuda
    memory = torch.zeros(3, 64, 64, dtype=torch.half)
    a, b, out = (fake_cuda.tensor(memory[i].data_ptr(), (64, 64), (64, 1), torch.half) for i in range(3))
    with fake_cuda.device(lambda *arguments: out):
        yield a, b, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("driver", nargs="?", help="a CUDA driver that does nothing, where there is no GPU")
    driver = parser.parse_args().driver
    if torch.cuda.is_available():
        found, name = measured(), torch.cuda.get_device_name()
    elif driver is None:
        parser.error("there is no GPU: name a driver that does nothing")
    else:
        with stand_in(driver) as tensors:
            last = {name: cost(call) for name, call in replaced(*tensors)}
            found = {name: cost(call) for ways in (products(*tensors, False), parts(*tensors)) for name, call in ways} | last
        name = "no GPU, a driver that does nothing"
    print(f"us to enqueue a product; torch {torch.__version__}, {name}")
    for way, us in found.items():
        print(f"{us:6.1f}  {way}" + (f" ({us / found['torch.mm']:.2f} of torch.mm)" if "torch.mm" in found else ""))


if __name__ == "__main__":
    main()
