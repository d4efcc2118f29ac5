# SPDX-License-Identifier: MIT
"""The cuBLAS door: a program that calls cuBLAS, such as one of PyTorch's, runs its half-precision products on hgemm.

    python -m hgemm.cublas program.py ...          runs a Python program so
    LD_PRELOAD=$(python -m hgemm.cublas) program   and any other

The environment's HGEMM_CUBLAS and its kin say which products, and what is logged.
"""
import os
import sys

from ._links import PRELOADED, linked

__all__ = ["library"]


def library():
    """The path of libhgemm_cublas.so, for LD_PRELOAD: by a link where that would not take it as it is."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "libhgemm_cublas.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{folder} has no libhgemm_cublas.so: it comes with the installed package")
    return linked(path, PRELOADED)


def main():
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
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
