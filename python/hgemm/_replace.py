# SPDX-License-Identifier: MIT
"""Packed layers in the place of a model's others: what others have put on a layer goes with them, and a state dict tells where they belong."""
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from typing import Any

import torch

from . import _packed_experts, _packed_state
from ._packed_linear import PackedLinear

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_HOOKS = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
          "_backward_pre_hooks", "_backward_hooks", "_is_full_backward_hook")


def own(module, name):
    """What a module itself has by a name, or None. What it has by a property may be another's: PEFT's adapters show the weight of the
    layer that they wrap."""
    for of in (module._parameters, module._buffers, vars(module)):
        if of.get(name) is not None:
            return of[name]
    return None


# ---- what others have put on a layer ------------------------------------------------------------------------------


def _offloading(layer):
    """accelerate's hooks that keep a layer's tensors elsewhere between its calls."""
    hook = vars(layer).get("_hf_hook")
    return [one for one in getattr(hook, "hooks", (hook,)) if getattr(one, "offload", None) is True]


@contextlib.contextmanager
def present(layer):
    """While a layer's tensors, which accelerate may keep elsewhere, are where it computes."""
    hooks = _offloading(layer)
    for hook in hooks:
        hook.pre_forward(layer)
    try:
        yield
    finally:
        for hook in hooks:
            hook.post_forward(layer, None)


def take_over(made, layer, dtype):
    """Gives the layer that is put in another's place what others have put on that: its mode, its hooks, accelerate's hook. dtype: what its
    weight is to say that it is, or None."""
    made.train(layer.training)
    for name in _HOOKS:  # the same dictionaries: by them a handle removes its hook
        if name in vars(layer):
            vars(made)[name] = vars(layer)[name]
    if dtype is not None:
        made.dtype = dtype
    hook = vars(layer).get("_hf_hook")
    if hook is not None:
        for one in _offloading(layer):
            one.weights_map = None  # of the tensors that there were: it makes itself a new one
        importlib.import_module("accelerate.hooks").add_hook_to_module(made, hook)


def dtype_of(model, is_quantised):
    """What a model's parameters are of, by the first that is not a quantised layer's; None where there is none."""
    return next((x.dtype for module in model.modules() if not is_quantised(module) for x in module.parameters(recurse=False)
                 if x.dtype in _FLOATS), None)


# ---- by a state dict ----------------------------------------------------------------------------------------------


def _packed_for(before, prefix, state_dict, form, whole):
    """A PackedLinear of a state dict's tensors for a layer that is not packed yet: where that is."""
    shape = getattr(before, "out_features", form[0]), getattr(before, "in_features", form[1])
    if shape != form[:2]:
        raise ValueError(f"{prefix}packed: it is of weights of {form[0]}x{form[1]}, and the layer's are {shape[0]}x{shape[1]}")
    bias, weight = state_dict.get(f"{prefix}bias"), own(before, "weight")
    if bias is not None and (not isinstance(bias, torch.Tensor) or tuple(bias.shape) != form[:1]):
        shape = f" of the shape {tuple(bias.shape)}" if isinstance(bias, torch.Tensor) else ""
        raise ValueError(f"{prefix}bias: it is a {type(bias).__qualname__}{shape}, not a tensor of {form[0]} elements")
    if _offloading(before):
        raise ValueError(f"{prefix}packed: accelerate keeps the layer's tensors elsewhere; load the model's state before it is dispatched")
    if bias is None and own(before, "bias") is not None and own(before, "bias").numel():  # a missing key, which torch tells of
        bias = own(before, "bias")
    here = next((x.device for x in (*before.parameters(), *before.buffers())), whole.device)
    made = PackedLinear.of_bytes(whole.to(here, copy=True), form, None if bias is None else bias.to(here, copy=True),
                                 weight.dtype if isinstance(weight, torch.Tensor) and weight.dtype in _FLOATS else None)
    take_over(made, before, None)
    return made


def load_state_dict(model: torch.nn.Module, state_dict: Mapping[str, Any], *, strict: bool = True, assign: bool = False) -> Any:
    """model.load_state_dict for a state dict of a converted model, where `model` has not been converted, or has no memory yet (on meta, with
    assign=True): a PackedLinear is first put in the place of each layer that is packed there. x of float32 is then not rounded.

    Packed weights that contradict themselves or the model are refused before anything is touched; where torch refuses the load, the layers
    that there were are back in their places."""
    made = {}
    layers = dict(model.named_modules(remove_duplicate=False))
    for key, tensor in state_dict.items():
        name, _, last = key.rpartition(".")
        before, prefix = layers.get(name), f"{name}."
        if last != "packed" or not name:
            continue
        if isinstance(before, PackedLinear):
            before._check_load(state_dict, prefix, assign)
            continue
        if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.uint8 or before is not None and own(before, "packed") is not None:
            continue  # another package's
        if before is None:
            parent = name.rpartition(".")[0]
            experts = layers.get(parent)
            if experts not in made:
                made[experts] = _packed_experts.standing_for(experts, f"{parent}.", state_dict)
            if made[experts] is None:
                raise ValueError(f"{key}: the model has no layer {name}")
            continue
        whole, form, missing = _packed_state.read(state_dict, prefix)
        if whole is None:
            raise ValueError(f"{prefix}packed: the layer is not packed yet, and the state dict has no {' and no '.join(missing)} of it")
        if before not in made:
            made[before] = _packed_for(before, prefix, state_dict, form, whole)
    places = [(parent, name, child) for parent in list(model.modules()) for name, child in parent._modules.items() if child in made]
    for parent, name, child in places:
        parent._modules[name] = made[child]
    try:
        return model.load_state_dict(state_dict, strict=strict, assign=assign)
    except BaseException:
        for parent, name, child in places:
            parent._modules[name] = child
        raise
