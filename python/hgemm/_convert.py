# SPDX-License-Identifier: MIT
"""hgemm.torch.convert: puts packed weights in the place of a model's quantised layers, which are recognised by their tensors."""
import torch

from . import _c, _packed, formats
from ._packed_linear import PackedLinear
from ._replace import dtype_of, own as _own, present, take_over
from ._words import is_one_of, shown
from .formats._fp8 import of_scale

_FP8 = {getattr(torch, name) for name in dir(torch) if name.startswith("float8_e")}
_LINEAR_OF_BITSANDBYTES = ("Linear4bit", "Linear8bitLt", "LinearNF4", "LinearFP4")


class Converted:
    """What convert did: `replaced` and `left`, layers by name, with what they were or why they were left alone."""

    def __init__(self):
        self.replaced, self.left = {}, {}

    def __repr__(self):
        lines = [f"hgemm.torch.convert: {len(self.replaced)} layers replaced, {len(self.left)} left alone"]
        lines += [f"  {name or '(the model itself)'}: {why}" for name, why in self.left.items()]
        return "\n".join(lines)


def convert(model, *, gptq_version=None, compute_dtype=None):
    """Replaces the GPTQ, AWQ, compressed-tensors, bitsandbytes and FP8 layers of a model by PackedLinear, in place, on the device where they
    are, with their forward and backward hooks. None of these packages is needed. Returns what was replaced, and what was left alone and why.

    gptq_version   1 or 2: which zeros GPTQ layers store (hgemm.formats.gptq). GPTQModel's layers tell by qzero_format(); nothing in others
                   does, and without it they are left alone
    compute_dtype  what x of float32 is rounded to, such as torch.float16; by default what the layer itself says, if it does

    Layers that quantise their activations, too, are replaced by ones that take activations as they are."""
    if not is_one_of(gptq_version, None, 1, 2):
        raise ValueError(f"gptq_version: {shown(gptq_version)} is neither 1 nor 2")
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: a {type(model).__module__}.{type(model).__qualname__} is no torch.nn.Module")
    if not is_one_of(compute_dtype, None, torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"compute_dtype: {shown(compute_dtype)} is none of torch.float16, torch.bfloat16 and torch.float32")
    done, made = Converted(), {}
    dtype = dtype_of(model, _known)
    if _known(model) is not None:
        done.left[""] = "it is itself such a layer, and only what is in a module can be replaced: use PackedLinear"
    for prefix, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            full = f"{prefix}.{name}" if prefix else name
            if child in made:  # one layer in two places
                if made[child] is not None:
                    setattr(parent, name, made[child])
                continue
            kind = _known(child)
            if kind is None:
                continue
            made[child] = None
            try:
                with present(child):
                    made[child] = _layer(kind, child, gptq_version, compute_dtype)
            except (ValueError, TypeError, NotImplementedError, _c.Error) as error:
                done.left[full] = f"{kind}: {error}"
                continue
            take_over(made[child], child, dtype)
            setattr(parent, name, made[child])
            done.replaced[full] = f"{kind}, {made[child].extra_repr()}"
    return done


def _known(module):
    """The kind of a quantised layer, or None."""
    def has(*names):
        return all(isinstance(_own(module, name), torch.Tensor) for name in names)
    if has("B", "s") or has("weight_packed", "meta") or has("qweight", "scales", "workspace"):
        return "Marlin"
    if has("qweight", "scales"):
        words, scales = module.qweight, module.scales
        if getattr(module, "q_handle", None) is not None or getattr(module, "q4", None) is not None:
            return "ExLlama"
        if words.dtype == torch.int32 and words.dim() == 2 and scales.dim() == 2:
            if words.shape[1] * 8 == scales.shape[1]:
                return "AWQ"
            if words.shape[1] == scales.shape[1]:
                return "GPTQ"
        return "a layer with a qweight"
    if has("weight_packed", "weight_scale"):
        return "compressed-tensors"
    if any(name.endswith("_blocks") and has(name, f"{name[:-len('_blocks')]}_scales") for name in (*module._parameters, *module._buffers)):
        return "experts of MXFP4"
    weight = _own(module, "weight")
    if not isinstance(weight, torch.Tensor):
        return "a layer with a W_q" if has("W_q") else None
    if getattr(weight, "quant_state", None) is not None or getattr(module, "quant_state", None) is not None:
        return "bitsandbytes"
    if type(module).__name__ in _LINEAR_OF_BITSANDBYTES:
        return "bitsandbytes, 8 bits" if _scales_of_8_bits(module) is not None else "bitsandbytes, not quantised yet"
    if weight.dtype == torch.int8 or weight.dtype in _FP8:
        if has("weight_scale") or has("weight_scale_inv"):
            return "compressed-tensors" if weight.dtype == torch.int8 else "FP8"
        return f"a layer of {weight.dtype}"
    if weight.dtype in (torch.uint8, torch.int16, torch.int32):
        return f"a layer of {weight.dtype}"
    return None


def _scales_of_8_bits(module):
    """What the rows of a Linear8bitLt's int8 weight are multiplied by, times 127; None where it has none."""
    if module.weight.dtype != torch.int8:
        return None
    found = getattr(module.weight, "SCB", None)
    return getattr(getattr(module, "state", None), "SCB", None) if found is None else found


def _version(module, asked):
    """Which zeros a GPTQ layer stores: what it says itself, or else what the caller does."""
    says = getattr(module, "qzero_format", None)
    says = says() if callable(says) else None
    if says in (1, 2) and asked is not None and says != asked:
        raise ValueError(f"gptq_version is {asked}, and it says that its zeros are of version {says}: without gptq_version that is taken")
    if says not in (1, 2) and asked is None:
        raise ValueError("nothing in it tells whether it stores zeros (version 2) or zeros - 1 (version 1): give gptq_version")
    return says if asked is None else asked


def _layer(kind, module, gptq_version, compute_dtype):
    def get(name):
        found = _own(module, name)
        return found if isinstance(found, torch.Tensor) and found.numel() else None

    def need(name):
        found = get(name)
        if found is None:
            raise ValueError(f"it has no {name}")
        return found
    group_size = getattr(module, "group_size", None)
    group_size = group_size if isinstance(group_size, int) else None
    device = None
    if kind == "GPTQ":
        gptq_version = _version(module, gptq_version)
        zeros, scales = need("qzeros"), need("scales")
        weights = formats.gptq(need("qweight"), zeros, scales, get("g_idx"), version=gptq_version, bits=zeros.shape[-1] * 32 // scales.shape[-1],
                               group_size=group_size)
        device = scales.device
    elif kind == "AWQ":
        weights = formats.awq(need("qweight"), need("qzeros"), need("scales"), group_size=group_size)
        device = module.scales.device
    elif kind == "bitsandbytes":
        weight = module.weight
        state = getattr(weight, "quant_state", None) or module.quant_state
        weights, device = formats.bitsandbytes_state(weight, state), weight.device
        compute_dtype = compute_dtype or getattr(module, "compute_dtype", None) or state.dtype
    elif kind == "bitsandbytes, 8 bits":
        weight = module.weight
        weights, device = formats.compressed_tensors(weight=weight.data, weight_scale=_scales_of_8_bits(module).float() / 127), weight.device
    elif kind in ("ExLlama", "Marlin"):
        raise ValueError(f"its tensors were put in the order of {kind}'s kernels: load the checkpoint for another backend, such as torch's")
    elif kind == "experts of MXFP4":
        raise ValueError("a PackedLinear is one matrix: hgemm.grouped multiplies by experts, each by formats.mxfp4, packed together")
    elif kind == "bitsandbytes, not quantised yet":
        raise ValueError("its weight is quantised when it is moved to a device: convert the model after that")
    elif kind in ("compressed-tensors", "FP8"):
        weights, device = _compressed(module, get, need, kind)
    else:
        shapes = ", ".join(f"{name} {str(x.dtype)[6:]} {tuple(x.shape)}" for name, x in (*module.named_buffers(), *module.named_parameters()))
        raise ValueError(f"its format is not known: it has {shapes}")
    bias = get("bias")
    if compute_dtype == torch.float32:  # in which x of float32 is multiplied anyway
        compute_dtype = None
    return PackedLinear(_packed.pack(weights, device=device), None if bias is None else bias.detach(), compute_dtype=compute_dtype)


def _compressed(module, get, need, kind):
    packed = None if _own(module, "weight_packed") is None else need("weight_packed")
    names = ("weight_zero_point", "weight_g_idx", "weight_global_scale", "weight_shape")
    options = {name: get(name) for name in names}
    if packed is not None:
        if packed.dtype == torch.int32:
            options["bits"] = _bits(packed, options["weight_shape"], getattr(module, "in_features", None))
        return formats.compressed_tensors(weight_packed=packed, weight_scale=need("weight_scale"), **options), packed.device
    weight, scale, block = need("weight"), get("weight_scale"), None
    if scale is None and get("weight_scale_inv") is None:
        raise ValueError("it has no weight_scale")
    if scale is None or kind == "FP8" and scale.dim() == 2 and scale.numel() > 1 and scale.shape[0] not in (1, weight.shape[0]):
        block = getattr(module, "block_size", None) or (128, 128)
        if scale is None:
            return of_scale("weight_scale_inv", weight, get("weight_scale_inv"), block), weight.device
    elif scale.dim() == 2 and scale.shape[0] == 1 and weight.shape[0] > 1 and scale.shape[1] > 1:
        if scale.shape[1] == weight.shape[0] and getattr(module, "block_size", None) is None:
            scale = scale.T  # one a row, as FBGEMM has them
        elif kind == "FP8":  # a row of blocks, of a layer of few rows
            block = getattr(module, "block_size", None) or (128, 128)
    return formats.compressed_tensors(weight=weight, weight_scale=scale, block=block,
                                      **{name: options[name] for name in ("weight_zero_point", "weight_g_idx")}), weight.device


def _bits(packed, shape, in_features):
    k = int(shape.reshape(-1)[-1]) if shape is not None else in_features
    if k is None:
        raise ValueError("it has neither a weight_shape nor in_features, which tell how many bits its codes have")
    for bits in (4, 8):
        if -(-k * bits // 32) == packed.shape[-1]:
            return bits
    raise ValueError(f"weight_packed: its shape is {tuple(packed.shape)}; k = {k} has codes of neither 4 nor 8 bits in that")
