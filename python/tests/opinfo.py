# SPDX-License-Identifier: MIT
"""torch's own samples of its products (OpInfo), with gradients: what each gives, and how far that is from the same in doubles.

    python3 python/tests/opinfo.py [--device cuda]        torch's own products beside those under hgemm.torch.enable()"""
import argparse
import sys
import types
import unittest

import torch

NAMES = ("mm", "bmm", "addmm", "addbmm", "baddbmm", "addmv", "matmul", "__rmatmul__", "einsum", "nn.functional.linear", "nn.functional.bilinear",
         "nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention")
MOST = {torch.float16: 1.5, torch.bfloat16: 1.5, torch.float32: 44}  # times torch's error; sums of a few floats: docs/contract.md
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-20}


def operators():
    if "expecttest" not in sys.modules:  # which torch's tests need and its users do not have
        try:
            import expecttest  # noqa: F401
        except ImportError:
            sys.modules["expecttest"] = types.ModuleType("expecttest")
            sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if op.name in NAMES]


def samples(device, dtype):
    """(label, operator, sample), the same ones in each process."""
    for op in operators():
        if not op.supports_dtype(dtype, device):
            continue
        torch.manual_seed(1)
        label = f"{op.name} {op.variant_test_name}".strip()
        for i, sample in enumerate(op.sample_inputs(device, dtype, requires_grad=True)):
            if not sample.kwargs.get("dropout_p"):  # random
                yield f"{label} {i}", op, sample


def run(op, sample, dtype=None):
    """The outputs, then the gradients of the inputs. dtype: what floats are made of first."""
    leaves = []

    def fresh(x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        leaf = x.detach().to(dtype or x.dtype).requires_grad_(x.requires_grad)
        if leaf.requires_grad:
            leaves.append(leaf)
        return leaf
    torch.manual_seed(2)
    tree_map = torch.utils._pytree.tree_map
    outputs = op(tree_map(fresh, sample.input), *tree_map(fresh, sample.args), **tree_map(fresh, sample.kwargs))
    outputs = [x for x in torch.utils._pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor) and x.is_floating_point()]
    recorded = [x for x in outputs if x.requires_grad]
    if not recorded or not leaves:
        return outputs
    with torch.no_grad():
        into = [torch.arange(x.numel(), device=x.device).double().cos().reshape(x.shape).to(sample.input.dtype).to(x.dtype)
                if isinstance(sample.input, torch.Tensor) else torch.ones_like(x) for x in recorded]
    gradients = torch.autograd.grad(recorded, leaves, into, allow_unused=True)
    return [x.detach() for x in outputs] + [x for x in gradients if x is not None]


def outcome(op, sample, dtype=None):
    """What run gives, or the error that it raises."""
    try:
        return run(op, sample, dtype)
    except Exception as error:  # whatever torch raises for it
        return error


def error_of(result, reference):
    """The norm of the error, by that of the reference. NaN must be where the reference's is."""
    x, y = result.double(), reference.double()
    if x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()):
        return float("inf")
    difference = torch.where(x == y, 0.0, x - y).nan_to_num(nan=0.0, posinf=float("inf"), neginf=float("-inf"))
    scale = torch.where(y.isfinite(), y, 0.0).norm().item()
    return difference.norm().item() / (scale or 1.0)


def faults_of(dtype, mine, theirs, reference):
    """What is wrong with outcomes, beside torch's own and the same in doubles."""
    if isinstance(mine, Exception):
        return [] if isinstance(theirs, Exception) else [f"raises {type(mine).__name__}: {mine}"]
    if isinstance(theirs, Exception) or isinstance(reference, Exception):
        return []  # more than torch does
    faults = [] if len(mine) == len(theirs) == len(reference) else [f"{len(mine)} results, torch has {len(theirs)}"]
    for i, (x, y, z) in enumerate(zip(mine, theirs, reference)):
        error, allowed = error_of(x, z), MOST[dtype] * error_of(y, z) + ROUNDING[dtype] / 8
        if x.dtype != y.dtype or not error <= allowed:
            faults.append(f"result {i}: {x.dtype} for {y.dtype}, error {error:.2e} where torch's times {MOST[dtype]} is {allowed:.2e}")
    return faults


def check(device, dtype, entered):
    """(how many samples torch has results of, faults). entered: a context under which hgemm runs products."""
    count, faults = 0, []
    for label, op, sample in samples(device, dtype):
        theirs, reference = outcome(op, sample), outcome(op, sample, torch.float64)
        with entered:
            mine = outcome(op, sample)
        faults += [f"{label}: {fault}" for fault in faults_of(dtype, mine, theirs, reference)]
        count += not isinstance(theirs, Exception) and not isinstance(reference, Exception)
    return count, faults


def main():
    import hgemm.torch
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    failed = False
    for dtype in ROUNDING:
        on = hgemm.torch.enable(devices=(device,), bfloat16=True, float32=True)
        count, faults = check(device, dtype, on)
        failed |= bool(faults) or not on.ran
        print(f"{dtype}: {count} samples compared, {len(faults)} faults; hgemm ran {on.ran}, torch {on.passed}", *faults, sep="\n    ")
    sys.exit(failed)


if __name__ == "__main__":
    main()
