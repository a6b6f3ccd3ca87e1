"""Operators of com.microsoft become others that ONNX Runtime computes alike."""

import numpy as np
import pytest
from helpers.graphs import assert_same, contrib, node, randn, run, typed
from onnx import ModelProto, TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
WIDTH, TOKENS = 16, 6


def model(made, given, constants=None, outputs=("y",), opset=17, **kinds) -> ModelProto:
    """A model of one node. given: shapes of inputs; kinds: element types other than float."""
    kinds = {**dict.fromkeys((*given, *outputs), FLOAT), **kinds}
    ends = {name: (kinds[name], shape) for name, shape in given.items()}
    return typed([made], ends, {name: kinds[name] for name in outputs}, constants, opset)


def check(proto, feeds=None):
    after = canonicalize(proto)
    assert {entry.domain for entry in after.graph.node} == {""}
    if feeds is None:
        assert_same(proto, after)
        return
    for want, have in zip(run(proto, feeds), run(after, feeds), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


TABLE = [
    contrib("Gelu", "x"),
    contrib("BiasGelu", "x b"),
    contrib("FastGelu", "x"),
    contrib("FastGelu", "x b"),
    contrib("QuickGelu", "x", alpha=1.5),
    contrib("FusedMatMul", "x x", transB=1, alpha=0.5),
    contrib("FusedMatMul", "x x", transA=1),
    contrib("SkipLayerNormalization", "x x b", epsilon=1e-5),
    contrib("SkipLayerNormalization", "x x b b b", "y - - z", epsilon=1e-5),
    contrib("SkipSimplifiedLayerNormalization", "x x b", epsilon=1e-5),
    contrib("SkipSimplifiedLayerNormalization", "x x b b", "y - - z", epsilon=1e-5),
    node("SimplifiedLayerNormalization", "x b", "y", axis=-1, epsilon=1e-5),
]


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("made", TABLE, ids=lambda n: f"{n.op_type}-{len(n.input)}")
def test_operator_of_one_tensor(made, opset):
    made.output[:] = ["" if name == "-" else name for name in made.output]
    outputs = [name for name in made.output if name]
    check(model(made, {"x": (2, TOKENS, WIDTH)}, {"b": randn(1, WIDTH)}, outputs, opset))


def test_fused_gemm_and_its_activation():
    made = contrib("FusedGemm", "x w c", activation="LeakyRelu", activation_alpha=0.3, transB=1)
    check(model(made, {"x": (4, 8)}, {"w": randn(0, 5, 8), "c": randn(1, 5)}))


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [("Relu", None), ("Clip", [0.0, 0.5]), ("LeakyRelu", [0.2]), ("HardSigmoid", [0.2, 0.5])],
)
def test_fused_conv_and_its_activation(activation, parameters):
    kept = {"activation_params": parameters} if parameters else {}
    made = contrib("FusedConv", "x w b", activation=activation, pads=[1, 1, 1, 1], **kept)
    constants = {"w": randn(0, 8, 4, 3, 3), "b": randn(1, 8)}
    check(model(made, {"x": (1, 4, 5, 5)}, constants))


def test_fused_conv_that_adds_a_tensor():
    made = contrib("FusedConv", "x w b z", activation="Relu")
    constants = {"w": randn(0, 8, 4, 1, 1), "b": randn(1, 8)}
    check(model(made, {"x": (1, 4, 5, 5), "z": (1, 8, 5, 5)}, constants))


def test_embedding_of_words_places_and_segments():
    made = contrib("EmbedLayerNormalization", "i s w p k g b m", "y l", epsilon=1e-5)
    shapes = {"w": (30, WIDTH), "p": (12, WIDTH), "k": (2, WIDTH), "g": (WIDTH,), "b": (WIDTH,)}
    constants = {name: randn(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    given = dict.fromkeys("ism", (2, TOKENS))
    proto = model(made, given, constants, ("y", "l"), i=INT32, s=INT32, m=INT32, l=INT32)
    rng = np.random.default_rng(0)
    feeds = {"i": rng.integers(0, 30, (2, TOKENS)), "s": rng.integers(0, 2, (2, TOKENS)),
             "m": np.array([[1] * TOKENS, [1, 1, 1, 0, 0, 0]])}  # fmt: skip
    check(proto, {name: value.astype(np.int32) for name, value in feeds.items()})


@pytest.mark.parametrize("has_segments", [False, True])
def test_embedding_by_tables_of_bytes(has_segments):
    rows = {"w": 30, "p": 12, "k": 2, "g": 0, "b": 0}
    rng = np.random.default_rng(0)
    constants = {name: rng.integers(0, 256, (count, WIDTH) if count else (WIDTH,), np.uint8)
                 for name, count in rows.items()}  # fmt: skip
    constants |= {f"{name}s": np.float32(0.01 * (1 + at)) for at, name in enumerate(rows)}
    constants |= {f"{name}z": np.uint8(120 + at) for at, name in enumerate(rows)}
    words = "i s w p k g b m ws ps ks gs bs wz pz kz gz bz"
    if not has_segments:
        words = "i - w p - g b m ws ps - gs bs wz pz - gz bz"
    made = contrib("QEmbedLayerNormalization", words, "y l", epsilon=1e-5)
    given = dict.fromkeys("ism" if has_segments else "im", (2, TOKENS))
    read = {name: value for name, value in constants.items() if name in made.input}
    proto = model(made, given, read, ("y", "l"), i=INT32, s=INT32, m=INT32, l=INT32)
    feeds = {name: rng.integers(0, 2, shape).astype(np.int32) for name, shape in given.items()}
    feeds["m"] = np.array([[1] * TOKENS, [1, 1, 1, 0, 0, 0]], np.int32)
    check(proto, feeds)


@pytest.mark.parametrize(
    ("made", "shape", "constants"),
    [
        (contrib("GatherND", "x i"), (3, 4, 5), {"i": np.array([[0, 1], [2, 3]])}),
        (contrib("GridSample", "x g", mode="bilinear", padding_mode="border"), (1, 2, 4, 5),
         {"g": np.tanh(randn(1, 1, 3, 3, 2))}),
        (contrib("Pad", "x p v", mode="constant"), (3, 4), {"p": np.array([0, 1, 2, 0]),
                                                            "v": np.array([2.5], np.float32)}),
        (contrib("ExpandDims", "x a"), (3, 4), {"a": np.array(1, np.int32)}),
        (contrib("Trilu", "x k", upper=0), (2, 4, 5), {"k": np.array(1)}),
        (contrib("Trilu", "x"), (4, 5), {}),
        (contrib("CDist", "x y", metric="euclidean"), (4, 5), {"y": randn(1, 3, 5)}),
        (contrib("CDist", "x y", metric="sqeuclidean"), (4, 5), {"y": randn(1, 3, 5)}),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)  # fmt: skip
def test_forerunner_of_an_operator_of_onnx(made, shape, constants):
    made.output[0] = "z"
    check(model(made, {"x": shape}, constants, ("z",)))


MASK = np.array([[1] * TOKENS, [1, 1, 1, 1, 0, 0]], np.int32)


@pytest.mark.parametrize("mask", [None, MASK, np.array([TOKENS, 4], np.int32)])
@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}, {"scale": 0.3}])
def test_attention_with_packed_projections(mask, attributes):
    made = contrib(
        "Attention", "x w b" + (" m" if mask is not None else ""), num_heads=2, **attributes
    )
    constants = {"w": randn(0, WIDTH, 3 * WIDTH), "b": randn(1, 3 * WIDTH)}
    constants |= {} if mask is None else {"m": mask}
    check(model(made, {"x": (2, TOKENS, WIDTH)}, constants))


def test_attention_after_a_past():
    made = contrib("Attention", "x w b - past", "y present", num_heads=2, unidirectional=1)
    constants = {"w": randn(0, WIDTH, 3 * WIDTH), "b": randn(1, 3 * WIDTH)}
    given = {"x": (2, TOKENS, WIDTH), "past": (2, 2, 2, 3, WIDTH // 2)}
    check(model(made, given, constants, ("y", "present")))


@pytest.mark.parametrize("extra", ["", " b", " b m", " - m", " - - a", " b m a"])
def test_attention_of_separate_projections(extra):
    made = contrib("MultiHeadAttention", "q k v" + extra, num_heads=2)
    given = dict.fromkeys("qkv", (2, TOKENS, WIDTH)) | {"q": (2, 4, WIDTH)}
    constants = {"b": randn(1, 3 * WIDTH), "m": MASK, "a": randn(2, 1, 2, 4, TOKENS)}
    read = {name: value for name, value in constants.items() if name in made.input}
    check(model(made, given, read))


def test_attention_that_gives_its_logits():
    made = contrib("MultiHeadAttention", "q k v - m", "y - - z", num_heads=2, scale=0.5)
    made.output[:] = ["y", "", "", "z"]
    given = dict.fromkeys("qkv", (2, TOKENS, WIDTH))
    check(model(made, given, {"m": MASK}, ("y", "z")))


@pytest.mark.parametrize("positions", [np.array([3]), np.arange(2 * TOKENS).reshape(2, TOKENS)])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, TOKENS, WIDTH), (2, 2, TOKENS, WIDTH // 2)])
def test_rotary_embedding(positions, interleaved, shape):
    made = contrib("RotaryEmbedding", "x p c s", interleaved=interleaved)
    constants = {"p": positions, "c": randn(0, 20, WIDTH // 4), "s": randn(1, 20, WIDTH // 4)}
    check(model(made, {"x": shape}, constants))


def test_unknown_activation_is_refused_by_name():
    made = contrib("FusedConv", "x w", activation="Cubic")
    with pytest.raises(ModelError, match="FusedConv: its activation Cubic is not supported"):
        canonicalize(model(made, {"x": (1, 4, 5, 5)}, {"w": randn(0, 8, 4, 1, 1)}))
