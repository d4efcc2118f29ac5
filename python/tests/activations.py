# SPDX-License-Identifier: MIT
"""What each activation is in PyTorch. A test that goes through hgemm's own names fails for one that is not here."""
import functools

import torch
from hgemm._activations import ACTIVATIONS

NAMES = [name for name in ACTIVATIONS if name != "none"]
THEIRS = {"none": lambda z: z, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu,
          "gelu_tanh": functools.partial(torch.nn.functional.gelu, approximate="tanh")}
