# SPDX-License-Identifier: MIT
"""Packed layers in the place of a model's others."""
import torch

from . import _packed
from ._packed_linear import PackedLinear
from ._packed_state import form_of


def own(module, name):
    """What a module itself has by a name, or None. What it has by a property may be another's: PEFT's adapters show the weight of the
    layer that they wrap."""
    for of in (module._parameters, module._buffers, vars(module)):
        if of.get(name) is not None:
            return of[name]
    return None


def load_state_dict(model, state_dict, *, strict=True, assign=False):
    """model.load_state_dict for a state dict of a converted model, where `model` has not been converted, or has no memory yet (on meta, with
    assign=True): a PackedLinear is first put in the place of each layer that is packed there. x of float32 is then not rounded."""
    for key in state_dict:
        prefix, _, last = key.rpartition(".")
        packed = state_dict.get(f"{prefix}.packed")
        if last != "form" or packed is None or not prefix:
            continue
        parent, _, name = prefix.rpartition(".")
        parent = model.get_submodule(parent)
        before = getattr(parent, name, None)
        if isinstance(before, PackedLinear):
            continue
        if not isinstance(before, torch.nn.Module):
            raise ValueError(f"{key}: the model has no layer {prefix}")
        here = next((x.device for x in (*before.parameters(), *before.buffers())), packed.device)
        form, order, bias = form_of(key, state_dict[key]), state_dict.get(f"{prefix}.order"), state_dict.get(f"{prefix}.bias")
        if packed.dtype != torch.uint8 or tuple(packed.shape) != (_packed.bytes_of(form),):
            raise ValueError(f"{prefix}.packed: it is of {packed.dtype} and of the shape {tuple(packed.shape)}, not {_packed.bytes_of(form)} "
                             "bytes, as its form has")
        shape = getattr(before, "out_features", form[0]), getattr(before, "in_features", form[1])
        if shape != form[:2]:
            raise ValueError(f"{key}: it is of weights of {form[0]}x{form[1]}, and the layer's are {shape[0]}x{shape[1]}")
        own = own(before, "bias")
        if bias is None and own is not None and own.numel():  # a missing key, which torch tells of
            bias = own.detach()
        weights = _packed.PackedWeights(torch.empty_like(packed, device=here), form, None if order is None else torch.empty_like(order, device=here))
        made = PackedLinear(weights, None if bias is None else torch.empty_like(bias, device=here))
        setattr(parent, name, made.train(before.training))
    return model.load_state_dict(state_dict, strict=strict, assign=assign)
