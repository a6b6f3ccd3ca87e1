"""A decoder of onnxruntime-genai's form in a library: weights of few bits, caches, positions."""

import numpy as np
import pytest
from helpers.built import run
from helpers.graphs import contrib, node, randn, typed
from helpers.graphs import run as by_onnx_runtime
from onnx import TensorProto

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime.interface import TensorInfo
from ansor_deploy.ship.verify.oracle import Oracle

WIDTH, HEADS, SHARED, SIZE, BLOCK, BITS = 64, 4, 2, 16, 32, 4
PAST, TOKENS, WORDS = 6, 3, 70


def quantised(name, rows, depth):
    """(packed weights, scales) of a product, or of a table."""
    numbers = np.random.default_rng(len(name)).integers(0, 256, (rows, depth // BLOCK, BLOCK // 2))
    return {f"{name}.w": numbers.astype(np.uint8), f"{name}.s": randn(3, rows, depth // BLOCK) / 16}


def product(name, read, made, rows):
    attributes = {"K": WIDTH, "N": rows, "bits": BITS, "block_size": BLOCK, "accuracy_level": 4}
    return contrib("MatMulNBits", f"{read} {name}.w {name}.s", made, **attributes)


def decoder(tokens=TOKENS, mask=PAST + TOKENS):
    """A layer of a decoder behind its table of words."""
    packed = (HEADS + 2 * SHARED) * SIZE
    table = quantised("words", WORDS, WIDTH)
    constants = {**quantised("qkv", packed, WIDTH), **quantised("out", WIDTH, WIDTH)}
    constants |= {
        "t.w": table["words.w"].reshape(WORDS, -1),
        "t.s": table["words.s"],
        "g": randn(0, WIDTH),
    }
    angles = np.arange(20)[:, None] * 0.9 ** np.arange(SIZE // 2)
    constants |= {
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
        "one": np.array([1]),
        "axis": np.array([1]),
        "last": np.array(1),
    }
    nodes = [
        contrib("GatherBlockQuantized", "t.w ids t.s", "words", block_size=BLOCK, bits=BITS),
        node("SimplifiedLayerNormalization", "words g", "n", axis=-1, epsilon=1e-5),
        product("qkv", "n", "qkv", packed),
        node("ReduceSum", "mask axis", "sum", keepdims=0),
        node("Sub", "sum one", "less"),
        node("Cast", "less", "counts", to=TensorProto.INT32),
        node("Shape", "mask", "shape"),
        node("Gather", "shape last", "size", axis=0),
        node("Cast", "size", "total", to=TensorProto.INT32),
        contrib(
            "GroupQueryAttention",
            "qkv - - pk pv counts total cos sin",
            "a nk nv",
            do_rotary=1,
            num_heads=HEADS,
            kv_num_heads=SHARED,
        ),
        product("out", "a", "o", WIDTH),
        contrib("SkipSimplifiedLayerNormalization", "o words g", "y - - z", epsilon=1e-5),
    ]
    nodes[-1].output[:] = ["y", "", "", "z"]
    given = {"ids": ("int64", (1, tokens)), "mask": ("int64", (1, mask))}
    given |= dict.fromkeys(("pk", "pv"), ("float32", (1, SHARED, PAST, SIZE)))
    return typed(nodes, given, dict.fromkeys(("y", "z", "nk", "nv"), "float32"), constants, 21)


def test_a_layer_whose_cache_is_full_or_not():
    proto = decoder()
    oracle = Oracle(proto)
    cache = {name: randn(at, 1, SHARED, PAST, SIZE) for at, name in enumerate(("pk", "pv"))}
    feeds = {"ids": np.array([[3, 29, 0]]), "mask": np.ones((1, PAST + TOKENS), np.int64), **cache}
    for tokens in (PAST + TOKENS, 5, TOKENS):
        feeds["mask"][:, tokens:] = 0
        want = by_onnx_runtime(oracle.proto, feeds)
        for have, one in zip(run(proto, feeds), want, strict=True):
            np.testing.assert_allclose(have, one, rtol=1e-4, atol=1e-5)
    feeds["mask"][:, TOKENS - 1 :] = 0
    with pytest.raises(UsageError):
        run(proto, feeds)


def test_a_cache_of_one_size_token_by_token():
    proto = decoder(1, PAST)
    caches = dict.fromkeys(("pk", "pv"), np.zeros((1, SHARED, PAST, SIZE), np.float32))
    for at, word in enumerate((7, 69, 0)):
        mask = (np.arange(PAST) <= at).astype(np.int64)[None]
        feeds = {"ids": np.array([[word]]), "mask": mask, **caches}
        want = by_onnx_runtime(Oracle(proto).proto, feeds)
        for have, one in zip(run(proto, feeds), want, strict=True):
            np.testing.assert_allclose(have, one, rtol=1e-4, atol=1e-5)
        caches = dict(zip(("pk", "pv"), want[2:], strict=True))


def test_the_oracle_is_asked_about_a_full_cache():
    inputs = [TensorInfo("ids", (1, TOKENS), "int64"), TensorInfo("mask", (1, 9), "int64")]
    inputs += [TensorInfo(name, (1, SHARED, PAST, SIZE), "float32") for name in ("pk", "pv")]
    feed, outputs = Oracle(decoder()).ask(inputs, 0)
    assert feed["mask"].all()
    assert feed["ids"].any()
    assert outputs["nk"].all()
