# SPDX-License-Identifier: MIT
"""The cuBLAS door: a program that calls cuBLAS, such as one of PyTorch's, runs its half-precision products on hgemm.

    python -m hgemm.cublas program.py ...          runs a Python program so
    LD_PRELOAD=$(python -m hgemm.cublas) program   and any other

The environment's HGEMM_CUBLAS and its kin say which products, and what is logged.
"""
import os
import sys

__all__ = ["library"]


def library():
    """The path of libhgemm_cublas.so, for LD_PRELOAD."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libhgemm_cublas.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is not there: it comes with the installed package")
    return path


def main():
    if len(sys.argv) < 2:
        print(library())
        return
    environment = dict(os.environ, LD_PRELOAD=":".join(filter(None, [library(), os.environ.get("LD_PRELOAD")])))
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
