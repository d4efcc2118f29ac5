# SPDX-License-Identifier: MIT
"""The cuBLAS door of the installed package. What it does is tested where a fake cuBLAS is: test/door."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from hgemm import _links, cublas

pytestmark = pytest.mark.skipif("HGEMM_LIBRARY" in os.environ, reason="the package's own library is not the one in use")
CHILD = """
import ctypes, sys
entry = ctypes.CDLL(None).cublasHgemm  # of what is preloaded, alone
zeros = [ctypes.c_void_p(0)] * 14
print(sys.argv[1:], entry(*zeros), any("libhgemm_cublas.so" in line for line in open("/proc/self/maps")))
"""


def run(*arguments, cwd=None, **environment):
    return subprocess.run([sys.executable, *arguments], env=dict(os.environ, **environment), cwd=cwd, capture_output=True, text=True)


def test_a_program_finds_the_door():
    done = run("-m", "hgemm.cublas", "-c", CHILD, "an argument")
    assert done.stderr == "" and done.stdout.split("\n")[0] == "['an argument'] 1 True"  # CUBLAS_STATUS_NOT_INITIALIZED: no cuBLAS


def test_its_path_is_printed():
    path = run("-m", "hgemm.cublas").stdout.strip()
    assert path == cublas.library()
    done = run("-c", CHILD, LD_PRELOAD=path)
    assert done.stderr == "" and done.stdout.strip() == "[] 1 True"


@pytest.mark.parametrize("name", ["a folder", "a:folder", "$LIB", "${ORIGIN}x"])
def test_a_path_that_ld_preload_does_not_take_is_linked(tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(os.path.dirname(cublas.__file__), folder / "hgemm")
    for libraries in pathlib.Path(cublas.__file__).parents[1].glob("hgemm.libs"):
        shutil.copytree(libraries, folder / "hgemm.libs")

    def launched(*arguments, **environment):
        return run("-m", "hgemm.cublas", *(arguments or ("-c", CHILD)), cwd=folder, **{"PYTHONPATH": "", "TMPDIR": str(tmp_path), **environment})
    for _ in range(2):  # the link is made, and found
        done = launched()
        assert done.stderr == "" and done.stdout.strip() == "[] 1 True"
    link, = tmp_path.glob("hgemm-*")
    link.unlink()
    link.symlink_to("/")
    assert "is no link of yours" in launched().stderr
    link.unlink()
    with_a_blank = tmp_path / "temporary files"
    with_a_blank.mkdir()
    done = launched(TMPDIR=str(with_a_blank))
    assert done.stderr == "" and done.stdout.strip() == "[] 1 True"
    elsewhere = launched("-c", "import os; print(os.environ['LD_PRELOAD'])", TMPDIR=str(with_a_blank)).stdout.strip()
    os.unlink(os.path.dirname(elsewhere))


def test_no_place_for_a_link_is_said(monkeypatch):
    monkeypatch.setattr(_links, "_has", lambda special, path: True)
    with pytest.raises(OSError, match="the dynamic linker cannot name .* TMPDIR"):
        cublas.library()


def test_help():
    assert "LD_PRELOAD" in run("-m", "hgemm.cublas", "--help").stdout


def test_the_exit_status_and_what_is_preloaded_stay():
    other = cublas.library().replace("libhgemm_cublas.so", "libhgemm.so")
    done = run("-m", "hgemm.cublas", "-c", "import os, sys; print(os.environ['LD_PRELOAD']); sys.exit(7)", LD_PRELOAD=other)
    assert done.returncode == 7 and done.stdout.strip() == f"{cublas.library()}:{other}"


@pytest.mark.parametrize("flags", [["-O", "-m", "hgemm.cublas"], ["-OO", "-u", "-X", "utf8", "-W", "error::FutureWarning", "-m", "hgemm.cublas"],
                                   ["-OBm", "hgemm.cublas"], ["-mhgemm.cublas"], ["-m", "hgemm.cublas"]])
def test_the_interpreters_flags_stay(flags):
    program = ("import sys; print(sys.flags.optimize, sys.flags.utf8_mode, sys.warnoptions, sys.stdout.write_through, sys.flags.dont_write_bytecode, "
               "sys.argv[1:])")
    environment = {"PYTHONUTF8": "0"}
    direct = [flag for flag in flags if not flag.endswith("hgemm.cublas") and flag != "-m"]
    direct = ["-OB" if flag == "-OBm" else flag for flag in direct]
    expected = run(*direct, "-c", program, "-O", "m", **environment)
    assert expected.returncode == 0 and expected.stdout.endswith("['-O', 'm']\n")
    found = run(*flags, "-c", program, "-O", "m", **environment)
    assert found.stdout == expected.stdout, found.stderr
