# SPDX-License-Identifier: MIT
"""docs/api.md's tables: every public name by task, with the first sentence of its own contract or docstring."""
import ast
import functools
import re
import sys

from evidence.words import table
from results import ROOT

HEADER, PACKAGE = ROOT / "include" / "hgemm.h", ROOT / "python" / "hgemm"
# The order of each task is the one in which a program calls these. A public name stands in one task.
C_TASKS = {
    "open": ("hgemm_create", "hgemm_get_device_info", "hgemm_set_stream", "hgemm_get_stream"),
    "errors": ("hgemm_status_name", "hgemm_status_string", "hgemm_error_detail", "hgemm_version"),
    "memory": ("hgemm_malloc", "hgemm_upload", "hgemm_set_workspace", "hgemm_half_from_float", "hgemm_half_to_float"),
    "multiply": ("hgemm_run_f32", "hgemm_run", "hgemm_desc_init", "hgemm_desc_init_sized", "hgemm_run_desc", "hgemm_prepare", "hgemm_activation_name",
                 "hgemm_find_scale"),
    "weights": ("hgemm_weights_init", "hgemm_weights_init_sized", "hgemm_weights_bytes", "hgemm_pack_weights", "hgemm_unpack_weights"),
    "kernels": ("hgemm_select", "hgemm_kernel_count", "hgemm_get_kernel_info", "hgemm_find_kernel"),
    "plans": ("hgemm_plan_create", "hgemm_plan_get_info", "hgemm_plan_run", "hgemm_plan_get_text", "hgemm_plan_from_text"),
    "tuning": ("hgemm_load_tuning", "hgemm_get_cublas_ratio"),
    "finish": ("hgemm_synchronize", "hgemm_download", "hgemm_free", "hgemm_plan_destroy", "hgemm_destroy"),
}
PYTHON_TASKS = {
    "multiply": ("hgemm.matmul", "hgemm.linear", "hgemm.grouped", "hgemm.find_scale"),
    "arrays": ("hgemm.array", "hgemm.DeviceArray"),
    "weights": ("hgemm.Weights", "hgemm.pack", "hgemm.PackedWeights", "hgemm.gguf"),
    "measure": ("hgemm.info", "hgemm.kernels", "hgemm.bench", "hgemm.predictions", "hgemm.report"),
    "errors": ("hgemm.Error", "hgemm.ArgumentError", "hgemm.NotSupportedError", "hgemm.OutOfMemoryError", "hgemm.DeviceError"),
    "torch": ("hgemm.torch.matmul", "hgemm.torch.linear", "hgemm.torch.find_scale", "hgemm.torch.enable"),
    "models": ("hgemm.torch.convert", "hgemm.torch.load_state_dict", "hgemm.torch.PackedLinear", "hgemm.torch.PackedExperts"),
    "cublas": ("hgemm.cublas.library",),
}


def first_sentence(text):
    text = " ".join(text.split())
    return re.match(r".*?[^.]\.(?= |$)|.*", text)[0]


@functools.cache
def c_functions(text=None):
    """{name: the first sentence of the comment that ends on the line above its declaration} of each public function."""
    found = {}
    lines = (text or HEADER.read_text()).split("\n")
    for at, line in enumerate(lines):
        name = re.match(r"(?:HGEMM_API|static inline) [\w *]*?(hgemm_\w+)\(", line)
        if not name:
            continue
        if not lines[at - 1].endswith("*/"):
            sys.exit(f"include/hgemm.h: {name[1]} has no contract above it")
        start = next(i for i in range(at - 1, -1, -1) if lines[i].startswith("/*"))
        comment = "\n".join(lines[start:at]).removeprefix("/*").removesuffix("*/")
        found[name[1]] = first_sentence(re.sub(r"^ \*", "", comment, flags=re.M))
    return found


def definition(path, name):
    """The class or function of that name in a module, which may import it from another of the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module:
                    module = path.parent.joinpath(*node.module.split("."))
                    return definition(module / "__init__.py" if module.is_dir() else module.with_suffix(".py"), alias.name)
    sys.exit(f"{path.relative_to(ROOT)}: there is no {name}")


@functools.cache
def python_names():
    """{name: the first sentence of its docstring} of all that __all__ names in hgemm, hgemm.torch and hgemm.cublas."""
    found = {}
    for module, path in (("hgemm", PACKAGE / "__init__.py"), ("hgemm.torch", PACKAGE / "torch.py"), ("hgemm.cublas", PACKAGE / "cublas.py")):
        listed = re.search(r"^__all__ = (\[.*?\])", path.read_text(), re.M | re.S)
        for name in ast.literal_eval(listed[1]):
            words = ast.get_docstring(definition(path, name))
            if not words:
                sys.exit(f"{module}.{name} has no docstring")
            found[f"{module}.{name}"] = first_sentence(words)
    return found


def complete(tasks, names, where):
    """The tasks, of which each public name has one. Exits where one has none, or is none."""
    placed = [name for task in tasks.values() for name in task]
    for name in sorted(set(names) - set(placed)):
        sys.exit(f"{where}: {name} has no task in tools/evidence/api.py")
    for name in placed:
        if name not in names or placed.count(name) > 1:
            sys.exit(f"tools/evidence/api.py: {name} is no public name of {where}, or has two tasks")
    return tasks


def rows(names, sentences, call):
    def code(words):  # so that Markdown takes no star or bar for its own
        return re.sub(r"\|", r"\|", re.sub(r"(?<!`)\*(?!`|\w+`)", r"\*", words))
    return table((call, "what it does"), [(f"`{name}`", code(sentences[name])) for name in names])


def c_table(task):
    return rows(complete(C_TASKS, c_functions(), "include/hgemm.h")[task], c_functions(), "function")


def python_table(task):
    return rows(complete(PYTHON_TASKS, python_names(), "python/hgemm")[task], python_names(), "name")
