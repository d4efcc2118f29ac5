# SPDX-License-Identifier: MIT
"""scikit-build-core's build backend, which asks for NVIDIA's compiler packages where kernels must be compiled and no nvcc is there."""
import glob
import os
import shutil
import sysconfig

from scikit_build_core import build as backend

get_requires_for_build_editable = backend.get_requires_for_build_editable
prepare_metadata_for_build_wheel = backend.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = backend.prepare_metadata_for_build_editable
build_editable = backend.build_editable
get_requires_for_build_sdist = backend.get_requires_for_build_sdist
build_sdist = backend.build_sdist

# The releases that tools/setup.sh fetches.
NVCC_PACKAGES = ["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96"]


def nvcc_is_there():
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    folders += [os.path.join(here, "..", ".toolchain", "nvidia", "cu13", "bin"), "/usr/local/cuda/bin", "/opt/cuda/bin"]
    return bool(shutil.which("nvcc") or any(os.access(os.path.join(folder, "nvcc"), os.X_OK) for folder in folders))


def get_requires_for_build_wheel(config_settings=None):
    requires = list(backend.get_requires_for_build_wheel(config_settings))
    given = "cmake.define.HGEMM_IMAGE_DIR" in (config_settings or {}) or os.environ.get("HGEMM_IMAGE_DIR")
    return requires if given or nvcc_is_there() else requires + NVCC_PACKAGES


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    fetched = glob.glob(os.path.join(sysconfig.get_path("purelib"), "nvidia", "cu13"))
    if fetched and not nvcc_is_there():
        os.environ["CUDA_HOME"] = fetched[0]
    return backend.build_wheel(wheel_directory, config_settings, metadata_directory)
