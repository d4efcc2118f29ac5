# SPDX-License-Identifier: MIT
"""The cuBLAS door: a program that calls cuBLAS, such as one of PyTorch's, runs its half-precision products on hgemm.

    python -m hgemm.cublas program.py ...          runs a Python program so
    LD_PRELOAD=$(python -m hgemm.cublas) program   and any other

The environment's HGEMM_CUBLAS and its kin say which products, and what is logged.
"""
import hashlib
import os
import sys
import tempfile

__all__ = ["library"]


def library():
    """The path of libhgemm_cublas.so, for LD_PRELOAD: by a link where it has a blank or a colon, at which LD_PRELOAD ends a name."""
    folder = os.path.dirname(os.path.abspath(__file__))
    if not os.path.exists(os.path.join(folder, "libhgemm_cublas.so")):
        raise FileNotFoundError(f"{folder} has no libhgemm_cublas.so: it comes with the installed package")
    if any(ends in folder for ends in " :"):
        folder = _link_to(folder)
    return os.path.join(folder, "libhgemm_cublas.so")


def _link_to(folder):
    """A link of this user's to a folder, in the one for temporary files."""
    link = os.path.join(tempfile.gettempdir(), f"hgemm-{os.getuid()}-{hashlib.sha256(folder.encode()).hexdigest()[:16]}")
    try:
        os.symlink(folder, link)
    except FileExistsError:
        if os.lstat(link).st_uid != os.getuid() or os.readlink(link) != folder:
            raise FileExistsError(f"{link} is no link of yours to {folder}") from None
    return link


def main():
    if len(sys.argv) < 2:
        print(library())
        return
    environment = dict(os.environ, LD_PRELOAD=":".join(filter(None, [library(), os.environ.get("LD_PRELOAD")])))
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
