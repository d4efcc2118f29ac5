# SPDX-License-Identifier: MIT
"""Arguments of calls on torch's tensors, as operators take them."""
import torch

from . import _c, _call
from ._dispatch import PLAIN, watched
from ._plan import leading, refuse_shared
from ._words import kind

TYPES = {getattr(torch, name): name for name in _c.TYPE}
NUMBERS = frozenset((float, int))


def name_of(dtype):
    """The name of a type of torch's."""
    return TYPES.get(dtype) or str(dtype)


def check(given, required):
    """Refuses what is no tensor. given: (name, argument), of which those not required may be None."""
    for name, tensor in given:
        if not isinstance(tensor, torch.Tensor) and (tensor is not None or name in required):
            raise TypeError(f"{name}: a {kind(tensor)} is no tensor")


def storable(tensor):
    """The tensor, or a contiguous copy of one whose strides no leading dimension can say (an expanded gradient, say)."""
    if tensor.dim() < 2:  # a gate, which is copied anyway
        return tensor
    (rows, columns), (row_stride, column_stride) = tensor.shape[-2:], tensor.stride()[-2:]
    if column_stride == 1 and row_stride >= columns:
        return tensor
    if any(leading(rows, columns, row_stride, column_stride, transposed) is not None for transposed in (False, True)):
        return tensor
    return tensor.contiguous()


def factor(name, value):
    """A number and, where it is not the host's to read, the tensor of it that stands for it."""
    if type(value) in NUMBERS and -_call.LARGEST < value < _call.LARGEST:
        return value, None
    if not isinstance(value, torch.Tensor) or not (value.is_cuda or watched()):
        return float(_call.scalar(name, value)), None
    if value.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name}: it requires a gradient, and gets none: multiply by it outside, or give {name}.detach()")
    if value.numel() != 1 or value.is_complex():
        raise TypeError(f"{name}: it must be one real number, not {value.dtype} of the shape {tuple(value.shape)}")
    return 1.0, value.detach().float().reshape(())


def factors(alpha, beta, c):
    """(alpha, the tensor that it is times, beta, c) of a call's. An operator has no beta in a tensor."""
    alpha, alpha_pointer = factor("alpha", alpha)
    beta, beta_pointer = (None, None) if beta is None else factor("beta", beta)
    if beta_pointer is not None and c is not None:
        c, beta = c.float() * beta_pointer, 1.0
    if c is None and beta:
        raise ValueError("beta: there is nothing to multiply: give c")
    return float(alpha), alpha_pointer, 1.0 if beta is None else float(beta), c


def scale(name, value):
    """A scale as a number, or 0, and as a tensor, or None."""
    if value is None or isinstance(value, torch.Tensor):
        return 0.0, value
    return float(_call.scalar(name, value)), None


def dtype_of(out_dtype):
    """torch's type of what out_dtype says."""
    return out_dtype if out_dtype is None or isinstance(out_dtype, torch.dtype) else getattr(torch, _call.dtype_name("out_dtype", out_dtype))


def type_for(out, out_dtype, given):
    """The type of a result that is copied to `out`. Refuses an `out` where torch records a gradient, and one of which elements share memory."""
    check([("out", out)], ("out",))
    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in (out, *given)):
        raise ValueError("out: it cannot be given where torch records a gradient")
    dtype = _call.asked_type(out, out_dtype)
    if type(out) in PLAIN and not torch.compiler.is_compiling():
        refuse_shared(out.shape, out.stride())
    return dtype


def written(out, result):
    """Copies the result of an operator to `out`."""
    if out.shape != result.shape:
        raise ValueError(f"out: its shape is {tuple(out.shape)}, the result's is {tuple(result.shape)}")
    return out.copy_(result)
