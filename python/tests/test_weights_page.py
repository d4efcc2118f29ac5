# SPDX-License-Identifier: MIT
"""What docs/weights.md has people write runs as it stands there, and does what is said beside it."""
import ctypes
import json
import pathlib
import re

import numpy as np
import pytest

try:
    import torch
except ImportError:
    torch = None
import hgemm
from hgemm import _c, formats
if torch is not None:
    import hgemm.torch
from random_weights import made, words, zero_words
from test_formats import KINDS, ggml_bytes, gguf_file, sources

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")
PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "weights.md").read_text()


def indented():
    """Lines of Python that stand in the page by themselves. Words follow two blanks."""
    return [re.split(r"  +", line[4:])[0] for line in re.findall(r"^    (?=\w+ = |hgemm\.).*", PAGE, re.M)]


def layers(rng, folder):
    """For each call of a format the tensors of a layer, by the names that the page has, and their Weights by another way."""
    checkpoints = {}
    for convert, tensors, options in sources(rng):
        key = f"{convert.__name__} of {tensors['weight'].dtype}" if convert is formats.compressed_tensors and "weight" in tensors else convert.__name__
        checkpoints[key] = tensors, convert(**tensors, **options)
    blocks = ggml_bytes(rng, "Q4_K", 3, 512)
    gguf_file(folder / "model.gguf", [("blk.0.ffn_up.weight", (3, 512), KINDS["Q4_K"][0], blocks.tobytes())])
    n, k = 4, 256
    fp8 = {"weight": rng.integers(0, 127, (n, k)).astype(np.uint8), "weight_scale_inv": rng.uniform(0.1, 1, (1, 2)).astype(np.float32)}
    weight, absmax = (checkpoints["bitsandbytes"][0][name] for name in ("weight", "absmax"))
    said = json.dumps({"quant_type": "nf4", "blocksize": 64, "shape": list(checkpoints["bitsandbytes"][1].shape)}).encode()
    state = {"weight": weight, "weight.absmax": absmax, "weight.quant_state.bitsandbytes__nf4": np.frombuffer(said, np.uint8)}
    zero_free = {name: tensor for name, tensor in checkpoints["compressed_tensors"][0].items() if name != "weight_zero_point"}
    integers = {name: tensor for name, tensor in checkpoints["compressed_tensors of int8"][0].items() if name != "weight_zero_point"}
    codes, scales = rng.integers(-8, 8, (n, k)), np.exp2(rng.integers(-3, 3, (n, 2))).astype(np.float16)
    return {
        "formats.gptq(": checkpoints["gptq"], "formats.awq(": checkpoints["awq"], "formats.mxfp4(": checkpoints["mxfp4"],
        "compressed_tensors(weight_packed=": (zero_free, formats.compressed_tensors(**zero_free)),
        "compressed_tensors(weight=": (integers, formats.compressed_tensors(**integers)),
        "formats.bitsandbytes_state(": (state, checkpoints["bitsandbytes"][1]),
        "formats.fp8(": (fp8, formats.fp8(*fp8.values(), block=(128, 128))),
        "hgemm.gguf(": ({}, formats.ggml(blocks.reshape(-1), "Q4_K", (3, 512))),
        "hgemm.Weights(": ({"codes": codes, "scales": scales}, codes * np.repeat(scales, 128, 1).astype(np.float32))}


def test_a_layer_of_each_format(rng, tmp_path, monkeypatch):
    block, known = re.search(r"```python\n(.*?)```", PAGE, re.S)[1], layers(rng, tmp_path)
    monkeypatch.chdir(tmp_path)
    first, *lines = [line for line in block.splitlines() if line]
    assert first == "from hgemm import formats" and len(lines) == len(known)
    for line in lines:
        call, = (call for call in known if call in line)
        tensors, wanted = known.pop(call)
        names = {"hgemm": hgemm, "formats": formats, "t": tensors, **tensors}
        exec(line, names)
        matrix = wanted if isinstance(wanted, np.ndarray) else wanted.dequantize()
        np.testing.assert_array_equal(names["w"].dequantize(), matrix)
        x = rng.integers(-2, 3, (3, matrix.shape[1])).astype(np.float16)
        with np.errstate(over="ignore"):
            exact, y = x.astype(np.float64) @ matrix.T.astype(np.float64), hgemm.linear(x, hgemm.pack(names["w"]), out_dtype="float32")
        bound = 1e-4 * (np.abs(x.astype(np.float64)) @ np.abs(matrix.T.astype(np.float64)))
        assert (np.abs(y - exact) <= bound).all(), line


def test_lines_of_the_page(rng):
    """All others, in their order: those of torch where it is there, on the CPU."""
    n, k, groups = 32, 128, 4
    bias, x = rng.integers(-2, 3, n).astype(np.float16), rng.integers(-2, 3, (6, k)).astype(np.float16)
    names = {"hgemm": hgemm, "qweight": words(rng, k // 8, n), "qzeros": zero_words(rng, groups, n // 8), "g_idx": (rng.permutation(k) // 32).astype(np.int32),
             "scales": np.exp2(rng.integers(-3, 3, (groups, n))).astype(np.float16), "bias": bias, "x": x}
    names.update((f"w{i}", made(rng, "int4", n, k, 32)) for i in range(3))
    ends, tokens, places = np.array([1, 1, 6], np.int32), rng.integers(0, 6, 6).astype(np.int32), rng.permutation(6).astype(np.int32)
    names.update(ends=ends, tokens=tokens, places=places)
    lines, seen = indented(), []
    for line in lines:
        if "torch" in line or "device=" in line or "convert" in line:
            if torch is None:
                continue
            if "convert" in line:
                layer = torch.nn.Module()
                for name in ("qweight", "qzeros", "scales", "g_idx"):
                    layer.register_buffer(name, torch.from_numpy(names[name]))
                names["model"] = torch.nn.Sequential(layer)
            names["bias"] = torch.from_numpy(bias)
            exec(line.replace("cuda", "cpu"), names)
            names["bias"] = bias
        else:
            exec(line, names)
        seen.append(line)
        if line.startswith("y = hgemm.linear"):
            wanted = x.astype(np.float64) @ names["w"].dequantize().T.astype(np.float64) + bias
            np.testing.assert_array_equal(names["y"], wanted.astype(np.float16))
        elif line.startswith("y = hgemm.grouped"):
            matrices = [names[f"w{i}"].dequantize().astype(np.float64) for i in range(3)]
            wanted = np.array([x[tokens[row]].astype(np.float64) @ matrices[0 if row < 1 else 2].T for row in range(6)])
            np.testing.assert_array_equal(names["y"][places], wanted.astype(np.float16))
        elif line.startswith("done = "):
            assert list(names["done"].replaced) == ["0"] and not names["done"].left
        elif line.startswith("layer = "):
            assert torch.equal(names["layer"](torch.from_numpy(x)), hgemm.linear(torch.from_numpy(x), names["packed"], torch.from_numpy(bias)))
    assert len(seen) == (9 if torch else 5), lines


def test_bytes_go_from_python_to_c(rng, tmp_path):
    """What .tofile writes is what hgemm_pack_weights makes of the form's fields."""
    weights = made(rng, "uint4", 24, 64, 32, "integer")
    packed = hgemm.pack(weights)
    packed.data.numpy().tofile(tmp_path / "w")
    struct = _c.WeightsForm()
    _c.lib.hgemm_weights_init_sized(ctypes.byref(struct), ctypes.sizeof(struct))
    struct.n, struct.k, struct.code, struct.group, struct.zero, struct.type_scale = packed.form[:6]
    struct.table[:] = packed.form[6:]
    read = np.fromfile(tmp_path / "w", np.uint8)
    matrix = np.empty((24, 64), np.float32)
    aligned = np.empty(read.size + 16, np.uint8)
    aligned = aligned[-aligned.ctypes.data % 16:][:read.size]
    aligned[:] = read
    _c.check(_c.lib.hgemm_unpack_weights(None, ctypes.byref(struct), aligned.ctypes.data, 0, 64, _c.TYPE["float32"], matrix.ctypes.data, 64))
    np.testing.assert_array_equal(matrix, weights.dequantize())
