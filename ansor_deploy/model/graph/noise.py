"""A model whose every result is off by a few roundings: how far may a correct program be off?

No two programs add in the same order, and the network decides what rounding does to an output:
nothing where it saturates, everything where it subtracts nearly equal numbers. So each result of
arithmetic in the graph is multiplied by a random number near one (Monte Carlo arithmetic: D. S.
Parker, IEEE Computing in Science & Engineering 2(4), 2000). How far the outputs move from run to
run is how far two correct programs may be apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import onnx
from onnx import helper

from ..onnx.skeleton import attribute, domain_of, uses
from .graph import optional_input

# The largest relative error that a result gets, by ONNX's number of its type (float32, float16,
# float64, bfloat16). It is 16 epsilons, since one result adds up a thousand products, or transforms
# tiles (Winograd); but two epsilons of the 16-bit types, since those are computed in float32.
NOISE = {1: 2.0**-19, 10: 2.0**-9, 11: 2.0**-48, 16: 2.0**-6}
# Operators that pass values on or choose among them: they round nothing, and equal values have to
# stay equal.
# fmt: off
_EXACT = {
    "Abs", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant",
    "ConstantOfShape", "DepthToSpace", "Dropout", "Expand", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "Identity", "LeakyRelu", "Max", "MaxPool", "Min", "Neg",
    "Pad", "QuantizeLinear", "Relu", "Reshape", "ReverseSequence", "Round", "ScatterElements",
    "ScatterND", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK",
    "Transpose", "Trilu", "Unsqueeze", "Where",
}
# fmt: on
# Operators computed by approximation: the error is relative to their range, which is about one, as
# much as to the result.
# fmt: off
_BOUNDED = {
    "BiasGelu", "Cos", "DynamicQuantizeLSTM", "Erf", "FastGelu", "GRU", "Gelu", "HardSigmoid",
    "LSTM", "LogSoftmax", "Mish", "QuickGelu", "RNN", "Selu", "Sigmoid", "Sin", "Softmax",
    "Softplus", "Softsign", "Swish", "Tanh",
}
# fmt: on
_FLOAT, _DOUBLE = 1, 11
# From this opset on, ONNX Runtime has no RandomUniformLike: what Dropout drops is drawn there.
_WITHOUT_RANDOM = 22
_HALF, _TRUE = "noise__half", "noise__true"

Random = Callable[[str, str, float, float, int, int], Iterator[Any]]


def with_noise(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """A copy of a model whose results of arithmetic have random errors, other ones in each run.

    seed: of the random numbers. What depends on no input stays exact: shapes are computed from it.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    del made.graph.node[:]
    made.graph.node.extend(_nodes(proto, seed))
    return made


def _nodes(proto: onnx.ModelProto, seed: int) -> Iterator[Any]:
    """The model's nodes, each followed by nodes that blur its results; first those for inputs."""
    types, varying = _types(proto), varying_tensors(proto.graph)
    opset = max((one.version for one in proto.opset_import if not domain_of(one)), default=0)
    blur = partial(_blur, _signs if opset >= _WITHOUT_RANDOM else _uniform)
    if opset >= _WITHOUT_RANDOM:
        yield from (_constant(_HALF, _FLOAT, 0.5), _constant(_TRUE, onnx.TensorProto.BOOL, 1))
    renamed = {}
    for value in proto.graph.input:
        if value.name in varying and types.get(value.name) in NOISE:
            renamed[value.name] = f"{value.name}__inexact"
            yield from blur(value.name, renamed[value.name], types[value.name], seed, bounded=False)
    for at, node in enumerate(proto.graph.node):
        kept = type(node)()
        kept.CopyFrom(node)
        _weigh_inexactly(kept)
        for place, name in enumerate(kept.input):
            kept.input[place] = renamed.get(name, name)
        inexact = node.op_type not in _EXACT
        blurred = {}
        for place, name in enumerate(node.output):
            if inexact and name in varying and types.get(name) in NOISE:
                blurred[name] = kept.output[place] = f"{name}__exact"
        yield kept
        for place, (name, exact) in enumerate(blurred.items()):
            number = seed + (at + 1) * 64 + place
            yield from blur(exact, name, types[name], number, bounded=_is_bounded(node))


def _is_bounded(node: Any) -> bool:
    """Whether errors are relative to the range: ONNX Runtime's logistic ends in 1 - p."""
    return node.op_type in _BOUNDED or attribute(node, "post_transform") == "LOGISTIC"


def _weigh_inexactly(node: Any) -> None:
    """Change the coefficients of a vector machine as much as the sum of many roundings would.

    The terms that it adds up are made inside the node and cancel out, so noise on its inputs does
    not show their roundings.
    """
    if node.op_type not in ("SVMClassifier", "SVMRegressor"):
        return
    for entry in node.attribute:
        if entry.name == "coefficients":
            share = NOISE[_FLOAT] / math.sqrt(max(1, len(entry.floats)))
            entry.floats[:] = [value + share * abs(value) for value in entry.floats]


def _blur(
    random: Random, source: str, result: str, kind: int, seed: int, *, bounded: bool
) -> Iterator[Any]:
    """Nodes that multiply a tensor by about one, and add as much noise if `bounded`."""
    wide = _DOUBLE if kind == _DOUBLE else _FLOAT
    size, value = NOISE[kind], source
    if kind != wide:
        value = f"{result}__wide"
        yield helper.make_node("Cast", [source], [value], to=wide)
    last = f"{result}__sum" if bounded else f"{result}__last" if kind != wide else result
    yield from random(value, f"{result}__factor", 1.0, size, 2 * seed, wide)
    product = f"{result}__product" if bounded else last
    yield helper.make_node("Mul", [value, f"{result}__factor"], [product])
    if bounded:
        last = f"{result}__last" if kind != wide else result
        yield from random(value, f"{result}__term", 0.0, size, 2 * seed + 1, wide)
        yield helper.make_node("Add", [product, f"{result}__term"], [last])
    if kind != wide:
        yield helper.make_node("Cast", [last], [result], to=kind)


def _uniform(
    like: str, name: str, middle: float, size: float, seed: int, kind: int
) -> Iterator[Any]:
    """Random numbers at most `size` away from the middle."""
    words = {"low": middle - size, "high": middle + size, "seed": float(seed), "dtype": kind}
    yield helper.make_node("RandomUniformLike", [like], [name], **words)


def _signs(like: str, name: str, middle: float, size: float, seed: int, kind: int) -> Iterator[Any]:
    """Two numbers at random, on either side of the middle, with the variance of `_uniform`."""
    low, high = f"{name}__low", f"{name}__high"
    yield _constant(low, kind, middle - size / math.sqrt(3))
    yield _constant(high, kind, middle + size / math.sqrt(3))
    made = [f"{name}__rest", f"{name}__kept"]
    yield helper.make_node("Dropout", [like, _HALF, _TRUE], made, seed=seed)
    yield helper.make_node("Where", [made[1], high, low], [name])


def _constant(name: str, kind: int, value: float) -> Any:
    return helper.make_node(
        "Constant", [], [name], value=helper.make_tensor(name, kind, [], [value])
    )


def _types(proto: onnx.ModelProto) -> dict[str, int]:
    """ONNX's number of the type of each tensor, as far as it is known.

    ONNX infers no types behind operators of other domains; most of these return the type of their
    input. Classifiers, which return labels, are left out.
    """
    graph = onnx.shape_inference.infer_shapes(proto).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    found = {value.name: value.type.tensor_type.elem_type for value in values}
    found |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        kind = found.get(optional_input(node, int(node.op_type == "DequantizeLinear")), 0)
        chooses = node.op_type == "QuantizeLinear" or domain_of(node) == "ai.onnx.ml"
        if kind in NOISE and not chooses:
            found |= {name: kind for name in node.output if not found.get(name)}
    return found


def varying_tensors(graph: onnx.GraphProto) -> set[str]:
    """The tensors that depend on the values of inputs, and not only on their shapes."""
    constants = {tensor.name for tensor in graph.initializer}
    found = {value.name for value in graph.input} - constants
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and uses(node) & found:
            found.update(filter(None, node.output))
    return found
