# SPDX-License-Identifier: MIT
"""What convert finds in a model, what its scales mean, and where the packed layers are put. Without products: matrices are unpacked."""
import copy
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hgemm
import hgemm.torch
from hgemm import _c, _quantised, formats
from random_weights import halves, words, zero_words

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")


class Layer(torch.nn.Module):
    """A quantised layer of some package's: the tensors that its checkpoint has, and what else it says."""

    def __init__(self, said=(), **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor if isinstance(tensor, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(tensor)))
        for name, value in dict(said).items():
            setattr(self, name, value)


def a_class(name, base=Layer):
    return type(name, (base,), {})


def e4m3(rng, *shape):
    return torch.from_numpy(rng.integers(0, 100, shape).astype(np.uint8)).view(torch.float8_e4m3fn)


def fp8_layer(rng, n, k, *shape, name="weight_scale", of=Layer, **said):
    return of(said, weight=e4m3(rng, n, k), **{name: rng.uniform(0.1, 1, shape).astype(np.float32)})


def by_hand(weight, scale, kind, size=None):
    """The matrix in float32, where a scale is for what `kind` says."""
    n, k = weight.shape
    scale = scale.float()
    if kind == "block":
        scale = scale.repeat_interleave(size[0], 0)[:n].repeat_interleave(size[1], 1)[:, :k]
    elif kind == "row":
        scale = scale.reshape(n, 1)
    elif kind == "group":
        scale = scale.repeat_interleave(size, 1)[:, :k]
    else:
        scale = scale.reshape(1, 1)
    return weight.float() * scale


def unpacked(layer):
    return layer.weights.unpack("float32")


def scheme(strategy, **more):
    return types.SimpleNamespace(weights=types.SimpleNamespace(strategy=strategy, num_bits=8, type="float", symmetric=True, **more))


ROWS = {"a scheme": {"quantization_scheme": scheme("channel")}, "a class": "CompressedTensorsFP8Linear", "a config": {"config_groups": {
    "group_0": {"targets": ["Linear"], "weights": {"strategy": "channel", "group_size": None}}}}, "FBGEMM's config": {"quant_method": "fbgemm_fp8"}, "the caller": "rows"}
BLOCKS = {"a scheme": {"quantization_scheme": scheme("block", block_structure=[128, 128])}, "a scheme of text": {"quantization_scheme": scheme(
    "block", block_structure="128x128")}, "a size": {"block_size": [128, 128]}, "a config": {"weight_block_size": [128, 128]}, "the caller": (128, 128),
    "a config of groups": {"config_groups": {"group_0": {"weights": {"strategy": "block", "block_structure": [128, 128]}}}}}


@pytest.mark.parametrize("kind, said, by", [("row", by, who) for who, by in ROWS.items()] + [("block", by, who) for who, by in BLOCKS.items()])
@pytest.mark.parametrize("n, k", [(2, 256), (3, 300), (32, 4096), (40, 5120)])
def test_a_shape_of_rows_and_of_blocks_is_what_is_said(rng, kind, said, by, n, k):
    """(1, n) where n is k / 128 too: one reading is right by each who says it, and none is taken where nobody does."""
    layer = fp8_layer(rng, n, k, 1, n, of=a_class(said) if by == "a class" else Layer, **said if by.startswith(("a scheme", "a size")) else {})
    wanted = by_hand(layer.weight, layer.weight_scale, kind, (128, 128))
    model = torch.nn.Sequential(torch.nn.Sequential(layer))
    if "config" in by:
        model.config = types.SimpleNamespace(quantization_config=said)
    done = hgemm.torch.convert(model, **{"fp8_scales": said} if by == "the caller" else {})
    assert list(done.replaced) == ["0.0"] and torch.equal(unpacked(model[0][0]), wanted)
    silent = torch.nn.Sequential(fp8_layer(rng, n, k, 1, n))
    why = hgemm.torch.convert(silent).left["0"]
    assert f"weight_scale: its shape (1, {n}) is that of scales one a row of {n} and of scales of blocks of 128x128 of {n}x{k}, and nothing says" in why


@pytest.mark.parametrize("n, k, shape, kind, size", [
    (64, 256, (1, 64), "row", None), (64, 256, (64, 1), "row", None), (64, 256, (64,), "row", None), (64, 256, (1, 2), "block", (128, 128)),
    (200, 300, (2, 3), "block", (128, 128)), (64, 256, (64, 8), "group", 32), (64, 256, (), "tensor", None), (64, 256, (1,), "tensor", None),
    (64, 256, (1, 1), "tensor", None), (1, 256, (1, 2), "block", (128, 128)), (2, 64, (2, 1), "row", None)])
def test_a_shape_that_has_one_reading(rng, n, k, shape, kind, size):
    model = torch.nn.Sequential(fp8_layer(rng, n, k, *shape))
    wanted = by_hand(model[0].weight, model[0].weight_scale, kind, size)
    assert not hgemm.torch.convert(model).left and torch.equal(unpacked(model[0]), wanted)


def test_a_scale_that_is_not_what_is_said(rng):
    """The layer is left alone, with what it has and who says otherwise."""
    for shape, said, match in (((2, 3), {"block_size": (64, 64)}, "its shape is (2, 3), not (4, 6): its block_size says blocks of 64x64 of 256x384"),
                               ((256, 1), {"block_size": (128, 128)}, "its shape is (256, 1), not (2, 3)"),
                               ((2, 3), {"quantization_scheme": scheme("channel")}, "and its quantization_scheme says one a row"),
                               ((256, 1), {"quantization_scheme": scheme("tensor")}, "and its quantization_scheme says one for all"),
                               ((2, 3), {"quantization_scheme": scheme("group", group_size=128)}, "says one a group along k"),
                               ((256, 3), {"quantization_scheme": scheme("group", group_size=64)}, "k = 384 in groups of 64 has 6"),
                               ((2, 3), {"quantization_scheme": scheme("block", block_structure="wide")}, "is no shape of a block"),
                               ((1,), {"block_size": (128, 128)}, "its shape is (1,), not (2, 3)")):
        model = torch.nn.Sequential(fp8_layer(rng, 256, 384, *shape, **said))
        why = hgemm.torch.convert(model).left["0"]
        assert match in why, why
    mixed = {"config_groups": {"a": {"weights": {"strategy": "channel"}}, "b": {"weights": {"strategy": "block", "block_structure": [128, 128]}}}}
    model = torch.nn.Sequential(fp8_layer(rng, 2, 256, 1, 2))
    model.config = types.SimpleNamespace(quantization_config=mixed)  # which layer is of which group it does not say here
    assert "nothing says which" in hgemm.torch.convert(model).left["0"]


def test_weight_scale_inv(rng):
    """DeepSeek's name for scales of blocks; of one number, as transformers has it for a whole matrix; and powers of two."""
    for n, k in ((32, 4096), (130, 260)):
        model = torch.nn.Sequential(fp8_layer(rng, n, k, -(-n // 128), -(-k // 128), name="weight_scale_inv"))
        wanted = by_hand(model[0].weight, model[0].weight_scale_inv, "block", (128, 128))
        assert not hgemm.torch.convert(model).left and torch.equal(unpacked(model[0]), wanted)
    for shape in ((), (1,), (1, 1)):
        model = torch.nn.Sequential(fp8_layer(rng, 256, 384, *shape, name="weight_scale_inv", of=a_class("FP8Linear"), block_size=None))
        wanted = by_hand(model[0].weight, model[0].weight_scale_inv, "tensor")
        assert not hgemm.torch.convert(model).left and torch.equal(unpacked(model[0]), wanted)
    exponents = torch.from_numpy(rng.integers(110, 130, (2, 3)).astype(np.uint8)).view(torch.float8_e8m0fnu)
    model = torch.nn.Sequential(Layer({"block_size": (128, 128)}, weight=e4m3(rng, 256, 384), weight_scale_inv=exponents))
    wanted = by_hand(model[0].weight, exponents.float(), "block", (128, 128))
    assert not hgemm.torch.convert(model).left and torch.equal(unpacked(model[0]), wanted)


def test_groups_that_a_scheme_tells(rng):
    """k = 192 in groups of 128 or of 96, by quantization_scheme, group_size or the model's config; a shape alone does not tell."""
    n, k, zeros, scale = 8, 192, zero_words(rng, 2, 1), halves(rng, 8, 2)
    def layers(size):
        of = scheme("group", group_size=size)
        packed = {"weight_packed": words(rng, n, k // 8), "weight_scale": scale, "weight_shape": np.array([n, k])}
        integer = {"weight": rng.integers(-128, 128, (n, k)).astype(np.int8), "weight_scale": scale}
        fp8 = {"weight": e4m3(rng, n, k), "weight_scale": scale}
        awq = {"qweight": words(rng, k, n // 8), "qzeros": zeros, "scales": scale.T}
        gptq = {"qweight": words(rng, k // 8, n), "qzeros": zeros, "scales": scale.T}
        four = copy.deepcopy(of)
        four.weights.num_bits = 4
        return [({"quantization_scheme": four}, packed, formats.compressed_tensors), ({"quantization_scheme": of}, integer, formats.compressed_tensors),
                ({"quantization_scheme": of}, fp8, formats.compressed_tensors), ({"group_size": size}, awq, formats.awq),
                ({"group_size": size}, gptq, lambda **of: formats.gptq(version=1, **of))]
    for size in (128, 96):
        for said, tensors, convert in layers(size):
            model = torch.nn.Sequential(Layer(said, **tensors), Layer(**tensors))
            done = hgemm.torch.convert(model, gptq_version=1)
            assert list(done.replaced) == ["0"] and "it has 2 groups along k = 192, of 96, or of 128" in done.left["1"], done
            np.testing.assert_array_equal(unpacked(model[0]).numpy(), convert(group_size=size, **tensors).dequantize())
        model.config = types.SimpleNamespace(quantization_config=types.SimpleNamespace(group_size=size, meta=None))
        assert hgemm.torch.convert(model, gptq_version=1).replaced and torch.equal(unpacked(model[1]), unpacked(model[0]))


def test_what_a_scheme_tells_of_that_is_not_there(rng):
    n, k = 8, 128
    packed = {"weight_packed": words(rng, n, k // 8), "weight_scale": halves(rng, n, 4), "weight_shape": np.array([n, k])}
    for changed, match in (({"actorder": "group"}, "act-order, and it has no weight_g_idx"), ({"symmetric": False}, "not symmetric, and it has no weight_zero"),
                           ({"num_bits": 3}, "says codes of 3 bits"), ({"num_bits": 8}, "with 8 bits"), ({"actorder": "static"}, None), ({}, None)):
        of = scheme("group", group_size=32)
        vars(of.weights).update({"num_bits": 4, **changed})
        model = torch.nn.Sequential(Layer({"quantization_scheme": of}, **packed))
        done = hgemm.torch.convert(model)
        assert not done.left if match is None else match in done.left["0"], done
    integer = scheme("channel", actorder="group")
    model = torch.nn.Sequential(Layer({"quantization_scheme": integer}, weight=rng.integers(-9, 9, (n, k)).astype(np.int8), weight_scale=halves(rng, n, 1)))
    assert "no weight_g_idx" in hgemm.torch.convert(model).left["0"]


@pytest.mark.parametrize("by", ["the caller", "GPTQModel's layer", "the config", None])
def test_zeros_of_0_in_gptq(rng, by):
    """Who says that 1 was subtracted from whole integers of 32 bits."""
    n, k = 16, 64
    zeros = (rng.integers(0, 16, (2, n)) * rng.integers(0, 2, (2, n))).astype(np.uint32)
    joined = (zeros.reshape(2, -1, 8) << 4 * np.arange(8, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    layer = Layer(qweight=words(rng, k // 8, n), qzeros=(joined - np.uint32(0x11111111)).view(np.int32), scales=halves(rng, 2, n))
    wanted = formats.gptq(layer.qweight, joined.view(np.int32), layer.scales, version=2).dequantize()
    model = torch.nn.Sequential(layer)
    if by == "GPTQModel's layer":
        layer.qzero_format = lambda: 1
    if by == "the config":
        model.config = types.SimpleNamespace(quantization_config={"meta": {"quantizer": ["optimum:1.2", "gptqmodel:2.0.0"]}})
    done = hgemm.torch.convert(model, gptq_version=1, gptq_borrow=True if by == "the caller" else None)
    if by is None:
        assert "borrow=True" in done.left["0"]
    else:
        np.testing.assert_array_equal(unpacked(model[0]).numpy(), wanted)


def test_arguments():
    model = torch.nn.Sequential()
    for options, match in (({"fp8_scales": "row"}, "fp8_scales: 'row'"), ({"fp8_scales": (128,)}, "fp8_scales: "), ({"fp8_scales": 128}, "fp8_scales: "),
                           ({"gptq_borrow": 1.5}, "gptq_borrow: 1.5")):
        with pytest.raises(ValueError, match=match):
            hgemm.torch.convert(model, **options)


# ---- where the packed layers are put ----------------------------------------------------------------------------------


def test_one_layer_under_many_names(rng):
    """In a module twice, in lists, dicts and sequences, across parents: one PackedLinear in all places, counted once."""
    def one():
        return fp8_layer(rng, 32, 64, 32, 1)
    layer, bad, plain = one(), fp8_layer(rng, 2, 256, 1, 2), torch.nn.Linear(4, 4)
    model = torch.nn.Module()
    model.a, model.b, model.empty, model.plain, model.again = layer, layer, None, plain, plain
    model.inner = torch.nn.Sequential(layer, one(), layer)
    model.list = torch.nn.ModuleList([layer, model.inner, layer, bad])
    model.dict = torch.nn.ModuleDict({"x": layer, "y": torch.nn.ModuleDict({"z": layer, "bad": bad})})
    done = hgemm.torch.convert(model)
    assert list(done.replaced) == ["a", "inner.1"] and list(done.left) == ["list.3"]
    for name in ("b", "inner.0", "inner.2", "list.0", "list.2", "dict.x", "dict.y.z"):
        assert f"; also {name}" in done.replaced["a"]
    assert done.replaced["a"].count("also") == 7 and done.left["list.3"].endswith("; also dict.y.bad")
    assert isinstance(model.a, hgemm.torch.PackedLinear)
    places = [model.b, model.inner[0], model.inner[2], model.list[0], model.list[2], model.dict["x"], model.dict["y"]["z"]]
    assert all(place is model.a for place in places) and model.list[3] is bad and model.list[1] is model.inner and model.plain is model.again is plain
    assert not [name for module in model.modules() if module is not bad for name, _ in _quantised.quantised_tensors(module)]


def test_what_is_no_linear_layer(rng):
    """Embeddings, convolutions and products of groups have familiar tensors, and are none."""
    class Embedding(torch.nn.Embedding):
        pass
    tables = Embedding(32, 64), torch.nn.Conv1d(64, 32, 1), fp8_layer(rng, 32, 64, 1, n_groups=4)
    for table in tables[:2]:
        table.weight = torch.nn.Parameter(e4m3(rng, *table.weight.shape), requires_grad=False)
        table.weight_scale = torch.nn.Parameter(torch.ones(1), requires_grad=False)
    done = hgemm.torch.convert(torch.nn.Sequential(*tables))
    assert not done.replaced and "it is a Embedding" in done.left["0"] and "it is a Conv1d" in done.left["1"] and "4 groups" in done.left["2"]


def test_every_quantised_tensor_is_named(rng):
    """Of any name and class: parameters of integers, FP8 with more dimensions, tensors beside scales. Indices and masks are none."""
    def parameter(tensor):
        return torch.nn.Parameter(tensor, requires_grad=False)
    model = torch.nn.ModuleDict({name: torch.nn.Module() for name in ("experts", "eetq", "codes", "scaled", "masks", "swizzled", "ours")})
    model["experts"].up = parameter(torch.zeros(2, 8, 16).to(torch.float8_e5m2))
    model["eetq"].weight, model["eetq"].weight_scales = parameter(torch.zeros(8, 16, dtype=torch.int8)), torch.ones(16)
    model["codes"].codes = parameter(torch.zeros(8, 16, dtype=torch.int16))
    model["scaled"].register_buffer("packed_down", torch.zeros(8, 16, dtype=torch.uint8))
    model["scaled"].register_buffer("scales", torch.ones(8, 1))
    for name, tensor in (("position_ids", torch.zeros(1, 8, dtype=torch.int64)), ("mask", torch.zeros(8, 8, dtype=torch.uint8)), ("index", torch.zeros(8, 8, dtype=torch.int32))):
        model["masks"].register_buffer(name, tensor)
    model["swizzled"].up_precision_config = object()
    model["ours"].layer = hgemm.torch.PackedLinear(hgemm.Weights(np.ones((8, 32), int), np.ones((8, 1), np.float16), "int8"))
    done = hgemm.torch.convert(model)
    assert not done.replaced and set(done.left) == {"experts", "eetq", "codes", "scaled", "swizzled"} and "Triton's kernels" in done.left["swizzled"]
    torch.nn.utils.parametrize.register_parametrization(model["codes"], "codes", torch.nn.Identity(), unsafe=True)  # as bitsandbytes' of experts are
    assert "codes.parametrizations.codes" in hgemm.torch.convert(model).left
