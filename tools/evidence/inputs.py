# SPDX-License-Identifier: MIT
"""What a file of results depends on, by hashes that it carries: which results are older than the code.

A file's context has `inputs`: a hash of each part of the tree that its rows depend on, as the tree was when they were made. A hash
and not a commit is compared, so that a tree without its history can tell, too, and what comes back to what it was is not stale.
Comments and blanks do not count. The parts are

    k5_tuned ...    a kernel source, ptx/<name>.cu, with what it includes (of insn.cuh what it calls), and its rows of kernels.def
    selection       how a plan is chosen
    clock           the timing model of a T4
    counting        the emulator's counters
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
    "selection": [f"src/select/{name}" for name in ("cost.c", "costs.def", "feasible.c", "few.c", "machine.c", "price.c", "selection.c", "thin.c", "tiny.c")],
    "clock": ["src/turing/time.c", "src/turing/time.def", "src/turing/time_memory.c"],
    "counting": ["src/turing/count.c"],
}
TREE = ("ptx", "cmake", "src/table", "src/select", "src/turing")
# The table's rows are hashed one source at a time. Arguments are where parameters lie: a kernel that reads a new one changes itself.
APART = ("kernels.def", "args.h")


def code_of(path):
    """A source without comments, with single blanks, and without the lines that name what is included."""
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


def rows_of_table(root):
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", root / "cmake" / "kernels.json.def"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[:-1]


def of_tree(root):
    """{part: hash} of a tree; nothing of one that is laid out otherwise."""
    if not (root / "src" / "table" / "kernels.def").exists():
        return {}
    rows = rows_of_table(root)
    found = {}
    for source in sorted((root / "ptx").glob("*.cu")):
        own = [json.dumps(row, sort_keys=True) for row in rows if row["rung"] == source.stem]
        found[source.stem] = digest([*called([(path, code_of(path)) for path in closure(source)]), *own])
    for part, files in FILES.items():
        found[part] = digest([code_of(root / name) for name in files if (root / name).exists()])
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


def sources_of_names():
    """{kernel of the table: its source}."""
    return {row["name"]: row["rung"] for row in rows_of_table(ROOT)}


def needed(result):
    """The parts that a file's rows depend on."""
    parts, names = set(), sources_of_names()
    for row in result["results"]:
        for text in (row.get("kernel", ""), row.get("plan", ""), row.get("note", "") if row.get("kernel", "auto").startswith(("auto", "k5")) else ""):
            kernel = text.removeprefix("plan ").split(" ")[0].split("+")[0]
            source = names.get(kernel) or next((rung for rung in now() if kernel == rung), None)
            if source:
                parts.add(source)
            elif re.match(r"(k\d|thin|tiny|few|single\d*|planes|weights)_", kernel):
                parts.add("a kernel that is gone")
        if row.get("kernel", "").startswith("auto") and result["context"].get("witness") != "emulated":  # counts are shown by kernel
            parts.add("selection")
    parts |= set(result["context"].get("depends", "").split())
    witness = result["context"].get("witness")
    return parts | ({"clock"} if witness == "modelled" else {"counting"} if witness == "emulated" else set())


def changed(result):
    """The parts that are not what they were when the file was made."""
    if result["context"].get("witness") == "published":
        return set()
    then = result["context"].get("inputs", {})
    return {part for part in needed(result) if then.get(part) != now().get(part, "")}
