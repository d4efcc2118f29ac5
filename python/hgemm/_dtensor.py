# SPDX-License-Identifier: MIT
"""How the operators run on torch.distributed's DTensors: rows, columns or the sums of a product may be spread over devices."""
import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding


_NAMES = [argument.name for argument in torch.ops.hgemm.gemm.default._schema.arguments]
_TENSORS = ("a", "b", "c", "bias", "gate", "scale_a_pointer", "scale_b_pointer")


@register_sharding(torch.ops.hgemm.gemm.default)
def gemm_sharding(*arguments):
    """[(placements of the result, of the arguments that are given)]. Each stands for what every device then computes from its parts
    alone."""
    given = dict(zip(_NAMES, arguments))
    a, b, c, bias, gate = (given.get(name) for name in _TENSORS[:5])
    rank = max(a.ndim, b.ndim)

    def rule(result, **placed):
        return [result], [placed.get(name, Replicate()) if name in _TENSORS and argument is not None else None
                          for name, argument in given.items()]

    def along(dim):
        """The addends' and the gate's placements where dimension `dim` (from the end) of the result is spread."""
        placed = {}
        for name in ("c", "bias", "gate"):
            spec = given.get(name)
            if spec is not None and spec.ndim >= dim and spec.shape[-dim] != 1:
                placed[name] = Shard(spec.ndim - dim)
        return placed

    rules = [rule(Replicate())]
    rules.append(rule(Shard(rank - 1), b=Shard(b.ndim - 1), **along(1)))
    rules.append(rule(Shard(rank - 2), a=Shard(a.ndim - 2), **along(2)))
    for dim in range(3, rank + 1):  # the batch
        placed = {name: Shard(given[name].ndim - dim) for name in ("a", "b")
                  if given[name].ndim >= dim and given[name].shape[-dim] != 1}
        rules.append(rule(Shard(rank - dim), **placed, **along(dim)))
    if c is None and bias is None and gate is None and given.get("activation", "none") == "none":
        rules.append(rule(Partial(), a=Shard(a.ndim - 1), b=Shard(b.ndim - 2)))
    return rules


@register_sharding(torch.ops.hgemm.find_scale.default)
def find_scale_sharding(x):
    """The scale of a matrix is the smallest of its parts'."""
    return [([Replicate()], [Replicate()])] + [([Partial("min")], [Shard(dim)]) for dim in range(x.ndim)]
