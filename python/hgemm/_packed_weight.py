# SPDX-License-Identifier: MIT
"""The tensor that a packed layer shows as its weight."""
import torch
from torch.utils._pytree import tree_map_only

_DATA = torch.Tensor.data
_REQUIRES_GRAD = torch.Tensor.requires_grad


class PackedWeight(torch.Tensor):
    """Stands for the matrix of a packed layer. It answers shape, dtype and device, and has no memory: whatever operation reads it reads the
    matrix, unpacked for that. What writes to it, or to a view of it, first makes the layer the torch.nn.Linear that has the matrix as its
    parameter, so that nothing is written to a copy.

    layer    whose matrix it is: a PackedLinear, or what unpack_() has made of one
    views    functions that make this view of the matrix, the first one first"""

    @staticmethod
    def __new__(cls, layer, like=None, views=()):
        if like is None:
            like = torch.empty(layer.out_features, layer.in_features, dtype=layer.dtype, device="meta")
        # Of meta for torch's C++, which then refuses it for another tensor's data, but not for those who ask.
        made = torch.Tensor._make_wrapper_subclass(cls, like.shape, strides=like.stride(), storage_offset=like.storage_offset(), dtype=like.dtype,
                                                   device="meta", dispatch_device=True)
        made.layer, made.views = layer, views
        return made

    def matrix(self):
        """What it stands for: memory of the layer's own parameter, once it has one."""
        weight = self.layer._parameters.get("weight")
        matrix = self.layer.matrix() if weight is None else weight.detach()
        for view in self.views:
            matrix = view(matrix)
        return matrix

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        of = getattr(func, "__self__", None) if getattr(func, "__name__", None) == "__set__" else None  # which attribute is assigned to
        if of is _DATA and isinstance(args[0], cls):
            return _set_data(*args)
        if of is _REQUIRES_GRAD and args[1] or func is torch.Tensor.requires_grad_ and (*args[1:], *kwargs.values(), True)[0]:
            raise RuntimeError("weight: that of a packed layer cannot require a gradient; assign a torch.nn.Parameter to layer.weight, "
                               "which makes it a torch.nn.Linear")
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        return result.matrix() if isinstance(result, cls) and "weight" in result.layer._parameters else result  # of a Linear now

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return args[0].layer._parameters.get("weight", args[0].layer._buffers.get("packed")).device
        if func.is_view:
            return args[0]._viewed(func, args[1:], kwargs)
        given = [(argument, args[i] if i < len(args) else kwargs.get(argument.name)) for i, argument in enumerate(func._schema.arguments)]
        written = [one for argument, value in given if argument.alias_info is not None and argument.alias_info.is_write
                   for one in (value if isinstance(value, (list, tuple)) else (value,))]
        for one in written:
            if isinstance(one, cls):
                one._written()
        args, kwargs = tree_map_only(cls, cls.matrix, (args, kwargs))
        result = func(*args, **kwargs)
        return written[0] if len(written) == 1 and isinstance(result, torch.Tensor) else result

    def _written(self):
        """The layer's own parameter."""
        if "weight" not in self.layer._parameters:
            self.layer.unpack_()
        return self.layer.weight

    def _viewed(self, func, rest, kwargs):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return PackedWeight(self.layer, _like(self), self.views)

        def view(matrix):
            return func(matrix, *rest, **kwargs)
        made = view(_like(self))
        if isinstance(made, torch.Tensor):
            return PackedWeight(self.layer, made, (*self.views, view))
        return [PackedWeight(self.layer, one, (*self.views, lambda matrix, i=i: view(matrix)[i])) for i, one in enumerate(made)]

    def __repr__(self, **options):
        return f"PackedWeight({', '.join(map(str, self.shape))}, dtype={self.dtype}, device={self.device})"

    def __deepcopy__(self, memo):
        return self.matrix().clone()

    def data_ptr(self):
        raise RuntimeError("data_ptr: a packed layer's weight has no memory; .clone() has")


def _set_data(weight, data):
    if weight.views:
        raise RuntimeError("data: it can be set of a packed layer's whole weight, not of a view of it")
    weight._written().data = data.matrix() if isinstance(data, PackedWeight) else data


def _like(tensor):
    return torch.empty(0, dtype=tensor.dtype, device="meta").as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _of_the_matrix(name):
    def method(self, *arguments, **options):
        return getattr(self.matrix(), name)(*arguments, **options)
    return method


for _name in ("numpy", "tolist", "__array__", "__reduce_ex__", "__dlpack__", "storage", "untyped_storage"):
    setattr(PackedWeight, _name, _of_the_matrix(_name))
