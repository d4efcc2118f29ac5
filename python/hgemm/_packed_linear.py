# SPDX-License-Identifier: MIT
"""The module that holds packed weights."""
import torch

from . import _packed
from ._packed import PackedWeights
from ._packed_state import check_order, form_of
from ._tensors import check
from ._torch_packed import product
from ._words import is_one_of, shown


class PackedLinear(torch.nn.Module):
    """A linear layer whose weights are packed: PackedLinear(hgemm.Weights, bias), or of what hgemm.pack(weights, device="cuda") made.

    Its state dict has `packed` (bytes), `form` (what they are, as numbers), `order` (act-order) and `bias`: tensors, as safetensors takes
    them. compute_dtype: what x of float32 is rounded to before the product; without it, nothing."""

    def __init__(self, weights, bias=None, *, device=None, compute_dtype=None):
        super().__init__()
        if not isinstance(weights, PackedWeights):
            weights = _packed.pack(weights, device="cpu" if device is None else device)
        if not isinstance(weights.data, torch.Tensor) or weights.experts is not None:
            raise ValueError("weights: they are not packed in a tensor of torch's for one matrix; hgemm.pack(weights, device=...) does that")
        with torch.inference_mode(False):
            form = torch.tensor(weights.form, dtype=torch.int64)
        self.register_buffer("packed", weights.data)
        self.register_buffer("form", form)
        self.register_buffer("order", weights.order)
        if bias is not None and not isinstance(bias, torch.Tensor):
            raise TypeError(f"bias: a {type(bias).__module__}.{type(bias).__qualname__} is no tensor")
        if bias is not None and tuple(bias.shape) != (weights.n,):
            raise _packed.wrong_shape("bias", bias.shape, (weights.n,))
        self.register_parameter("bias", None if bias is None else torch.nn.Parameter(bias.detach(), requires_grad=False))
        if not is_one_of(compute_dtype, None, torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(f"compute_dtype: {shown(compute_dtype)} is none of torch.float16, torch.bfloat16 and torch.float32")
        self.compute_dtype, self._form = compute_dtype, weights.form

    in_features = property(lambda self: self._form[1])
    out_features = property(lambda self: self._form[0])

    @property
    def weights(self):
        """The hgemm.PackedWeights."""
        return PackedWeights(self.packed, self._form, self.order)

    def forward(self, x):
        check([("x", x)], ("x",))
        device, out_dtype = x.device.type, None
        if device in ("cuda", "cpu") and torch.is_autocast_enabled(device):
            x = x.to(torch.get_autocast_dtype(device))
        elif x.dtype == torch.float32 and self.compute_dtype is not None:
            x, out_dtype = x.to(self.compute_dtype), torch.float32
        if x.dim() == 0 or x.shape[-1] != self._form[1]:
            raise _packed.wrong_shape("x", x.shape, f"(..., {self._form[1]})")
        return product(x, self.packed, self._form, self.order, self.bias, None, None, 1.0, 1.0, "none", out_dtype, False, {})

    def extra_repr(self):
        return repr(self.weights)[len("<hgemm.PackedWeights "):-1] + ("" if self.bias is None else ", bias")

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        if prefix + "form" in state_dict:
            form = form_of(prefix + "form", state_dict[prefix + "form"])
            if form[:2] != self._form[:2]:
                raise ValueError(f"{prefix}form: it is of weights of {form[0]}x{form[1]}, and the layer's are {self._form[0]}x{self._form[1]}")
            if form != self._form:
                self._form, self.packed = form, torch.empty(_packed.bytes_of(form), dtype=torch.uint8, device=self.packed.device)
        order = state_dict.get(prefix + "order")
        if order is not None:
            check_order(prefix + "order", order, self._form[1])
        if (order is None) != (self.order is None):
            self.order = None if order is None else torch.empty(self._form[1], dtype=order.dtype, device=self.packed.device)
        super()._load_from_state_dict(state_dict, prefix, *arguments)
