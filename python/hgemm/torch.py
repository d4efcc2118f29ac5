# SPDX-License-Identifier: MIT
"""hgemm for torch.

    hgemm.torch.matmul(a, b, ...)    the arguments of hgemm.matmul without out, kernel and stream; differentiable, compiles,
    hgemm.torch.linear(x, weight)    is captured into CUDA graphs: one operator, torch.ops.hgemm.gemm
    with hgemm.torch.enable():       torch's own mm, addmm, bmm, baddbmm and what is made of them (linear, matmul, einsum) run on
                                     hgemm where the operands are float16, on GPUs that lack bfloat16, bfloat16, and if you say
                                     so, float32; and bitsandbytes' products of 4 bits
    hgemm.torch.convert(model)       packs the quantised layers of a model: hgemm.torch.PackedLinear

Tensors on the CPU are copied to hgemm's default device and back: without a GPU, that is the emulated T4."""
from ._convert import convert
from ._enable import enable
from ._packed_experts import PackedExperts
from ._packed_linear import PackedLinear
from ._replace import load_state_dict
from ._torch_calls import find_scale, linear, matmul

__all__ = ["PackedExperts", "PackedLinear", "convert", "enable", "find_scale", "linear", "load_state_dict", "matmul"]
