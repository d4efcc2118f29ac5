# SPDX-License-Identifier: MIT
"""What packed layers are in a state dict."""
import torch

from . import _c, _packed


def form_of(name, tensor):
    """The form in a state dict's tensor of this name."""
    if tuple(tensor.shape) != (_packed.FORM,) or tensor.dtype != torch.int64:
        raise ValueError(f"{name}: it is of {tensor.dtype} and of the shape {tuple(tensor.shape)}, not {_packed.FORM} integers of 64 bits")
    form = tuple(tensor.tolist())
    if not all(0 <= number < 1 << (63 if i < 2 else 31 if i < 6 else 16) for i, number in enumerate(form)):
        raise ValueError(f"{name}: {form} does not say what packed weights are")
    try:
        _packed.bytes_of(form)
    except _c.Error as error:
        raise ValueError(f"{name}: {error}") from None
    return form


def check_order(name, tensor, k):
    """Refuses what is no order of k columns: on a GPU torch's kernels would end the process's context for an index beyond them."""
    if tensor.dtype not in (torch.int32, torch.int64) or tuple(tensor.shape) != (k,):
        raise ValueError(f"{name}: it is of {tensor.dtype} and of the shape {tuple(tensor.shape)}, not {k} integers")
    if not tensor.is_meta and not torch.equal(tensor.sort().values.cpu().long(), torch.arange(k)):
        raise ValueError(f"{name}: it is no order of the numbers from 0 to {k - 1}")
