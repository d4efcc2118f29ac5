# SPDX-License-Identifier: MIT
"""Torch's own samples of its operators that multiply matrices. Needs the package expecttest, as torch's tests do."""
import torch

OPERATORS = ["mm", "bmm", "addmm", "baddbmm", "addbmm", "matmul", "__rmatmul__", "einsum", "inner", "tensordot", "linalg.multi_dot",
             "linalg.matrix_power", "nn.functional.linear", "nn.functional.bilinear", "nn.functional.scaled_dot_product_attention"]


def _double(x):
    if isinstance(x, torch.Tensor):
        return x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x
    if isinstance(x, (list, tuple)):
        return type(x)(_double(y) for y in x)
    return {key: _double(y) for key, y in x.items()} if isinstance(x, dict) else x


def _leaves(x):
    if isinstance(x, torch.Tensor):
        return [x] if x.requires_grad else []
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for y in x for leaf in _leaves(y)] if isinstance(x, (list, tuple)) else []


def _results(operator, sample):
    """What it gives, and its gradients."""
    first, arguments, options = sample
    result, inputs = operator(first, *arguments, **options), _leaves(sample)
    gradients = torch.autograd.grad(result.sum(), inputs, allow_unused=True) if inputs and result.requires_grad else []
    return [x.detach().flatten().clone() for x in (result, *gradients) if x is not None]


def of_float32(device):
    """For each operator (its name, results and gradients of all samples in float32, the same in double precision)."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        if operator.name not in OPERATORS or operator.variant_test_name == "triton_optimized":
            continue
        torch.manual_seed(24)
        got, want = [], []
        for sample in operator.sample_inputs(device, torch.float32, requires_grad=True):
            if sample.kwargs.get("dropout_p"):
                continue  # random
            whole = (sample.input, sample.args, sample.kwargs)
            got += _results(operator.op, whole)
            want += _results(operator.op, _double(whole))
        assert len(got) == len(want) > 0
        for mine, theirs in zip(got, want):  # an infinity or a NaN where there is one is right
            same = ~theirs.isfinite() & (mine.double().nan_to_num(7, 8, 9) == theirs.nan_to_num(7, 8, 9))
            mine[same], theirs[same] = 0, 0
        yield f"{operator.name} {operator.variant_test_name}".rstrip(), torch.cat(got), torch.cat(want)
