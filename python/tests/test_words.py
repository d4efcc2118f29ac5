# SPDX-License-Identifier: MIT
"""Every argument of every public function, given what it does not take: it is taken all the same, or an exception names the argument that the
caller wrote, in a line. Nothing else is raised, such as an AttributeError from within."""
import contextlib
import re

import numpy as np
import pytest

import hgemm

H = np.float16
WRONG = {"none": None, "text": "x", "no text": "", "bytes": b"x", "half": 0.5, "negative": -1, "zero": 0, "huge": 10**400, "beyond words": 10**5000,
         "complex": 1j, "list": [1], "nested": [["x"]], "tuple": (), "dict": {"x": 1}, "set": {1}, "object": object(), "type": int, "function": len,
         "ellipsis": ..., "array of 4 dimensions": np.zeros((2, 3, 4, 5), H), "text in an array": np.array("2"), "other sizes": np.zeros((5, 7), H),
         "complex numbers": np.zeros((4, 8), complex), "objects": np.zeros((4, 8), object), "number": np.zeros((), H), "empty": np.zeros((0,), H),
         "float64": np.ones((4, 8)), "masked": np.ma.masked_equal(np.zeros((4, 8), H), 0), "record": np.zeros((4, 8), [("x", H)]),
         "read-only": np.broadcast_to(np.zeros(1, H), (4, 4))}


def functions():
    """{name: (function, arguments)} of calls that are right."""
    a, w = np.ones((4, 8), H), np.ones((3, 8), H)
    weights = hgemm.Weights(np.ones((16, 64), int), np.ones((16, 2), H), "int4", group=32)
    x, c, ends = np.ones((4, 64), H), np.ones((4, 3), H), np.array([1, 4], np.int32)
    epilogue = {"out": np.zeros((4, 3), H), "alpha": 1.0, "beta": 1.0, "c": c, "bias": np.ones(3, H), "activation": "relu", "gate": c,
                "accumulate": "float32", "out_dtype": "float16", "scale_a": None, "scale_b": None, "batch_invariant": False, "accuracy": "float32"}
    ours = {"kernel": None, "stream": None}
    wide = {**epilogue, "out": np.zeros((4, 16), H), "c": np.ones((4, 16), H), "bias": np.ones(16, H), "gate": np.ones((4, 16), H)}
    array, packed = hgemm.array(np.ones((4, 8), H)), hgemm.pack(weights)
    found = {
        "matmul": (hgemm.matmul, {"a": a, "b": w.T, **epilogue, **ours}),
        "linear": (hgemm.linear, {"x": a, "weight": w, **epilogue, **ours}),
        "linear, packed": (hgemm.linear, {"x": x, "weight": packed, **wide, **ours}),
        "grouped": (hgemm.grouped, {"a": a, "b": np.ones((2, 8, 3), H), "group_ends": ends, "gather_a": ends[[0, 0, 0, 0]],
                                    "scatter_d": np.arange(4, dtype=np.int32), **epilogue, "stream": None}),
        "find_scale": (hgemm.find_scale, {"x": hgemm.array(np.ones((4, 8), hgemm._types.BFLOAT16)), "stream": None}),
        "array": (hgemm.array, {"host": a, "device": None}),
        "info": (hgemm.info, {"device": None}),
        "bench": (hgemm.bench, {"shapes": ["16"], "kernels": ("auto",), "accumulate": "float32", "dtype": "float16", "repetitions": 1}),
        "Weights": (hgemm.Weights, {"codes": np.ones((16, 64), int), "scales": np.ones((16, 2), H), "code": "uint4", "group": 32,
                                    "zeros": np.ones((16, 2), int), "offsets": None, "table": None, "order": np.arange(64)}),
        "pack": (hgemm.pack, {"weights": weights}),
        "unpack": (packed.unpack, {"dtype": "float16"}),
        "swapaxes": (array.swapaxes, {"one": 0, "other": 1}),
        "copy_from": (array.copy_from, {"host": a}),
    }
    return found


def functions_of_torch():
    """The same of hgemm.torch's, and of ours with its tensors."""
    import torch

    import hgemm.torch as door

    def tensor(*shape, dtype=torch.float16):
        return torch.ones(shape, dtype=dtype)
    weights = hgemm.Weights(np.ones((16, 64), int), np.ones((16, 2), H), "int4", group=32)
    a, w, x, ends = tensor(4, 8), tensor(3, 8), tensor(4, 64), torch.tensor([1, 4], dtype=torch.int32)
    epilogue = {"alpha": 1.0, "beta": 1.0, "c": tensor(4, 3), "bias": tensor(3), "activation": "relu", "gate": tensor(4, 3), "accumulate": "float32",
                "out_dtype": torch.float16, "scale_a": None, "scale_b": None, "batch_invariant": False, "accuracy": "float32"}
    wide = {**epilogue, "c": tensor(4, 16), "bias": tensor(16), "gate": tensor(4, 16)}
    ours = {"out": None, "kernel": None, "stream": None}
    return {
        "torch.matmul": (door.matmul, {"a": a, "b": w.T, **epilogue}),
        "torch.linear": (door.linear, {"x": a, "weight": w, **epilogue}),
        "torch.linear, packed": (door.linear, {"x": x, "weight": hgemm.pack(weights, device="cpu"), **wide}),
        "torch.find_scale": (door.find_scale, {"x": w.bfloat16()}),
        "torch.enable": (door.enable, {"accumulate": "float32", "batch_invariant": False, "devices": ("cpu",), "bfloat16": None, "float32": False}),
        "torch.PackedLinear": (door.PackedLinear, {"weights": weights, "bias": tensor(16), "device": "cpu", "compute_dtype": torch.float16}),
        "PackedLinear's forward": (lambda x: door.PackedLinear(weights)(x), {"x": x}),
        "torch.convert": (door.convert, {"model": torch.nn.Linear(2, 2), "gptq_version": 1, "compute_dtype": torch.float16}),
        "matmul of tensors": (hgemm.matmul, {"a": a, "b": w.T, **epilogue, **ours}),
        "matmul of parameters": (hgemm.matmul, {"a": torch.nn.Parameter(a), "b": w.T, **epilogue, **ours}),
        "linear of tensors": (hgemm.linear, {"x": a, "weight": w, **epilogue, **ours}),
        "grouped of tensors": (hgemm.grouped, {"a": a, "b": tensor(2, 8, 3), "group_ends": ends, "gather_a": ends[[0, 0, 0, 0]], **epilogue,
                                               "stream": None}),
        "pack for torch": (hgemm.pack, {"weights": weights, "device": "cpu"}),
    }


FUNCTIONS = functions()
with contextlib.suppress(ImportError):
    FUNCTIONS.update(functions_of_torch())


def misnamed(function, arguments, argument, value):
    """The exception of a call with another value, if it does not name that argument; None where it does, or there is none."""
    given = {name: x.copy() if name == "out" and isinstance(x, np.ndarray) else x for name, x in arguments.items()}
    given[argument] = value
    try:
        function(**given)
    except hgemm.NotSupportedError:
        return None
    except (TypeError, ValueError, hgemm.Error) as error:
        words = str(error)
        first = re.match(r"\w+(?=: )", words)
        if first and first[0] in arguments and re.search(rf"\b{argument}\b", words) and len(words) < 400 and "\n" not in words:
            return None
        return f"{type(error).__name__}: {words[:200]}"
    except Exception as error:  # of any other kind
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


@pytest.mark.parametrize("name, argument", [(name, argument) for name, (_, arguments) in FUNCTIONS.items() for argument in arguments])
def test_the_argument_is_named(name, argument):
    found = {value: misnamed(*FUNCTIONS[name], argument, WRONG[value]) for value in WRONG}
    assert not any(found.values()), {value: words for value, words in found.items() if words}
