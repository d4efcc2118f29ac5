# SPDX-License-Identifier: MIT
"""The cuBLAS door: a program that calls cuBLAS, such as one of PyTorch's, runs its products of FP16, BF16 and FP32 on hgemm.

    python -m hgemm.cublas program.py ...          runs a Python program so
    LD_PRELOAD=$(python -m hgemm.cublas) program   and any other

The environment's HGEMM_CUBLAS and its kin say which products, and what is logged.
"""
from __future__ import annotations

import os
import subprocess
import sys

from ._links import PRELOADED, linked

__all__ = ["library"]


def library() -> str:
    """The path of libhgemm_cublas.so, for LD_PRELOAD: by a link where that would not take it as it is."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "libhgemm_cublas.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{folder} has no libhgemm_cublas.so: it comes with the installed package")
    return linked(path, PRELOADED)


def _flags() -> list[str]:
    """The interpreter's flags: what stands before `-m hgemm.cublas`."""
    given, told = getattr(sys, "orig_argv", []), "mhgemm.cublas"
    *flags, last = given[:1 - len(sys.argv) or None] or [""]
    if last == told[1:]:
        last = flags.pop() + last
    if not last.endswith(told) or not last.startswith("-"):  # it was started in another way, or by a Python before 3.10
        return list(getattr(subprocess, "_args_from_interpreter_flags")())
    return [*flags[1:], *filter(None, [last[:-len(told)].rstrip("-")])]


def main() -> None:
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__, end="")
        return
    try:
        path = library()
    except OSError as error:
        sys.exit(f"hgemm.cublas: {error}")
    if len(sys.argv) < 2:
        print(path)
        return
    environment = dict(os.environ, LD_PRELOAD=":".join(filter(None, [path, os.environ.get("LD_PRELOAD")])))
    os.execve(sys.executable, [sys.executable, *_flags(), *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
