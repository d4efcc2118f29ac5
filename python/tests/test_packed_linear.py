# SPDX-License-Identifier: MIT
"""PackedLinear as what others take it for: a Linear that is loaded, hooked, read, adapted and offloaded. On CPU tensors, by the emulated T4."""
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
                           (good.float(), "of torch.float32"), (good.reshape(2, -1), r"of the shape \(2, "), (of_25, "of 25x64"),
                           ([1, 2], "a builtins.list"), (twice, "no order of the numbers from 0 to 63"), (good.to("meta"), "on meta")):
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
    assert target.packed.is_meta and target.form == source.form and target.weight.is_meta
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
    handle, seen = shared.register_forward_hook(lambda *arguments: seen.append(1)), []
    found = hgemm.torch.load_state_dict(model, {"b.packed": state["b.packed"]}, strict=False)
    model["b"](torch.ones(1, K).half())
    handle.remove()
    model["b"](torch.ones(1, K).half())
    assert seen == [1]
    assert isinstance(model["b"], PackedLinear) and model["a"][0] is model["b"] and model["b"].dtype == torch.float16
    assert torch.equal(matrix(model["b"]), matrix(source)) and torch.equal(model["b"].bias, shared.bias) and "b.bias" in found.missing_keys
    hgemm.torch.load_state_dict(model, {**state, "norm.weight": torch.ones(4), "norm.bias": torch.zeros(4)})
    assert same(model["b"].state_dict(), source.state_dict())
    assert hgemm.torch.load_state_dict(torch.nn.Sequential(torch.nn.Linear(2, 2)), {"0.packed": torch.ones(3)}, strict=False).unexpected_keys
    with pytest.raises(ValueError, match="0.packed: it is of weights of 24x64, and the layer's are 24x32"):
        hgemm.torch.load_state_dict(torch.nn.Sequential(torch.nn.Linear(32, N)), torch.nn.Sequential(source).state_dict())
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
    moved.to(torch.float64)
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


# ---- its weight ---------------------------------------------------------------------------------------------------


def test_what_a_weight_answers(rng, monkeypatch):
    """Without being unpacked; and it is none of the module's tensors."""
    def refuse(self):
        raise AssertionError("unpacked")
    packed = layer(rng)
    monkeypatch.setattr(PackedLinear, "matrix", refuse)
    weight = packed.weight
    assert isinstance(packed, torch.nn.Linear) and isinstance(weight, torch.Tensor) and not isinstance(weight, torch.nn.Parameter)
    assert weight.shape == weight.size() == (N, K) and weight.ndim == weight.dim() == 2 and weight.numel() == N * K and len(weight) == N
    assert weight.dtype == torch.float16 and weight.device == packed.packed.device and weight.element_size() == 2 and weight.is_contiguous()
    assert weight.stride() == (K, 1) and weight.is_floating_point() and not weight.requires_grad and weight.grad is None and not weight.is_meta
    assert weight.to("cpu") is weight and weight.half() is weight and weight.data.shape == weight.detach().T.T.shape == (N, K)
    assert "24, 64" in repr(weight) and packed.weight[0].shape == (K,) and weight.requires_grad_(False) is weight
    assert copy.deepcopy(packed).to("meta").weight.is_meta
    assert (packed.in_features, packed.out_features) == (K, N)
    names = [name for of in (packed.named_parameters(), packed.named_buffers(), packed.state_dict().items()) for name, _ in of]
    assert sorted(names) == ["bias", "bias", "packed", "packed"]
    with pytest.raises(RuntimeError, match="data_ptr: a packed layer's weight has no memory"):
        weight.data_ptr()
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        assert packed.to(dtype).weight.dtype == packed.to("cpu").weight.dtype == dtype and packed.packed.dtype == torch.uint8
    assert packed.half().weight.dtype == torch.float16 and packed.to_empty(device="cpu").dtype == torch.float16
    assert layer(rng, bias=False).weight.dtype == torch.float32
    assert PackedLinear(weights(rng, True), dtype=torch.bfloat16).weight.dtype == torch.bfloat16


READS = {
    "arithmetic": lambda w: w * 2 + 1, "its own": lambda w: w + w, "index": lambda w: w[3, 5:], "mask": lambda w: w[w > 0],
    "to": lambda w: w.to(torch.float64),
    "norm": lambda w: torch.linalg.norm(w.float(), dim=1), "T": lambda w: w.T @ torch.ones(N, dtype=w.dtype), "item": lambda w: w[1, 1].item(),
    "linear": lambda w: torch.nn.functional.linear(torch.ones(2, K, dtype=w.dtype), w), "split": lambda w: torch.cat(w.split(5)[1:3]),
    "einsum": lambda w: torch.einsum("nk,k->n", w, torch.arange(K, dtype=w.dtype)), "clone": lambda w: w.clone(),
    "data": lambda w: w.data.abs().sum(),
    "numpy": lambda w: torch.from_numpy(w.numpy() + np.asarray(w)) if w.dtype != torch.bfloat16 else w.clone(),
    "list": lambda w: torch.tensor(w.tolist()),
    "deepcopy": lambda w: copy.deepcopy(w), "pickle": lambda w: pickle.loads(pickle.dumps(w)), "reshape": lambda w: w.reshape(-1)[7:9],
    "view": lambda w: w.view(torch.int8 if w.dtype == torch.float64 else torch.int16),
    "stack": lambda w: torch.stack([w, w]), "equal": lambda w: torch.tensor(torch.equal(w, w.clone())), "unbind": lambda w: w.unbind(1)[3].clone(),
    "copy": lambda w: torch.empty(N, K).copy_(w), "sub": lambda w: torch.ones(N, K, dtype=w.dtype).sub_(w)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_reads_a_weight_reads_the_matrix(rng, dtype):
    packed = layer(rng, bias=False).to(dtype)
    dense = matrix(packed).to(dtype)
    for name, read in READS.items():
        found, wanted = read(packed.weight), read(dense)
        found, wanted = (torch.as_tensor(one) for one in (found, wanted))
        assert type(found.clone()) is torch.Tensor and found.dtype == wanted.dtype and torch.equal(found.clone(), wanted), name
    assert type(packed) is PackedLinear
    x = torch.randn(3, K, dtype=dtype, requires_grad=True)
    for weight in (packed.weight, dense):  # a gradient past it, and under a transform
        y = torch.nn.functional.linear(x, weight).pow(2).sum()
        assert torch.allclose(torch.autograd.grad(y, x)[0], torch.func.grad(lambda x: torch.nn.functional.linear(x, weight).pow(2).sum())(x))
        assert torch.allclose(torch.autograd.grad(torch.nn.functional.linear(x, weight).pow(2).sum(), x)[0],
                              torch.autograd.grad(torch.nn.functional.linear(x, dense).pow(2).sum(), x)[0])


WRITES = {
    "data +=": lambda layer: exec("layer.weight.data += 1", {"layer": layer}), "+= in place": lambda layer: layer.weight.add_(torch.ones(N, K)),
    "element": lambda layer: layer.weight.__setitem__((2, 3), 7), "a view": lambda layer: layer.weight.T[5].zero_(),
    "of split": lambda layer: layer.weight.split(8)[1].fill_(3), "out": lambda layer: torch.mul(layer.weight, 3, out=layer.weight),
    "init": lambda layer: torch.nn.init.constant_(layer.weight, 0.5), "data": lambda layer: setattr(layer.weight, "data", torch.full((N, K), 2.0)),
    "parameter": lambda layer: setattr(layer, "weight", torch.nn.Parameter(torch.full((N, K), 2.0))),
    "detached": lambda layer: layer.weight.detach().neg_(),
    "foreach": lambda layer: torch._foreach_add_([layer.weight], 2.0), "copy": lambda layer: layer.weight.data.copy_(torch.arange(K)),
    "data, later": lambda layer: exec("w = layer.weight.data; w += 1; layer.weight.data = w", {"layer": layer}),
    "where": lambda layer: layer.weight.masked_fill_(layer.weight > 0, 0),
    "clone": lambda layer: setattr(layer.weight, "data", layer.weight.data.clone() + 1)}


@pytest.mark.parametrize("name", WRITES)
def test_what_writes_a_weight_makes_the_layer_a_linear(rng, name):
    packed, x = layer(rng).float(), torch.randn(2, K)
    dense = torch.nn.Linear(K, N)
    dense.load_state_dict({"weight": matrix(packed), "bias": packed.bias})
    seen = []
    packed.register_forward_hook(lambda *arguments: seen.append(1))
    forward, early = packed.forward, packed.weight
    with torch.no_grad():
        WRITES[name](dense)
        WRITES[name](packed)
    assert type(packed) is torch.nn.Linear and same(packed.state_dict(), dense.state_dict()) and packed.state_dict().keys() == {"weight", "bias"}
    for y in (packed(x), forward(x), copy.deepcopy(packed)(x)):
        assert torch.equal(y, dense(x))
    assert seen and torch.equal(early.clone(), dense.weight) and repr(packed) == repr(dense)
    with torch.no_grad():
        early.zero_()
    assert not packed.weight.any()


def test_what_a_weight_refuses(rng):
    packed = layer(rng)
    for ask in (lambda: packed.weight.requires_grad_(), lambda: packed.weight.requires_grad_(True),
                lambda: setattr(packed.weight, "requires_grad", True), lambda: packed.weight.requires_grad_(requires_grad=True)):
        with pytest.raises(RuntimeError, match="cannot require a gradient"):
            ask()
    packed.weight.requires_grad = False
    other = torch.nn.Linear(K, N)
    for data in (packed.weight, packed.weight.data):
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            other.weight.data = data  # whose memory would be nowhere
    with pytest.raises(RuntimeError, match="data: it can be set of a packed layer's whole weight"):
        packed.weight[0].data = torch.zeros(K)
    with pytest.raises(ValueError, match=r"weight: its shape is \(24, 63\)"):
        packed.weight = torch.nn.Parameter(torch.zeros(N, 63))
    assert type(packed) is PackedLinear
    for dtype in (torch.int8, "float16", torch.float8_e4m3fn):
        with pytest.raises(ValueError, match="dtype: .* is none of torch.float16, "):
            PackedLinear(weights(rng, True), dtype=dtype)


def test_a_model_that_reads_a_weight_is_traced(rng):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wo = layer(rng)

        def forward(self, x):
            if isinstance(self.wo.weight, torch.Tensor) and x.dtype != self.wo.weight.dtype:
                x = x.to(self.wo.weight.dtype)
            return self.wo(x), x @ self.wo.weight.T
    model, x = Model(), torch.from_numpy(rng.integers(-2, 3, (3, K))).float()
    wanted = model(x)
    for compiled in (torch.compile(model, fullgraph=True, backend="aot_eager"), torch.export.export(model, (x,)).module(), torch.jit.trace(model, x),
                     torch.fx.experimental.proxy_tensor.make_fx(model)(x)):
        assert all(torch.equal(one, other) for one, other in zip(compiled(x), wanted))
        assert all(torch.equal(one, other) for one, other in zip(compiled(x + 1), model(x + 1)))


# ---- hooks --------------------------------------------------------------------------------------------------------


def test_hooks_are_taken_over(rng):
    """Of every kind, before and around the product, forward and backward; and their handles remove them."""
    seen = []

    def put(layer):
        def note(name):
            return lambda *arguments, **options: seen.append(name)
        return [layer.register_forward_pre_hook(note("pre")), layer.register_forward_hook(note("forward")),
                layer.register_forward_pre_hook(lambda layer, x, options: seen.append("pre with kwargs"), with_kwargs=True),
                layer.register_forward_hook(lambda layer, x, options, y: (seen.append("with kwargs"), y + 1)[1], with_kwargs=True, prepend=True),
                layer.register_forward_hook(note("always"), always_call=True), layer.register_full_backward_pre_hook(note("backward pre")),
                layer.register_full_backward_hook(note("full backward"))]
    x = torch.from_numpy(rng.integers(-2, 3, (3, 64))).half().requires_grad_()
    model = torch.nn.Sequential(GPTQ(rng))
    handles = put(model[0])
    plain = copy.deepcopy(model)
    plain(x).sum().backward()
    wanted = list(seen)
    assert len(wanted) == 7
    seen.clear()
    converted(model)
    y = model(x)
    y.sum().backward()
    assert seen == wanted and (y - plain(x)).abs().max() < 0.1
    late = model[0].register_forward_hook(lambda *arguments: seen.append("late"))
    for handle in (*handles, late):
        handle.remove()
    seen.clear()
    model(x).sum().backward()
    assert not seen
    model = torch.nn.Sequential(GPTQ(rng))
    handle = model[0].register_backward_hook(lambda *arguments: seen.append("old"))
    converted(model)(x).sum().backward()
    assert seen == ["old"]
    handle.remove()
    model(x).sum().backward()
    assert seen == ["old"]


def test_a_weights_dtype_is_the_models(rng):
    for dtype in (torch.bfloat16, torch.float32):
        model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(4, 64, dtype=dtype), "norm": torch.nn.LayerNorm(4).half(),
                                     "up": GPTQ(rng, bias=True)})
        assert converted(model)["up"].weight.dtype == dtype and model["up"].bias.dtype == torch.float16
    assert converted(torch.nn.Sequential(GPTQ(rng, bias=True)))[0].weight.dtype == torch.float16


def test_accelerates_hooks(rng):
    hooks = pytest.importorskip("accelerate.hooks")
    seen = []

    class Hook(hooks.ModelHook):
        def __init__(self, name):
            self.name = name

        def pre_forward(self, module, *arguments, **options):
            seen.append((self.name, type(module).__name__))
            return arguments, options

        def post_forward(self, module, y):
            return y + 1
    x = torch.from_numpy(rng.integers(-2, 3, (3, 64))).half()
    for hook in (Hook("one"), hooks.SequentialHook(Hook("one"), Hook("two"), hooks.AlignDevicesHook("cpu"))):
        model = torch.nn.Sequential(GPTQ(rng, bias=True))
        wanted = model(x) + len(getattr(hook, "hooks", (1,))[:2])
        hooks.add_hook_to_module(model[0], hook)
        seen.clear()
        converted(model)
        assert not seen and (model(x) - wanted).abs().max() < 0.1
        assert seen == [(name, "PackedLinear") for name in ("one", "two")[:len(seen)]] and seen
        hooks.remove_hook_from_module(model[0])
        seen.clear()
        model(x)
        assert not seen
    hooks.add_hook_to_module(model[0], Hook("one"))
    wanted = model(x)
    with torch.no_grad():
        model[0].weight.add_(0)  # a Linear, whose forward the hook holds
    assert type(model[0]) is torch.nn.Linear and torch.allclose(model(x), wanted, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("buffers", [True, False])
def test_accelerates_offload(rng, buffers):
    """Before convert and after it: tensors that are elsewhere between calls."""
    accelerate = pytest.importorskip("accelerate")
    x = torch.from_numpy(rng.integers(-2, 3, (3, 64))).half()
    model = torch.nn.Sequential(GPTQ(rng, bias=True), torch.nn.LayerNorm(32).half())
    wanted = model(x)
    after = converted(copy.deepcopy(model))
    exact, exact_state = after(x), {name: tensor for name, tensor in after.state_dict().items() if name == "0.packed"}
    accelerate.cpu_offload(model, torch.device("cpu"), offload_buffers=buffers)
    assert model[0].qweight.is_meta == buffers
    converted(model)
    accelerate.cpu_offload(after, torch.device("cpu"), offload_buffers=buffers)
    for one in (model, after):
        assert (one(x) - wanted).abs().max() < 0.1
        for _ in range(2):
            assert torch.equal(one(x), exact)
            assert one[0].packed.is_meta == buffers and one[0].bias.is_meta and one[1].weight.is_meta
            assert one[0].weight.dtype == torch.float16
    bad = torch.nn.Sequential(GPTQ(rng))
    bad[0].g_idx += 1000
    accelerate.cpu_offload(bad, torch.device("cpu"), offload_buffers=buffers)
    with pytest.raises(ValueError, match="0.packed: accelerate keeps the layer's tensors elsewhere"):
        hgemm.torch.load_state_dict(bad, copy.deepcopy(exact_state))
    assert hgemm.torch.convert(bad, gptq_version=2).left and bad[0].qweight.is_meta == buffers and bad(x).shape == (3, 32)


# ---- among other packages -----------------------------------------------------------------------------------------


def quantised(model, rng):
    """A model's linear layers as GPTQ layers of random codes: the model, converted, and another whose layers have the matrices."""
    dense = copy.deepcopy(model)
    for name, child in list(model.named_modules()):
        if type(child) is torch.nn.Linear and "head" not in name:
            made = GPTQ(rng, child.out_features, child.in_features, bias=child.bias is not None)
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, made)
            with torch.no_grad():
                dense.get_submodule(name).weight.copy_(made.dense)
                if made.bias is not None:
                    dense.get_submodule(name).bias.copy_(made.bias)
    return converted(model), dense


def test_t5_reads_the_dtype_of_a_weight(rng):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=96, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4, decoder_start_token_id=0)
    model, dense = quantised(transformers.T5ForConditionalGeneration(config).eval(), rng)
    ids = torch.tensor([[1, 5, 9, 3]])
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        model.to(dtype)
        assert model.encoder.block[0].layer[1].DenseReluDense.wo.weight.dtype == dtype
        assert near(model(input_ids=ids, decoder_input_ids=ids).logits, dense(input_ids=ids, decoder_input_ids=ids).logits, bound)


def llama(rng):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return quantised(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2)).eval(), rng)


IDS = torch.tensor([[1, 5, 9, 3]])


@pytest.mark.parametrize("use_dora", [False, True])
def test_peft_trains_and_merges(rng, use_dora):
    """An adapter that is made after convert finds the layers, has the gradients that it has on the matrices, and is merged."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=4, target_modules="all-linear", use_dora=use_dora, init_lora_weights=False)
    results = []
    for model in llama(rng):
        torch.manual_seed(1)
        model = peft.get_peft_model(model, config).train()
        logits = model(IDS).logits
        logits.pow(2).mean().backward()
        results.append((model, logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}))
    (packed, logits, grads), (dense, wanted, wanted_grads) = results
    layers = [module for module in packed.modules() if isinstance(module, PackedLinear)]
    assert len(layers) == 7 and near(logits, wanted) and len(grads) == (21 if use_dora else 14) and grads.keys() == wanted_grads.keys()
    for name, grad in grads.items():
        assert grad.abs().max() > 0 and near(grad, wanted_grads[name], 1e-3), name
    assert not any("weight" in name and "base_layer" in name for name in packed.state_dict() if "layers" in name and "norm" not in name)
    packed.eval(), dense.eval()
    for is_safe in (True, False):
        packed.merge_adapter(safe_merge=is_safe)
        assert near(packed(IDS).logits, wanted) and not any(isinstance(module, PackedLinear) for module in packed.modules())
        packed.unmerge_adapter()
        assert near(packed(IDS).logits, wanted)
    whole = packed.merge_and_unload()
    assert near(whole(IDS).logits, wanted) and whole.state_dict().keys() == dense.merge_and_unload().state_dict().keys()


def test_peft_loads_an_adapter(rng, tmp_path):
    """Which is a state dict without the layers' weights."""
    peft = pytest.importorskip("peft")
    model, _ = llama(rng)
    adapted = peft.get_peft_model(copy.deepcopy(model), peft.LoraConfig(r=4, target_modules=["embed_tokens", "q_proj"], init_lora_weights=False))
    wanted = adapted.eval()(IDS).logits
    adapted.save_pretrained(tmp_path)
    for options in ({}, {"low_cpu_mem_usage": True}):
        loaded = peft.PeftModel.from_pretrained(copy.deepcopy(model), tmp_path, **options).eval()
        assert torch.equal(loaded(IDS).logits, wanted)
        assert sum(module.order is not None for module in loaded.modules() if isinstance(module, PackedLinear)) == 7


def test_accelerate_loads_and_dispatches(rng, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    model, _ = llama(rng)
    wanted = model(IDS).logits
    accelerate.Accelerator().save_model(model, tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    other, _ = llama(np.random.default_rng(5))
    assert not torch.equal(other(IDS).logits, wanted)
    other = accelerate.load_checkpoint_and_dispatch(other, tmp_path, device_map={"model": "cpu", "lm_head": "cpu"})
    assert torch.equal(other(IDS).logits, wanted)
    places = {"model.embed_tokens": "cpu", "model.layers": "disk", "model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "cpu"}
    other = accelerate.dispatch_model(copy.deepcopy(model), places, main_device="cpu", offload_dir=tmp_path / "away", offload_buffers=True)
    assert other.model.layers[0].mlp.up_proj.packed.is_meta and torch.equal(other(IDS).logits, wanted)
