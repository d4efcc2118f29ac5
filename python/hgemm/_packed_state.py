# SPDX-License-Identifier: MIT
"""Packed weights in one tensor, which is all that a state dict has of them: a load takes the whole of a layer's weights, or nothing.

    codes, as hgemm_pack_weights makes them | order, of 32 bits each, if columns were sorted | 24 integers of 64 bits: the form, _MARK

Each part is padded to a multiple of 16 bytes; all numbers are little-endian. So the length tells whether there is an order."""
import torch

from . import _c, _packed

_MARK = (0x6d6d656768, 1)  # "hgemm", and the layout's version
_TAIL = 8 * (_packed.FORM + len(_MARK))
PARTS = ("packed", "form", "order")  # what a layer's keys end in: `packed` alone, and in older files, where it is the codes alone, all three


def _padded(count):
    return -(-count // 16) * 16


def bytes_of(form, is_sorted):
    return _padded(_packed.bytes_of(form)) + (_padded(4 * form[1]) if is_sorted else 0) + _TAIL


@torch.no_grad()
@torch.inference_mode(False)
def joined(codes, form, order):
    """The one tensor, where the codes are."""
    whole = torch.zeros(bytes_of(form, order is not None), dtype=torch.uint8, device=codes.device)
    whole[:codes.numel()] = codes
    if order is not None:
        start = _padded(codes.numel())
        whole[start:start + 4 * form[1]] = order.to(codes.device, torch.int32).contiguous().view(torch.uint8)
    whole[-_TAIL:] = torch.tensor((*form, *_MARK), dtype=torch.int64).view(torch.uint8).to(codes.device)
    return whole


def order_at(count, form):
    """Where the order is in one tensor of so many bytes, or None."""
    return None if count == bytes_of(form, False) else _padded(_packed.bytes_of(form))


def order_in(whole, form, start):
    """The order of columns: a view, or None."""
    if start is None:
        return None
    found = whole[start:start + 4 * form[1]]
    if not torch.compiler.is_compiling() and torch.jit.is_tracing():  # which cannot record a view of another type
        first, second, third, fourth = found.reshape(-1, 4).int().unbind(1)
        return first + (second << 8) + (third << 16) + (fourth << 24)
    return found.view(torch.int32)


def form_in(name, whole):
    """The form that the last bytes of the one tensor say."""
    if whole.dtype != torch.uint8 or whole.dim() != 1:
        raise ValueError(f"{name}: it is of {whole.dtype} and of the shape {tuple(whole.shape)}, not bytes in a row")
    numbers = whole[-_TAIL:].clone().view(torch.int64) if whole.numel() >= _TAIL else whole
    if numbers.dtype != torch.int64 or tuple(numbers[_packed.FORM:].tolist()) != _MARK:
        raise ValueError(f"{name}: the last of its {whole.numel()} bytes do not say what it is; packed weights of a PackedLinear end in that")
    form = form_of(name, numbers[:_packed.FORM])
    if whole.numel() not in (bytes_of(form, False), bytes_of(form, True)):
        raise ValueError(f"{name}: it has {whole.numel()} bytes, and the weights of {form[0]}x{form[1]} that it says it is take "
                         f"{bytes_of(form, False)}, or {bytes_of(form, True)} with an order of columns")
    return form


def form_of(name, tensor):
    """The form in a tensor of this name."""
    if tuple(tensor.shape) != (_packed.FORM,) or tensor.dtype != torch.int64 or tensor.is_meta:
        raise ValueError(f"{name}: it is of {tensor.dtype} and of the shape {tuple(tensor.shape)} on {tensor.device}, not {_packed.FORM} integers "
                         "of 64 bits")
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
    if tensor.dtype not in (torch.int32, torch.int64) or tuple(tensor.shape) != (k,) or tensor.is_meta:
        raise ValueError(f"{name}: it is of {tensor.dtype} and of the shape {tuple(tensor.shape)} on {tensor.device}, not {k} integers")
    if not torch.equal(tensor.sort().values.cpu().long(), torch.arange(k)):
        raise ValueError(f"{name}: it is no order of the numbers from 0 to {k - 1}")


def read(state_dict, prefix, held=None):
    """What a state dict brings of a layer's weights: (the one tensor and its form, []), or (None, None, what is missing of them). Nothing is
    written. What contradicts itself is a ValueError that names the key. held: (form, whether there is an order) of the layer that it is for."""
    given = {name: state_dict[prefix + name] for name in PARTS if prefix + name in state_dict}
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{prefix}{name}: a {type(tensor).__module__}.{type(tensor).__qualname__} is no tensor")
    whole, key = given.get("packed"), prefix + "packed"
    if whole is None:
        return None, None, [name for name in ("packed", "form") if name not in given] if given else ["packed"]
    if len(given) > 1:
        return _read_old(given, prefix, held)
    if held is not None and whole.is_meta and whole.dtype == torch.uint8 and tuple(whole.shape) == (bytes_of(*held),):
        return whole.detach(), held[0], []
    if whole.is_meta:
        raise ValueError(f"{key}: it is on meta, where no bytes say what it is")
    if held is not None and whole.numel() == _packed.bytes_of(held[0]):  # an older file's, which lacks the rest
        return None, None, ["form", "order"] if held[1] else ["form"]
    form = form_in(key, whole)
    whole = whole.detach().contiguous()
    whole = whole.clone() if whole.storage_offset() % 4 else whole
    order = order_in(whole, form, order_at(whole.numel(), form))
    if order is not None:
        check_order(f"{key}, the order in it", order, form[1])
    return whole, form, []


def _read_old(given, prefix, held):
    """Of a file in which form and order have keys of their own."""
    if "form" not in given:
        return None, None, ["form"]
    form, codes, order = form_of(f"{prefix}form", given["form"]), given["packed"], given.get("order")
    if codes.dtype != torch.uint8 or tuple(codes.shape) != (_packed.bytes_of(form),) or codes.is_meta:
        raise ValueError(f"{prefix}packed: it is of {codes.dtype} and of the shape {tuple(codes.shape)} on {codes.device}, not "
                         f"{_packed.bytes_of(form)} bytes, as its form has")
    if order is None and held is not None and held[1]:
        return None, None, ["order"]
    if order is not None:
        check_order(f"{prefix}order", order, form[1])
    return joined(codes, form, order), form, []
