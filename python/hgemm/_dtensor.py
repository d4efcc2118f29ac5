# SPDX-License-Identifier: MIT
"""How the operators run on torch.distributed's DTensors: rows, columns or the sums of a product may be spread over devices."""
import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding


@register_sharding(torch.ops.hgemm.gemm.default)
def gemm_sharding(a, b, c=None, bias=None, gate=None, alpha=1.0, beta=1.0, activation="none", accumulate="float32",
                  out_dtype=None, batch_invariant=False, scale_a=0.0, scale_b=0.0, *pointers):
    """[(placements of the result, of the inputs)]. Each stands for what every device then computes from its parts alone."""
    given = {"a": a, "b": b, "c": c, "bias": bias, "gate": gate}
    rank = max(a.ndim, b.ndim)
    others = [None] * 8 + [Replicate() if pointer is not None else None for pointer in pointers]

    def rule(result, **placed):
        return [result], [placed.get(name, Replicate()) if spec is not None else None for name, spec in given.items()] + others

    def along(dim):
        """The addends' and the gate's placements where dimension `dim` (from the end) of the result is spread."""
        placed = {}
        for name in ("c", "bias", "gate"):
            spec = given[name]
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
    if c is None and bias is None and gate is None and activation == "none":
        rules.append(rule(Partial(), a=Shard(a.ndim - 1), b=Shard(b.ndim - 2)))
    return rules


@register_sharding(torch.ops.hgemm.find_scale.default)
def find_scale_sharding(x):
    """The scale of a matrix is the smallest of its parts'."""
    return [([Replicate()], [Replicate()])] + [([Partial("min")], [Shard(dim)]) for dim in range(x.ndim)]
