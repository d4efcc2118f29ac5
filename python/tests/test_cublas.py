# SPDX-License-Identifier: MIT
"""The cuBLAS door of the installed package. What it does is tested where a fake cuBLAS is: test/door."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from hgemm import cublas

pytestmark = pytest.mark.skipif("HGEMM_LIBRARY" in os.environ, reason="the package's own library is not the one in use")
CHILD = """
import ctypes, sys
entry = ctypes.CDLL(None).cublasHgemm  # of what is preloaded, alone
zeros = [ctypes.c_void_p(0)] * 14
print(sys.argv[1:], entry(*zeros), any("libhgemm_cublas.so" in line for line in open("/proc/self/maps")))
"""


def run(*arguments, **environment):
    return subprocess.run([sys.executable, *arguments], env=dict(os.environ, **environment), capture_output=True, text=True)


def test_a_program_finds_the_door():
    done = run("-m", "hgemm.cublas", "-c", CHILD, "an argument")
    assert done.stderr == "" and done.stdout.split("\n")[0] == "['an argument'] 1 True"  # CUBLAS_STATUS_NOT_INITIALIZED: no cuBLAS


def test_its_path_is_printed():
    path = run("-m", "hgemm.cublas").stdout.strip()
    assert path == cublas.library()
    done = run("-c", CHILD, LD_PRELOAD=path)
    assert done.stderr == "" and done.stdout.strip() == "[] 1 True"


def test_a_path_with_a_blank_is_linked(tmp_path):
    folder = tmp_path / "a folder"
    shutil.copytree(os.path.dirname(cublas.__file__), folder / "hgemm")
    for libraries in pathlib.Path(cublas.__file__).parents[1].glob("hgemm.libs"):
        shutil.copytree(libraries, folder / "hgemm.libs")
    for _ in range(2):  # the link is made, and found
        done = run("-m", "hgemm.cublas", "-c", CHILD, PYTHONPATH=str(folder), TMPDIR=str(tmp_path))
        assert done.stderr == "" and done.stdout.strip() == "[] 1 True"
    link, = tmp_path.glob("hgemm-*")
    link.unlink()
    link.symlink_to("/")
    assert "is no link of yours" in run("-m", "hgemm.cublas", PYTHONPATH=str(folder), TMPDIR=str(tmp_path)).stderr


def test_the_exit_status_and_what_is_preloaded_stay():
    other = cublas.library().replace("libhgemm_cublas.so", "libhgemm.so")
    done = run("-m", "hgemm.cublas", "-c", "import os, sys; print(os.environ['LD_PRELOAD']); sys.exit(7)", LD_PRELOAD=other)
    assert done.returncode == 7 and done.stdout.strip() == f"{cublas.library()}:{other}"
