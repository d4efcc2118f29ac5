# SPDX-License-Identifier: MIT
"""Whether torch's dispatcher must see a call, and how its FLOPs are counted. What nobody watches goes past the dispatcher, which saves a good
part of a call's time."""
import math
import sys

import torch

from ._plan import Shape

_forward_ad = torch.autograd.forward_ad
_in_functorch = torch._C._are_functorch_transforms_active
_modes, _trace = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state
_is_included, _PRE_DISPATCH = torch._C._dispatch_tls_is_dispatch_key_included, torch._C.DispatchKey.PreDispatch
casts = getattr(torch._C, "_is_any_autocast_enabled", None) or (lambda: torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled())

# casts() tells whether torch.autocast is entered: what it casts torch's own products to, it casts the operator gemm's to.

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def transformed():
    """Whether calls may be those of torch.func's transforms or have forward-mode derivatives."""
    return _forward_ad._current_level >= 0 or _in_functorch()


def watched():
    """Whether something sees all that goes through the dispatcher on this thread: torch.compile, torch.export, a transform, a
    TorchDispatchMode (make_fx, FakeTensorMode and FlopCounterMode are some), torch.jit.trace."""
    return torch.compiler.is_compiling() or transformed() or _modes() > 0 or _trace() is not None or _is_included(_PRE_DISPATCH)


def is_traced():
    """Whether what sees it records it, to be run later or elsewhere."""
    if torch.compiler.is_compiling() or _trace() is not None or _is_included(_PRE_DISPATCH):
        return True
    keys = torch._C._TorchDispatchModeKey
    return _modes() > 0 and any(torch._C._get_dispatch_mode(key) is not None for key in (keys.FAKE, keys.PROXY, keys.FUNCTIONAL))


def must_dispatch(arrays):
    """Whether a call on these must go through the dispatcher."""
    if watched():
        count_flops()
        return True
    recording = torch.is_grad_enabled()
    return any(isinstance(x, torch.Tensor) and (recording and x.requires_grad or type(x) not in PLAIN) for x in arrays)


# ---- torch.utils.flop_counter -------------------------------------------------------------------------------------


def _of_gemm(a, b, *rest, **options):
    shape = Shape(a, b)
    return 2 * math.prod(shape.batch) * shape.m * shape.n * shape.k


def _of_packed(x, packed, form, *rest, **options):
    """Of linear_packed and of its gradient."""
    return 2 * math.prod(x[:-1]) * form[0] * form[1]


def _of_groups(a, b, group_ends, form=None, gather_a=None, *rest, **options):
    """As if every row were in a group: ends are in device memory."""
    n = b[2] if form is None else form[0]
    return 2 * (a if gather_a is None else gather_a)[0] * n * a[1]


_counted = False


def count_flops():
    """Has FlopCounterMode count the operators, once a program uses that: to import it takes a third of a second, for it imports triton."""
    global _counted
    if _counted or torch.compiler.is_compiling():  # where torch.compile would look into all of sys.modules
        return
    counter = sys.modules.get("torch.utils.flop_counter")
    if counter is None or not hasattr(counter, "FlopCounterMode"):
        return
    _counted = True
    operators = torch.ops.hgemm
    formulas = {operators.gemm: _of_gemm, operators.linear_packed: _of_packed, operators.linear_packed_grad: _of_packed, operators.grouped: _of_groups}
    for operator, formula in formulas.items():
        counter.register_flop_formula(operator)(formula)
    for mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack():  # each has a copy of the formulas of when it was made
        of = getattr(mode, "counter", mode)
        if isinstance(of, counter.FlopCounterMode):
            of.flop_registry.update((operator, counter.flop_registry[operator]) for operator in formulas)
