# SPDX-License-Identifier: MIT
"""All that Python knows of activations: one row for each."""
import math
from collections import namedtuple

from ._words import shown

# value     the C library's
# library   the C library's name
# function  what it does to a tensor, by torch: function(torch, z)
# formula   the same, of operations that torch differentiates again and again, in each of its modes: formula(torch, z)
# slope     its derivative at z, of operations that torch differentiates again and again: slope(torch, z)
# backward  g * slope in one of torch's kernels, which need not have a derivative: backward(aten, g, z)
Activation = namedtuple("Activation", "value library function formula slope backward")


# Beyond the bounds that z is clamped to, slopes are what they are there, even at infinities.


_STEEP, _CUBE = math.sqrt(2 / math.pi), 0.044715  # of gelu by tanh


def _gelu(torch, z):
    return 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))


def _gelu_slope(torch, z):
    z = z.clamp(-20, 20)
    return 0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _gelu_tanh(torch, z):
    y = z.clamp(-20, 20)
    return 0.5 * z * (1 + torch.tanh(_STEEP * (y + _CUBE * y * y * y)))


def _gelu_tanh_slope(torch, z):
    z = z.clamp(-20, 20)
    t = torch.tanh(_STEEP * (z + _CUBE * z * z * z))
    return 0.5 * (1 + t) * (1 + z * (1 - t) * _STEEP * (1 + 3 * _CUBE * z * z))


def _silu_slope(torch, z):
    z = z.clamp(-200, 200)
    s = torch.sigmoid(z)
    return s * (1 + z * torch.sigmoid(-z))


ACTIVATIONS = {
    "none": Activation(0, "none", lambda torch, z: z, lambda torch, z: z, lambda torch, z: torch.ones_like(z), lambda aten, g, z: g),
    "relu": Activation(1, "relu", lambda torch, z: torch.relu(z), lambda torch, z: torch.relu(z), lambda torch, z: (z > 0).to(z.dtype),
                       lambda aten, g, z: aten.threshold_backward(g, z, 0)),
    "gelu_tanh": Activation(2, "gelu_tanh", lambda torch, z: torch.nn.functional.gelu(z, approximate="tanh"), _gelu_tanh, _gelu_tanh_slope,
                            lambda aten, g, z: aten.gelu_backward(g, z.clamp(-20, 20), approximate="tanh")),
    "gelu": Activation(3, "gelu_erf", lambda torch, z: torch.nn.functional.gelu(z), _gelu, _gelu_slope,
                       lambda aten, g, z: aten.gelu_backward(g, z)),
    "silu": Activation(4, "silu", lambda torch, z: torch.nn.functional.silu(z), lambda torch, z: z * torch.sigmoid(z), _silu_slope,
                       lambda aten, g, z: aten.silu_backward(g, z)),
}


def activation(name):
    """The row of a name, of which None is one."""
    found = ACTIVATIONS.get("none" if name is None else name) if name is None or isinstance(name, str) else None
    if found is None:
        raise ValueError(f"activation: {shown(name)} is none of None, {', '.join(map(repr, ACTIVATIONS))}")
    return found
