# SPDX-License-Identifier: MIT
"""docs/api.md's lines of Python run as they stand there, one block after the other, and give what is said of them."""
import copy
import os
import pathlib
import re
import sys

import numpy as np
import pytest

try:
    import torch
except ImportError:
    torch = None
import hgemm
from hgemm import _c
from random_weights import words, zero_words
from test_formats import KINDS, ggml_bytes, gguf_file

pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")
PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "api.md").read_text()


def block(heading):
    return re.search(rf"^### {heading}$.*?^```python\n(.*?)^```$", PAGE, re.S | re.M)[1]


@pytest.fixture
def names(tmp_path, monkeypatch, rng):
    """What the first three blocks leave, in a folder with a GGUF file."""
    monkeypatch.chdir(tmp_path)
    gguf_file(tmp_path / "model.gguf", [("blk.0.ffn_up.weight", (3, 512), KINDS["Q4_K"][0], ggml_bytes(rng, "Q4_K", 3, 512).tobytes())])
    found = {}
    for heading in ("Multiply arrays", "Arrays on the device", "Weights of 4 and 8 bits in Python"):
        exec(block(heading), found)
    return found


def test_every_block_is_run():
    """By one of the tests below."""
    headings = re.findall(r"^### ([^\n]*)$(?:(?!^### ).)*?^```python$", PAGE, re.S | re.M)
    assert set(headings) == {"Multiply arrays", "Arrays on the device", "Weights of 4 and 8 bits in Python", "Torch", "Models", "Programs that call cuBLAS",
                             "Ask and measure", "Exceptions"}


def test_products(names):
    np.testing.assert_array_equal(names["d"], np.full((4, 8), 64))
    np.testing.assert_array_equal(names["y"], np.full((4, 8), 65))
    np.testing.assert_array_equal(names["g"], np.repeat([[64], [-64], [-64], [-64]], 8, 1))
    assert names["s"] == 2.0**15
    np.testing.assert_array_equal(names["z"].numpy(), names["d"])
    np.testing.assert_array_equal(names["p"], np.full((4, 32), 64))
    assert list(names["tensors"]) == ["blk.0.ffn_up.weight"]


@pytest.mark.skipif(torch is None, reason="torch is not there")
def test_torch(names, rng):
    exec(block("Torch"), names)
    for name in ("m", "n", "o"):
        assert torch.equal(names[name], torch.full((4, 32), 64).half()), name
    assert names["f"] == 2.0**15
    layer = torch.nn.Module()
    for name, tensor in (("qweight", words(rng, 8, 32)), ("qzeros", zero_words(rng, 2, 4)), ("scales", np.ones((2, 32), np.float16)),
                         ("g_idx", np.arange(64, dtype=np.int32) // 32)):
        layer.register_buffer(name, torch.from_numpy(tensor))
    names["model"] = torch.nn.Sequential(layer)
    names["same_model"] = copy.deepcopy(names["model"])
    names["same_model"][0].scales.zero_()
    exec(block("Models"), names)
    assert list(names["done"].replaced) == ["0"] and not names["done"].left
    x = torch.ones(1, 64).half()
    assert torch.equal(names["same_model"](x), names["model"](x)) and names["model"](x).any()
    assert torch.equal(names["layer"](x), torch.full((1, 32), 64).half())
    assert torch.equal(names["e"], torch.full((4, 32), 64 * 64).half())


@pytest.mark.skipif("HGEMM_LIBRARY" in os.environ, reason="the package's own library is not the one in use")
def test_the_door(names, tmp_path):
    (tmp_path / "program").write_text(f"#!{sys.executable}\nassert any('libhgemm_cublas.so' in line for line in open('/proc/self/maps'))\nopen('done', 'w')\n")
    (tmp_path / "program").chmod(0o755)
    exec(block("Programs that call cuBLAS"), names)
    assert (tmp_path / "done").exists()


def test_measuring(names, tmp_path, capsys):
    exec(block("Ask and measure"), names)
    assert {row["shape"] for row in names["table"].rows} == {"64x64x64"} and 0 < names["seconds"] < 1
    assert names["report"]["what"] == "hgemm report 1" and (tmp_path / "hgemm_report.json").exists()
    assert str(len(hgemm.kernels())) in capsys.readouterr().out


def test_exceptions(names, capsys):
    exec(block("Exceptions"), names)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("out: ") and "HGEMM_STATUS_OVERLAP" in first and second.startswith("HGEMM_STATUS_NOT_SUPPORTED k1_tiled")
