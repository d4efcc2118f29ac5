# SPDX-License-Identifier: MIT
"""Types that public names are annotated with."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Optional, Protocol, TypedDict, TypeVar, Union

import numpy as np

from ._device_array import DeviceArray

if TYPE_CHECKING:
    import torch
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack
else:
    Unpack = Optional


class OnDevice(Protocol):
    """cupy's arrays, numba's, and others that tell where they are."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class SharedByDlpack(Protocol):
    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


NDArray = np.ndarray[Any, Any]
# What a result is, of the library that the first operand is of. torch's is the first one: where torch is not installed it is Any, which mypy
# takes only where no later one fits.
Array = TypeVar("Array", "torch.Tensor", NDArray, DeviceArray)
Operand = Union[NDArray, DeviceArray, "torch.Tensor", OnDevice, SharedByDlpack]
Scalar = Union[float, Operand]  # a number, or one in device memory
DType = Union[str, "np.dtype[Any]", type, "torch.dtype"]
Tensors = Union[NDArray, "torch.Tensor"]  # of a checkpoint
Stream = Any  # torch's, cupy's, or an address


class TorchOptions(TypedDict, total=False):
    """Those of hgemm.torch.matmul but for bias."""

    alpha: Scalar
    beta: Optional[Scalar]
    c: Optional[Operand]
    activation: Optional[str]
    gate: Optional[Operand]
    accumulate: str
    out_dtype: Optional[DType]
    scale_a: Optional[Scalar]
    scale_b: Optional[Scalar]
    batch_invariant: bool
    accuracy: str


class Options(TorchOptions, total=False):
    """Those of hgemm.matmul but for bias and out."""

    kernel: Optional[str]
    stream: Optional[Stream]
