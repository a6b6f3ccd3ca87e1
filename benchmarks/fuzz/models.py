"""Mutated models: node tests of the package `onnx` and small networks, spoilt in a few places."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_shapes

from benchmarks.fuzz.conformance_cases import bound, cases, counts
from benchmarks.fuzz.messages import mutate, spoilt_bytes

NETWORKS = 0.5  # of the tries begin with a network and not with a single operator
RAW = 0.1  # of the tries change bytes, so that many do not parse


def spoil(seed: int, path: Path) -> str:
    """Write the model of this seed; what was done to which one."""
    chance = random.Random(seed)
    name, proto = _begin(chance)
    if chance.random() < RAW:
        path.write_bytes(spoilt_bytes(proto.SerializeToString(), chance))
        return f"{name}: bytes"
    done = mutate(proto, chance.choice((1, 1, 2, 3, 6)), chance)
    path.write_bytes(proto.SerializeToString())
    return f"{name}: {'; '.join(done)}"


def _begin(chance: random.Random) -> tuple[str, ModelProto]:
    proto = ModelProto()
    if chance.random() < NETWORKS:
        name = chance.choice(sorted(NETS))
        proto.CopyFrom(_network(name))
    else:
        name = chance.choice(_operators())
        case = cases()[name]
        proto.CopyFrom(bound(case, case.data_sets[0][0])[0])
    return name, proto


@cache
def _operators() -> list[str]:
    return [name for name, case in cases().items() if counts(case)]


@cache
def _network(name: str) -> ModelProto:
    return NETS[name]()


def _made(
    nodes: list[Any], inputs: dict[str, Any], weights: dict[str, Any], **more: Any
) -> ModelProto:
    """A model with one output, y. inputs: (element type, shape) by name."""
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(value, "float32") if isinstance(value, tuple) else value
        for name, value in weights.items()
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    imports = [helper.make_opsetid("", 17), *more.pop("domains", [])]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=8, **more)
    proto.graph.output[0].CopyFrom(infer_shapes(proto).graph.output[0])
    return proto


def _node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def convolutional() -> ModelProto:
    """Convolution, batch norm, pooling, a residual sum and a classifier."""
    nodes = [
        _node("Conv", "x w0 b0", "a", pads=[1, 1, 1, 1]),
        _node("BatchNormalization", "a s b0 m v", "b"),
        _node("Relu", "b", "c"),
        _node("Conv", "c w1", "d", pads=[1, 1, 1, 1], group=2),
        _node("Add", "c d", "e"),
        _node("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2]),
        _node("GlobalAveragePool", "f", "g"),
        _node("Flatten", "g", "h"),
        _node("Gemm", "h w2", "y", transB=1),
    ]
    ones = np.ones(8, "float32")
    weights = {"w0": (8, 3, 3, 3), "b0": (8,), "w1": (8, 4, 3, 3), "w2": (5, 8)}
    return _made(
        nodes,
        {"x": (TensorProto.FLOAT, [1, 3, 10, 10])},
        {**weights, "s": ones, "m": (8,), "v": ones},
    )


def attention() -> ModelProto:
    """A lookup of words, scores, a mask by Where, softmax, layer norm."""
    nodes = [
        _node("Gather", "table ids", "a"),
        _node("MatMul", "a wq", "q"),
        _node("MatMul", "a wk", "k"),
        _node("Transpose", "k", "kt", perm=[0, 2, 1]),
        _node("MatMul", "q kt", "s"),
        _node("Where", "mask s low", "masked"),
        _node("Softmax", "masked", "p", axis=-1),
        _node("MatMul", "p a", "o"),
        _node("LayerNormalization", "o g b", "n"),
        _node("Slice", "n from to axes", "y"),
    ]
    weights = {
        "table": (20, 8), "wq": (8, 8), "wk": (8, 8), "g": (8,), "b": (8,),
        "low": np.float32(-1e9), "from": np.array([0]), "to": np.array([3]), "axes": np.array([1]),
    }  # fmt: skip
    inputs = {"ids": (TensorProto.INT64, [1, 6]), "mask": (TensorProto.BOOL, [6, 6])}
    return _made(nodes, inputs, weights)


def recurrent() -> ModelProto:
    """An LSTM with its states, and shapes that are computed."""
    nodes = [
        _node("LSTM", "x w r b", "h last", hidden_size=4),
        _node("Squeeze", "h one", "s"),
        _node("Shape", "s", "shape"),
        _node("Gather", "shape zero", "steps"),
        _node("Concat", "steps minus", "to", axis=0),
        _node("Reshape", "s to", "t"),
        _node("ReduceMax", "t", "u", axes=[1]),
        _node("Elu", "u", "y"),
    ]
    weights = {
        "w": (1, 16, 3), "r": (1, 16, 4), "b": (1, 32),
        "one": np.array([1]), "zero": np.array([0]), "minus": np.array([-1]),
    }  # fmt: skip
    return _made(nodes, {"x": (TensorProto.FLOAT, [5, 2, 3])}, weights)


def nested() -> ModelProto:
    """If within Loop, and a local function that calls another."""
    branch = [
        helper.make_graph([_node(op, "state", out)], out, [], [_value(out)])
        for op, out in (("Neg", "then"), ("Exp", "else"))
    ]
    body = helper.make_graph(
        [
            _node("If", "flag", "next", then_branch=branch[0], else_branch=branch[1]),
            _node("Identity", "go", "again"),
        ],
        "body",
        [_value("i", TensorProto.INT64, []), _value("go", TensorProto.BOOL, []), _value("state")],
        [_value("again", TensorProto.BOOL, []), _value("next")],
    )
    nodes = [
        _node("Loop", "three yes x", "a", body=body),
        helper.make_node("Twice", ["a"], ["y"], domain="own"),
    ]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    once = helper.make_function("own", "Once", ["p"], ["q"], [_node("Tanh", "p", "q")], imports)
    calls = [helper.make_node("Once", [a], [b], domain="own") for a, b in ("pr", "rq")]
    twice = helper.make_function("own", "Twice", ["p"], ["q"], calls, imports)
    constants = {"three": np.array(3), "yes": np.array(True), "flag": np.array(True)}
    return _made(
        nodes, {"x": (TensorProto.FLOAT, [2, 3])}, constants,
        domains=[helper.make_opsetid("own", 1)], functions=[once, twice],
    )  # fmt: skip


def quantized() -> ModelProto:
    """A quantised convolution between two conversions, a resize, and updates at indices."""
    nodes = [
        _node("QuantizeLinear", "x step point", "q"),
        _node("DequantizeLinear", "q step point", "d"),
        _node("Conv", "d w", "c", pads=[1, 1, 1, 1]),
        _node("Resize", "c - scales".replace("-", "none"), "r", mode="linear"),
        _node("ScatterND", "r at updates", "z"),
        _node("Clip", "z low high", "k"),
        _node("TopK", "k two", "y which", axis=1),
    ]
    weights = {
        "step": np.float32(0.1), "point": np.uint8(128), "w": (4, 2, 3, 3),
        "none": np.zeros(0, "float32"),
        "scales": np.array([1, 1, 2, 2], "float32"), "at": np.array([[0, 1, 2]]), "updates": (1, 8),
        "low": np.float32(-1), "high": np.float32(1), "two": np.array([2]),
    }  # fmt: skip
    return _made(nodes, {"x": (TensorProto.FLOAT, [1, 2, 4, 4])}, weights)


def _value(name: str, kind: int = TensorProto.FLOAT, shape: list[int] | None = None) -> Any:
    return helper.make_tensor_value_info(name, kind, [2, 3] if shape is None else shape)


NETS = {one.__name__: one for one in (convolutional, attention, recurrent, nested, quantized)}
