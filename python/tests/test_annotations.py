# SPDX-License-Identifier: MIT
"""Every public name is annotated. What the annotations say is mypy's to check: check.sh."""
import inspect

import pytest

import hgemm
import hgemm.cublas
import hgemm.formats


def public(module):
    return [(f"{module.__name__}.{name}", getattr(module, name)) for name in module.__all__]


NAMES = dict(public(hgemm) + public(hgemm.formats) + public(hgemm.cublas))
try:
    import hgemm.torch
    NAMES.update(public(hgemm.torch))
except ImportError:
    pass


def functions(name, thing):
    """(name, function) of a function, or of what a class itself defines for its callers."""
    if not inspect.isclass(thing):
        yield name, thing
        return
    for of in thing.__mro__:
        if not of.__module__.startswith("hgemm"):
            continue
        for method, found in vars(of).items():
            if not method.startswith("_") or method == "__init__":
                found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
                if inspect.isfunction(found):
                    yield f"{name}.{method}", found


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_annotated(name):
    for what, function in functions(name, NAMES[name]):
        signature = inspect.signature(function)
        bare = [name for name, parameter in signature.parameters.items() if parameter.annotation is inspect.Parameter.empty and name not in ("self", "cls")]
        assert not bare and signature.return_annotation is not inspect.Signature.empty, (what, bare)
