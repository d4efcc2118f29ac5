#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unserved.py FOLDER HEADER: lists the entry points of CUDA that `turing exec`'s libraries in FOLDER have, and do not serve: those that the
build made of CUDA's headers (HEADER is cuda.h) and nothing displaced, which are weak symbols. `cudaGraph* 82`: so many names begin so, and
none of them is served.

unserved.py FOLDER HEADER --check FILE: whether FILE is that list. 77: it is of another version of CUDA's headers.
"""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

LIBRARIES = {"libcudart.so.13": "The runtime", "libcuda.so.1": "The driver"}


def symbols(library):
    """{name without a version: whether one of its forms is served}."""
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    served = {}
    for kind, name in re.findall(r"^\S+ ([TW]) (cu(?:da)?[A-Z]\w*)", text, re.M):
        if not re.search(r"_pt[ds][sz]$", name):
            name = re.sub(r"_v\d$", "", name)
            served[name] = served.get(name, False) or kind == "T"
    return served


@functools.cache
def starts(name):
    """The name's beginnings, each ending before a capital letter, and itself."""
    return [name[:m.start()] for m in re.finditer(r"(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])", name)][1:] + [name]


def grouped(served):
    """(beginning or name, how many unserved names it stands for)."""
    found = {}
    for name in (n for n, yes in sorted(served.items()) if not yes):
        for start in starts(name):
            names = [n for n in served if start in starts(n)]
            if start == name or (len(names) > 2 and not any(served[n] for n in names)):
                found[start] = 1 if start == name else len(names)
                break
    return sorted(found.items())


def listing(folder, header):
    """The text of the list."""
    version = int(re.search(r"^#define CUDA_VERSION (\d+)", header.read_text(), re.M)[1])
    lines = [f"CUDA {version // 1000}.{version % 1000 // 10}"]
    for library, what in LIBRARIES.items():
        served = symbols(folder / library)
        lines += ["", f"{what}: {sum(served.values())} served, {len(served) - sum(served.values())} not"]
        lines += [f"{start}* {n}" if n > 1 else start for start, n in grouped(served)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("header", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    text = listing(arguments.folder, arguments.header)
    if not arguments.check:
        sys.stdout.write(text)
        return 0
    old = arguments.check.read_text()
    if old.splitlines()[0] != text.splitlines()[0]:
        print(f"{arguments.check} is of {old.splitlines()[0]}, the headers are of {text.splitlines()[0]}")
        return 77
    for line in sorted(set(old.splitlines()) ^ set(text.splitlines())):
        print("+" if line in text.splitlines() else "-", line)
    return old != text


if __name__ == "__main__":
    sys.exit(main())
