# SPDX-License-Identifier: MIT
"""bitsandbytes' NF4 kernels, as its wheel has them, on the emulated T4: quantized, dequantized, and multiplied by one row, by some,
and by many, which it dequantizes for cuBLAS (here the door). By hand:

    LD_PRELOAD=libhgemm_cublas.so:libturing_blas.so turing exec --check --time python test/face/bitsandbytes_program.py"""
import bitsandbytes.functional as bnb
import bitsandbytes
import torch

torch.manual_seed(0)
n, k = 384, 512
weights = torch.randn(n, k).half()
packed, state = bnb.quantize_nf4(weights.cuda(), blocksize=64)
on_cpu, state_of_cpu = bnb.quantize_nf4(weights, blocksize=64)
assert torch.equal(packed.cpu().flatten(), on_cpu.flatten()), "codes"
whole = bnb.dequantize_nf4(packed, state)
torch.testing.assert_close(whole.cpu(), bnb.dequantize_nf4(on_cpu, state_of_cpu), rtol=1e-3, atol=0)
print(f"bitsandbytes {bitsandbytes.__version__}: {packed.numel()} bytes of codes as the CPU's")
for rows in (1, 4, 16, 64, 200):
    x = torch.randn(rows, k).half()
    y = bitsandbytes.matmul_4bit(x.cuda(), packed.t(), state).cpu().double()
    want = x.double() @ whole.cpu().double().t()
    error = ((y - want).norm() / want.norm()).item()
    print(f"{rows} rows: relative error {error:.1e}")
    assert error < 1e-3
print("all as expected")
