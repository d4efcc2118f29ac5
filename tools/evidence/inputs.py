# SPDX-License-Identifier: MIT
"""What a file of results depends on, by hashes that it carries: which results are older than the code.

A file's context has `inputs`: a hash of each part that its rows depend on, as it was when they were made. A hash and not a commit is
compared, so that a tree without its history can tell, too, and what comes back to what it was is not stale. The parts are

    k5_64x64_nn ...     an image that was launched (images.py): what a T4 runs, for files of a T4, else what newer GPUs compile
    k5_tuned ...        all images of a source, and
    images              all that there are, for what names none
    selection           how a plan is chosen: the sources of that, and the table
    clock               the timing model of a T4
    counting            the emulator's counters
    door, package, call, install
                        the cuBLAS door, the Python package, the host side of a call, and what a first use installs and compiles

Of a source comments and blanks do not count. A hash that is null is of an image which was not recorded: it counts as another.

Rows name their images in `images`. What else a file depends on is in its context's `depends`; a text (results.read) has no rows, and
depends on what TEXTS says.
"""
import functools
import io
import pathlib
import re
import subprocess
import tarfile
import tempfile

from evidence import images
from results import ROOT

FILES = {
    "selection": [f"src/select/{name}" for name in ("cost.c", "costs.def", "family.c", "feasible.c", "few.c", "fma.c", "machine.c", "mma.c", "price.c", "selection.c", "thin.c",
                                                        "tiny.c")] + ["src/table/kernels.def"],
    "clock": ["src/turing/time.c", "src/turing/time.def", "src/turing/time_memory.c"],
    "counting": ["src/turing/count.c"],
    "door": ["src/cublas/*.[ch]"],
    "package": ["python/hgemm/**/*.py"],
    "call": ["src/api/*.[ch]", "src/problem/*.[ch]"],
    "install": ["tools/setup.sh", "tools/run.sh", "cmake/*.cmake", "src/table/ways.def", "python/pyproject.toml"],
}
TEXTS = {"cases": "images selection", "door": "door selection", "first_use": "install", "packed": "package weights", "python": "package",
         "tests": "images selection"}
TREE = ("cmake", "src", "tools", "python")


def code_of(path):
    """A source without comments, with single blanks, and without the lines that name what is included."""
    if path.suffix not in (".c", ".h", ".def"):
        return " ".join(re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M).split())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#\s*(include|pragma once)\b.*$", "", text, flags=re.M)
    return " ".join(text.split())


def of_tree(root):
    """{part: hash, or for images (hash on a T4, hash on newer GPUs)} of a tree."""
    found, of_source = {}, {}
    for part, files in FILES.items():
        found[part] = images.digest(*(code_of(path).encode() for pattern in files for path in sorted(root.glob(pattern))))
    listed = images.parsed((root / images.LIST).read_text()) if (root / images.LIST).exists() else {}
    for symbol, (source, *hashes) in sorted(listed.items()):
        for group in (source, "images"):
            of_source.setdefault(group, []).append([symbol, *hashes])
    for source, every in of_source.items():
        found[source] = tuple(images.digest(*(f"{row[0]} {row[gpu]}".encode() for row in every)) for gpu in (1, 2))
    return found | {symbol: tuple(hashes) for symbol, (_, *hashes) in listed.items()}


@functools.cache
def now():
    return of_tree(ROOT)


@functools.cache
def of_commit(commit):
    """The same of a commit; None where git does not know it."""
    if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True).returncode:
        return None
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, *TREE], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder, filter="data")
        return of_tree(pathlib.Path(folder))


def needed(result):
    """The parts that a file's rows depend on."""
    context, witness = result["context"], result["context"].get("witness")
    parts = {*context.get("depends", TEXTS.get(context.get("text"), "")).split()}
    parts.update(*(row.get("images", "").split() for row in result["results"]))
    if witness != "emulated" and any(row.get("kernel", "").startswith("auto") for row in result["results"]):  # counts are shown by kernel
        parts.add("selection")
    return parts | ({"clock"} if witness == "modelled" else {"counting"} if witness == "emulated" else set())


def hash_in(tree, part, result):
    """A part's hash in a tree (of_tree), on the GPU that a file is of; None where it has no such part."""
    found = tree.get(part)
    return found if found is None or isinstance(found, str) else found["T4" not in result["context"].get("gpu", "")]


def stamp(result, tree):
    """{part: hash} of all that a file depends on."""
    return {part: hash_in(tree, part, result) for part in sorted(needed(result))}


def changed(result):
    """The parts that are not what they were when the file was made; of images, their kernels."""
    if result["context"].get("witness") == "published":
        return set()
    then = result["context"].get("inputs", {})
    return {images.kernel_of(part) for part in needed(result) | then.keys() if then.get(part) is None or then[part] != hash_in(now(), part, result)}
