# SPDX-License-Identifier: MIT
"""Quantised layers of other packages: what they are, which their tensors tell, and the hgemm.Weights of one."""
import torch

from . import _said, formats
from ._replace import own
from ._said import Said
from .formats._fp8 import check_block, of_scale

FLOATS_OF_8_BITS = {getattr(torch, name) for name in dir(torch) if name.startswith("float8_e")}
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32)
_QUANTISED = {*FLOATS_OF_8_BITS, *_INTEGERS, *(getattr(torch, name) for name in ("float4_e2m1fn_x2", "uint16", "uint32") if hasattr(torch, name))}
_LINEAR_OF_BITSANDBYTES = ("Linear4bit", "Linear8bitLt", "LinearNF4", "LinearFP4")
_PACKAGES_OF_TENSORS = ("torchao", "optimum")  # whose quantised tensors are classes of their own, and tell of halves


def kind_of(module):
    """The kind of a module that has quantised tensors itself, or None."""
    def has(*names):
        return all(isinstance(own(module, name), torch.Tensor) for name in names)
    if has("B", "s") or has("weight_packed", "meta") or has("qweight", "scales", "workspace"):
        return "Marlin"
    if any(name.endswith("_precision_config") and value is not None for name, value in vars(module).items()):
        return "Triton"
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
    weight = own(module, "weight")
    if getattr(weight, "quant_state", None) is not None or isinstance(weight, torch.Tensor) and getattr(module, "quant_state", None) is not None:
        return "bitsandbytes"
    if isinstance(weight, torch.Tensor) and type(module).__name__ in _LINEAR_OF_BITSANDBYTES:
        return "bitsandbytes, 8 bits" if _scales_of_8_bits(module) is not None else "bitsandbytes, not quantised yet"
    if isinstance(weight, torch.Tensor) and (weight.dtype == torch.int8 or weight.dtype in FLOATS_OF_8_BITS) and (
            has("weight_scale") or has("weight_scale_inv")):
        return "compressed-tensors" if weight.dtype == torch.int8 else "FP8"
    if any(name.endswith("_blocks") and has(name, f"{name[:-len('_blocks')]}_scales") for name in (*module._parameters, *module._buffers)):
        return "experts of MXFP4"
    if any(name.endswith(("_scale_inv", "_scale")) and has(name, name.rpartition("_scale")[0]) and own(module, name.rpartition("_scale")[0]).dim() == 3
           for name in (*module._parameters, *module._buffers)):
        return "experts"
    found = next((tensor for _, tensor in quantised_tensors(module)), None)
    return None if found is None else f"a layer of {type(found).__module__.partition('.')[0] if _is_class(found) else found.dtype}"


def quantised_tensors(module):
    """(name, tensor) of those that a module has itself. Integers are, where they are parameters, a weight, or beside scales: other buffers of
    integers are indices."""
    names = [name.lower() for name in (*module._parameters, *module._buffers)]
    scaled = any(word in name for name in names for word in ("scale", "absmax", "zero")) or {"weight", "w_q"} & set(names)
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is None or tensor.dim() < 2 and not _is_class(tensor):
            continue
        if _is_class(tensor) or tensor.dtype in _QUANTISED and (tensor.dtype not in _INTEGERS or name in module._parameters or scaled):
            yield name, tensor


def _is_class(tensor):
    return type(tensor).__module__.partition(".")[0] in _PACKAGES_OF_TENSORS


def _scales_of_8_bits(module):
    """What the rows of a Linear8bitLt's int8 weight are multiplied by, times 127; None where it has none."""
    if module.weight.dtype != torch.int8:
        return None
    found = getattr(module.weight, "SCB", None)
    return getattr(getattr(module, "state", None), "SCB", None) if found is None else found


def weights_of(kind, module, config, asked):
    """(Weights, device, compute_dtype) of a layer of a kind. config: the model's quantization_config, or None. asked: convert's arguments, for what
    neither says. A ValueError says why a layer has none."""
    def get(name):
        found = own(module, name)
        return found if isinstance(found, torch.Tensor) and found.numel() else None

    def need(name):
        found = get(name)
        if found is None:
            raise ValueError(f"it has no {name}")
        return found
    if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag, torch.nn.modules.conv._ConvNd)):
        raise ValueError(f"it is a {type(module).__name__}, which multiplies no matrix by its weight")
    if isinstance(getattr(module, "n_groups", None), int) and module.n_groups > 1:
        raise ValueError(f"it is a product of {module.n_groups} groups, each by rows of its own, and a PackedLinear is one matrix")
    if kind == "GPTQ":
        zeros, scales = need("qzeros"), need("scales")
        version, borrow = _version(module, config, asked)
        return formats.gptq(need("qweight"), zeros, scales, get("g_idx"), version=version, bits=zeros.shape[-1] * 32 // scales.shape[-1],
                            group_size=_group_size(module, config), borrow=borrow), scales.device, None
    if kind == "AWQ":
        scales = need("scales")
        return formats.awq(need("qweight"), need("qzeros"), scales, group_size=_group_size(module, config)), scales.device, None
    if kind == "bitsandbytes":
        weight = module.weight
        state = getattr(weight, "quant_state", None) or module.quant_state
        return formats.bitsandbytes_state(weight, state), weight.device, getattr(module, "compute_dtype", None) or state.dtype
    if kind == "bitsandbytes, 8 bits":
        weight = module.weight
        return formats.compressed_tensors(weight=weight.data, weight_scale=_scales_of_8_bits(module).float() / 127), weight.device, None
    if kind in ("ExLlama", "Marlin", "Triton"):
        raise ValueError(f"its tensors were put in the order of {kind}'s kernels: load the checkpoint for another backend, such as torch's")
    if kind == "bitsandbytes, not quantised yet":
        raise ValueError("its weight is quantised when it is moved to a device: convert the model after that")
    if kind == "compressed-tensors" and own(module, "weight_packed") is not None:
        return _packed(module, config, get, need)
    if kind == "experts of MXFP4":
        raise ValueError("a PackedLinear is one matrix: hgemm.grouped multiplies by experts, each by formats.mxfp4, packed together")
    if kind in ("compressed-tensors", "FP8"):
        return _of_8_bits(module, config, asked, get, need)
    shapes = ", ".join(f"{name} {str(x.dtype)[6:]} {tuple(x.shape)}" for name, x in (*module.named_buffers(), *module.named_parameters()))
    raise ValueError(f"its format is not known: it has {shapes}")


def _group_size(module, config):
    for said in (getattr(module, "group_size", None), _said.get(config, "group_size")):
        if isinstance(said, int) and not isinstance(said, bool):
            return said
    return None


def _version(module, config, asked):
    """(version, borrow): which zeros a GPTQ layer stores, by what it says itself, or else by what the caller does."""
    says, version, borrow = getattr(module, "qzero_format", None), asked["gptq_version"], asked["gptq_borrow"]
    of_gptqmodel = callable(says)
    says = says() if of_gptqmodel else None
    if says in (1, 2) and version is not None and says != version:
        raise ValueError(f"gptq_version is {version}, and it says that its zeros are of version {says}: without gptq_version that is taken")
    if says not in (1, 2) and version is None:
        raise ValueError("nothing in it tells whether it stores zeros (version 2) or zeros - 1 (version 1): give gptq_version")
    if borrow is None and (of_gptqmodel or "gptqmodel" in _said.quantizers(config)):
        borrow = True
    return says if version is None else version, borrow


def _packed(module, config, get, need):
    """Of compressed-tensors' pack-quantized, NVFP4 and MXFP4."""
    packed, scheme = need("weight_packed"), _said.scheme_of(module)
    options = {name: get(name) for name in ("weight_zero_point", "weight_g_idx", "weight_global_scale", "weight_shape")}
    bits = _said.get(scheme, "num_bits")
    if bits is not None and bits not in (4, 8):
        raise ValueError(f"its quantization_scheme says codes of {bits} bits, and packed weights have 4 or 8")
    if packed.dtype == torch.int32:
        options["bits"] = bits or _bits(packed, options["weight_shape"], getattr(module, "in_features", None))
        _check_scheme(scheme, options)
        said = _said.of_scales(module, config)
        if said is not None and said.kind == "group":
            options["group_size"] = said.size
    return formats.compressed_tensors(weight_packed=packed, weight_scale=need("weight_scale"), **options), packed.device, None


def _check_scheme(scheme, options):
    """Refuses a layer that lacks a tensor which its scheme tells of: without it, it would be another matrix."""
    order = _said.get(scheme, "actorder")
    if str(getattr(order, "value", order)) in ("group", "dynamic") and options["weight_g_idx"] is None:
        raise ValueError("its quantization_scheme says that its groups are in act-order, and it has no weight_g_idx")
    if _said.get(scheme, "symmetric") is False and options["weight_zero_point"] is None:
        raise ValueError("its quantization_scheme says that it is not symmetric, and it has no weight_zero_point")


def _bits(packed, shape, in_features):
    k = int(shape.reshape(-1)[-1]) if shape is not None else in_features
    if k is None:
        raise ValueError("it has neither a weight_shape nor in_features, which tell how many bits its codes have")
    for bits in (4, 8):
        if -(-k * bits // 32) == packed.shape[-1]:
            return bits
    raise ValueError(f"weight_packed: its shape is {tuple(packed.shape)}; k = {k} has codes of neither 4 nor 8 bits in that")


def _of_8_bits(module, config, asked, get, need):
    """Of a weight of int8 or FP8 and its scales."""
    weight, name = need("weight"), "weight_scale" if get("weight_scale") is not None else "weight_scale_inv"
    scale = get(name)
    if scale is None:
        raise ValueError("it has no weight_scale")
    integers, zeros, g_idx = weight.dtype == torch.int8, get("weight_zero_point"), get("weight_g_idx")
    said = _said.of_scales(module, config)
    if integers:
        _check_scheme(_said.scheme_of(module), {"weight_zero_point": zeros, "weight_g_idx": g_idx})
        if said is not None and said.kind == "block" and _said.scheme_of(module) is None:  # which is of FP8
            said = None
    if said is None and not integers:
        said = _by_name_and_shape(name, weight, scale, asked["fp8_scales"])
    options = {}
    if said is not None:
        scale, options = as_said(name, scale, tuple(weight.shape), said)
    if not integers and name == "weight_scale_inv":
        return of_scale(name, weight, scale, options.get("block"), options.get("group_size")), weight.device, None
    return formats.compressed_tensors(weight=weight, weight_scale=scale, weight_zero_point=zeros, weight_g_idx=g_idx, **options), weight.device, None


def as_said(name, scale, shape, said):
    """(scale, options of a format) of a scale that is for what is said. shape: of the weight."""
    n, k = shape
    fits = {"tensor": scale.numel() == 1, "row": tuple(scale.shape) in ((n,), (n, 1), (1, n)), "group": scale.dim() == 2 and scale.shape[0] == n}
    if said.kind == "block":
        rows, columns = check_block(f"{said.by.strip(',')}", said.size)
        if tuple(scale.shape) != (-(-n // rows), -(-k // columns)) and not (scale.numel() == 1 and n <= rows and k <= columns):
            raise ValueError(f"{name}: its shape is {tuple(scale.shape)}, not {(-(-n // rows), -(-k // columns))}: {said.by} says blocks of "
                             f"{rows}x{columns} of {n}x{k}")
        return scale, {"block": (rows, columns)}
    if not fits[said.kind]:
        raise ValueError(f"{name}: its shape is {tuple(scale.shape)}, for a weight of {n}x{k}, and {said.by} says {_said.SCALES[said.kind]}")
    if said.kind == "row":
        return scale.reshape(n, 1), {}
    return scale, {"group_size": said.size} if said.kind == "group" and said.size is not None else {}


def _by_name_and_shape(name, weight, scale, asked):
    """What a scale of FP8 is for where nothing says it: by the caller's word, or where its name and shape leave one reading. None: as the format's
    shapes have it."""
    if weight.dim() != 2 or scale.numel() == 1 or scale.dim() != 2:
        return None
    n, k = weight.shape
    if asked is not None:
        return Said("row", None, "fp8_scales") if asked == "rows" else Said("block", asked, "fp8_scales")
    blocks = Said("block", (128, 128), "its name, without fp8_scales," if name == "weight_scale_inv" else "the shape")
    if name == "weight_scale_inv":
        return blocks
    found, shape = {}, tuple(scale.shape)
    if shape in ((n, 1), (1, n)):
        found[f"one a row of {n}"] = Said("row", None, "the shape")
    if shape == (-(-n // 128), -(-k // 128)):
        found[f"of blocks of 128x128 of {n}x{k}"] = blocks
    if shape[0] == n and shape[1] > 1 and not (found and n == 1 and k % 128 == 0):  # else a row of blocks is one of groups
        found[f"of {shape[1]} groups of each row"] = None
    if len(found) > 1:
        raise ValueError(f"{name}: its shape {shape} is that of scales {' and of scales '.join(found)}, and nothing says which: give fp8_scales")
    return next(iter(found.values()), blocks)
