# SPDX-License-Identifier: MIT
"""What a file of results depends on, by hashes that it carries: which results are older than the code.

A file's context has `inputs`: a hash of each part of the tree that its rows depend on, as the tree was when they were made. A hash
and not a commit is compared, so that a tree without its history can tell, too, and what comes back to what it was is not stale.
Comments and blanks do not count. The parts are

    k5_tuned ...    a kernel source, ptx/<name>.cu, with what it includes (of insn.cuh what it calls)
    row of ...      a kernel's row of kernels.def, but for ON_T4, which only a T4's machine code takes, and what selection alone reads
    T4 row of ...   the same with ON_T4
    selection       how a plan is chosen, with those columns of the rows that it alone reads
    clock           the timing model of a T4
    counting        the emulator's counters
    door, package, call, install
                    the cuBLAS door, the Python package, the host side of a call, and what a first use installs and compiles

A text (results.read) has no rows. What it depends on is in TEXTS; that of a list without kernels, in its context's `depends`.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile

from results import ROOT

FILES = {
    "selection": [f"src/select/{name}" for name in ("cost.c", "costs.def", "family.c", "feasible.c", "few.c", "fma.c", "machine.c", "mma.c", "price.c", "selection.c", "thin.c",
                                                        "tiny.c")],
    "clock": ["src/turing/time.c", "src/turing/time.def", "src/turing/time_memory.c"],
    "counting": ["src/turing/count.c"],
    "door": ["src/cublas/*.[ch]"],
    "package": ["python/hgemm/**/*.py"],
    "call": ["src/api/*.[ch]", "src/problem/*.[ch]"],
    "install": ["tools/setup.sh", "tools/run.sh", "cmake/*.cmake", "src/table/ways.def", "python/pyproject.toml"],
}
PRODUCTS = "few k5_tuned single thin tiny weights selection"
TEXTS = {"cases": PRODUCTS, "door": "door selection", "first_use": "install", "packed": "package weights", "python": "package", "tests": PRODUCTS}
TREE = ("ptx", "cmake", "src", "tools", "python")
# The table's rows are hashed one by one. Arguments are where parameters lie: a kernel that reads a new one changes itself.
APART = ("kernels.def", "args.h")
SELECTIONS_OWN = re.compile(r" *\b(?:INVARIANT|T4_ALONE)\(\)")  # columns


def code_of(path):
    """A source without comments, with single blanks, and without the lines that name what is included."""
    if path.suffix not in (".c", ".h", ".cu", ".cuh", ".def"):
        return " ".join(re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M).split())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#\s*(include|pragma once)\b.*$", "", text, flags=re.M)
    return " ".join(text.split())


def closure(path):
    """A source and what it includes, in the order in which a compiler meets them."""
    found, ahead = [], [path]
    while ahead:
        here = ahead.pop().resolve()
        if here in found or here.name in APART or not here.exists():
            continue
        found.append(here)
        ahead += [here.parent / name for name in reversed(re.findall(r'^\s*#\s*include "(.*?)"', here.read_text(), re.M))]
    return found


def called(pieces):
    """Of instructions' functions, insn.cuh, those that the other pieces call: a kernel does not depend on the others."""
    others = " ".join(text for path, text in pieces if path.name != "insn.cuh")
    for path, text in pieces:
        if path.name == "insn.cuh":
            functions = re.split(r"(?=static DEVICE )", text)
            names = [(re.search(r"(\w+)\(", function) or [None, ""])[1] for function in functions]
            text = "".join(function for function, name in zip(functions, names) if re.search(rf"\b{name}\b", others))
        yield text


def digest(parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


@functools.cache
def rows_of_table(root):
    """[(source, kernel, columns, those of ON_T4)] of the table: a row's text as it is written, so that no column is left out."""
    row = "#define HGEMM_KERNEL(rung, name, columns, ...) [#rung, #name, #columns, #__VA_ARGS__],"
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", f"-I{root / 'src' / 'table'}", "-"]
    text = subprocess.run(command, input=f'{row}\n[\n#include "kernels.def"\nnull]\n', check=True, capture_output=True, text=True).stdout
    return [tuple(row) for row in json.loads(text)[:-1]]


def of_tree(root):
    """{part: hash} of a tree; nothing of one that is laid out otherwise."""
    if not (root / "src" / "table" / "kernels.def").exists():
        return {}
    found = {source.stem: digest(called([(path, code_of(path)) for path in closure(source)])) for source in sorted((root / "ptx").glob("*.cu"))}
    selections_own = []
    for _, kernel, columns, on_t4 in rows_of_table(root):
        selections_own += [f"{kernel} {column.strip()}" for column in SELECTIONS_OWN.findall(columns)]
        columns = SELECTIONS_OWN.sub("", columns)
        found[f"row of {kernel}"] = digest([columns])
        found[f"T4 row of {kernel}"] = digest([columns, on_t4])
    for part, files in FILES.items():
        code = [code_of(path) for pattern in files for path in sorted(root.glob(pattern))]
        found[part] = digest(code + (selections_own if part == "selection" else []))
    return found


@functools.cache
def now():
    return of_tree(ROOT)


@functools.cache
def of_commit(commit):
    """{part: hash} of a commit; None where git does not know it."""
    if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True).returncode:
        return None
    there = subprocess.run(["git", "-C", ROOT, "ls-tree", "--name-only", commit, *TREE], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder) / "tree.tar"
        subprocess.run(["git", "-C", ROOT, "archive", "-o", archive, commit, *there.stdout.split()], check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        return of_tree(pathlib.Path(folder))


def since(commit):
    """The commits behind that one which changed kernels."""
    done = subprocess.run(["git", "-C", ROOT, "rev-list", f"{commit}..HEAD", "--", "ptx", "src/table"], capture_output=True, text=True)
    return done.stdout.split()


def kernels_of(result):
    """The kernels that a file's rows name, which the table has, and the parts that other names of kernels are."""
    sources = {kernel: source for source, kernel, *_ in rows_of_table(ROOT)}
    kernels, parts = set(), set()
    for row in result["results"]:
        for text in (row.get("kernel", ""), row.get("plan", ""), row.get("note", "") if row.get("kernel", "auto").startswith(("auto", "k5")) else ""):
            kernel = text.removeprefix("plan ").split(" ")[0].split("+")[0]
            if kernel in sources:
                kernels.add(kernel)
            elif kernel in now():
                parts.add(kernel)
            elif re.match(r"(k\d|thin|tiny|few|single\d*|planes\d*|weights)_", kernel):
                parts.add("a kernel that is gone")
    return kernels, parts


def kernels_run(result):
    """Those that its rows name, and, where they name none of what it depends on, all of those: on a newer GPU but for a T4's own."""
    depends = result["context"].get("depends", "").split()
    on_t4 = "T4" in result["context"].get("gpu", "")
    return kernels_of(result)[0] | {kernel for source, kernel, columns, _ in rows_of_table(ROOT)
                                    if source in depends and (on_t4 or "T4_ALONE()" not in columns)}


def needed(result):
    """The parts that a file's rows depend on."""
    sources, context = {kernel: source for source, kernel, *_ in rows_of_table(ROOT)}, result["context"]
    witness = context.get("witness")
    kernels, parts = kernels_of(result)
    if witness != "emulated" and any(row.get("kernel", "").startswith("auto") for row in result["results"]):  # counts are shown by kernel
        parts.add("selection")
    depends = context.get("depends", TEXTS.get(context.get("text"), "")).split()
    parts |= {*depends} | {sources[kernel] for kernel in kernels}
    kernels |= {kernel for kernel, source in sources.items() if source in depends}
    row_of = "T4 row of" if "T4" in context.get("gpu", "") else "row of"
    parts |= {f"{row_of} {kernel}" for kernel in kernels}
    return parts | ({"clock"} if witness == "modelled" else {"counting"} if witness == "emulated" else set())


def changed(result):
    """The parts that are not what they were when the file was made; rows of a source that changed are not named beside it."""
    if result["context"].get("witness") == "published":
        return set()
    then = result["context"].get("inputs", {})
    gone = {part for part in needed(result) if then.get(part) != now().get(part, "")}
    rows = {f"{row_of} {kernel}" for source, kernel, *_ in rows_of_table(ROOT) if source in gone for row_of in ("row of", "T4 row of")}
    return gone - rows
