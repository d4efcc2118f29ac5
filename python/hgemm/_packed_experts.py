# SPDX-License-Identifier: MIT
"""The experts of a mixture with packed matrices, as a module that stands in the place of transformers' experts in FP8."""
from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import torch

from . import _packed, formats
from ._packed import PackedWeights
from ._packed_state import form_of
from ._torch_packed import PackedTensor, pack, product
from ._weights import Weights, wrong_shape
from .formats._mx import E2M1, EXPONENTS, powers_of_two
from .formats._tensors import FLOATS, tensor

_TAIL = _packed.FORM + 1

class PackedMatrices(torch.nn.Module):
    """A matrix of each expert. Its state dict has one tensor of bytes, `packed`: the codes of all experts, and _TAIL integers of 64 bits, which say
    what they are: the form and how many experts there are."""

    def __init__(self, weights):
        super().__init__()
        self._form, self._experts = weights.form, weights.experts
        with torch.no_grad(), torch.inference_mode(False):
            tail = torch.tensor((*self._form, self._experts), dtype=torch.int64).view(torch.uint8).to(weights.data.device)
            self.register_buffer("packed", torch.cat((weights.data.reshape(-1), tail)))

    @property
    def weights(self):
        """The hgemm.PackedWeights."""
        return PackedTensor(self.packed[:-8 * _TAIL].view(self._experts, -1), self._form, None, self._experts)

    def extra_repr(self):
        return repr(self.weights)[len("<hgemm.PackedWeights "):-1]

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        given = state_dict.get(prefix + "packed")
        try:
            if given is not None and not given.is_meta and _said_by(prefix + "packed", given) != (self._form, self._experts):
                raise ValueError(f"{prefix}packed: its last bytes do not say that it is {self._experts} matrices of {self._form[0]}x{self._form[1]}, "
                                 "packed as these are")
        except ValueError as error:
            arguments[-1].append(str(error))  # of which torch makes one exception
        else:
            super()._load_from_state_dict(state_dict, prefix, *arguments)
            if not self.packed.is_meta and self.packed.data_ptr() % 16:  # another's memory, by assign=True
                self.packed = self.packed.clone()


class PackedExperts(torch.nn.Module):
    """Experts of which each row of x takes some: down(gate(up(x))), by grouped products of packed weights.

    up, down  PackedWeights of all experts, in tensors of torch's
    gate      what is computed between the two: of rows as wide as up has rows, rows as wide as down has columns

    forward(hidden_states, top_k_index, top_k_weights) is that of transformers' experts: (tokens, hidden), and for each token the experts that
    it takes and how they are weighed. Experts that are not here, of a number too large, add nothing. Halves take one product for all experts,
    of which the host reads no size; x of float32, and gradients, take one for each expert that is hit."""

    def __init__(self, up: PackedWeights, down: PackedWeights, gate: Any) -> None:
        super().__init__()
        self.up, self.down, self.gate, self.num_experts = PackedMatrices(up), PackedMatrices(down), gate, up.experts

    def forward(self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor) -> torch.Tensor:
        x = hidden_states.reshape(-1, hidden_states.shape[-1])
        each = top_k_index.shape[-1]
        chosen, order = torch.sort(top_k_index.reshape(-1), stable=True)
        ends = torch.searchsorted(chosen, torch.arange(self.num_experts, device=x.device), right=True).int()
        one_by_one = x.dtype == torch.float32 or torch.is_grad_enabled() and x.requires_grad
        y = (self._one_by_one if one_by_one else self._grouped)(x, order, ends, each)
        here = (top_k_index.reshape(-1, 1) < self.num_experts) & (top_k_index.reshape(-1, 1) >= 0)
        y = torch.where(here, y.float() * top_k_weights.reshape(-1, 1), 0)
        return y.view(-1, each, y.shape[-1]).sum(1).to(hidden_states.dtype).view(*hidden_states.shape[:-1], y.shape[-1])

    @torch.no_grad()
    def _grouped(self, x, order, ends, each):
        x, grouped, up, down = x.contiguous(), torch.ops.hgemm.grouped, self.up.weights, self.down.weights
        inner = grouped(x, up.data, ends, list(up.form), gather_a=(order // each).int())
        return grouped(self.gate(inner).to(x.dtype).contiguous(), down.data, ends, list(down.form), scatter_d=order.int())

    def _one_by_one(self, x, order, ends, each):
        y, first = x.new_zeros(len(order), self.down.weights.n), 0
        for expert, end in enumerate(ends.tolist()):
            if end > first:
                rows = order[first:end]
                inner = self.gate(_product(x[rows // each], self.up, expert)).to(x.dtype)
                y = y.index_put((rows,), _product(inner, self.down, expert))
            first = end
        return y


def _product(x, matrices, expert):
    return product(x, matrices.weights.data[expert], matrices._form, None, None, None, None, 1.0, 1.0, "none", None, False, {})


def experts_of(module):
    """The PackedExperts in the place of transformers' FP8Experts; a ValueError says why there are none for a module."""
    if "FP8Experts" not in [one.__name__ for one in type(module).__mro__]:
        raise ValueError(f"of experts transformers' FP8Experts are known, whose matrices are (experts, n, k); it is a {type(module).__qualname__}")
    gate, first = _gate_of(module), "gate_up_proj" if module.has_gate else "up_proj"
    return PackedExperts(_matrices(module, first, 2 if module.has_gate else 1), _matrices(module, "down_proj", 1), gate)


def standing_for(module, prefix, state_dict):
    """The PackedExperts for experts of transformers' that are not packed, whose bytes are still to be loaded; None where it is no such module, or a
    state dict has none for it."""
    keys = [f"{prefix}{name}.packed" for name in ("up", "down")]
    if module is None or not hasattr(module, "has_gate") or any(key not in state_dict for key in keys):
        return None
    made = []
    for key in keys:
        form, experts = _said_by(key, state_dict[key])
        made.append(PackedTensor(torch.empty((experts, _packed.bytes_of(form)), dtype=torch.uint8, device="meta"), form, None, experts))
    new = PackedExperts(*made, _gate_of(module))
    here = next((x.device for x in (*module.parameters(), *module.buffers())), state_dict[keys[0]].device)
    return new.train(module.training) if here.type == "meta" else new.train(module.training).to_empty(device=here)


def _gate_of(module):
    """What transformers' experts compute between their two products, without the matrices."""
    names = list(inspect.signature(type(module).forward).parameters)
    if names != ["self", "hidden_states", "top_k_index", "top_k_weights"]:
        raise ValueError(f"its forward takes {', '.join(names[1:])}, not hidden_states, top_k_index and top_k_weights")
    biases = (getattr(module, f"{name}_bias", None) for name in ("gate_up_proj", "up_proj", "down_proj"))
    if getattr(module, "has_bias", False) or any(bias is not None for bias in biases):
        raise ValueError("its experts have biases, which PackedExperts have not")
    if getattr(module, "has_post_expert_norm", False):
        raise ValueError("it has a norm after its experts, which PackedExperts have not")
    shell = copy.copy(module)
    shell._parameters = {}
    return shell._apply_gate if module.has_gate else shell.act_fn


def _said_by(key, packed):
    """(form, number of experts) that the last bytes of a PackedMatrices' tensor say."""
    whole = packed.dtype == torch.uint8 and packed.dim() == 1 and len(packed) >= 8 * _TAIL and not packed.is_meta
    numbers = packed[-8 * _TAIL:].cpu().clone().view(torch.int64) if whole else None
    if numbers is None or numbers[-1] < 0 or len(packed) != numbers[-1] * _packed.bytes_of(form := form_of(key, numbers[:-1])) + 8 * _TAIL:
        raise ValueError(f"{key}: it is of {packed.dtype} and of the shape {tuple(packed.shape)}, and its last bytes do not say that it is "
                         "matrices of experts")
    return form, int(numbers[-1])


def _matrices(module, name, parts):
    """The PackedWeights of all experts. parts: how many matrices of a checkpoint were joined, one below the other."""
    weight, scale = getattr(module, name), getattr(module, f"{name}_scale_inv")
    if weight.dim() != 3 or scale.dim() != 3 or len(scale) != len(weight):
        raise ValueError(f"{name}: its shape is {tuple(weight.shape)}, and that of its scales {tuple(scale.shape)}, not (experts, n, k) and one a block")
    if weight.is_meta or scale.is_meta:
        raise ValueError(f"{name}: it is on meta, and has no numbers")
    return pack([_expert(name, weight[i].detach(), scale[i].detach(), module.block_size, parts) for i in range(len(weight))], weight.device)


def _expert(name, weight, scale, block, parts):
    n = weight.shape[0]
    if weight.dtype == torch.int8:  # E2M1, two codes in a byte, each 32 of which have a scale
        codes = tensor(name, weight.view(torch.uint8), ("uint8",))
        scales = tensor(f"{name}_scale_inv", scale, (*FLOATS, *EXPONENTS), (n, codes.shape[1] // 16))
        scales = powers_of_two(f"{name}_scale_inv", scales) if scales.dtype == np.uint8 else scales
        return Weights(codes, scales, "table16", group=32, table=E2M1, nibbles=True)
    if block is None:
        if tuple(scale.shape) not in ((1, 1), (parts, 1)):
            raise wrong_shape(f"{name}_scale_inv", scale.shape, (parts, 1))
        return formats.fp8(weight, scale.expand(parts, 1).repeat_interleave(n // parts, 0))
    if parts > 1 and n // parts % block[0]:
        raise ValueError(f"{name}: it joins {parts} matrices of {n // parts} rows, no multiple of the {block[0]} of a block, and nothing says whether "
                         "blocks begin anew in each")
    return formats.fp8(weight, scale, block=tuple(block))
