# SPDX-License-Identifier: MIT
"""convert over small models of transformers', quantised by the packages that they are quantised with: every quantised tensor is accounted for,
and the model computes what the same one with its weights dequantised does."""
import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")  # whose experts are in parameters of three dimensions

import hgemm
import hgemm.torch
from hgemm import _c, _quantised

pytestmark = pytest.mark.skipif(not _c.has_weights(), reason="this libhgemm does not pack weights")
SIZES = {"vocab_size": 96, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 64}
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES, tie_word_embeddings=True)),
    "mixtral": lambda: transformers.MixtralForCausalLM(transformers.MixtralConfig(**SIZES, num_local_experts=4)),
    "qwen3 moe": lambda: transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
        **SIZES, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, decoder_sparse_step=2)),
    "neox": lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES)),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=96, n_embd=64, n_layer=1, n_head=4, n_positions=64)),
    "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=96, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4, decoder_start_token_id=0)),
    "bert": lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**SIZES)),
}


def model_of(name):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]().eval()


def logits(model):
    tokens = torch.arange(2, 26).reshape(2, 12) % 96
    more = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(input_ids=tokens, **more).logits.float()


def owners(model):
    """The names of modules with quantised tensors, each module by its first one."""
    return {name for name, module in model.named_modules() if any(True for _ in _quantised.quantised_tensors(module))}


def checked(model, plain, bound=2e-3, left=(), **options):
    """Converts, and compares with the same model, dequantised: all quantised tensors are in what was replaced or left."""
    before = owners(model)
    done = hgemm.torch.convert(model, **options)
    assert before and set(done.replaced) | set(done.left) == before and not set(done.replaced) & set(done.left), done
    assert set(done.left) == set(left) and owners(model) == set(left), done
    packed = {name for name, module in model.named_modules() if isinstance(module, (hgemm.torch.PackedLinear, hgemm.torch.PackedExperts))}
    assert packed == set(done.replaced)
    if plain is not None:
        found, wanted = logits(model), logits(plain)
        assert (found - wanted).norm() <= bound * wanted.norm(), (found - wanted).norm() / wanted.norm()
    return done


# ---- transformers' FP8, with experts in parameters of three dimensions --------------------------------------------------


def in_fp8(name, rng, **options):
    """(a model of FP8 layers and experts with random weights, the same dequantised). Their own forward wants a kernel of the hub's."""
    fp8 = pytest.importorskip("transformers.integrations.finegrained_fp8")
    config = transformers.FineGrainedFP8Config(**{"weight_block_size": (32, 32), **options})
    plain, model = model_of(name), model_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fp8.replace_with_fp8_linear(model, ["lm_head", "embed_out"], config)
    model.config.quantization_config = config
    for prefix, module in model.named_modules():
        for short, weight in list(module._parameters.items()):
            if weight is None or not weight.is_meta:
                continue
            if short.endswith("bias"):
                setattr(module, short, torch.nn.Parameter(plain.get_parameter(f"{prefix}.{short}").detach(), requires_grad=False))
            elif "scale_inv" not in short:
                scale = getattr(module, f"{short}_scale_inv")
                exponents = torch.from_numpy(rng.integers(-9, -6, tuple(scale.shape))).float().exp2()
                exact = torch.from_numpy(rng.integers(-4, 5, tuple(weight.shape))).float()
                rows, columns = config.weight_block_size or (weight.shape[-2] // max(scale.shape[-2:] or (1,)), weight.shape[-1])
                wide = exponents if not scale.dim() else exponents.repeat_interleave(rows, -2).repeat_interleave(columns, -1)[
                    ..., :weight.shape[-2], :weight.shape[-1]]
                setattr(module, short, torch.nn.Parameter(exact.to(weight.dtype), requires_grad=False))
                setattr(module, f"{short}_scale_inv", torch.nn.Parameter(exponents.to(scale.dtype), requires_grad=False))
                plain.get_parameter(f"{prefix}.{short}").data.copy_(exact * wide)
    return model, plain


@pytest.mark.parametrize("name, options", [("llama", {}), ("neox", {}), ("bert", {"weight_block_size": None}), ("t5", {}), ("mixtral", {}), (
    "mixtral", {"scale_fmt": "ue8m0"}), ("qwen3 moe", {"weight_block_size": (16, 64)})])
def test_fp8(rng, name, options):
    model, plain = in_fp8(name, rng, **options)
    done = checked(model, plain)
    experts = [name for name in done.replaced if name.endswith("experts")]
    assert len(experts) == {"mixtral": 2, "qwen3 moe": 1}.get(name, 0)


FAMILIES = {  # how many layers and experts of each are packed, and what is left alone
    "olmoe": (10, 2, []), "qwen2_moe": (18, 2, []), "granitemoe": (10, 2, []), "phimoe": (10, 2, []), "glm4_moe": (16, 2, []), "minimax": (9, 2, []),
    "gemma2": (14, 0, []), "opt": (12, 0, []), "bloom": (8, 0, []), "gptj": (12, 0, []), "nemotron": (12, 0, []),
    "deepseek_v4": (20, 2, [f"model.layers.{i}.self_attn.o_a_proj" for i in (0, 1)])}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(rng, name):
    """Nothing of them is passed over in silence: products of groups, which deepseek_v4 has, are named."""
    made = transformers.AutoConfig.for_model(name)
    small = {**SIZES, "head_dim": 16, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_intermediate_size": 64, "n_embd": 64,
             "n_layer": 2, "n_head": 4, "ffn_dim": 128, "word_embed_proj_dim": 64, "q_lora_rank": 32, "qk_rope_head_dim": 16, "n_group": 1, "topk_group": 1,
             "shared_expert_intermediate_size": 64, "first_k_dense_replace": 0, "pad_token_id": 0, "rotary_dim": 8, "num_experts_per_tok": 2}
    MODELS[name] = lambda: transformers.AutoModelForCausalLM.from_config(type(made)(**{key: value for key, value in small.items() if hasattr(made, key)}))
    packed, experts, left = FAMILIES[name]
    done = checked(in_fp8(name, rng)[0], None, left=left)
    assert len(done.replaced) == packed and sum(name.endswith("experts") for name in done.replaced) == experts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_experts_in_halves(rng, dtype):
    """One product for all experts; a gradient by one for each that is hit."""
    model, plain = in_fp8("mixtral", rng)
    checked(model, plain)
    mine, theirs = model.model.layers[0].mlp.experts, plain.model.layers[0].mlp.experts
    x = torch.from_numpy(rng.integers(-2, 3, (7, 64))).to(dtype)
    chosen = torch.from_numpy(np.stack([rng.permutation(4)[:2] for _ in range(7)]))
    weights = torch.rand(7, 2).to(dtype)
    with torch.no_grad():
        wanted = theirs(x.float(), chosen, weights.float())
        found = mine(x, chosen, weights)
        assert found.dtype == dtype and (found.float() - wanted).norm() <= (2e-3 if dtype == torch.float16 else 1e-2) * wanted.norm()
        elsewhere = torch.where(chosen == 3, 4, chosen)  # of experts that are on another device
        assert torch.allclose(mine(x, elsewhere, weights).float(), theirs(x.float(), chosen, torch.where(chosen == 3, 0, weights).float()), rtol=2e-2, atol=0.05 * wanted.abs().max())
        assert torch.equal(mine(x[:0], chosen[:0], weights[:0]), x[:0])
        state = {key: value.clone() for key, value in mine.state_dict().items()}
        assert set(state) == {"up.packed", "down.packed"}
        other = copy.deepcopy(mine)
        other.up.packed[:-184].zero_()
        assert not torch.equal(other(x, chosen, weights), found)
        for assign in (False, True):
            other.load_state_dict(state, assign=assign)
            assert torch.equal(other(x, chosen, weights), found)
        for wrong in (state["down.packed"], state["up.packed"][:-8], state["up.packed"].float()):
            with pytest.raises(RuntimeError, match="up.packed: "):
                other.load_state_dict({**state, "up.packed": wrong})
            assert torch.equal(other(x, chosen, weights), found)
    g = torch.from_numpy(rng.integers(-2, 3, (7, 64))).to(dtype)
    grads = []
    for experts, of in ((mine, dtype), (theirs, torch.float32)):
        inputs = x.to(of).requires_grad_(), weights.to(of).detach().requires_grad_()
        grads.append(torch.autograd.grad(experts(inputs[0], chosen, inputs[1]), inputs, g.to(of)))
    for one, two in zip(*grads):
        assert (one.float() - two).norm() <= 2e-2 * two.norm()


@pytest.mark.parametrize("meta", [True, False])
def test_experts_by_a_state_dict(rng, meta):
    """That of a converted model, into a model that is not converted: one of FP8, on meta, or a dense one."""
    model, _ = in_fp8("mixtral", rng)
    hgemm.torch.convert(model)
    state, wanted = model.state_dict(), logits(model)
    assert all(isinstance(value, torch.Tensor) for value in state.values()) and not any("form" in name for name in state)
    fresh = in_fp8("mixtral", rng)[0] if meta else model_of("mixtral")
    if meta:
        fresh.model.layers = fresh.model.layers.to("meta")
    missing = hgemm.torch.load_state_dict(fresh, state, assign=meta)
    assert not missing.missing_keys and not missing.unexpected_keys and torch.equal(logits(fresh), wanted)
    other = model_of("llama")
    with pytest.raises(ValueError, match="the model has no layer model.layers.0.mlp.experts.up"):
        hgemm.torch.load_state_dict(other, {name: tensor for name, tensor in state.items() if ".experts." in name})
    key = "model.layers.0.mlp.experts.up.packed"
    for torn in ({key: state[key]}, {**state, key: state[key][:-8]}):
        with pytest.raises(ValueError, match="^model.layers.0.mlp.experts.up.packed: "):
            hgemm.torch.load_state_dict(model_of("mixtral"), torn, strict=False)


def test_experts_that_are_left_alone(rng):
    """And why: no whole blocks in each of two joined matrices, a bias, an unknown module."""
    model, _ = in_fp8("mixtral", rng)
    layers = [layer.mlp for layer in model.model.layers]
    layers[0].experts.block_size = (48, 32)
    layers[1].experts.down_proj_bias = torch.nn.Parameter(torch.zeros(4, 64))
    other = torch.nn.Module()
    other.up, other.up_scale_inv = (torch.nn.Parameter(x, requires_grad=False) for x in (torch.zeros(2, 32, 32).to(torch.float8_e4m3fn), torch.ones(2, 1, 1)))
    model.other = other
    done = checked(model, None, left=["model.layers.0.mlp.experts", "model.layers.1.mlp.experts", "other"])
    for name, match in (("model.layers.0.mlp.experts", "joins 2 matrices of 128 rows, no multiple of the 48"),
                        ("model.layers.1.mlp.experts", "experts have biases"), ("other", "it is a Module")):
        assert match in done.left[name]


def test_experts_of_one_scale_and_of_four_bits(rng):
    for options in ({"weight_block_size": None}, {"expert_dtype": "fp4"}, {"expert_dtype": "fp4", "scale_fmt": "ue8m0"}):
        fp8 = pytest.importorskip("transformers.integrations.finegrained_fp8")
        config = transformers.MixtralConfig(**SIZES, num_local_experts=2)
        experts = fp8.FP8Experts(config, block_size=options.get("weight_block_size", (32, 32)), expert_dtype=options.get("expert_dtype", "fp8"),
                                 scale_fmt=options.get("scale_fmt", "float"))
        matrices = {}
        for name in ("gate_up_proj", "down_proj"):
            weight, scale = getattr(experts, name), getattr(experts, f"{name}_scale_inv")
            values = torch.from_numpy(rng.integers(-9, -5, tuple(scale.shape))).float().exp2()
            scale.data.copy_(values.to(scale.dtype))
            if weight.dtype == torch.int8:
                codes = torch.from_numpy(rng.integers(0, 16, (2, weight.shape[1], 2 * weight.shape[2])))
                weight.data.copy_((codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8).view(torch.int8))
                table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
                matrices[name] = table[codes & 7] * (1 - 2 * (codes >> 3)) * values.repeat_interleave(32, -1)
            else:
                exact = torch.from_numpy(rng.integers(-4, 5, tuple(weight.shape))).float()
                weight.data.copy_(exact.to(weight.dtype))
                matrices[name] = exact * values.repeat_interleave(weight.shape[1] // scale.shape[1], 1)
        model = torch.nn.Sequential(experts)
        assert list(hgemm.torch.convert(model).replaced) == ["0"]
        assert torch.equal(model[0].up.weights.unpack("float32"), matrices["gate_up_proj"])
        assert torch.equal(model[0].down.weights.unpack("float32"), matrices["down_proj"])


# ---- bitsandbytes, compressed-tensors, FBGEMM, MXFP4 -----------------------------------------------------------------------


@pytest.mark.parametrize("name, four", [("llama", True), ("gpt2", True), ("t5", True), ("mixtral", True), ("llama", False), ("bert", False)])
def test_bitsandbytes(tmp_path, name, four):
    pytest.importorskip("bitsandbytes")
    model_of(name).save_pretrained(tmp_path)
    config = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4") if four else transformers.BitsAndBytesConfig(load_in_8bit=True)
    model = type(model_of(name)).from_pretrained(tmp_path, quantization_config=config, device_map="cpu", dtype=torch.float16).eval()
    functional = pytest.importorskip("bitsandbytes.functional")
    plain = type(model_of(name)).from_pretrained(tmp_path, dtype=torch.float32).eval()
    for prefix, module in model.named_modules():
        if prefix in owners(model):
            weight = module.weight
            dense = functional.dequantize_4bit(weight.data, weight.quant_state) if four else weight.data.float() * weight.SCB[:, None] / 127
            target = plain.get_submodule(prefix)
            target.weight.data.copy_(dense if isinstance(target, torch.nn.Linear) else dense.T)  # GPT-2's Conv1D is (k, n)
    checked(model, plain, bound=1e-2)


def test_compressed_tensors():
    quantization = pytest.importorskip("compressed_tensors.quantization")
    compressors = pytest.importorskip("compressed_tensors.compressors")
    for arguments in ({"num_bits": 4, "strategy": "group", "group_size": 32}, {"num_bits": 8, "strategy": "channel"},
                      {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [32, 32]},
                      {"num_bits": 8, "type": "float", "strategy": "tensor"}, {"num_bits": 8, "type": "float", "strategy": "channel"}):
        model, plain = model_of("llama"), model_of("llama")
        scheme = quantization.QuantizationScheme(targets=["Linear"], weights=quantization.QuantizationArgs(symmetric=True, **arguments))
        quantization.apply_quantization_config(model, quantization.QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"]))
        for prefix, module in model.named_modules():
            if getattr(module, "quantization_scheme", None) is not None:
                most = {4: 7, 8: 127}[arguments["num_bits"]] if arguments.get("type") != "float" else 448
                module.weight_scale.data.fill_(float(module.weight.abs().max()) / most)
                compressors.compress_module(module)
                dense = copy.deepcopy(module)
                compressors.decompress_module(dense)
                plain.get_submodule(prefix).weight.data.copy_(dense.weight)
        for module in model.modules():  # compressed-tensors' own wrapper of forward would quantise again
            module.__dict__.pop("forward", None)
        assert len(checked(model, plain).replaced) == 14, arguments


def test_rows_and_experts_of_other_classes(rng):
    """transformers' layers that say by their class what a scale is, and experts whose module is another: one is replaced, others are named."""
    fbgemm, mxfp4 = (pytest.importorskip(f"transformers.integrations.{name}") for name in ("fbgemm_fp8", "mxfp4"))
    compressed = pytest.importorskip("transformers.integrations.compressed_tensors")
    config = transformers.GptOssConfig(hidden_size=64, intermediate_size=64, num_local_experts=2)
    llama4 = transformers.Llama4TextConfig(hidden_size=64, intermediate_size=64, num_local_experts=2)
    model = torch.nn.ModuleDict({"rows": fbgemm.FbgemmFp8Linear(256, 2, True), "turned": compressed.CompressedTensorsFP8Linear(256, 2),
                                 "gpt_oss": mxfp4.Mxfp4GptOssExperts(config), "llama4": fbgemm.FbgemmFp8Llama4TextExperts(llama4)})
    wanted = {}
    for name in ("rows", "turned"):
        codes, scale = torch.from_numpy(rng.integers(-4, 5, (2, 256))).float(), torch.tensor([0.5, 2.0])
        model[name].weight.data.copy_(codes)
        model[name].weight_scale.data.copy_(scale.reshape(model[name].weight_scale.shape))
        wanted[name] = codes * scale[:, None]
    done = checked(model, None, left=["gpt_oss", "llama4"])
    assert "uint8" in done.left["gpt_oss"] and "FP8Experts" in done.left["llama4"]
    for name, matrix in wanted.items():
        assert torch.equal(model[name].weights.unpack("float32"), matrix), name
