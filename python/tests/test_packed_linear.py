# SPDX-License-Identifier: MIT
"""State dicts of PackedLinear. On CPU tensors, by the emulated T4."""
import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hgemm
import hgemm.torch
from hgemm import _c, _packed_state
from random_weights import halves, made, words

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")
PackedLinear = hgemm.torch.PackedLinear
N, K = 24, 64


def weights(rng, is_sorted, code="int4", n=N, k=K):
    one = made(rng, code, n, k, 32)
    if not is_sorted:
        return one
    codes = one.codes.view(np.int8) if code == "int8" else one.codes
    return hgemm.Weights(codes, one.scales, code, group=32, table=one.table, order=rng.permutation(k), nibbles=code in ("int4", "table16"))


def layer(rng, is_sorted=True, code="int4", bias=True):
    return PackedLinear(weights(rng, is_sorted, code), torch.from_numpy(rng.integers(-3, 4, N).astype(np.float16)) if bias else None)


def matrix(layer):
    return layer.weights.unpack("float32")


def old_state(layer, prefix=""):
    """As files had it before: codes, form and order under keys of their own."""
    made = {"packed": layer.weights.data.clone(), "form": torch.tensor(layer.form), "order": layer.order, "bias": layer.bias}
    return {prefix + name: tensor.detach().clone() for name, tensor in made.items() if tensor is not None}


def same(state, other):
    return state.keys() == other.keys() and all(torch.equal(state[name], other[name]) for name in state)


def near(found, wanted, bound=2e-4):
    return (found.double() - wanted.double()).norm() <= bound * wanted.double().norm()


class GPTQ(torch.nn.Module):
    """The tensors of a GPTQ layer with a forward of its own, for what is put on it before it is converted."""

    def __init__(self, rng, n=32, k=64, is_sorted=True, bias=False):
        super().__init__()
        order = rng.permutation(k) if is_sorted else np.arange(k)
        tensors = {"qweight": words(rng, k // 8, n), "qzeros": words(rng, k // 32, n // 8), "scales": halves(rng, k // 32, n) / 64,
                   "g_idx": (order // 32).astype(np.int32)}
        self.dense = torch.from_numpy(hgemm.formats.gptq(**tensors, version=2).dequantize())
        for name, tensor in tensors.items():
            self.register_buffer(name, torch.from_numpy(tensor))
        self.in_features, self.out_features = k, n
        self.register_buffer("bias", torch.from_numpy(rng.integers(-3, 4, n).astype(np.float16)) if bias else None)

    def forward(self, x):
        return torch.nn.functional.linear(x.float(), self.dense.to(x.device), None if self.bias is None else self.bias.float()).to(x.dtype)


def converted(model):
    done = hgemm.torch.convert(model, gptq_version=2)
    assert done.replaced and not done.left, done
    return model


# ---- state dicts --------------------------------------------------------------------------------------------------


def loads(model):
    return model.load_state_dict, lambda state, **options: hgemm.torch.load_state_dict(model, state, **options)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_what_lacks_a_layers_weights_leaves_it_as_it_was(rng, is_sorted):
    """An adapter's tensors, a norm's, a shard, nothing: not strict, they change nothing else; strict, what is missing is named."""
    model = torch.nn.Sequential(layer(rng, is_sorted), torch.nn.LayerNorm(N))
    before = copy.deepcopy(model.state_dict())
    for state in ({}, {"1.weight": torch.full((N,), 2.0)}, {"0.bias": torch.ones(N).half()}, {"lora.weight": torch.ones(3)}):
        for load in loads(model):
            found = load(state, strict=False)
            assert "0.packed" in found.missing_keys and set(found.unexpected_keys) == set(state) - set(before)
            assert same(model.state_dict(), {**before, **{name: tensor for name, tensor in state.items() if name in before}})
            with pytest.raises(RuntimeError, match='"0.packed"'):
                load(state)
            model.load_state_dict(before)


@pytest.mark.parametrize("assign", [True, False])
def test_a_load_that_fails_leaves_the_layer_as_it_was(rng, assign):
    model, other = torch.nn.Sequential(layer(rng)), torch.nn.Sequential(layer(rng, code="int8"))
    before, address, form, good = copy.deepcopy(model.state_dict()), model[0].packed.data_ptr(), model[0].form, other.state_dict()["0.packed"]
    of_25, twice = good.clone(), good.clone()
    of_25[-_packed_state._TAIL:][:8] = torch.tensor([25]).view(torch.uint8)
    twice[-_packed_state._TAIL - 8:-_packed_state._TAIL - 4] = twice[-_packed_state._TAIL - 4:-_packed_state._TAIL]  # of the order, one twice
    for packed, words_ in ((torch.zeros(3, dtype=torch.uint8), "the last of its 3 bytes do not say"), (good[:-1], "do not say what it is"),
                           (good[:-16], "do not say what it is"), (good[16:], "the weights of 24x64 that it says it is take"),
                           (good.float(), "of torch.float32"), (good.reshape(2, -1), r"of the shape \(2, "), (of_25, "of 25x64"), ([1, 2], "a builtins.list"),
                           (twice, "no order of the numbers from 0 to 63"), (good.to("meta"), "on meta")):
        for rest in ({}, {"0.bias": torch.zeros(N).half()}):
            with pytest.raises(RuntimeError, match=f"\t0.packed.*{words_}"):
                model.load_state_dict({"0.packed": packed, **rest}, strict=False, assign=assign)
            with pytest.raises(ValueError, match=f"^0.packed.*{words_}"):
                hgemm.torch.load_state_dict(model, {"0.packed": packed, **rest}, assign=assign)
            assert same(model.state_dict(), before) and model[0].packed.data_ptr() == address and model[0].form == form
    with pytest.raises(RuntimeError, match="size mismatch for 0.bias"):
        model.load_state_dict({"0.packed": good, "0.bias": torch.zeros(3)}, assign=assign)
    assert same(model.state_dict(), before) and model[0].form == form


@pytest.mark.parametrize("is_sorted", [True, False])
def test_older_files(rng, is_sorted):
    """Files in which form and order have keys of their own: they load whole, and what a part of one brings is not loaded."""
    source = layer(rng, is_sorted)
    state = old_state(source, "0.")
    for assign in (True, False):
        for target in (layer(rng, is_sorted), layer(rng, False, "int8"), torch.nn.Linear(K, N)):
            model = torch.nn.Sequential(target)
            assert not any(hgemm.torch.load_state_dict(model, state, assign=assign))
            assert same(model.state_dict(), torch.nn.Sequential(source).state_dict())
    keys = [key for key in state if key != "0.bias"]
    model, plain = torch.nn.Sequential(layer(rng, is_sorted)), torch.nn.Sequential(torch.nn.Linear(K, N))
    before, form, order = copy.deepcopy(model.state_dict()), state["0.form"], state.get("0.order", torch.arange(K))
    for name, changed in (("form", form[:5]), ("form", form.float()), ("form", -form), ("form", torch.full((22,), 7)), ("form", form.to("meta")),
                          ("order", order[:-1]), ("order", order.float()), ("order", order + 1), ("order", order * 0), ("order", order.to("meta")),
                          ("packed", state["0.packed"][:9])):
        with pytest.raises(RuntimeError, match=f"\t0.{name}: "):
            model.load_state_dict({**state, f"0.{name}": changed})
        for one in (model, plain):
            with pytest.raises(ValueError, match=f"^0.{name}: "):
                hgemm.torch.load_state_dict(one, {**state, f"0.{name}": changed})
        assert same(model.state_dict(), before) and type(plain[0]) is torch.nn.Linear
    for bits in range(1, 2**len(keys) - 1):
        part = {key: state[key] for i, key in enumerate(keys) if bits >> i & 1}
        for rest in ({}, {"0.bias": torch.zeros(N).half()}):
            found = model.load_state_dict({**part, **rest}, strict=False)
            assert same(model.state_dict(), before) and found.missing_keys and not found.unexpected_keys, list(part)
            missing = {key for key in ("0.packed", "0.form", "0.order") if key not in part and key in state}
            assert set(found.missing_keys) >= (missing if "0.packed" in part and "0.form" not in part else missing - {"0.order"})
            with pytest.raises(RuntimeError, match="Missing key"):
                model.load_state_dict({**part, "0.bias": state["0.bias"]})
            assert same(model.state_dict(), before)


def test_ways_to_save_and_load(rng, tmp_path):
    source, x = layer(rng), torch.from_numpy(rng.integers(-2, 3, (3, K))).half()
    wanted, state = source(x), dict(source.state_dict())  # not torch's own, which remembers that it was assigned
    assert set(state) == {"packed", "bias"} and [name for name, _ in source.named_parameters()] == ["bias"]
    torch.save(state, tmp_path / "state.pt")
    states = [state, torch.load(tmp_path / "state.pt", weights_only=True), torch.load(tmp_path / "state.pt", mmap=True)]
    # views at odd places, as others' files map them
    odd = torch.zeros(state["packed"].numel() + 7, dtype=torch.uint8)
    odd[5:-2] = state["packed"]
    states.append({**state, "packed": odd[5:-2]})
    states.append({**state, "packed": torch.stack((state["packed"], state["packed"]), 1)[:, 0]})
    for given in states:
        for assign in (True, False):
            for other in (layer(rng), layer(rng, False, "int8"), layer(rng).to("meta") if assign else layer(rng, False)):
                assert not any(other.load_state_dict(given, assign=assign))
                assert torch.equal(other(x), wanted) and other.form == source.form and torch.equal(other.order, source.order)
    target = layer(rng)
    address = target.packed.data_ptr()
    target.load_state_dict(state)
    assert target.packed.data_ptr() == address  # which CUDA graphs have recorded
    meta = layer(rng, False, "int8").to("meta")
    with pytest.warns(UserWarning, match="packed: nothing is copied to a layer on meta"):
        meta.load_state_dict(state)
    assert meta.packed.is_meta and meta.form != source.form
    meta = copy.deepcopy(source).to("meta")
    target.load_state_dict({"packed": meta.packed, "bias": meta.bias}, assign=True)
    assert target.packed.is_meta and target.form == source.form
    with torch.inference_mode():
        frozen = {name: tensor.clone() for name, tensor in state.items()}
        target.load_state_dict(frozen, assign=True)
        assert torch.equal(target(x), wanted)
    target.bias = None
    target.load_state_dict({"packed": layer(rng).packed}, strict=False)
    assert not target.packed.is_inference()


def test_safetensors(rng, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    source, x = torch.nn.Sequential(layer(rng), layer(rng, bias=False)), torch.from_numpy(rng.integers(-2, 3, (3, K))).half()
    wanted = source[1](x)
    safetensors.save_model(source, tmp_path / "model")
    for model in (torch.nn.Sequential(layer(rng, False), layer(rng, bias=False)), torch.nn.Sequential(layer(rng), layer(rng, False, "int8", False))):
        safetensors.load_model(model, tmp_path / "model")
        assert torch.equal(model[1](x), wanted) and same(model.state_dict(), source.state_dict())
    model = torch.nn.Sequential(torch.nn.Linear(K, N), torch.nn.Linear(K, N, bias=False))
    hgemm.torch.load_state_dict(model, safetensors.load_file(tmp_path / "model"), assign=True)
    assert torch.equal(model[1](x), wanted)


@pytest.mark.parametrize("seed", range(8))
def test_states_torn_and_shuffled(seed):
    """Shards of several models' states in any order, older files' among them, some with a tensor cut or changed: after each load a layer is as
    it was, or wholly what the shard brings."""
    rng = np.random.default_rng(seed)
    kinds = [(bool(rng.integers(2)), ("int4", "int8", "uint8", "e4m3")[rng.integers(4)]) for _ in range(4)]
    *sources, model = (torch.nn.ModuleDict({f"l{i}": layer(rng, *kind) for i, kind in enumerate(kinds)}) for _ in range(4))
    for i in range(0, 4, 2):
        model[f"l{i}"] = layer(rng, not kinds[i][0], "int4")
    taken = 0
    for _ in range(30):
        source, is_old, assign, load = sources[rng.integers(3)], rng.integers(3) == 0, bool(rng.integers(2)), loads(model)[rng.integers(2)]
        state = {key: tensor for name in source for key, tensor in old_state(source[name], f"{name}.").items()} if is_old else source.state_dict()
        shard = {key: state[key].clone() for key in rng.permutation(list(state)) if rng.integers(4)}
        for name in source:  # an older file does not say that it has an order
            if is_old and model[name].order is None and f"{name}.order" not in shard:
                shard.pop(f"{name}.packed", None)
        spoilt = {key: [tensor[:-1], tensor.float(), tensor[None]][rng.integers(3)] for key, tensor in shard.items() if not key.endswith("bias") and
                  rng.integers(20) == 0}
        shard.update(spoilt)
        before, is_refused = copy.deepcopy(model.state_dict()), False
        try:
            found = load(shard, strict=False, assign=assign)
        except (RuntimeError, ValueError):
            assert spoilt
            is_refused = True
        after = model.state_dict()
        for name in source:
            whole, bias = f"{name}.packed", f"{name}.bias"
            needed = {key for key in state if key.startswith(f"{name}.") and key != bias}
            was = torch.equal(after[whole], before[whole]) and torch.equal(after[bias], before[bias])
            wanted_bias = shard.get(bias, before[bias])
            if needed <= set(shard) and not needed & set(spoilt):
                brought = torch.equal(after[whole], source[name].packed) and torch.equal(after[bias], wanted_bias)
                assert brought or is_refused and was, (name, list(shard))
                assert is_refused or whole not in found.missing_keys
                taken += 1
            elif needed & set(shard):
                assert was, (name, list(shard))
                assert is_refused or any(key.startswith(f"{name}.") for key in found.missing_keys)
            else:
                assert torch.equal(after[whole], before[whole]) and (torch.equal(after[bias], wanted_bias) or is_refused and was)
            holder = next((one for one in sources if torch.equal(one[name].packed, after[whole])), None)
            assert holder is None or model[name].form == holder[name].form and torch.equal(matrix(model[name]), matrix(holder[name]))
    assert taken > 20


def test_loads_into_a_model_that_is_not_converted(rng):
    """A layer in two places is one there; what is refused leaves the model as it was; a bias that the state lacks stays."""
    source, shared = layer(rng), torch.nn.Linear(K, N)
    state = {f"{place}.{name}": tensor for place in ("a.0", "b") for name, tensor in source.state_dict().items()}
    model = torch.nn.ModuleDict({"a": torch.nn.Sequential(shared), "b": shared, "norm": torch.nn.LayerNorm(4)}).half()
    plain = copy.deepcopy(model.state_dict())
    for bad in ({**state, "b.packed": state["b.packed"][:-1]}, {**state, "norm.weight": torch.ones(3)}, {"c.packed": state["b.packed"]}, state,
                {**state, "b.bias": torch.ones(1)}, {**state, "a.0.bias": 1.0}):
        with pytest.raises((ValueError, RuntimeError)):
            hgemm.torch.load_state_dict(model, bad)
        assert model["a"][0] is shared and model["b"] is shared
        assert all(torch.equal(tensor, plain[name]) for name, tensor in model.state_dict().items() if "norm" not in name)
    found = hgemm.torch.load_state_dict(model, {"b.packed": state["b.packed"]}, strict=False)
    assert isinstance(model["b"], PackedLinear) and model["a"][0] is model["b"]
    assert torch.equal(matrix(model["b"]), matrix(source)) and torch.equal(model["b"].bias, shared.bias) and "b.bias" in found.missing_keys
    hgemm.torch.load_state_dict(model, {**state, "norm.weight": torch.ones(4), "norm.bias": torch.zeros(4)})
    assert same(model["b"].state_dict(), source.state_dict())
    assert hgemm.torch.load_state_dict(torch.nn.Sequential(torch.nn.Linear(2, 2)), {"0.packed": torch.ones(3)}, strict=False).unexpected_keys
    with pytest.raises(ValueError, match="0.packed: it is of weights of 24x64, and the layer's are 24x32"):
        hgemm.torch.load_state_dict(torch.nn.Sequential(torch.nn.Linear(32, N)), {f"0.{name}": tensor for name, tensor in source.state_dict().items()})
    with pytest.raises(ValueError, match="0.packed: the layer is not packed yet, and the state dict has no form of it"):
        hgemm.torch.load_state_dict(torch.nn.Sequential(torch.nn.Linear(K, N)), {"0.order": source.order, "0.packed": source.packed})


def test_bytes_that_others_put_there(rng):
    """Past load_state_dict, as accelerate's loaders and DDP's broadcasts do: what they are is read again."""
    source, x = layer(rng, code="int4"), torch.from_numpy(rng.integers(-2, 3, (3, K))).half()
    table = layer(rng, code="table16", bias=False)
    assert table.packed.shape == source.packed.shape and table.form != source.form
    wanted = table(x)
    written, assigned, moved = copy.deepcopy(table), copy.deepcopy(table), copy.deepcopy(table)
    for target in (written, assigned, moved):
        target.load_state_dict(source.state_dict(), strict=False)
        assert not torch.equal(target(x), wanted)
    written.packed.copy_(table.packed)
    assigned._buffers["packed"] = table.packed.clone()
    moved.packed = table.packed.clone()
    moved.half()
    for target in (written, assigned, moved):
        assert torch.equal(target(x), wanted) and target.form == table.form and torch.equal(matrix(target), matrix(table))
    written.packed.zero_()
    with pytest.raises(ValueError, match="packed: the last of its"):
        written(x)
    swapped = torch.func.functional_call(source, {"packed": table.packed, "bias": torch.zeros(N).half()}, x)
    assert torch.equal(swapped, wanted) and source.form == layer(rng).form


def run_rank(rank, store):
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        rng = np.random.default_rng(rank)
        one = weights(rng, True, ("table16", "int4")[rank])  # as many bytes, which say other things
        model = torch.nn.Sequential(PackedLinear(one), torch.nn.Linear(N, 2).half())
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        x = torch.ones(3, K, dtype=torch.float16, requires_grad=True)
        parallel(x).float().sum().backward()
        found = [torch.zeros(N, K) for _ in range(2)]
        torch.distributed.all_gather(found, matrix(model[0]))
        assert torch.equal(*found) and torch.equal(found[0], torch.from_numpy(one.dequantize())) == (rank == 0)
        assert near(x.grad, (model[1].weight.float().sum(0) @ found[0]).expand(3, K), 2e-3)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_two_ranks(tmp_path):
    """DistributedDataParallel sends the first rank's weights to all."""
    code = "import sys, test_packed_linear; test_packed_linear.run_rank(1, sys.argv[1])"
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "store")], cwd=os.path.dirname(__file__), stderr=subprocess.PIPE, text=True)
    run_rank(0, tmp_path / "store")
    _, words_ = other.communicate(timeout=300)
    assert other.returncode == 0, words_
