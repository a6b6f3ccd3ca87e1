"""Nodes that draw random numbers, changed to arithmetic on one more input, the seed.

    y = RandomNormalLike(x)   -->   y = normal(seed, the node's number, the place of each element)

So the same seed gives the same numbers, here and in ONNX Runtime, and a caller who wants others in
each run gives another seed in each. The arithmetic is that of the field of 2^31 - 1 elements, where
the fifth power is a permutation. It makes two elements of each place along an axis, and these a
line: what the places along the axes before gave goes through it (J. L. Carter, M. N. Wegman,
J. Comput. Syst. Sci. 18(2), 1979), which is one product for each element of the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .skeleton import attribute, needed, nested, nodes, skeleton

_FIELD = 2**31 - 1
_BY = 16_807  # a generator of the field: it takes neighbouring seeds and nodes apart
_BITS = 24  # of a number from 0 to 1, which float32 holds exactly
_SINCE = 11  # the first opset with Range
_UNKNOWN = -1  # the rank of a tensor for which ONNX infers none
_FLOAT, _INT32, _INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def draw_by_seed(proto: ModelProto) -> None:
    """Give a model an input for the seed of all that it draws, in place, if a result needs it.

    Nodes that draw a tensor of unknown type stay, and so do those of old opsets.
    """
    wanted = needed(proto.graph.node, [value.name for value in proto.graph.output])
    opset = max((one.version for one in proto.opset_import if not one.domain), default=0)
    if opset < _SINCE or not any(_draws(node) for node in wanted):
        return
    ranks = _ranks(proto)
    seed = "seed"
    while seed in ranks:
        seed += "_"
    if _Drawn(ranks).change(proto.graph, seed):
        proto.graph.input.append(helper.make_tensor_value_info(seed, _INT64, []))


def _draws(node: NodeProto) -> bool:
    """Whether the node draws, or one in its graphs."""
    inside = (one for graph in nested(node) for one in nodes(graph))
    return any(one.op_type in _DRAWING and not one.domain for one in (node, *inside))


def _ranks(proto: ModelProto) -> dict[str, tuple[int, int]]:
    """The type and the rank of each tensor, as far as ONNX infers them; a type of 0 is unknown."""
    inferred = onnx.shape_inference.infer_shapes(skeleton(proto)).graph
    found = {
        name: (0, _UNKNOWN) for node in nodes(inferred) for name in (*node.input, *node.output)
    }
    graphs = [inferred, *(graph for node in nodes(inferred) for graph in nested(node))]
    for graph in graphs:
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = value.type.tensor_type
            rank = len(kind.shape.dim) if kind.HasField("shape") else _UNKNOWN
            found[value.name] = (kind.elem_type, rank)
        found.update((one.name, (one.data_type, len(one.dims))) for one in graph.initializer)
    return found


class _Drawn:
    """The change of a model. ranks: the type and rank of each tensor by name."""

    def __init__(self, ranks: Mapping[str, tuple[int, int]]) -> None:
        self._ranks, self._count = ranks, 0

    def change(self, graph: GraphProto, seed: str) -> bool:
        """Replace the nodes of a graph, and of the graphs in it; whether there were any.

        seed: the name of a number, the same in each run with the same seed.
        """
        made, before = list[NodeProto](), self._count
        for node in graph.node:
            for inner in nested(node) if _draws(node) else ():
                self._change_inner(node, inner, seed)
            made += self._replaced(node, seed)
        if self._count > before:
            del graph.node[:]
            graph.node.extend(made)
        return self._count > before

    def _change_inner(self, node: NodeProto, inner: GraphProto, seed: str) -> None:
        """Replace the nodes of an inner graph; each step of a Loop draws other numbers."""
        if node.op_type != "Loop":
            self.change(inner, seed)
            return
        ahead = _Nodes(f"{node.output[0]}_drawn_{self._count}")
        if self.change(inner, ahead.mixed(seed, inner.input[0].name)):
            body = [*ahead.made, *inner.node]
            del inner.node[:]
            inner.node.extend(body)

    def _replaced(self, node: NodeProto, seed: str) -> list[NodeProto]:
        """The nodes that compute what a node draws; the node itself if it is no such node."""
        draw = _DRAWING.get(node.op_type) if not node.domain else None
        kind, rank = self._ranks[node.input[0]] if node.input else (_FLOAT, 0)
        if draw is None or not kind:
            return [node]
        emit = _Draw(node, rank, seed, self._count)
        result = draw(emit)
        self._count = emit.count
        usual = _INT32 if node.op_type == "Multinomial" else kind
        words = {"to": attribute(node, "dtype", usual)}
        emit.made.append(helper.make_node("Cast", [result], [node.output[0]], node.name, **words))
        return emit.made


class _Nodes:
    """Nodes as they are written: a call appends one and returns its output."""

    def __init__(self, stem: str) -> None:
        self.made: list[NodeProto] = []
        self._stem = stem

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._stem}_{len(self.made)}"
        self.made.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: Any, kind: type = np.float32) -> str:
        """A constant."""
        return self("Constant", value=numpy_helper.from_array(np.array(value, kind)))

    def number(self, value: Any) -> str:
        """A constant of int64."""
        return self.constant(value, np.int64)

    def mixed(self, one: str, other: str) -> str:
        """An element of the field that depends on two numbers, and looks like no other one."""
        field = self.number(_FIELD)
        first = self("Mul", self("Mod", one, field), self.number(_BY))
        x = self("Mod", self("Add", first, other), field)
        square = self("Mod", self("Mul", x, x), field)
        fourth = self("Mod", self("Mul", square, square), field)
        return self("Mod", self("Mul", fourth, x), field)


class _Draw(_Nodes):
    """The nodes in the place of one that draws. count: of the elements made of the seed so far.

    rank: of the node's input, or 0 if it has none. seed: the name of a number.
    """

    def __init__(self, node: NodeProto, rank: int, seed: str, count: int) -> None:
        super().__init__(f"{node.output[0]}_drawn")
        self.node, self.rank, self.count, self._seed = node, rank, count, seed

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute of the node."""
        return attribute(self.node, name, default)

    def drawn(self) -> str:
        """Numbers from 0 to below 1, in the shape of what the node draws."""
        if self.node.input:
            shape = self("Shape", self.node.input[0])
            if self.rank == _UNKNOWN:
                size = self("Reshape", self("Size", self.node.input[0]), self.number([1]))
                return self("Reshape", self.uniform(size, 1), shape)
            return self.uniform(shape, self.rank)
        sizes = self.attribute("shape", [])
        return self.uniform(self.number(sizes), len(sizes))

    def uniform(self, shape: str, rank: int) -> str:
        """Numbers from 0 to below 1: the upper bits of an element of the field for each place."""
        numbers = np.arange(self.count, self.count + 2 * rank + 1)
        self.count += len(numbers)
        keys, field = self.mixed(self._seed, self.number(numbers)), self.number(_FIELD)
        found = self("Gather", keys, self.number(2 * rank))
        for axis, places in enumerate(self._places(shape, rank)):
            one, other = (self("Gather", keys, self.number(2 * axis + at)) for at in range(2))
            line = self("Mul", found, self.mixed(one, places))
            found = self("Mod", self("Add", line, self.mixed(other, places)), field)
        bits = self("Div", found, self.number(_FIELD + 1 >> _BITS))
        return self("Mul", self("Cast", bits, to=_FLOAT), self.constant(2.0**-_BITS))

    def _places(self, shape: str, rank: int) -> Iterator[str]:
        """For each axis, the place of each element along it, in a form that broadcasts."""
        zero, one = self.number(0), self.number(1)
        for axis in range(rank):
            size = self("Gather", shape, self.number(axis))
            form = [-1 if at == axis else 1 for at in range(rank)]
            yield self("Reshape", self("Range", zero, size, one), self.number(form))


def _uniform(emit: _Draw) -> str:
    """Numbers between two, each as probable as any other."""
    low, high = emit.attribute("low", 0.0), emit.attribute("high", 1.0)
    return emit("Add", emit("Mul", emit.drawn(), emit.constant(high - low)), emit.constant(low))


def _normal(emit: _Draw) -> str:
    """Numbers of a normal distribution: G. E. P. Box, M. E. Muller, Ann. Math. Stat. 29, 1958."""
    above = emit("Sub", emit.constant(1.0), emit.drawn())  # its logarithm is finite
    length = emit("Sqrt", emit("Mul", emit("Log", above), emit.constant(-2.0)))
    angle = emit("Cos", emit("Mul", emit.drawn(), emit.constant(2 * np.pi)))
    scale, mean = emit.attribute("scale", 1.0), emit.attribute("mean", 0.0)
    scaled = emit("Mul", emit("Mul", length, angle), emit.constant(scale))
    return emit("Add", scaled, emit.constant(mean))


def _bernoulli(emit: _Draw) -> str:
    """One with the probability that the input gives, else zero."""
    return emit("Less", emit.drawn(), emit("Cast", emit.node.input[0], to=_FLOAT))


def _multinomial(emit: _Draw) -> str:
    """Classes by the logarithms of their probabilities: the largest after Gumbel's noise."""
    numbers = emit("Cast", emit.node.input[0], to=_FLOAT)
    classes = emit("Reshape", numbers, emit.number([0, 1, -1]))
    times = emit.number([1, emit.attribute("sample_size", 1), 1])
    drawn = emit.uniform(emit("Mul", emit("Shape", classes), times), 3)
    least = emit.constant(2.0 ** -(_BITS + 1))  # neither 0 nor 1, whose logarithm is 0
    inner = emit("Neg", emit("Log", emit("Max", drawn, least)))
    noise = emit("Neg", emit("Log", emit("Max", inner, least)))
    return emit("ArgMax", emit("Add", classes, noise), axis=2, keepdims=0)


_DRAWING = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": _normal,
    "RandomNormalLike": _normal,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform,
}
