# SPDX-License-Identifier: MIT
"""What a quantised layer, its class or its model's config says of its scales. Their shapes alone may be read in two ways."""
import collections

SCALES = {"tensor": "one for all", "row": "one a row", "group": "one a group along k", "block": "one a block"}

Said = collections.namedtuple("Said", "kind size by")
Said.__doc__ = """What scales are for. kind: of SCALES; size: of a group along k, or (rows, columns) of a block; by: who says so."""

# Whose class alone says it, by names: the classes are of packages that need not be installed.
_BY_CLASS = {"FbgemmFp8Linear": "row", "CompressedTensorsFP8Linear": "row"}
_OF_STRATEGIES = {"tensor": "tensor", "channel": "row", "group": "group", "tensor_group": "group", "block": "block"}


def get(of, name):
    """What a dict has by a name, or another object; None where it has not."""
    return of.get(name) if isinstance(of, dict) else getattr(of, name, None)


def config_of(module):
    """The quantization_config of a model of transformers', as it is there, or None."""
    return get(get(module, "config"), "quantization_config")


def scheme_of(module):
    """compressed-tensors' quantization_scheme for the weights of a layer, or None."""
    return get(get(module, "quantization_scheme"), "weights")


def of_scales(module, config):
    """What is said of a layer's scales: by itself, by its class, or by the config of the model. Or None."""
    if scheme_of(module) is not None:
        return _of_scheme(scheme_of(module), "its quantization_scheme")
    block = getattr(module, "block_size", None)
    if isinstance(block, (tuple, list)):
        return Said("block", block, "its block_size")
    names = [one.__name__ for one in type(module).__mro__]
    if "FP8Linear" in names and hasattr(module, "block_size") and block is None:
        return Said("tensor", None, "its block_size, which is None,")
    for name in names:
        if name in _BY_CLASS:
            return Said(_BY_CLASS[name], None, f"its class, {name},")
    return of_config(config)


def of_config(config):
    """What a quantization_config says of all layers alike, or None."""
    if get(config, "weight_block_size") is not None:
        return Said("block", get(config, "weight_block_size"), "the model's weight_block_size")
    groups = get(config, "config_groups") or get(get(config, "quantization_config"), "config_groups")
    if isinstance(groups, dict):
        found = [_of_scheme(get(group, "weights"), "the model's quantization_config") for group in groups.values()]
        return found[0] if found and all(one == found[0] for one in found) else None
    if str(get(config, "quant_method")).rpartition(".")[2].lower() == "fbgemm_fp8":
        return Said("row", None, "the model's quant_method")
    return None


def _of_scheme(weights, by):
    """What compressed-tensors' arguments of a quantisation say."""
    strategy = get(weights, "strategy")
    kind = _OF_STRATEGIES.get(str(getattr(strategy, "value", strategy)))
    if kind is None:
        return None
    size = get(weights, {"group": "group_size", "block": "block_structure"}.get(kind, ""))
    if isinstance(size, str):  # "128x128"
        size = [int(number) if number.isdigit() else number for number in size.split("x")]
    return Said(kind, size, by)


def quantizers(config):
    """Who wrote a GPTQ checkpoint, as far as its config says: such as {"gptqmodel"}."""
    names = get(get(config, "meta"), "quantizer")
    names = names if isinstance(names, (list, tuple)) else [names]
    return {str(name).partition(":")[0].lower() for name in names}
