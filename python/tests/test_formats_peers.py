# SPDX-License-Identifier: MIT
"""The converters against the packages whose formats they read, where these are installed: gguf; torch with compressed-tensors or
bitsandbytes, whose quantisers run on the CPU; and auto-gptq and autoawq, of which only the packing is called."""
import numpy as np
import pytest

from hgemm import formats
from test_formats import KINDS, ggml_bytes, gguf_file


@pytest.mark.parametrize("kind", KINDS)
def test_ggml_as_gguf_decodes_it(rng, kind):
    gguf = pytest.importorskip("gguf")
    n, k = 16, 4 * 256
    blocks = ggml_bytes(rng, kind, n, k).reshape(n, -1)
    wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])
    np.testing.assert_array_equal(formats.ggml(blocks.reshape(-1), kind, (n, k)).dequantize(), wanted)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_a_file_that_gguf_wrote(rng, tmp_path, kind):
    gguf = pytest.importorskip("gguf")
    matrix = rng.standard_normal((24, 128)).astype(np.float32)
    writer = gguf.GGUFWriter(str(tmp_path / "model.gguf"), "llama")
    writer.add_block_count(3)
    writer.add_array("words", ["one", "two", "three"])
    kind = gguf.GGMLQuantizationType[kind]
    writer.add_tensor("w", gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.add_tensor("experts", np.stack([gguf.quants.quantize(matrix * i, kind) for i in (1, 2)]), raw_dtype=kind)
    writer.add_tensor("plain", matrix.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = formats.GGUF(tmp_path / "model.gguf")
    wanted = gguf.quants.dequantize(gguf.quants.quantize(matrix, kind), kind)
    np.testing.assert_array_equal(file["w"].dequantize(), wanted)
    np.testing.assert_array_equal(file["experts"][0].dequantize(), wanted)
    np.testing.assert_array_equal(file["plain"], matrix.astype(np.float16))
    assert file.metadata["llama.block_count"] == 3 and file.metadata["words"] == ["one", "two", "three"]


def test_a_file_of_ours_as_gguf_reads_it(rng, tmp_path):
    """What test_formats.py writes is a file that gguf reads: so that its tests are of files."""
    gguf = pytest.importorskip("gguf")
    blocks = ggml_bytes(rng, "Q4_K", 2, 512)
    reader = gguf.GGUFReader(str(gguf_file(tmp_path / "model.gguf", [("w", (2, 512), KINDS["Q4_K"][0], blocks.tobytes())])))
    assert [(x.name, x.tensor_type.name, x.shape.tolist()) for x in reader.tensors] == [("w", "Q4_K", [512, 2])]
    np.testing.assert_array_equal(reader.tensors[0].data.reshape(-1), blocks.reshape(-1))


@pytest.mark.parametrize("kind, bound", [("nf4", 0.35 * 2.0**-11), ("fp4", 0)])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("n, k, blocksize", [(64, 256, 64), (96, 128, 128), (16, 512, 256)])  # its CPU code errs where k < blocksize
def test_bitsandbytes_as_it_dequantises(kind, bound, nested, n, k, blocksize):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("bitsandbytes.functional")
    matrix = torch.randn(n, k, generator=torch.Generator().manual_seed(n + k))
    weight, state = functional.quantize_4bit(matrix, blocksize=blocksize, compress_statistics=nested, quant_type=kind)
    wanted = functional.dequantize_4bit(weight, state).numpy()
    found = formats.bitsandbytes_state(weight, state).dequantize()
    assert np.abs(wanted).max() > 1
    assert (np.abs(found - wanted) <= (bound + 1e-6) * np.abs(wanted)).all()
    saved = state.as_dict(packed=True)
    assert any("quant_state" in name for name in saved)
    np.testing.assert_array_equal(formats.bitsandbytes_state(weight, saved).dequantize(), found)


def _scheme(**weights):
    quantization = pytest.importorskip("compressed_tensors.quantization")
    return quantization.QuantizationScheme(targets=["Linear"], weights=quantization.QuantizationArgs(**weights))


def _compressed(name, scheme, tensors):
    """(what compressed-tensors stores of a layer, what it makes of that)."""
    base = pytest.importorskip("compressed_tensors.compressors.base")
    pytest.importorskip("compressed_tensors.compressors")
    compressor = base.BaseCompressor.get_value_from_registry(name)
    stored = compressor.compress(dict(tensors), scheme)
    return stored, compressor.decompress(dict(stored), scheme)["weight"].float().numpy()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [32, 128, None, "tensor"])
def test_compressed_tensors_as_it_decompresses(bits, symmetric, group):
    torch = pytest.importorskip("torch")
    generator, n, k = torch.Generator().manual_seed(bits), 40, 256
    shape = (1,) if group == "tensor" else (n, k // (group or k))
    scale = torch.rand(shape, generator=generator) * 0.1 + 0.01
    tensors = {"weight": torch.randn(n, k, generator=generator), "weight_scale": scale}
    if not symmetric:
        tensors["weight_zero_point"] = torch.randint(-8, 8, shape, generator=generator).to(torch.int8)
    how = {"strategy": "tensor"} if group == "tensor" else {"strategy": "group" if group else "channel", "group_size": group}
    scheme = _scheme(num_bits=bits, symmetric=symmetric, **how)
    stored, wanted = _compressed("pack-quantized", scheme, tensors)
    names = ("weight_packed", "weight_scale", "weight_shape", "weight_zero_point")
    found = formats.compressed_tensors(bits=bits, **{name: stored[name] for name in names if name in stored})
    assert ("weight_zero_point" in stored) == (not symmetric)
    np.testing.assert_array_equal(found.dequantize(), wanted)


@pytest.mark.parametrize("kind, args", [("int-quantized", {"num_bits": 8, "strategy": "channel"}),
                                        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
                                        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]})])
def test_compressed_tensors_of_8_bits(kind, args):
    torch = pytest.importorskip("torch")
    generator, n, k = torch.Generator().manual_seed(3), 256, 384
    block = args.get("block_structure")
    shape = (n // 128, k // 128) if block else (n, 1)
    tensors = {"weight": torch.randn(n, k, generator=generator), "weight_scale": torch.rand(shape, generator=generator) * 0.1 + 0.01}
    stored, wanted = _compressed(kind, _scheme(symmetric=True, **args), tensors)
    found = formats.compressed_tensors(weight=stored["weight"], weight_scale=stored["weight_scale"], block=block)
    assert found.code == ("int8" if kind == "int-quantized" else "e4m3")
    np.testing.assert_array_equal(found.dequantize(), wanted)


@pytest.mark.parametrize("kind, scale_dtype, group", [("mxfp4-pack-quantized", "uint8", 32), ("nvfp4-pack-quantized", "float8_e4m3fn", 16)])
def test_compressed_tensors_of_e2m1(kind, scale_dtype, group):
    torch = pytest.importorskip("torch")
    generator, n, k = torch.Generator().manual_seed(4), 24, 96
    tensors = {"weight": torch.randn(n, k, generator=generator), "weight_scale": torch.exp2(torch.randint(-4, 2, (n, k // group), generator=generator).float())}
    if group == 16:
        tensors["weight_global_scale"] = torch.tensor([4.0])  # what is composed, in bfloat16, is a power of two
    strategy = "tensor_group" if group == 16 else "group"
    scheme = _scheme(num_bits=4, type="float", symmetric=True, strategy=strategy, group_size=group, scale_dtype=getattr(torch, scale_dtype))
    stored, wanted = _compressed(kind, scheme, tensors)
    names = ("weight_packed", "weight_scale", "weight_global_scale")
    found = formats.compressed_tensors(**{name: stored[name] for name in names if name in stored})
    np.testing.assert_array_equal(found.dequantize(), wanted)


def _on_a_grid(n, k, group):
    """A linear layer whose weights are scale * (code - zero), with scales and zeros of each group, (groups, n)."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(n)
    scales = torch.exp2(torch.randint(-6, -2, (k // group, n), generator=generator)).half()
    zeros, codes = torch.randint(1, 16, (k // group, n), generator=generator), torch.randint(0, 16, (k, n), generator=generator)
    layer = torch.nn.Linear(k, n, bias=False)
    layer.weight.data = ((codes - zeros.repeat_interleave(group, 0)) * scales.repeat_interleave(group, 0)).T.contiguous()
    return layer, scales, zeros


def test_gptq_as_auto_gptq_packs_it():
    """Which stores zero - 1: version 1."""
    qlinear = pytest.importorskip("auto_gptq.nn_modules.qlinear.qlinear_cuda_old")
    layer, scales, zeros = _on_a_grid(64, 256, 64)
    packed = qlinear.QuantLinear(4, 64, 256, 64, False, weight_dtype=layer.weight.dtype)
    packed.pack(layer, scales.T.float(), zeros.T.float(), None)
    found = formats.gptq(packed.qweight, packed.qzeros, packed.scales, version=1)
    np.testing.assert_array_equal(found.dequantize(), layer.weight.detach().float().numpy())


def test_awq_as_autoawq_packs_it():
    gemm = pytest.importorskip("awq.modules.linear.gemm")
    layer, scales, zeros = _on_a_grid(64, 256, 64)
    packed = gemm.WQLinear_GEMM.from_linear(layer, 4, 64, scales=scales, zeros=zeros)
    found = formats.awq(packed.qweight.cpu(), packed.qzeros.cpu(), packed.scales.cpu())
    np.testing.assert_array_equal(found.dequantize(), layer.weight.detach().float().numpy())
