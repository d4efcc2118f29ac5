# SPDX-License-Identifier: MIT
"""No files of the package import each other in a circle, by whatever way: imports within functions count, too."""
import ast
import graphlib
import pathlib

import hgemm

ROOT = pathlib.Path(hgemm.__file__).parent


def modules(root):
    """{name: path}, names as from the package on; of a folder, its own."""
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix("__init__").rstrip("."): path for path in root.rglob("*.py")}


def imported(name, path, known):
    """The modules that a file names in imports, anywhere in it, or to importlib.import_module."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".") if package else []
            parts = parts[:len(parts) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                longer = ".".join([*parts, alias.name])
                yield longer if longer in known else ".".join(parts)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for text in (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)):
                if text.startswith("."):
                    yield ".".join(filter(None, [package, text[1:]]))


def circle(root):
    """Modules that import each other, or None."""
    known = modules(root)
    graph = {name: set(imported(name, path, known)) - {name, ""} for name, path in known.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def test_no_circle():
    assert circle(ROOT) is None


def test_a_circle_is_found(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in (("__init__", "from ._one import f"), ("_one", "import importlib\ndef f():\n    from . import _two"),
                       ("_two", "from .sub import _three"), ("sub/__init__", ""), ("sub/_three", "def g():\n    from .. import _four"), ("_four", "import json")):
        (tmp_path / f"{name}.py").write_text(text + "\n")
    assert circle(tmp_path) is None
    for text in ("from . import _one", "def h():\n    from ._two import x", "import importlib\nimportlib.import_module('._two', __package__)",
                 "def h():\n    from .sub._three import g"):
        (tmp_path / "_four.py").write_text(text + "\n")
        assert "_four" in circle(tmp_path), text
