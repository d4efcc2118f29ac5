# SPDX-License-Identifier: MIT
"""bitsandbytes' products of 4 bits under hgemm.torch.enable(): its function matmul_4bit, which Linear4bit calls by its module's name, is
replaced while bitsandbytes is loaded and an enable() is entered."""
from __future__ import annotations

import sys
import threading
import weakref

import torch

from . import _c, _torch_packed, formats
from ._dispatch import is_traced

_lock = threading.Lock()
_own = None  # bitsandbytes' function, once it was replaced
_packed_of: dict[int, tuple] = {}  # of a quant_state, by its id: (a reference that ends this, what its tensors were, PackedWeights or why there are none)


def enter(entered):
    """Replaces the function, once. entered(): the innermost enable() or None."""
    global _own
    bitsandbytes = sys.modules.get("bitsandbytes")
    if bitsandbytes is None or _own is not None or not _c.has_weights() or not hasattr(bitsandbytes, "matmul_4bit"):
        return
    with _lock:
        if _own is None:
            _own = bitsandbytes.matmul_4bit
            bitsandbytes.matmul_4bit = _replacement(entered, _own)


def forget():
    """Frees what was packed."""
    with _lock:
        _packed_of.clear()


def _replacement(entered, own):
    def matmul_4bit(A, B, quant_state, out=None, bias=None):
        active = None if is_traced() else entered()
        if active is None or A.device.type not in active.devices:
            return own(A, B, quant_state, out=out, bias=bias)
        why = "an out" if out is not None else None if A.dtype == active._half(A) else f"{A.dtype}"
        if why is None:
            weights = _weights(B, quant_state)
            if isinstance(weights, str):
                why = weights
            elif A.shape[-1] != weights.k:
                why = "weights of k x n"
            else:
                try:
                    result = _torch_packed.linear(A, weights, bias, batch_invariant=active.batch_invariant)
                except (TypeError, ValueError, _c.Error) as error:
                    if active.batch_invariant and isinstance(error, _c.NotSupportedError):
                        raise
                    why = str(error)
        active._count("matmul_4bit", why)
        return result if why is None else own(A, B, quant_state, out=out, bias=bias)
    return matmul_4bit


def _weights(weight, state):
    """What was packed of a weight, or why it was not. It is packed again where torch says that it was changed, or it was moved."""
    inner = getattr(state, "state2", None)
    beside = (getattr(of, name, None) for of, name in ((state, "absmax"), (state, "code"), (state, "offset"), (inner, "absmax"), (inner, "code")))
    tensors = [weight, *(tensor for tensor in beside if isinstance(tensor, torch.Tensor))]
    if any(tensor.is_inference() for tensor in tensors):
        return "a weight made in inference mode, of whose changes torch does not tell"
    mark, key = [(tensor.data_ptr(), tensor._version) for tensor in tensors], id(state)
    found = _packed_of.get(key)
    if found is None or found[0]() is not state or found[1] != mark:
        try:
            made = _torch_packed.pack(formats.bitsandbytes_state(weight, state), weight.device)
        except (TypeError, ValueError, NotImplementedError, _c.Error) as error:
            made = str(error)
        with _lock:
            found = _packed_of[key] = (weakref.ref(state, lambda _: _packed_of.pop(key, None)), mark, made)
    return found[2]
