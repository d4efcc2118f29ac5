# SPDX-License-Identifier: MIT
"""The module that holds packed weights."""
from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch

from . import _packed, _packed_state
from ._dispatch import watched
from ._packed import PackedWeights
from ._packed_weight import PackedWeight
from ._tensors import check
from ._torch_packed import PackedTensor, pack, product
from ._weights import Weights
from ._words import is_one_of, shown


class PackedLinear(torch.nn.Linear):
    """A linear layer whose weights are packed: PackedLinear(hgemm.Weights, bias), or of what hgemm.pack(weights, device="cuda") made, which it
    copies.

    Its state dict has `packed`, one tensor of bytes that says itself what it is (_packed_state), and `bias`. `weight` answers shape, dtype and
    device, and is unpacked by what reads it; what writes it makes the layer a plain torch.nn.Linear (PackedWeight, unpack_).

    dtype          what `weight` is unpacked to, and says that it is: by default that of the bias, or torch's default, as torch.nn.Linear has it.
                   x may be of another
    compute_dtype  what x of float32 is rounded to before the product; without it, nothing"""

    def __init__(self, weights: Weights | PackedWeights, bias: torch.Tensor | None = None, *, device: Any = None, dtype: torch.dtype | None = None,
                 compute_dtype: torch.dtype | None = None) -> None:
        held = weights if isinstance(weights, PackedWeights) else pack(weights, "cpu" if device is None else device)
        if not isinstance(held.data, torch.Tensor) or held.experts is not None:
            raise ValueError("weights: they are not packed in a tensor of torch's for one matrix; hgemm.pack(weights, device=...) does that")
        if bias is not None and not isinstance(bias, torch.Tensor):
            raise TypeError(f"bias: a {type(bias).__module__}.{type(bias).__qualname__} is no tensor")
        if bias is not None and tuple(bias.shape) != (held.n,):
            raise _packed.wrong_shape("bias", bias.shape, (held.n,))
        if not is_one_of(dtype, None, torch.float16, torch.bfloat16, torch.float32, torch.float64):
            raise ValueError(f"dtype: {shown(dtype)} is none of torch.float16, torch.bfloat16, torch.float32 and torch.float64")
        if not is_one_of(compute_dtype, None, torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(f"compute_dtype: {shown(compute_dtype)} is none of torch.float16, torch.bfloat16 and torch.float32")
        self._hold(_packed_state.joined(held.data, held.form, held.order), held.form, bias, dtype, compute_dtype)

    def _hold(self, packed, form, bias, dtype, compute_dtype):
        torch.nn.Module.__init__(self)  # not Linear's, which makes a matrix
        self.out_features, self.in_features = form[:2]
        self.register_buffer("packed", packed)
        self.register_parameter("bias", None if bias is None else torch.nn.Parameter(bias.detach().to(packed.device), requires_grad=False))
        self.dtype = dtype or (bias.dtype if bias is not None and bias.is_floating_point() else torch.get_default_dtype())
        self.compute_dtype = compute_dtype
        self._remember(form)

    @classmethod
    def of_bytes(cls, packed: torch.Tensor, form: tuple[int, ...], bias: torch.Tensor | None, dtype: torch.dtype) -> PackedLinear:
        """A layer of the one tensor that a state dict has, which has been read."""
        made = cls.__new__(cls)
        made._hold(packed, form, bias, dtype, None)
        return made

    # ---- what the bytes are ----

    def _remember(self, form):
        self._form, self._order_at = form, _packed_state.order_at(self.packed.numel(), form)
        self._seen = weakref.ref(self.packed), None if self.packed.is_inference() else self.packed._version

    def __getstate__(self):
        return {**self.__dict__, "_seen": None}

    @property
    def form(self) -> tuple[int, ...]:
        """What the bytes are, as PackedWeights.form. It is read again where others have put bytes there, as accelerate's loaders and DDP do."""
        if not torch.compiler.is_compiling():
            packed, seen = self.packed, self._seen
            if seen is None or seen[0]() is not packed or seen[1] is not None and seen[1] != packed._version:
                self._read_again(packed)
        return self._form

    def _read_again(self, packed):
        if type(packed) is not torch.Tensor or packed.is_meta or watched() or packed.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        form = _packed_state.form_in("packed", packed)
        if form[:2] != self._form[:2]:
            raise ValueError(f"packed: it is of weights of {form[0]}x{form[1]}, and the layer's are {self._form[0]}x{self._form[1]}")
        self._remember(form)

    @property
    def order(self) -> torch.Tensor | None:
        """The order of columns, or None: PackedWeights.order."""
        form = self.form
        return _packed_state.order_in(self.packed, form, self._order_at)

    @property
    def weights(self) -> PackedWeights:
        """The hgemm.PackedWeights."""
        form = self.form
        return PackedTensor(self.packed[:_packed.bytes_of(form)], form, self.order)

    # ---- what it does ----

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        check([("x", x)], ("x",))
        if "weight" in self._parameters:  # unpack_() was called, and others, such as accelerate's hooks, hold this method
            return torch.nn.functional.linear(x, self.weight, self.bias)
        device, out_dtype, form = x.device.type, None, self.form
        if device in ("cuda", "cpu") and torch.is_autocast_enabled(device):
            x = x.to(torch.get_autocast_dtype(device))
        elif x.dtype == torch.float32 and self.compute_dtype is not None:
            x, out_dtype = x.to(self.compute_dtype), torch.float32
        if x.dim() == 0 or x.shape[-1] != form[1]:
            raise _packed.wrong_shape("x", x.shape, f"(..., {form[1]})")
        order = _packed_state.order_in(self.packed, form, self._order_at)
        return product(x, self.packed, form, order, self.bias, None, None, 1.0, 1.0, "none", out_dtype, False, {})

    def extra_repr(self) -> str:
        return repr(self.weights)[len("<hgemm.PackedWeights "):-1] + ("" if self.bias is None else ", bias")

    def _apply(self, fn, recurse=True):
        known = self.form
        super()._apply(fn, recurse)
        self.dtype = fn(torch.zeros(1, dtype=self.dtype, device=self.packed.device)).dtype
        self._remember(known)
        return self

    # ---- its weight ----

    @property
    def weight(self) -> torch.Tensor:
        return self.matrix() if watched() else PackedWeight(self)

    @torch.no_grad()
    def matrix(self) -> torch.Tensor:
        """The matrix, unpacked to `dtype`."""
        is_half, form = self.dtype in (torch.float16, torch.bfloat16), self.form
        matrix = torch.ops.hgemm.unpack(self.packed, form, self.dtype if is_half else torch.float32).to(self.dtype)
        return matrix if self._order_at is None else matrix.index_select(-1, torch.argsort(self.order))

    @torch.no_grad()
    @torch.inference_mode(False)
    def unpack_(self, weight: torch.Tensor | None = None) -> PackedLinear:
        """Makes the layer a torch.nn.Linear, in place, as torch's lazy modules become what they are of. Its weight is the parameter that is
        given, or one of the matrix in `dtype`. So PEFT merges an adapter."""
        weight = torch.nn.Parameter(self.matrix(), requires_grad=False) if weight is None else weight
        if tuple(weight.shape) != (self.out_features, self.in_features):
            raise _packed.wrong_shape("weight", weight.shape, (self.out_features, self.in_features))
        del self._buffers["packed"], self.dtype, self.compute_dtype, self._form, self._order_at, self._seen
        self.__class__ = torch.nn.Linear
        self.weight = weight  # type: ignore[misc]  # of a Linear now
        return self

    def register_parameter(self, name: str, param: torch.nn.Parameter | None) -> None:
        if name == "weight" and param is not None:
            self.unpack_(param)
        else:
            super().register_parameter(name, param)

    # ---- state dicts ----

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """All of what a state dict brings for the layer, or, where something is wrong with it or a part of the weights is missing, nothing."""
        assign, key = local_metadata.get("assign_to_params_buffers", False), prefix + "packed"
        try:
            found, form, missing = self._check_load(state_dict, prefix, assign)
            if found is not None:
                found = self._ready(key, found, assign)
        except ValueError as error:
            error_msgs.append(str(error))
            return
        missing_keys += [prefix + name for name in missing]
        if missing and any(prefix + name in state_dict for name in _packed_state.PARTS):
            return
        rest = {name: tensor for name, tensor in state_dict.items() if name not in [prefix + part for part in _packed_state.PARTS]}
        others, errors = [], []
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, others, unexpected_keys, errors)
        missing_keys += [name for name in others if name != key]
        error_msgs += errors
        if found is not None and not errors:
            if assign or not self._holds(found):
                self.packed = found
            else:
                with torch.no_grad():
                    self.packed.copy_(found)
            self._remember(form)

    def _holds(self, found):
        """Whether bytes are copied into the same memory, whose address CUDA graphs have recorded."""
        return found.shape == self.packed.shape and not self.packed.is_inference()

    def _check_load(self, state_dict, prefix, assign):
        """_packed_state.read of what the layer can take; nothing is written. Raises ValueError."""
        found, form, missing = _packed_state.read(state_dict, prefix, (self.form, self._order_at is not None))
        if found is not None and form[:2] != self._form[:2]:
            raise ValueError(f"{prefix}packed: it is of weights of {form[0]}x{form[1]}, and the layer's are {self._form[0]}x{self._form[1]}")
        if found is not None and found.is_meta and not assign and not self.packed.is_meta:
            raise ValueError(f"{prefix}packed: it is on meta, and has no bytes to copy")
        return found, form, missing

    def _ready(self, key, found, assign):
        """What is to be the layer's `packed`, or to be copied into it; None where torch copies nothing, onto meta."""
        if assign:
            is_aligned = found.is_meta or (found.data_ptr() if found.is_cuda else found.storage_offset()) % 16 == 0
            return found if is_aligned else found.clone()
        if self.packed.is_meta:
            warnings.warn(f"for {key}: nothing is copied to a layer on meta; assign=True takes the tensor itself", stacklevel=4)
            return None
        return found if self._holds(found) else found.to(self.packed.device, copy=True)
