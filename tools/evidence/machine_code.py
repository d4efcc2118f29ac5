# SPDX-License-Identifier: MIT
"""Whether kernels are, compiled, what they were at the commit of a file: then a change of their source (inputs.py) has moved none of its
rows. Images hold a T4's machine code and the PTX that newer GPUs compile; nvcc makes the same bytes of the same code."""
import functools
import pathlib
import re
import subprocess
import tarfile
import tempfile

from results import ROOT

KEPT = []  # temporary folders of former kernels, for as long as the program runs
COMMITS = {}  # of a source's hash: one that has it


def images_of(build):
    """The folder of a build's compiled kernels."""
    cache = build / "CMakeCache.txt"
    given = re.search(r"^HGEMM_IMAGE_DIR:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    return pathlib.Path(given[1]) if given else build / "kernels"


@functools.cache
def compiled_of(kernel, source):
    """A folder with the images of a kernel whose source has that hash: it is compiled as the first commit asked for has it. Minutes."""
    KEPT.append(tempfile.TemporaryDirectory())
    tree = pathlib.Path(KEPT[-1].name)
    subprocess.run(["git", "-C", ROOT, "archive", "-o", tree / "tree.tar", COMMITS[source]], check=True)
    with tarfile.open(tree / "tree.tar") as tar:
        tar.extractall(tree, filter="data")
    build = tree / "build"
    options = [f"-DHGEMM_KERNELS=^{kernel}(_[a-z]|$)", "-DHGEMM_TESTS=OFF", "-DHGEMM_BENCH=OFF", "-DHGEMM_EXAMPLES=OFF"]
    subprocess.run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    images = sorted(set(re.findall(rf"^(kernels/{kernel}_\w+\.fatbin):", listed, re.M)))
    subprocess.run(["ninja", "-C", build, *images], check=True, stdout=subprocess.DEVNULL)
    return build / "kernels"


def compiled(commit, source, kernel):
    COMMITS.setdefault(source, commit)
    return compiled_of(kernel, source)


def differences(kernels, former_of, today):
    """Why the kernels are not the same code, a line each. Of rows more than 4 GiB apart (`far`) no list has products."""
    why = []
    for kernel in kernels:
        former = former_of(kernel)
        images = [path for path in sorted(former.glob(f"{kernel}_*.fatbin")) if re.fullmatch(rf"{kernel}_(nn|nt|tn|tt)(_\w+)?", path.stem)]
        if not images:
            why.append(f"{kernel} had no code")
        for image in images:
            same = today / image.name
            if "_far" not in image.stem and (not same.exists() or same.read_bytes() != image.read_bytes()):
                why.append(f"{image.stem} is not the same code")
    return why
