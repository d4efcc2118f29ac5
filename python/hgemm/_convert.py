# SPDX-License-Identifier: MIT
"""hgemm.torch.convert: puts packed weights in the place of a model's quantised layers, which are recognised by their tensors."""
from __future__ import annotations

from typing import Any

import torch

from . import _c, _said
from ._packed_experts import experts_of
from ._packed_linear import PackedLinear
from ._quantised import kind_of, weights_of
from ._replace import dtype_of, own, present, take_over
from ._torch_packed import pack
from ._words import is_one_of, shown
from .formats._fp8 import check_block


class Converted:
    """What convert did: `replaced` and `left`, layers by name, with what they were or why they were left alone."""

    def __init__(self) -> None:
        self.replaced: dict[str, str] = {}
        self.left: dict[str, str] = {}

    def __repr__(self) -> str:
        lines = [f"hgemm.torch.convert: {len(self.replaced)} layers replaced, {len(self.left)} left alone"]
        lines += [f"  {name or '(the model itself)'}: {why}" for name, why in self.left.items()]
        return "\n".join(lines)


def convert(model: torch.nn.Module, *, gptq_version: int | None = None, gptq_borrow: bool | None = None, fp8_scales: Any = None,
            compute_dtype: torch.dtype | None = None) -> Converted:
    """Replaces the GPTQ, AWQ, compressed-tensors, bitsandbytes and FP8 layers of a model by PackedLinear, in place, on the device where they
    are, with their forward and backward hooks. None of these packages is needed. Returns what was replaced, and what was left alone and why:
    every module that has quantised tensors is named in one of them.

    gptq_version   1 or 2: which zeros GPTQ layers store (hgemm.formats.gptq). GPTQModel's layers tell by qzero_format(); nothing in others
                   does, and without it they are left alone
    gptq_borrow    True or False, for version 1 with zeros of 0 (hgemm.formats.gptq). GPTQModel's layers and checkpoints have True
    fp8_scales     "rows", or (rows, columns) of a block: what scales of FP8 are for, where neither a layer nor the model's config says it and
                   their shape may be read in two ways; such layers are left alone without it
    compute_dtype  what x of float32 is rounded to, such as torch.float16; by default what the layer itself says, if it does

    Layers that quantise their activations, too, are replaced by ones that take activations as they are."""
    if not is_one_of(gptq_version, None, 1, 2):
        raise ValueError(f"gptq_version: {shown(gptq_version)} is neither 1 nor 2")
    if not is_one_of(gptq_borrow, None, True, False):
        raise ValueError(f"gptq_borrow: {shown(gptq_borrow)} is neither True nor False")
    if not is_one_of(fp8_scales, None, "rows"):
        fp8_scales = check_block("fp8_scales", fp8_scales)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: a {type(model).__module__}.{type(model).__qualname__} is no torch.nn.Module")
    if not is_one_of(compute_dtype, None, torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"compute_dtype: {shown(compute_dtype)} is none of torch.float16, torch.bfloat16 and torch.float32")
    asked = {"gptq_version": gptq_version, "gptq_borrow": gptq_borrow, "fp8_scales": fp8_scales}
    dtype = dtype_of(model, kind_of)
    done = Converted()
    configs: dict[str, Any] = {"": None}
    made: dict[Any, Any] = {}  # layer: (its first name, what is in its place or None)
    if kind_of(model) is not None:
        done.left[""] = "it is itself such a layer, and only what is in a module can be replaced: use PackedLinear"
    for prefix, parent in list(model.named_modules()):
        configs[prefix] = _said.config_of(parent) or configs.get(prefix.rpartition(".")[0])
        for name, child in list(parent._modules.items()):  # named_children() would name a child of two names once
            full = f"{prefix}.{name}" if prefix else name
            if child in made:
                first, new = made[child]
                (done.left if new is None else done.replaced)[first] += f"; also {full}"
            elif child is not None and (kind := kind_of(child)) is not None:
                new, what = _replacement(kind, child, _said.config_of(child) or configs[prefix], asked, compute_dtype)
                if new is not None:
                    take_over(new, child, dtype)
                made[child] = full, new
                (done.left if new is None else done.replaced)[full] = what
            else:
                continue
            if new is not None:
                setattr(parent, name, new)
    return done


def _replacement(kind, child, config, asked, compute_dtype):
    """(the packed module in a layer's place, what it was), or (None, why there is none)."""
    try:
        with present(child):
            new = experts_of(child) if kind == "experts" else _linear(kind, child, config, asked, compute_dtype)
    except (ValueError, TypeError, NotImplementedError, _c.Error) as error:
        return None, f"{kind}: {error}"
    return new, f"{kind}, {new.up.extra_repr()}" if kind == "experts" else f"{kind}, {new.extra_repr()}"


def _linear(kind, child, config, asked, compute_dtype):
    weights, device, said_dtype = weights_of(kind, child, config, asked)
    bias, compute_dtype = own(child, "bias"), compute_dtype or said_dtype
    if compute_dtype == torch.float32:  # in which x of float32 is multiplied anyway
        compute_dtype = None
    return PackedLinear(pack(weights, device), bias.detach() if isinstance(bias, torch.Tensor) and bias.numel() else None,
                        compute_dtype=compute_dtype)
