# SPDX-License-Identifier: MIT
"""Weights of 4 and 8 bits in the formats that checkpoints have, to hgemm.Weights. Each takes the tensors of one layer, of numpy's or
torch's, and refuses what they cannot be with an exception that names the tensor, its shape and the one that it should have.

    gptq, awq, compressed_tensors        by the names of their tensors in a checkpoint
    bitsandbytes, bitsandbytes_state     NF4 and FP4
    fp8, mxfp4, nvfp4                    floats of 8 and 4 bits
    ggml                                 the blocks of GGUF files; hgemm.gguf(path) reads those"""
from ._awq import awq
from ._bitsandbytes import bitsandbytes, bitsandbytes_state
from ._compressed import compressed_tensors
from ._fp8 import fp8
from ._ggml import ggml
from ._gguf import GGUF
from ._gptq import gptq
from ._mx import mxfp4, nvfp4

__all__ = ["GGUF", "awq", "bitsandbytes", "bitsandbytes_state", "compressed_tensors", "fp8", "ggml", "gptq", "mxfp4", "nvfp4"]
