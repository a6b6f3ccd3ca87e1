"""A model whose every result is off by a few roundings: how far may a correct program be off?

No two programs add in the same order, and the network decides what rounding does to an output:
nothing where it saturates, everything where it subtracts nearly equal numbers. So each result of
arithmetic in the graph is multiplied by a random number near one (Monte Carlo arithmetic: D. S.
Parker, IEEE Computing in Science & Engineering 2(4), 2000). How far the outputs move from run to
run is how far two correct programs may be apart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from ..onnx.skeleton import attribute, domain_of, nested, nodes, uses
from .graph import optional_input
from .subgraph import rename

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
    "GatherElements", "GatherND", "Identity", "If", "LeakyRelu", "Max", "MaxPool", "Min", "Neg",
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
# Operators whose results from equal inputs differ between two right programs by roundings: what
# consists of sums, or has no exact formula. Others round once, and all programs alike.
_UNLIKE = {
    "Cos", "CumSum", "Einsum", "Exp", "Gemm", "Log", "MatMul", "Pow", "ReduceMean", "ReduceSum",
    "Sin",
}  # fmt: skip
_INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)  # numbers of ONNX's types
# From this opset on, ONNX Runtime has no RandomUniformLike: what Dropout drops is drawn there.
_WITHOUT_RANDOM = 22
_TURNS = 4096  # radians of a sine, or more, from elements that are 0 to those that are 1
_HALF, _TRUE = "noise__half", "noise__true"
_BRANCH = 64 * 4096  # between the seeds of an If and of what is in it

Random = Callable[[str, str, float, float, int, int], Iterator[Any]]


def with_noise(proto: onnx.ModelProto, seed: int, *, alike: bool = False) -> onnx.ModelProto:
    """A copy of a model whose results of arithmetic have random errors, other ones in each run.

    So have those in branches. seed: of the random numbers. What depends on no input stays exact:
    shapes are computed from it. alike: equal elements of a tensor have equal errors. Real rounding
    is like that, and where all elements are equal, such errors do not vanish in a mean.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    opset = max((one.version for one in proto.opset_import if not domain_of(one)), default=0)
    first: list[Any] = []
    drawn = _alike if alike else _uniform
    if opset >= _WITHOUT_RANDOM and not alike:
        drawn = _signs
        first = [_constant(_HALF, _FLOAT, 0.5), _constant(_TRUE, onnx.TensorProto.BOOL, 1)]
    known = _Noise(_types(proto), drawn)
    varying, renamed = varying_tensors(proto.graph), {}
    varying |= _unlike(proto.graph)
    for value in proto.graph.input:
        kind = known.types.get(value.name, 0)
        if value.name in varying and kind in NOISE:
            renamed[value.name] = f"{value.name}__inexact"
            words = (value.name, renamed[value.name], kind, seed)
            first += _blur(known.random, *words, bounded=False)
    body = known.nodes(proto.graph, varying, renamed, seed)
    del made.graph.node[:]
    made.graph.node.extend([*first, *body])
    return made


@dataclass(frozen=True)
class _Noise:
    """How results get errors. types: ONNX's number of each tensor's type. random: draws errors."""

    types: dict[str, int]
    random: Random

    def nodes(
        self, graph: onnx.GraphProto, varying: Collection[str], renamed: dict[str, str], seed: int
    ) -> Iterator[Any]:
        """The nodes of a graph, each followed by nodes that blur its results.

        renamed: the names of inputs with noise, by their own names.
        """
        for at, node in enumerate(graph.node):
            kept = type(node)()
            kept.CopyFrom(node)
            _weigh_inexactly(kept)
            for place, name in enumerate(kept.input):
                kept.input[place] = renamed.get(name, name)
            for branch in nested(kept) if node.op_type == "If" else ():
                inside = _varying(branch.node, varying)
                body = list(self.nodes(branch, inside, renamed, seed + (at + 1) * _BRANCH))
                del branch.node[:]
                branch.node.extend(body)
            if node.op_type != "If":
                rename(kept, renamed)  # what a loop's body reads from outside
            exact = {}
            for place, name in enumerate(node.output):
                blurs = node.op_type not in _EXACT and name in varying
                if blurs and self.types.get(name) in NOISE:
                    exact[place] = kept.output[place] = f"{name}__exact"
            yield kept
            for place, name in exact.items():
                number, bounded = seed + (at + 1) * 64 + place, _is_bounded(node)
                words = (name, node.output[place], self.types[node.output[place]], number)
                yield from _blur(self.random, *words, bounded=bounded)


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


def _alike(like: str, name: str, middle: float, size: float, seed: int, kind: int) -> Iterator[Any]:
    """Numbers at most `size` away from the middle, equal where the elements of a tensor are."""
    words = ("angle", "turned", "phase", "sine", "scaled")
    angle, turned, phase, sine, scaled = (f"{name}__{word}" for word in words)
    by, begin = (_TURNS * (1 + share) for share in _shares(seed))
    for word, value in (("by", by), ("from", begin), ("size", size), ("middle", middle)):
        yield _constant(f"{name}__{word}", kind, value)
    yield helper.make_node("Atan", [like], [angle])  # of infinities, too, it is a number
    yield helper.make_node("Mul", [angle, f"{name}__by"], [turned])
    yield helper.make_node("Add", [turned, f"{name}__from"], [phase])
    yield helper.make_node("Sin", [phase], [sine])
    yield helper.make_node("Mul", [sine, f"{name}__size"], [scaled])
    yield helper.make_node("Add", [scaled, f"{name}__middle"], [name])


def _shares(seed: int) -> tuple[float, float]:
    """Two numbers between 0 and 1, at random for each seed."""
    draw = random.Random(seed).random  # noqa: S311 - no secret
    return draw(), draw()


def _constant(name: str, kind: int, value: float) -> Any:
    return helper.make_node(
        "Constant", [], [name], value=helper.make_tensor(name, kind, [], [value])
    )


def _types(proto: onnx.ModelProto) -> dict[str, int]:
    """ONNX's number of the type of each tensor, as far as it is known.

    ONNX infers no types behind operators of other domains; most of these return the type of their
    input. Classifiers, which return labels, are left out.
    """
    whole = onnx.shape_inference.infer_shapes(proto).graph
    found: dict[str, int] = {}
    for graph in (whole, *(branch for node in nodes(whole) for branch in nested(node))):
        values = (*graph.input, *graph.value_info, *graph.output)
        found |= {value.name: value.type.tensor_type.elem_type for value in values}
        found |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in nodes(whole):
        kind = found.get(optional_input(node, int(node.op_type == "DequantizeLinear")), 0)
        chooses = node.op_type == "QuantizeLinear" or domain_of(node) == "ai.onnx.ml"
        if kind in NOISE and not chooses:
            found |= {name: kind for name in node.output if not found.get(name)}
    return found


def varying_tensors(graph: onnx.GraphProto) -> set[str]:
    """The tensors that depend on the values of inputs, and not only on their shapes."""
    constants = {tensor.name for tensor in graph.initializer}
    return _varying(graph.node, {value.name for value in graph.input} - constants)


def _unlike(graph: onnx.GraphProto) -> set[str]:
    """The results that two right programs compute differently, and from which no size follows."""
    sizes: set[str] = set()
    for node in reversed(graph.node):
        if node.op_type in ("Resize", "Upsample"):
            sizes.update(node.input[1:])
        elif (
            node.op_type == "Range"
            or attribute(node, "to") in _INTEGERS
            or not sizes.isdisjoint(node.output)
        ):
            sizes.update(uses(node))
    made = (node.output[0] for node in graph.node if node.op_type in _UNLIKE)
    return {*made} - sizes


def _varying(body: Iterable[onnx.NodeProto], given: Collection[str]) -> set[str]:
    """The tensors that depend on those that are given, and these."""
    found = set(given)
    for node in body:
        if node.op_type not in ("Shape", "Size") and uses(node) & found:
            found.update(filter(None, node.output))
    return found
