# SPDX-License-Identifier: MIT
"""Formats of weights: random bytes, decoded element by element as each format's description says, against what the converters make of
them. Where the formats' own packages are installed, against those: test_formats_peers.py."""
import json
import math
import struct
import types

import numpy as np
import pytest

import hgemm
from hgemm import formats
from random_weights import halves, words, zero_words


def field(word, index, bits=4):
    return (int(word) & 0xffffffff) >> bits * index & (1 << bits) - 1


def matrix(n, k, element):
    return np.array([[element(i, j) for j in range(k)] for i in range(n)], np.float64)


def same(weights, wanted):
    assert weights.shape == wanted.shape
    np.testing.assert_array_equal(weights.dequantize(), wanted.astype(np.float32))


# ---- GPTQ, AWQ, compressed-tensors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("n, k, group", [(8, 64, 16), (16, 96, 96), (24, 128, 32), (8, 96, 64), (8, 96, 48), (16, 64, 64)])
def test_gptq(rng, bits, version, n, k, group):
    per, groups = 32 // bits, -(-k // group)
    qweight, qzeros, scales = words(rng, k // per, n), words(rng, groups, n // per), halves(rng, groups, n)
    if version == 1:
        qzeros &= 0x7f7f7f7f if bits == 8 else 0x77777777
    g_idx = rng.permutation(np.arange(k) // group).astype(np.int32)

    def element(g_idx):
        def value(i, j):
            g = g_idx[j]
            zero = field(qzeros[g, i // per], i % per, bits) + (version == 1)
            return (field(qweight[j // per, i], j % per, bits) - zero) * float(scales[g, i])
        return value
    straight = formats.gptq(qweight, qzeros, scales, version=version, bits=bits, group_size=group)
    same(straight, matrix(n, k, element(np.arange(k) // group)))
    assert straight.order is None
    sorted_ = formats.gptq(qweight, qzeros, scales, g_idx, version=version, bits=bits, group_size=group)
    same(sorted_, matrix(n, k, element(g_idx)))
    assert (sorted_.order is None) == (groups == 1)
    in_order = formats.gptq(qweight, qzeros, scales, np.sort(g_idx), version=version, bits=bits, group_size=group)
    assert in_order.order is None


def test_gptq_symmetric_codes_become_signed(rng):
    weights = formats.gptq(words(rng, 8, 8), np.full((2, 1), 0x77777777, np.int32), halves(rng, 2, 8), version=1)
    assert weights.code == "int4" and weights.zeros is None
    asymmetric = formats.gptq(words(rng, 8, 8), np.full((2, 1), 0x77777777, np.int32), halves(rng, 2, 8), version=2)
    assert asymmetric.code == "uint4" and (asymmetric.zeros == 7).all()


def of_writer(zeros, bits, writer):
    """(groups, n) zeros as the writers of GPTQ's version 1 store them."""
    def word(some):
        if writer == "whole":
            return sum((z - 1) << bits * i for i, z in enumerate(some)) % 2**32
        if writer == "each":
            return sum((z - 1) % 2**bits << bits * i for i, z in enumerate(some))
        found = 0
        for i, z in enumerate(some):  # "or": -1 is ones in all places
            found |= (z - 1) % 2**32 << bits * i
        return found % 2**32
    per = 32 // bits
    return np.array([[word(row[i:i + per]) for i in range(0, len(row), per)] for row in zeros.tolist()], np.uint32).view(np.int32)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("writer", ["whole", "each"])
def test_gptq_zeros_of_0(rng, bits, writer):
    """In version 1 they wrap, in two ways. What one way says is read where the caller says so, or where the other way says the same."""
    n, k, per = 16, 64, 32 // bits
    qweight, scales, borrow = words(rng, k // per, n), np.exp2(rng.integers(-3, 3, (4, n))).astype(np.float16), writer == "whole"
    for _ in range(20):
        zeros = rng.integers(0, 2**bits, (4, n)) * rng.integers(0, 2, (4, n))
        found = formats.gptq(qweight, of_writer(zeros, bits, writer), scales, version=1, bits=bits, borrow=borrow)
        wanted = formats.gptq(qweight, of_writer(zeros + 1, bits, "or"), scales, version=2, bits=bits)  # of what is not 0, all write the same
        same(found, wanted.dequantize())
        with pytest.raises(ValueError, match=r"^qzeros: zeros of 0 .*GPTQModel.*borrow=True.*borrow=False"):
            formats.gptq(qweight, of_writer(zeros, bits, writer), scales, version=1, bits=bits)
        zeros[:, np.arange(n) % per != per - 1] |= 1  # now the last ones of integers alone may be 0
        wanted = formats.gptq(qweight, of_writer(zeros + 1, bits, "or"), scales, version=2, bits=bits)
        for told in (None, True, False):
            same(formats.gptq(qweight, of_writer(zeros, bits, writer), scales, version=1, bits=bits, borrow=told), wanted.dequantize())


def test_gptq_zeros_that_are_lost(rng):
    """AutoGPTQ's writer: after a zero of 0, all bits of the integer are ones."""
    zeros, scales = np.array([[3, 0, 5, 7, 1, 2, 9, 4]] * 2), halves(rng, 2, 8)
    assert of_writer(zeros, 4, "or").view(np.uint32)[0, 0] == 0xfffffff2
    with pytest.raises(ValueError, match=r"^qzeros: .* column 2: .* AutoGPTQ wrote 15 over all that follow of the 8 zeros of an integer"):
        formats.gptq(words(rng, 8, 8), of_writer(zeros, 4, "or"), scales, version=1)
    with pytest.raises(ValueError) as raised:
        formats.gptq(words(rng, 8, 8), of_writer(zeros, 4, "whole"), scales, version=1)
    assert "has a zero of 5 in column 2" in str(raised.value) and "AutoGPTQ" not in str(raised.value)


@pytest.mark.parametrize("n, k, group", [(8, 64, 16), (16, 40, 40), (24, 128, 64), (8, 48, 48), (16, 80, 32)])
def test_awq(rng, n, k, group):
    groups = -(-k // group)
    qweight, qzeros, scales = words(rng, k, n // 8), words(rng, groups, n // 8), halves(rng, groups, n)
    place = {0: 0, 2: 1, 4: 2, 6: 3, 1: 4, 3: 5, 5: 6, 7: 7}  # of column c of eight in a word

    def element(i, j):
        zero = field(qzeros[j // group, i // 8], place[i % 8])
        return (field(qweight[j, i // 8], place[i % 8]) - zero) * float(scales[j // group, i])
    same(formats.awq(qweight, qzeros, scales, group_size=group), matrix(n, k, element))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("n, k, group", [(5, 64, 16), (16, 50, 50), (9, 90, 30 * 3), (8, 128, 64), (3, 82, 32)])
def test_compressed_tensors_packed(rng, bits, zero, act_order, n, k, group):
    per, groups = 32 // bits, -(-k // group)
    packed, scales = words(rng, n, -(-k // per)), rng.uniform(0.1, 1, (n, groups)).astype(np.float32)
    zeros = words(rng, -(-n // per), groups)
    g_idx = rng.permutation(np.arange(k) // group).astype(np.int32) if act_order else np.arange(k) // group
    middle = 1 << bits - 1

    def element(i, j):
        g = g_idx[j]
        z = field(zeros[i // per, g], i % per, bits) - middle if zero else 0
        return np.float32((field(packed[i, j // per], j % per, bits) - middle) - z) * scales[i, g]
    same(formats.compressed_tensors(weight_packed=packed, weight_scale=scales, weight_shape=np.array([n, k]), bits=bits, group_size=group,
                                    weight_zero_point=zeros if zero else None,
                                    weight_g_idx=g_idx if act_order else np.full(k, -1, np.int32)), matrix(n, k, element))


@pytest.mark.parametrize("shape", [(6, 1), (6, 3), (1,), (6,)])
@pytest.mark.parametrize("zero", [False, True])
def test_compressed_tensors_integers(rng, shape, zero):
    codes, scales = rng.integers(-128, 128, (6, 48)).astype(np.int8), rng.uniform(0.1, 1, shape).astype(np.float32)
    zeros = rng.integers(-128, 128, shape).astype(np.int8) if zero else None
    wide = np.broadcast_to(scales.reshape(-1, 1) if scales.ndim == 1 else scales, (6, max(1, scales.shape[-1] if scales.ndim == 2 else 1)))
    group = 48 // wide.shape[1]

    def element(i, j):
        z = 0 if zeros is None else int(np.broadcast_to(zeros.reshape(-1, 1) if zeros.ndim == 1 else zeros, wide.shape)[i, j // group])
        return np.float32(int(codes[i, j]) - z) * wide[i, j // group]
    same(formats.compressed_tensors(weight=codes, weight_scale=scales, weight_zero_point=zeros), matrix(6, 48, element))


# ---- floats of 4 and 8 bits -----------------------------------------------------------------------------------------


def e4m3(bits):
    sign, exponent, mantissa = bits >> 7, bits >> 3 & 15, bits & 7
    if bits & 0x7f == 0x7f:
        return math.nan
    return (-1) ** sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def e2m1(bits):
    sign, exponent, mantissa = bits >> 3, bits >> 1 & 3, bits & 1
    return (-1) ** sign * (mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1))


@pytest.mark.parametrize("shape, block", [((), None), ((1,), None), ((7,), None), ((7, 1), None), ((7, 3), None), ((4, 2), (2, 32)),
                                          ((1, 1), (128, 128)), ((4, 3), (2, 16))])
def test_fp8(rng, shape, block):
    n, k = 7, 48
    bits, scale = rng.integers(0, 256, (n, k)).astype(np.uint8), rng.uniform(0.1, 1, shape).astype(np.float32)

    def element(i, j):
        if block:
            s = scale[i // block[0], j // block[1]]
        elif scale.size == 1:
            s = scale.reshape(())
        else:
            s = scale.reshape(n, -1)[i, j // (k // scale.reshape(n, -1).shape[1])]
        return np.float32(e4m3(int(bits[i, j]))) * s
    same(formats.fp8(bits, scale, block=block), matrix(n, k, element))


@pytest.mark.parametrize("shape, block", [((1,), None), ((7, 1), None), ((7, 3), None), ((4, 3), (2, 16)), ((), (128, 128))])
def test_fp8_with_scales_that_are_powers_of_two(rng, shape, block):
    """E8M0: 2^(e - 127), as transformers' scale_fmt "ue8m0" and MXFP8 have them."""
    bits, scale = rng.integers(0, 127, (7, 48)).astype(np.uint8), rng.integers(110, 140, shape, np.uint8)
    wanted = formats.fp8(bits, np.exp2(scale.astype(np.float32) - 127), block=block).dequantize()
    same(formats.fp8(bits, scale, block=block), wanted)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    same(formats.compressed_tensors(weight=bits, weight_scale=scale.view(ml_dtypes.float8_e8m0fnu), block=block), wanted)
    with pytest.raises(ValueError, match="^scale.*255"):
        formats.fp8(bits, np.full_like(scale, 255), block=block)


def test_groups_that_a_shape_cannot_tell(rng):
    """Two groups of k = 192 are of 96, or of 128 and 64. The index of each k's group says it."""
    n, k, g_idx = 8, 192, (np.arange(192) // 128).astype(np.int32)
    tensors = {"qweight": words(rng, k // 8, n), "qzeros": words(rng, 2, n // 8), "scales": halves(rng, 2, n)}
    with pytest.raises(ValueError, match="^scales: it has 2 groups along k = 192, of 96, or of 128 with a shorter last one: say group_size"):
        formats.gptq(**tensors, version=2)
    for size, index in ((128, g_idx), (96, (np.arange(k) // 96).astype(np.int32))):
        told = formats.gptq(**tensors, version=2, group_size=size)
        same(formats.gptq(**tensors, g_idx=index, version=2), told.dequantize())
        shuffled = rng.permutation(index).astype(np.int32)
        same(formats.gptq(**tensors, g_idx=shuffled, version=2), formats.gptq(**tensors, g_idx=shuffled, version=2, group_size=size).dequantize())
    bits, scale = rng.integers(0, 127, (n, k)).astype(np.uint8), halves(rng, n, 2)
    for name, call in (("scale", lambda **of: formats.fp8(bits, scale, **of)), ("scales", lambda **of: formats.awq(words(rng, k, 1), words(rng, 2, 1), halves(rng, 2, 8), **of)),
                       ("weight_scale", lambda **of: formats.compressed_tensors(weight=bits, weight_scale=scale, **of)),
                       ("weight_scale", lambda **of: formats.compressed_tensors(weight=bits.view(np.int8), weight_scale=scale, **of)),
                       ("weight_scale", lambda **of: formats.compressed_tensors(weight_packed=words(rng, n, k // 8), weight_scale=scale, **of))):
        with pytest.raises(ValueError, match=f"^{name}: it has 2 groups along k = 192, of 96, or of 128 "):
            call()
        assert [call(group_size=size).scales.shape[1] for size in (96, 128)] == [6, 2]
    with pytest.raises(ValueError, match="^group_size: a block is given, too"):
        formats.fp8(bits, scale, block=(8, 96), group_size=96)
    with pytest.raises(ValueError, match="^block: only scales of FP8"):
        formats.compressed_tensors(weight=bits.view(np.int8), weight_scale=scale, block=(8, 96))


def test_fp8_of_128x128_blocks(rng):
    n, k = 300, 400
    bits, scale = rng.integers(0, 127, (n, k)).astype(np.uint8), rng.uniform(0.1, 1, (3, 4)).astype(np.float32)
    weights = formats.fp8(bits, scale, block=(128, 128))
    assert weights.group == 128
    same(weights, matrix(n, k, lambda i, j: np.float32(e4m3(int(bits[i, j]))) * scale[i // 128, j // 128]))


@pytest.mark.parametrize("n, k", [(3, 64), (5, 96)])
def test_mxfp4(rng, n, k):
    packed, exponents = rng.integers(0, 256, (n, k // 2)).astype(np.uint8), rng.integers(0, 255, (n, k // 32)).astype(np.uint8)
    exponents[0, 0], exponents[1, 0] = 0, 254
    wanted = matrix(n, k, lambda i, j: e2m1(field(packed[i, j // 2], j % 2)) * 2.0 ** (int(exponents[i, j // 32]) - 127))
    with np.errstate(over="ignore"):
        same(formats.mxfp4(packed, exponents), wanted)
        same(formats.mxfp4(packed.reshape(n, -1, 16), exponents), wanted)
        same(formats.compressed_tensors(weight_packed=packed, weight_scale=exponents), wanted)
    with pytest.raises(ValueError, match="^scales.*255"):
        formats.mxfp4(packed, np.full_like(exponents, 255))
    with pytest.raises(ValueError, match="^weight_scale.*255"):
        formats.compressed_tensors(weight_packed=packed, weight_scale=np.full_like(exponents, 255))
    with pytest.raises(ValueError, match="^weight_global_scale: there is none.* NVFP4"):
        formats.compressed_tensors(weight_packed=packed, weight_scale=np.ones((n, k // 16), np.uint8))
    for codes, scale, name in ((packed[:, 1:], exponents, "weight_packed"), (packed, exponents[:, 1:], "weight_scale"), (packed[0], exponents, "weight_packed")):
        with pytest.raises(ValueError, match=rf"^{name}: its shape is \(.*\), not "):
            formats.compressed_tensors(weight_packed=codes, weight_scale=scale)


def test_nvfp4(rng):
    n, k = 4, 48
    packed, scale = rng.integers(0, 256, (n, k // 2)).astype(np.uint8), rng.integers(1, 126, (n, 3)).astype(np.uint8)
    whole = np.array([37.5], np.float32)
    same(formats.nvfp4(packed, scale, whole), matrix(
        n, k, lambda i, j: np.float32(e2m1(field(packed[i, j // 2], j % 2))) * (np.float32(e4m3(int(scale[i, j // 16]))) / whole[0])))


# ---- bitsandbytes ---------------------------------------------------------------------------------------------------


def nf4():
    """The quantiles that QLoRA's appendix describes, from the inverse of the normal distribution's, by bisection."""
    def quantile(p):
        low, high = -10.0, 10.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if 0.5 * math.erfc(-middle / math.sqrt(2)) < p else (low, middle)
        return low
    offset = (1 - 1 / (2 * 15) + 1 - 1 / (2 * 16)) / 2
    positive = [quantile(0.5 + (offset - 0.5) * i / 8) for i in range(1, 9)]
    negative = [-quantile(0.5 + (offset - 0.5) * i / 7) for i in range(1, 8)]
    values = np.array(sorted([*negative, 0.0, *positive]))
    return values / np.abs(values).max()


def fp4(code):
    return (-1) ** (code >> 3) * (0, 0.0625, 8, 12, 4, 6, 2, 3)[code & 7] / 12


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind, bound", [("nf4", 0.35 * 2.0**-11), ("fp4", 0)])
@pytest.mark.parametrize("n, k, blocksize", [(6, 128, 64), (8, 64, 128), (5, 320, 64), (3, 64, 128), (2, 1024, 512),
                                             (4, 48, 64), (3, 4304, 64), (7, 80, 128), (3, 96, 64), (2, 320, 128)])
def test_bitsandbytes(rng, nested, kind, bound, n, k, blocksize):
    packed, blocks = rng.integers(0, 256, (n * k // 2, 1)).astype(np.uint8), -(-n * k // blocksize)
    state = {"absmax": rng.uniform(0.1, 1, blocks).astype(np.float32)}
    absmax = state["absmax"]
    if nested:
        state = {"absmax": rng.integers(0, 256, blocks).astype(np.uint8), "nested_quant_map": rng.uniform(-1, 1, 256).astype(np.float32),
                 "nested_absmax": rng.uniform(0.1, 1, -(-blocks // 16)).astype(np.float32), "nested_offset": 1.25, "nested_blocksize": 16}
        absmax = np.array([state["nested_quant_map"][c] * state["nested_absmax"][i // 16] + np.float32(1.25) for i, c in enumerate(state["absmax"])])
    values = nf4() if kind == "nf4" else [fp4(code) for code in range(16)]

    def element(i, j):
        at = i * k + j
        byte = int(packed[at // 2, 0])
        return values[byte & 15 if at % 2 else byte >> 4] * float(absmax[at // blocksize])
    wanted = matrix(n, k, element)
    weights = formats.bitsandbytes(packed, shape=(n, k), quant_type=kind, blocksize=blocksize, **state)
    assert np.abs(weights.dequantize() - wanted).max(initial=0) > 0 or kind == "fp4"
    assert (np.abs(weights.dequantize() - wanted) <= (bound + 1e-6) * np.abs(wanted)).all()

    said = {"quant_type": kind, "blocksize": blocksize, "dtype": "float16", "shape": [n, k]}
    said.update((name, state.pop(name)) for name in ("nested_offset", "nested_blocksize") if name in state)
    text = np.frombuffer(json.dumps(said).encode(), np.uint8)
    again = formats.bitsandbytes_state(packed, {**{f"weight.{name}": value for name, value in state.items()},
                                                f"weight.quant_state.bitsandbytes__{kind}": text})
    np.testing.assert_array_equal(again.dequantize(), weights.dequantize())


# ---- GGUF -----------------------------------------------------------------------------------------------------------


def half(block, at):
    return float(np.frombuffer(bytes(block[at:at + 2]), "<f2")[0])


def k_scale(block, g):
    """The scale and the minimum of group g, by 6 bits, as ggml's get_scale_min_k4 says."""
    q = block[4:16]
    if g < 4:
        return q[g] & 63, q[g + 4] & 63
    return q[g + 4] & 15 | q[g - 4] >> 6 << 4, q[g + 4] >> 4 | q[g] >> 6 << 4


def f32(x):
    return float(np.float32(x))


IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def ggml_element(kind, block, j):
    """Element j of a block, a list of its bytes."""
    if kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4"):
        start = {"Q4_0": 2, "Q4_1": 4, "Q5_0": 6, "Q5_1": 8, "IQ4_NL": 2, "MXFP4": 1}[kind]
        code = block[start + j % 16] >> 4 * (j // 16) & 15
        if kind in ("Q5_0", "Q5_1"):
            code |= (block[start - 4 + j // 8] >> j % 8 & 1) << 4
        if kind == "MXFP4":
            return e2m1(code) * 2.0 ** (block[0] - 127)
        if kind == "IQ4_NL":
            return IQ4_NL[code] * half(block, 0)
        if kind.endswith("_0"):
            return (code - (8 if kind == "Q4_0" else 16)) * half(block, 0)
        return f32(f32(code * half(block, 0)) + half(block, 2))
    if kind == "Q8_0":
        return int(np.int8(np.uint8(block[2 + j]))) * half(block, 0)
    if kind in ("Q4_K", "Q5_K"):
        g, (scale, least) = j // 32, k_scale(block, j // 32)
        code = block[(16 if kind == "Q4_K" else 48) + j // 64 * 32 + j % 32] >> 4 * (g % 2) & 15
        if kind == "Q5_K":
            code |= (block[16 + j % 32] >> g & 1) << 4
        return f32(f32(code * (half(block, 0) * scale)) - half(block, 2) * least)
    if kind == "IQ4_XS":
        g = j // 32
        scale = (block[4 + g // 2] >> 4 * (g % 2) & 15) | ((block[2] | block[3] << 8) >> 2 * g & 3) << 4
        return IQ4_NL[block[8 + 16 * g + j % 16] >> 4 * (j // 16 % 2) & 15] * f32(half(block, 0) * (scale - 32))
    assert kind == "Q6_K"
    within, at = j % 128, j // 128
    low = block[64 * at + within % 64] >> 4 * (within // 64) & 15
    high = block[128 + 32 * at + within % 32] >> 2 * (within // 32) & 3
    return (low + 16 * high - 32) * int(np.int8(np.uint8(block[192 + j // 16]))) * half(block, 208)


KINDS = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144),
         "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "MXFP4": (39, 32, 17)}


def ggml_bytes(rng, kind, n, k):
    """Random blocks whose scales are finite halves."""
    _, elements, size = KINDS[kind]
    blocks = rng.integers(0, 256, (n * k // elements, size)).astype(np.uint8)
    places = {"Q6_K": (208,), "MXFP4": (), "Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}.get(kind, (0,))
    for at in places:
        blocks[:, at:at + 2] = rng.uniform(-1, 1, (len(blocks), 1)).astype("<f2").view(np.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = rng.integers(100, 140, len(blocks))
    return blocks


@pytest.mark.parametrize("kind", KINDS)
def test_ggml(rng, kind):
    elements, size = KINDS[kind][1:]
    n, k = 3, 2 * elements
    blocks = ggml_bytes(rng, kind, n, k)
    lists = blocks.tolist()
    wanted = matrix(n, k, lambda i, j: ggml_element(kind, lists[i * 2 + j // elements], j % elements))
    same(formats.ggml(blocks.reshape(-1), kind, (n, k)), wanted)


def gguf_file(path, tensors, metadata=(), version=3, alignment=32):
    """Writes a file. tensors: (name, shape with rows first, type's number, bytes)."""
    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, kind, value in metadata:
        head += text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, shape, kind, content in tensors:
        data += bytes(-len(data) % alignment)
        head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += bytes(content)
    path.write_bytes(head + bytes(-len(head) % alignment) + data)
    return path


def test_gguf_file(rng, tmp_path):
    q4, q6, plain = ggml_bytes(rng, "Q4_0", 4, 64), ggml_bytes(rng, "Q6_K", 6, 256), rng.standard_normal((3, 5)).astype(np.float32)
    text = struct.pack("<Q", 5) + b"llama"
    strings = struct.pack("<IQ", 8, 2) + struct.pack("<Q", 1) + b"a" + struct.pack("<Q", 2) + b"bc"
    path = gguf_file(tmp_path / "model.gguf", [
        ("blk.0.q4", (4, 64), 2, q4.tobytes()), ("blk.0.experts", (2, 3, 256), 14, q6.tobytes()), ("norm", (3, 5), 0, plain.tobytes()),
        ("bf16", (2,), 30, np.array([0x3f80, 0x4000], "<u2").tobytes()), ("odd", (1, 256), 10, bytes(84))],
        [("general.architecture", 8, text), ("tokens", 9, strings), ("general.alignment", 4, struct.pack("<I", 64)),
         ("numbers", 9, struct.pack("<IQ3f", 6, 3, 1, 2, 3)), ("yes", 7, b"\1")], alignment=64)
    file = hgemm.gguf(path)
    assert len(file) == 5 and list(file)[0] == "blk.0.q4" and "norm" in file and file.types["blk.0.experts"] == "Q6_K"
    assert file.metadata["general.architecture"] == "llama" and file.metadata["tokens"] == ["a", "bc"] and file.metadata["yes"] is True
    assert file.metadata["numbers"].tolist() == [1, 2, 3] and file.shapes["blk.0.experts"] == (2, 3, 256)
    same(file["blk.0.q4"], formats.ggml(q4.reshape(-1), "Q4_0", (4, 64)).dequantize())
    first, second = file["blk.0.experts"]
    same(second, formats.ggml(q6[3:].reshape(-1), "Q6_K", (3, 256)).dequantize())
    np.testing.assert_array_equal(file["norm"], plain)
    assert hgemm._weights.to_float32(file["bf16"]).tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="odd: it is of type Q2_K"):
        file["odd"]
    with pytest.raises(KeyError):
        file["none"]


def test_gguf_files_that_are_none(rng, tmp_path):
    data = ggml_bytes(rng, "Q4_0", 4, 64).tobytes()
    whole = gguf_file(tmp_path / "whole", [("q", (4, 64), 2, data)]).read_bytes()
    path = tmp_path / "part"
    for end in range(len(whole) - 1):  # however a file is cut, it is refused by a ValueError
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError):
            hgemm.gguf(path)["q"]
    for at in range(len(whole) - len(data)):  # whatever a byte of the head is, nothing else happens
        path.write_bytes(whole[:at] + bytes([rng.integers(256)]) + whole[at + 1:])
        try:
            file = hgemm.gguf(path)
            for name in file:
                file[name]
        except (ValueError, NotImplementedError, TypeError):
            pass
    for changed, match in ((b"GGML" + whole[4:], "begin with GGUF"), (whole[:4] + b"\0\0\0\3" + whole[8:], "version"), (b"", "no GGUF file")):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=match):
            hgemm.gguf(path)
    assert hgemm.gguf(gguf_file(path, [("q", (0, 4, 64), 2, b"")]))["q"] == ()
    with pytest.raises(ValueError, match="shape is \\(4, 48\\)"):
        hgemm.gguf(gguf_file(path, [("q", (4, 48), 2, data)]))["q"]


# ---- what is refused ------------------------------------------------------------------------------------------------


def sources(rng):
    """(converter, its tensors, options) of one sound layer in each format."""
    n, k, groups = 32, 128, 4
    return [
        (formats.gptq, {"qweight": words(rng, k // 8, n), "qzeros": zero_words(rng, groups, n // 8), "scales": halves(rng, groups, n),
                        "g_idx": (np.arange(k) // 32).astype(np.int32)}, {"version": 1}),
        (formats.awq, {"qweight": words(rng, k, n // 8), "qzeros": words(rng, groups, n // 8), "scales": halves(rng, groups, n)}, {}),
        (formats.compressed_tensors, {"weight_packed": words(rng, n, k // 8), "weight_scale": halves(rng, n, groups),
                                      "weight_zero_point": words(rng, n // 8, groups), "weight_shape": np.array([n, k])}, {}),
        (formats.compressed_tensors, {"weight": rng.integers(-128, 128, (n, k)).astype(np.int8), "weight_scale": halves(rng, n, groups),
                                      "weight_zero_point": rng.integers(-128, 128, (n, groups)).astype(np.int8)}, {}),
        (formats.bitsandbytes, {"weight": rng.integers(0, 256, (n * k // 2, 1)).astype(np.uint8),
                                "absmax": rng.uniform(0, 1, n * k // 64).astype(np.float32)}, {"shape": (n, k)}),
        (formats.fp8, {"weight": rng.integers(0, 127, (n, k)).astype(np.uint8), "scale": halves(rng, n, groups)}, {}),
        (formats.compressed_tensors, {"weight": rng.integers(0, 127, (n, k)).astype(np.uint8), "weight_scale": halves(rng, n, groups)}, {}),
        (formats.mxfp4, {"blocks": rng.integers(0, 256, (n, k // 2)).astype(np.uint8),
                         "scales": rng.integers(100, 140, (n, k // 32)).astype(np.uint8)}, {}),
        (formats.nvfp4, {"weight_packed": rng.integers(0, 256, (n, k // 2)).astype(np.uint8),
                         "weight_scale": rng.integers(0, 126, (n, k // 16)).astype(np.uint8),
                         "weight_global_scale": np.ones(1, np.float32)}, {}),
    ]


def test_malformed_shapes_are_refused_by_name(rng):
    """Each tensor in turn gets a row, a column or a dimension more, or loses one: the exception names a tensor, the shape that it has
    and what it should be. What is left out is sound: the number of elements counts where their shape does not."""
    by_number = {"absmax", "weight_shape", "weight_global_scale"}
    for convert, tensors, options in sources(rng):
        convert(**tensors, **options)
        for name, tensor in tensors.items():
            wrong = [tensor.reshape(-1)[:0]]
            if name not in by_number and (name, convert) != ("weight", formats.bitsandbytes):
                wrong += [tensor[None], tensor[..., None, None]]
            for axis in range(tensor.ndim):
                wrong.append(np.concatenate([tensor, tensor.take([0], axis)], axis))
                if tensor.shape[axis] > 1:
                    wrong.append(tensor.take(range(tensor.shape[axis] - 1), axis))
            for changed in wrong:
                with pytest.raises(ValueError, match=r"^\w+: its shape is \(.*\), not |^\w+: it has \d+ groups") as raised:
                    print(convert.__name__, name, tensor.shape, changed.shape, convert(**{**tensors, name: changed}, **options))
                assert str(raised.value).split(":")[0] in tensors


def test_wrong_types_are_refused_by_name(rng):
    for convert, tensors, options in sources(rng):
        for name, tensor in tensors.items():
            if name == "weight_shape":
                continue
            for other in (np.complex64, np.int64 if name != "g_idx" else np.float32, np.float64):
                if convert is formats.bitsandbytes and name == "weight":
                    continue  # any quant_storage is looked at as bytes: its size is wrong
                with pytest.raises(TypeError, match=rf"^{name}: its type is "):
                    convert(**{**tensors, name: tensor.astype(other)}, **options)
            with pytest.raises(TypeError, match=rf"^{name}: a builtins.list is no array"):
                convert(**{**tensors, name: tensor.tolist()}, **options)


def test_what_a_tensor_cannot_say(rng):
    tensors = {"qweight": words(rng, 16, 8), "qzeros": words(rng, 4, 1), "scales": halves(rng, 4, 8)}
    with pytest.raises(TypeError):
        formats.gptq(**tensors)  # the version is told, never guessed
    for version in (0, 3, None, "gptq"):
        with pytest.raises(ValueError, match="version"):
            formats.gptq(**tensors, version=version)
    for bits in (2, 3):
        with pytest.raises(ValueError, match=f"bits: {bits} is neither 4 nor 8, and GPTQ of 2 and 3 bits is not read"):
            formats.gptq(**tensors, version=1, bits=bits)
    with pytest.raises(ValueError, match="borrow: 2"):
        formats.gptq(**tensors, version=1, borrow=2)
    with pytest.raises(ValueError, match="scales: it has 4 groups; k = 128 in groups of 64 has 2"):
        formats.gptq(**tensors, version=1, group_size=64)
    with pytest.raises(ValueError, match="g_idx: of its 4 groups the smallest has 0 and the largest 128 of k = 128, as in a row shard .* of one size, here 32"):
        formats.gptq(**tensors, g_idx=np.zeros(128, np.int32), version=1)
    with pytest.raises(ValueError, match="g_idx: its groups are 4 to 7, and scales has 4: a row shard counts its own from 0"):
        formats.gptq(**tensors, g_idx=(np.arange(128) // 32 + 4).astype(np.int32), version=1)
    with pytest.raises(ValueError, match="weight: its rows of k = 72 begin at multiples of 8 inside blocks of 64"):
        formats.bitsandbytes(np.zeros(72, np.uint8), np.ones(3, np.float32), (2, 72))
    with pytest.raises(ValueError, match="quant_type"):
        formats.bitsandbytes(np.zeros(64, np.uint8), np.ones(2, np.float32), (2, 64), quant_type="int8")
    with pytest.raises(TypeError, match="weight_packed: give either"):
        formats.compressed_tensors(weight_scale=np.ones((1, 1), np.float32))
    with pytest.raises(ValueError, match="type: 'Q3_K'"):
        formats.ggml(np.zeros(10, np.uint8), "Q3_K", (1, 256))
    with pytest.raises(ValueError, match="144 bytes"):
        formats.ggml(np.zeros(143, np.uint8), "Q4_K", (1, 256))
    for size in ("32", 32.0):
        with pytest.raises(TypeError, match="group_size: "):
            formats.gptq(**tensors, version=1, group_size=size)
    for block in (128, (128,), (0, 128), (128, 64.0)):
        with pytest.raises(ValueError, match="block: "):
            formats.fp8(np.zeros((2, 128), np.uint8), np.ones((1, 1), np.float32), block=block)
    for whole in (0, np.inf, np.nan):
        with pytest.raises(ValueError, match="weight_global_scale: scales are divided by it"):
            formats.nvfp4(np.zeros((2, 8), np.uint8), np.zeros((2, 1), np.uint8), np.float32(whole))
    with pytest.raises(ValueError, match="weight_global_scale: there is none"):
        formats.compressed_tensors(weight_packed=np.zeros((2, 8), np.uint8), weight_scale=np.zeros((2, 1), np.uint8))


def test_what_a_quant_state_cannot_say():
    sound = {"absmax": np.ones(2, np.float32), "shape": (2, 64), "quant_type": "nf4", "blocksize": 64}
    weight = np.zeros(64, np.uint8)
    assert formats.bitsandbytes_state(weight, sound).shape == (2, 64)
    for changed, match in (({"blocksize": 0}, "blocksize: 0"), ({"blocksize": "64"}, "blocksize: '64'"), ({"shape": (2, 8, 8)}, "shape: \\(2, 8, 8\\) is no shape"),
                           ({"shape": None}, "shape: "), ({"shape": 128}, "shape: 128 is"), ({"shape": (-2, -64)}, "shape: "), ({"shape": "264"}, "shape: "),
                           ({"quant_type": ["nf4"]}, "quant_type: "), ({"nested_absmax": np.ones(1, np.float32), "absmax": np.zeros(2, np.uint8),
                                                           "nested_quant_map": np.ones(256, np.float32), "nested_blocksize": 0}, "nested_blocksize: 0"),
                           ({"quant_state.bitsandbytes__nf4": np.frombuffer(b"{", np.uint8)}, "bitsandbytes__nf4: it is no JSON"),
                           ({"quant_state.bitsandbytes__nf4": np.frombuffer(b"7", np.uint8)}, "bitsandbytes__nf4: it is no JSON")):
        with pytest.raises(ValueError, match=match):
            formats.bitsandbytes_state(weight, {**sound, **changed})
    with pytest.raises(TypeError, match="state: a builtins.NoneType"):
        formats.bitsandbytes_state(weight, None)
    with pytest.raises(ValueError, match="^weight: it is in bitsandbytes' own order for CPUs"):
        formats.bitsandbytes_state(weight, types.SimpleNamespace(packing_format_for_cpu=True, as_dict=lambda: sound))


def test_arrays_in_the_other_byte_order(rng):
    codes, scales, zeros = rng.integers(0, 16, (4, 32)), rng.uniform(0.1, 1, (4, 2)).astype(np.float32), rng.integers(0, 16, (4, 2))
    for kind in ("f2", "f4"):
        for name in ("zeros", "offsets"):
            beside = zeros if name == "zeros" else scales.astype(kind)
            wanted = hgemm.Weights(codes, scales.astype(kind), "uint4", group=16, **{name: beside})
            swapped = hgemm.Weights(codes.astype(">i4"), scales.astype(">" + kind), "uint4", group=16,
                                    **{name: beside.astype(beside.dtype.newbyteorder(">"))})
            same(swapped, wanted.dequantize())
            np.testing.assert_array_equal(hgemm.pack(swapped).unpack("float32"), hgemm.pack(wanted).unpack("float32"))


def test_a_shape_that_is_none_is_refused_by_name():
    for shape in (None, 256, True, 1.5, "ab", (), (256,), (1, 1, 256), (1, 256.0), (-1, -256)):
        with pytest.raises(ValueError, match=r"^shape: .* is no shape \(n, k\) of data"):
            formats.ggml(np.zeros(144, np.uint8), "Q4_K", shape)
    with pytest.raises(ValueError, match="^weight_shape: "):
        formats.compressed_tensors(weight_packed=np.zeros((1, 8), np.int32), weight_scale=np.ones((1, 1), np.float16), weight_shape=np.array([1, np.nan]))
    with pytest.raises(ValueError, match="^type: "):
        formats.ggml(np.zeros(144, np.uint8), ["Q4_K"], (1, 256))


def test_scales_of_no_groups_are_refused_by_name():
    with pytest.raises(ValueError, match=r"^scale: its shape is \(2, 0\)"):
        formats.fp8(np.zeros((2, 64), np.uint8), np.ones((2, 0), np.float32))
    with pytest.raises(ValueError, match=r"^weight_scale: its shape is \(2, 0\)"):
        formats.compressed_tensors(weight=np.zeros((2, 64), np.uint8), weight_scale=np.ones((2, 0), np.float32))


def test_groups_without_a_kernel_are_refused_by_name(rng):
    """Those that the tensors' shapes make: the exception names the tensor with the groups, not a group that nobody gave."""
    bits, scale = np.zeros((4, 64), np.uint8), halves(rng, 4, 8)
    for name, call in (("scales", lambda: formats.gptq(words(rng, 15, 8), words(rng, 3, 1), halves(rng, 3, 8), version=1)),
                       ("scales", lambda: formats.awq(words(rng, 60, 1), words(rng, 3, 1), halves(rng, 3, 8))),
                       ("weight_scale", lambda: formats.compressed_tensors(weight_packed=words(rng, 4, 8), weight_scale=scale)),
                       ("weight_scale", lambda: formats.compressed_tensors(weight=bits.view(np.int8), weight_scale=scale)),
                       ("weight_scale", lambda: formats.compressed_tensors(weight=bits, weight_scale=scale)),
                       ("scale", lambda: formats.fp8(bits, scale))):
        with pytest.raises(ValueError, match=rf"^{name}: it has \d+ groups of \d+ along k = \d+"):
            call()


def test_kinds_of_fp8_are_told_apart(rng):
    """Bits of E8M0 are no E4M3, nor the other way round; bits without a type are what the format has."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits, codes = np.full((2, 2), 0x40, np.uint8), rng.integers(0, 256, (2, 32)).astype(np.uint8)
    e4m3, e8m0 = bits.view(ml_dtypes.float8_e4m3fn), bits.view(ml_dtypes.float8_e8m0fnu)
    same(formats.mxfp4(codes, e8m0), formats.mxfp4(codes, bits).dequantize())
    same(formats.fp8(e4m3, np.ones(1, np.float32)), formats.fp8(bits, np.ones(1, np.float32)).dequantize())
    whole, four = np.ones(1, np.float32), np.full((2, 4), 0x40, np.uint8)
    same(formats.nvfp4(codes, four.view(ml_dtypes.float8_e4m3fn), whole), formats.nvfp4(codes, four, whole).dequantize())
    for match, call in (("scales: its type is float8_e4m3fn", lambda: formats.mxfp4(codes, e4m3)),
                        ("weight: its type is float8_e8m0fnu", lambda: formats.fp8(e8m0, whole)),
                        ("weight_scale: its type is float8_e8m0fnu", lambda: formats.nvfp4(codes, four.view(ml_dtypes.float8_e8m0fnu), whole)),
                        ("blocks: its type is float8_e4m3fn", lambda: formats.mxfp4(codes.view(ml_dtypes.float8_e4m3fn), bits))):
        with pytest.raises(TypeError, match="^" + match):
            call()


def test_a_nested_block_may_be_larger_than_memory():
    """What is repeated is what blocks there are, not what a block could hold."""
    absmax, values = np.array([3, 5], np.uint8), np.arange(256, dtype=np.float32)
    w = formats.bitsandbytes(np.full(64, 0xff, np.uint8), absmax, (2, 64), nested_absmax=np.ones(1, np.float32), nested_quant_map=values,
                             nested_blocksize=1 << 44)
    np.testing.assert_allclose(w.dequantize()[:, 0], [3, 5], rtol=1e-3)


def test_layers_without_rows():
    assert formats.mxfp4(np.zeros((0, 1, 16), np.uint8), np.zeros((0, 1), np.uint8)).shape == (0, 32)
    for kind in ("Q4_0", "Q4_K"):
        assert formats.ggml(np.zeros(0, np.uint8), kind, (0, 256)).shape == (0, 256)
    assert formats.gptq(np.zeros((8, 0), np.int32), np.zeros((2, 0), np.int32), np.zeros((2, 0), np.float16), version=1).shape == (0, 64)
    assert formats.awq(np.zeros((64, 0), np.int32), np.zeros((2, 0), np.int32), np.zeros((2, 0), np.float16)).shape == (0, 64)
    assert formats.mxfp4(np.zeros((0, 16), np.uint8), np.zeros((0, 1), np.uint8)).shape == (0, 32)


def test_weights_of_ones_own(rng):
    codes, scales = rng.integers(-8, 8, (4, 40)), rng.uniform(0.1, 1, (4, 3)).astype(np.float32)
    weights = hgemm.Weights(codes, scales, "int4", group=16)
    same(weights, matrix(4, 40, lambda i, j: np.float32(codes[i, j]) * scales[i, j // 16]))
    same(hgemm.Weights(weights.codes, scales, "int4", group=16, nibbles=True), weights.dequantize())
    order = rng.permutation(40)
    same(hgemm.Weights(codes[:, order], np.ones((4, 1), np.float16), "int4", order=order), codes)
    assert hgemm.Weights(codes, scales[:, :1], "int4", group=64).group == 0
    offsets = rng.uniform(-1, 1, (4, 3)).astype(np.float32)
    same(hgemm.Weights(codes & 15, scales, "uint4", group=16, offsets=offsets),
         matrix(4, 40, lambda i, j: np.float32(codes[i, j] & 15) * scales[i, j // 16] + offsets[i, j // 16]))
    for options, match in (
            ({"code": "int3"}, "code: 'int3'"), ({"code": ["int4"]}, "code: "), ({"group": 24}, "group: 24"), ({"group": -1}, "group: -1"), ({"group": 32}, r"scales: .*\(4, 2\)"),
            ({"codes": codes[:, :39]}, "codes: .*even k"), ({"codes": codes + 1}, "codes: they are from -7 to 8"),
            ({"codes": codes[0]}, "codes: its shape"), ({"zeros": np.full((4, 3), 9)}, "zeros: they are from 9 to 9"),
            ({"zeros": np.zeros((4, 2), int)}, r"zeros: .*\(4, 3\)"), ({"table": np.zeros(16)}, "table: codes of int4 have none"),
            ({"code": "table16", "codes": codes & 15}, "table: codes of table16 have one"),
            ({"code": "table16", "codes": codes & 15, "table": np.full(16, 1e6)}, "table: 1000000.0 is no finite half"),
            ({"code": "e4m3", "codes": codes & 15, "zeros": np.zeros((4, 3), int)}, "zeros: codes of e4m3 have none"),
            ({"order": np.zeros(40, int)}, "order: it is no order"), ({"order": np.arange(39)}, "order: its shape"),
            ({"zeros": np.zeros((4, 3), int), "offsets": offsets}, "offsets: zeros are given")):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match=match):
            hgemm.Weights(**{"codes": codes, "scales": scales, "code": "int4", "group": 16, **options})
    for options, match in (({"codes": codes / 2}, "codes: their type"), ({"scales": scales.astype(float)}, "scales: their type"),
                           ({"zeros": offsets}, "zeros: their type"), ({"code": "table16", "codes": codes & 15, "table": ["a"] * 16}, "table: its type"),
                           ({"scales": None}, "scales: a builtins.NoneType"), ({"offsets": offsets.astype(np.float16)}, "offsets: their type")):
        with pytest.raises(TypeError, match=match):
            hgemm.Weights(**{"codes": codes, "scales": scales, "code": "int4", "group": 16, **options})
