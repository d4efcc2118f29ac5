# SPDX-License-Identifier: MIT
"""scikit-build-core's build backend, which asks for NVIDIA's compiler packages where kernels must be compiled and no nvcc is there."""
import os
import shutil
import sys

from scikit_build_core import build as backend

build_editable = backend.build_editable
build_sdist = backend.build_sdist
get_requires_for_build_editable = backend.get_requires_for_build_editable
get_requires_for_build_sdist = backend.get_requires_for_build_sdist
prepare_metadata_for_build_editable = backend.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = backend.prepare_metadata_for_build_wheel

# The releases that tools/setup.sh fetches.
NVCC_PACKAGES = ["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96"]


def find_nvcc():
    """The CUDA compiler's path, looked for as cmake/kernels.cmake does, then where pip puts NVCC_PACKAGES; or None."""
    toolchain = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".toolchain", "nvidia", "cu13")
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), toolchain, "/usr/local/cuda", "/opt/cuda"]
    homes += [os.path.join(folder, "nvidia", "cu13") for folder in sys.path]
    found = [shutil.which("nvcc")] + [shutil.which("nvcc", path=os.path.join(home, "bin")) for home in homes if home]
    return next((path for path in found if path), None)


def kernels_are_given(config_settings):
    return "cmake.define.HGEMM_IMAGE_DIR" in (config_settings or {}) or bool(os.environ.get("HGEMM_IMAGE_DIR"))


def get_requires_for_build_wheel(config_settings=None):
    requires = list(backend.get_requires_for_build_wheel(config_settings))
    return requires if kernels_are_given(config_settings) or find_nvcc() else requires + NVCC_PACKAGES


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    config_settings = dict(config_settings or {})
    nvcc = find_nvcc()
    if nvcc and not kernels_are_given(config_settings):  # said, because the folder of an earlier build remembers another
        config_settings["cmake.define.HGEMM_NVCC"] = nvcc
        config_settings["cmake.define.HGEMM_FATBINARY"] = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "fatbinary")
    return backend.build_wheel(wheel_directory, config_settings, metadata_directory)
