"""Contradictions between a graph and the shapes of its inputs, found fast, without its weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, groupby, zip_longest
from math import prod
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, defs, helper, inliner

from ..errors import ModelError
from .graph.answers import Answers
from .graph.branches import open_choices
from .graph.cleanup import drop_dead, sort_nodes
from .graph.constant_room import Room
from .graph.fold import check_left_out, fold_constants
from .graph.graph import CONTRADICTION, UNTYPED, Graph, is_op, optional_input
from .onnx.bind import bind_shapes
from .onnx.skeleton import attribute, domain_of, name_of, skeleton, tensors
from .operators.contractions import labels
from .reach import reached

Shape = tuple[int, ...]
_TOGETHER = ("Add", "Sub", "Mul", "Div", "Where", "Expand")  # operators with inputs that broadcast
_PAIRS = ("QLinearAdd", "QLinearMul")  # operators whose inputs 0 and 3 broadcast
# Operators that gather rows, with the attribute that says along which axis; always the first one
# for GatherND, where it has one index for each row.
_GATHERED = {
    "Gather": "axis", "GatherBlockQuantized": "gather_axis", "GatherElements": "axis",
    "GatherND": "batch_dims",
}  # fmt: skip
# Operators that add a row of positions for each token, with the input that lists other positions,
# if there is one.
_EMBEDDING = {"EmbedLayerNormalization": 8, "QEmbedLayerNormalization": None}
# Bytes, at eight for each element, that are computed from fewer bytes: shapes and indices take
# little, and tables of positions of pixels, which say nothing of shapes, take much.
_GROWTH = 256 << 10
_WINDOWED = ("Conv", "MaxPool", "AveragePool", "LpPool")
# Operators of ONNX Runtime whose results have the shape of their first input, and the place of the
# sum that norms hand on as well.
_KEEPING = (
    "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
)  # fmt: skip
_SUM = 3


class _Trial(NamedTuple):
    """What inference says of a graph with some shapes of its inputs.

    why: how they contradict it; else "". largest: the elements in the largest tensor. clash: the
    answer of `Trials.clash`.
    """

    why: str
    largest: int
    clash: tuple[str, list[int]]


class Trials:
    """A model that is tried with several shapes: what no shape changes is computed once."""

    def __init__(self, proto: ModelProto) -> None:
        self.proto = proto
        self._done: dict[tuple[tuple[str, Shape], ...], _Trial] = {}
        self._answers = Answers()

    def tried(self, shapes: Mapping[str, Shape]) -> tuple[str, int]:
        """The answer of `misfit`, and the elements in the largest tensor that inference finds."""
        return self._trial(shapes)[:2]

    def misfit(self, shapes: Mapping[str, Shape]) -> str:
        """The answer of the function `misfit`."""
        return self._trial(shapes).why

    def is_known_to_fit(self, shapes: Mapping[str, Shape]) -> bool:
        """Whether these shapes were tried, and fit."""
        done = self._done.get(_key(shapes))
        return done is not None and not done.why

    def clash(self, shapes: Mapping[str, Shape]) -> tuple[str, list[int]]:
        """The first node that contradicts these shapes, by its result, and the sizes in it.

        It is a Reshape, a sum or a product, in which an exporter may have stored the sizes of its
        own example input. ("", []) if there is none.
        """
        return self._trial(shapes).clash

    def _trial(self, shapes: Mapping[str, Shape]) -> _Trial:
        key = _key(shapes)
        if key not in self._done:
            given = self._room.empty(), self._weights, self._answers
            self._done[key] = _tried(self._lean, shapes, *given)
        return self._done[key]

    @cached_property
    def _room(self) -> Room:
        return Room(tensors(self.proto.graph))

    @cached_property
    def _weights(self) -> set[str]:
        return {tensor.name for tensor in self.proto.graph.initializer}

    @cached_property
    def _lean(self) -> ModelProto:
        return _lean(self.proto)


def _key(shapes: Mapping[str, Shape]) -> tuple[tuple[str, Shape], ...]:
    return tuple(sorted(shapes.items()))


def _lean(proto: ModelProto) -> ModelProto:
    """The model without its weights, and with constants for what follows from constants."""
    graph = _sketch(inliner.inline_local_functions(skeleton(proto)))
    sort_nodes(graph)
    drop_dead(graph)
    open_choices(graph)
    bare = graph.to_proto()
    with suppress(ModelError):  # it says nothing of the shapes that are to be tried
        fold_constants(graph)
        bare = skeleton(graph.to_proto())
    for node in bare.graph.node:
        _infer_as_cast(node)
    kept = [one for node in bare.graph.node for one in _keeping_shapes(node)]
    del bare.graph.node[:]
    bare.graph.node.extend(kept)
    return bare


def misfit(proto: ModelProto, shapes: Mapping[str, Shape]) -> str:
    """How the graph contradicts shapes of its inputs, as far as shape inference sees; else "".

    Weights are left out, so this is fast for a model of any size.
    """
    return Trials(proto).misfit(shapes)


def _tried(
    proto: ModelProto,
    shapes: Mapping[str, Shape],
    room: Room,
    weights: Collection[str],
    answers: Answers,
) -> _Trial:
    try:
        graph = _sketch(bind_shapes(proto, shapes))
    except ModelError as error:
        return _Trial(error.text, 0, ("", []))
    graph.answers = answers
    why = _contradiction(graph, room, weights)
    largest = max(map(prod, graph.shapes.values()), default=0)
    why = next(_faults(graph), why)  # faults come before what follows from them
    return _Trial(why, largest, next(_clashes(graph), ("", [])))


def _clashes(graph: Graph) -> Iterator[tuple[str, list[int]]]:
    for node in graph.nodes:
        known = [graph.shapes[name] for name in node.input if name in graph.shapes]
        if is_op(node, "Expand") and (listed := graph.value(node.input[1])) is not None:
            known = [*_known(graph, node, 0), tuple(map(int, listed))]
        if is_op(node, *_TOGETHER) and (apart := _apart(known)):
            yield node.output[0], apart
        if is_op(node, "MatMul") and (inner := _inner(known)):
            yield node.output[0], inner
        if is_op(node, "Concat") and (beside := _beside(node, known)):
            yield node.output[0], beside
        if is_op(node, "Reshape") and known and (made := _other_sizes(graph, node, known[0])):
            yield node.output[0], made


def _apart(shapes: Sequence[Shape]) -> list[int]:
    """The sizes of one axis that do not broadcast; none if all axes do."""
    for sizes in zip_longest(*map(reversed, shapes), fillvalue=1):
        if len(several := {*sizes} - {1}) > 1:
            return sorted(several)
    return []


def _inner(shapes: Sequence[Shape]) -> list[int]:
    """The inner sizes of a matrix product if they differ; else none."""
    if len(shapes) != 2 or min(map(len, shapes)) < 2 or shapes[0][-1] == shapes[1][-2]:
        return []
    return sorted((shapes[0][-1], shapes[1][-2]))


def _beside(node: NodeProto, shapes: Sequence[Shape]) -> list[int]:
    """The sizes of one axis that a Concat keeps and that its inputs do not share; else none."""
    ranks = {*map(len, shapes)}
    if len(ranks) != 1 or 0 in ranks:
        return []
    joined = attribute(node, "axis", 1) % len(shapes[0])
    axes = (sorted({*sizes}) for at, sizes in enumerate(zip(*shapes, strict=True)) if at != joined)
    return next((sizes for sizes in axes if len(sizes) > 1), [])


def _sketch(proto: ModelProto) -> Graph:
    graph = Graph.of(proto)
    graph.growth, graph.is_sketch = _GROWTH, True
    return graph


def _infer_as_cast(node: NodeProto) -> None:
    """Make a Cast of a conversion that ONNX does not know: it keeps the shape as well."""
    kind = {"DequantizeLinear": TensorProto.FLOAT, "QuantizeLinear": TensorProto.INT32}
    if domain_of(node) and node.op_type in kind:
        cast = helper.make_node("Cast", node.input[:1], node.output, to=kind[node.op_type])
        node.CopyFrom(cast)


def _keeping_shapes(node: NodeProto) -> list[NodeProto]:
    """The node, or nodes that ONNX knows in place of one that keeps its first input's shape."""
    if node.op_type not in _KEEPING or defs.has(node.op_type, node.domain):
        return [node]
    same = [name for at, name in enumerate(node.output) if name and at in (0, _SUM)]
    return [helper.make_node("Identity", node.input[:1], [name], node.name) for name in same]


def longest(fits: int, beyond: int, fault: Callable[[int], object]) -> int:
    """The largest length without a fault: at least `fits`, which has none, and below `beyond`."""
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if fault(middle):
            beyond = middle
        else:
            fits = middle
    return fits


def _contradiction(graph: Graph, room: Room, weights: Collection[str]) -> str:
    try:
        fold_constants(graph, strict=True)  # `_lean` has sorted it
        check_left_out(graph, room, weights)
    except ModelError as error:
        return "" if UNTYPED in error.text else error.text.removeprefix(CONTRADICTION)
    return ""


def check_sizes(graph: Graph) -> None:
    """ModelError where tensors are too small for a node, which shape inference does not see."""
    if fault := next(_faults(graph), ""):
        raise ModelError(
            fault, "Check the shapes given with --input-shape, or export the model again."
        )


def _faults(graph: Graph) -> Iterator[str]:
    """Faults that inference lets pass: windows or rows beyond their data, wrong element counts."""
    made = graph.producers()
    for node in graph.nodes:
        given = graph.shapes.get(node.input[0]) if node.input else None
        where = f"node '{name_of(node)}' ({node.op_type})"
        if given and is_op(node, *_WINDOWED) and (wide := _window(graph, node, given)):
            yield f"{where} takes {wide} at once, and gets {_sizes(given[2:])}"
        if given and is_op(node, "STFT") and (long := _frame(graph, node)) > given[1]:
            yield f"{where} takes {long} at once, and gets {given[1]}"
        if is_op(node, "Einsum") and (apart := _labelled_apart(graph, node)):
            yield f"{where} takes {_sizes(apart)} together"
        if given and (far := _beyond(graph, made, node, given)):
            yield f"{where} reads {far}"
        if node.op_type in _PAIRS and (apart := _apart([*_known(graph, node, 0, 3)])):
            yield f"{where} takes {_sizes(apart)} together"
        if given and is_op(node, "Pad") and (wide := _mirrored(graph, node, given)):
            yield f"{where} mirrors {wide}"
        if given and is_op(node, "Reshape") and (other := _other_sizes(graph, node, given)):
            yield f"{where} makes {_sizes(other)} of {_sizes(given)}"


def _frame(graph: Graph, node: NodeProto) -> int:
    """The number of samples in a frame; 0 where it is known only in a run."""
    window, length = (*node.input[2:], "", "")[:2]
    known = graph.value(length) if length else graph.shapes.get(window)
    return int(np.max(known)) if known is not None and np.size(known) else 0


def _mirrored(graph: Graph, node: NodeProto, given: Shape) -> str:
    """The excess where a Pad mirrors as many elements of an axis as it has, or more; else ""."""
    names = [name for name in node.input[1:2] if name]
    pads = graph.value(names[0]) if names else attribute(node, "pads")
    if attribute(node, "mode", "") != "reflect" or pads is None or len(pads) != 2 * len(given):
        return ""
    pairs = zip(map(max, zip(pads, pads[len(given) :], strict=False)), given, strict=True)
    return next((f"{pad} of {size}" for pad, size in pairs if pad >= size), "")


def _other_sizes(graph: Graph, node: NodeProto, given: Shape) -> list[int]:
    """The sizes that a Reshape asks for if its input has another number of elements; else none."""
    listed = graph.value(node.input[1])
    if listed is None or not listed.all():
        return []
    sizes = [int(size) for size in listed]
    whole, known = prod(given), prod(size for size in sizes if size > 0)
    fits = whole % known == 0 if min(sizes, default=1) < 0 else whole == known
    return [] if fits else sizes


def _labelled_apart(graph: Graph, node: NodeProto) -> list[int]:
    """The sizes of one axis of an Einsum that do not broadcast; none if all axes do."""
    shapes = [*_known(graph, node, *range(len(node.input)))]
    found = labels(attribute(node, "equation", ""), [*map(len, shapes)])
    if found is None or len(shapes) < len(node.input):
        return []
    axes = sorted(zip("".join(found[0]), chain.from_iterable(shapes), strict=True))
    each = (_apart([(size,) for _, size in same]) for _, same in groupby(axes, itemgetter(0)))
    return next(filter(None, each), [])


def _known(graph: Graph, node: NodeProto, *places: int) -> Iterator[Shape]:
    """The shapes of some of a node's inputs, as far as they are known."""
    shapes = (graph.shapes.get(optional_input(node, at)) for at in places)
    return (shape for shape in shapes if shape is not None)


def _beyond(graph: Graph, made: Mapping[str, NodeProto], node: NodeProto, given: Shape) -> str:
    """The row that a node gathers beyond the last one of its data; else ""."""
    if node.op_type in _EMBEDDING:
        return _beyond_positions(graph, node, given[-1])
    by_line = node.op_type == "GatherND" and graph.shapes.get(node.input[1], ())[-1:] != (1,)
    if node.op_type not in _GATHERED or by_line:
        return ""
    axis, indices = attribute(node, _GATHERED[node.op_type], 0), graph.value(node.input[1])
    if not -len(given) <= axis < len(given):
        return ""
    if indices is None:
        last = reached(graph, made, node.input[1])
    else:
        last = int(indices.max()) if indices.size else None
    if last is None:
        return ""
    return f"row {last} of {given[axis]}" if last >= given[axis] else ""


def _beyond_positions(graph: Graph, node: NodeProto, tokens: int) -> str:
    """The row that an embedding reads beyond its table with a position for each token; else ""."""
    if (listed := _EMBEDDING[node.op_type]) and optional_input(node, listed):
        return ""
    rows = graph.shapes.get(node.input[3], (tokens,))[0]
    return f"row {tokens - 1} of {rows}" if tokens > rows else ""


def _window(graph: Graph, node: NodeProto, given: Shape) -> str:
    """The size of a node's window if it exceeds its padded data; else ""."""
    sizes = given[2:]
    kernel = attribute(node, "kernel_shape") or graph.shapes.get("".join(node.input[1:2]), ())[2:]
    steps = attribute(node, "dilations") or [1] * len(sizes)
    pads = attribute(node, "pads") or [0, 0] * len(sizes)
    wide = [step * (size - 1) + 1 for step, size in zip(steps, kernel, strict=False)]
    room = [sum(one) for one in zip(sizes, pads[: len(sizes)], pads[len(sizes) :], strict=False)]
    fits = all(window <= free for window, free in zip(wide, room, strict=False))
    return "" if fits or _is_lenient(node) else _sizes(wide)


def _is_lenient(node: NodeProto) -> bool:
    """Whether a window may reach beyond the data."""
    return "SAME" in attribute(node, "auto_pad", "") or attribute(node, "ceil_mode", 0) == 1


def _sizes(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
