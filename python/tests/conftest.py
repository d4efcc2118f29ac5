# SPDX-License-Identifier: MIT
"""The tests run where there is no GPU: on the emulated T4, which watches every access of every kernel."""
import os

os.environ.setdefault("HGEMM_DEVICE", "t4emu:check")

import numpy as np
import pytest

import hgemm


@pytest.fixture
def rng(request):
    """Random numbers, new ones for each test and the same ones again when it is run again."""
    return np.random.default_rng(sum(map(ord, request.node.name)))


@pytest.fixture
def integers(rng):
    """Small integers as halves: every sum of up to some hundred products is exact, so results are compared bit for bit."""
    return lambda *shape: rng.integers(-3, 4, shape).astype(np.float16)


@pytest.fixture
def fused():
    """Runs a call whose epilogue this library may not have yet; then the test is skipped, and says so."""
    def call(function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except hgemm.NotSupportedError as error:
            pytest.skip(str(error))
    return call
