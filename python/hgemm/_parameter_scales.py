# SPDX-License-Identifier: MIT
"""The scales of bfloat16 parameters of torch that were asked for, each found once for as long as the parameter does not change."""
from __future__ import annotations

import functools
import weakref

import torch

from . import _prepared
from ._plan import lines_of

_lines_of = functools.lru_cache(maxsize=4096)(functools.partial(lines_of, "x"))
_in_graphs: list[torch.Tensor] = []  # scales that captured graphs read: a graph may be replayed for as long as the process lives


class _Found:
    """A scale, of which parameter it is, and of which state of that: its memory and version."""

    __slots__ = ("owner", "pointer", "version", "scale", "stream", "event", "in_graph")

    def __init__(self, owner, scale, forget):
        self.owner = weakref.ref(owner, forget)
        self.pointer, self.version = owner.data_ptr(), owner._version
        self.scale, self.in_graph = scale, False
        self.stream = self.event = None
        if scale.is_cuda:
            self.stream = _prepared.raw_stream(scale.get_device())
            self.event = torch.cuda.current_stream(scale.device).record_event()

    def current_owner(self):
        """The parameter, or None if it is gone or has changed."""
        owner = self.owner()
        if owner is None:
            return None
        owner._fix_weakref()  # torch may have kept it while Python did not
        return owner if owner.data_ptr() == self.pointer and owner._version == self.version else None


def _owner_of(x):
    """The parameter that x is, or is a view of; None where torch does not say, or does not count its versions."""
    base = x if x._base is None else x._base
    is_parameter = type(base) is torch.nn.Parameter or isinstance(base, torch.nn.Parameter)  # the latter takes ten times as long
    return base if is_parameter and not base.is_inference() else None


def _capturing(x):
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


class Scales:
    """`find` finds the scale of a tensor on the current stream."""

    def __init__(self, find):
        self._find = find
        self._asked = {}  # parameters, by id
        self._found = {}  # by where the matrix lies

    def find(self, parameter):
        """Finds the scale of a parameter, and has it kept."""
        key = id(parameter)
        self._asked[key] = weakref.ref(parameter, lambda _: self._asked.pop(key, None))
        self.of(parameter)

    def of(self, x):
        """The scale of a parameter that was asked for, or of a view of one, or None: then the product finds it.

        Compiled code has no views of parameters, but reads the same memory: it meets what was found before. While a graph is
        captured nothing is found here, for it would be found in replays only. There the scale of a parameter that requires a
        gradient is left to the graph: it will change, and replays do not come by here."""
        if not self._asked:
            return None
        owner = _owner_of(x)
        if id(owner) not in self._asked if owner is not None else not self._found:
            return None
        try:
            key = x.device, x.data_ptr(), _lines_of(x.shape, x.stride())
        except ValueError:
            return None
        found = self._found.get(key)
        if found is None and owner is None:
            return None
        of = found and found.current_owner()
        if of is None or (owner is not None and of is not owner):
            found = None
        if _capturing(x):
            return self._for_graph(found) if found and not of.requires_grad else None
        if found is None:
            return self._keep(key, owner, x) if owner is not None else None
        if found.stream is not None and found.stream != _prepared.raw_stream(x.get_device()):
            torch.cuda.current_stream(x.device).wait_event(found.event)
            found.scale.record_stream(torch.cuda.current_stream(x.device))
        return found.scale

    def _keep(self, key, owner, x):
        found = None

        def forget(_):
            if self._found.get(key) is found:
                del self._found[key]
        # With room for elements 8 times as large: what torch does not count, such as an optimizer's step by .data, changes little.
        found = _Found(owner, self._find(x.detach()).mul_(2.0**-3).clamp_(min=2.0**-112), forget)
        if len(self._found) >= 1 << 14:
            self._found.clear()
        self._found[key] = found
        return found.scale

    @staticmethod
    def _for_graph(found):
        if not found.in_graph:
            found.in_graph = True
            _in_graphs.append(found.scale)
        return found.scale

    def clear(self):
        """Forgets scales, not what they are asked for of."""
        self._found.clear()

    def end(self):
        self._found.clear()
        self._asked.clear()

    def __len__(self):
        return len(self._found)
