"""Loops that repeat each row as often as a run says, written as one Gather.

    rows = SplitToSequence(x) ; counts = SplitToSequence(n)
    y = ConcatFromSequence(Loop: rows[i], expanded to counts[i] rows)
    -->
    at = Range(0, sum(n), 1) ; y = Gather(x, how many of CumSum(n) are <= at)

PyTorch's exporter writes `repeat_interleave` so, as speech has it: a token lasts for some frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from onnx import NodeProto, TensorProto, helper, numpy_helper

from ..graph.cleanup import drop_dead
from ..graph.fold import constant_tensor
from ..graph.graph import Graph, is_op, optional_input
from ..onnx.skeleton import attribute
from .emitter import INT64, Emitter, expanded

_SINCE = 13  # the opset since which it is written like this
_ZERO = helper.make_tensor("zero", TensorProto.FLOAT, [1], [0])  # what ConstantOfShape has unasked


class _Repeat(NamedTuple):
    """Rows along an axis of a tensor, and how often each is repeated: both by name."""

    data: str
    counts: str
    axis: int


def gather_repeats(graph: Graph) -> None:
    """Write each of these loops as a Gather."""
    made, changed = graph.producers(), False
    for node in [one for one in graph.nodes if is_op(one, "ConcatFromSequence")]:
        found = _repeat(graph, made, node) if graph.opset >= _SINCE else None
        if found and (new := expanded(graph, node, partial(_gathered, found=found))):
            graph.replace(node, new)
            changed = True
    if changed:
        drop_dead(graph)


def _gathered(emit: Emitter, found: _Repeat) -> str:
    counts = emit.cast(found.counts, INT64)
    zero, one = (emit.constant(number, INT64) for number in (0, 1))
    at = emit("Range", zero, emit.reduce("ReduceSum", counts, 0, keepdims=0), one)
    ends = emit("CumSum", counts, zero)
    passed = emit("LessOrEqual", emit.unsqueeze(ends, 0), emit.unsqueeze(at, 1))
    row = emit.reduce("ReduceSum", emit.cast(passed, INT64), 1, keepdims=0)
    return emit("Gather", found.data, row, axis=found.axis)


def _repeat(graph: Graph, made: Mapping[str, NodeProto], node: NodeProto) -> _Repeat | None:
    """What a ConcatFromSequence repeats, if its sequence is made by such a loop."""
    loop = made.get(node.input[0])
    found = _Body(graph, loop).repeat() if loop is not None and is_op(loop, "Loop") else None
    if found is None or attribute(node, "new_axis", 0) or attribute(node, "axis") != found.axis:
        return None
    rows, counts = made.get(found.data), made.get(found.counts)
    if not _is_split(graph, made, rows, found.axis) or not _is_split(graph, made, counts, 0):
        return None
    return found._replace(data=rows.input[0], counts=counts.input[0])  # type: ignore[union-attr]


def _is_split(
    graph: Graph, made: Mapping[str, NodeProto], node: NodeProto | None, axis: int
) -> bool:
    """Whether a node makes a sequence of a tensor's rows along an axis, which they keep."""
    if node is None or not is_op(node, "SplitToSequence") or attribute(node, "axis", 0) != axis:
        return False
    if not (name := optional_input(node, 1)):
        return bool(attribute(node, "keepdims", 1))
    sizes, maker = graph.value(name), made.get(name)
    if maker is not None and is_op(maker, "ConstantOfShape"):
        sizes = numpy_helper.to_array(attribute(maker, "value", _ZERO))
    return sizes is not None and bool((sizes == 1).all())


class _Body:
    """The steps of a loop."""

    def __init__(self, graph: Graph, loop: NodeProto) -> None:
        self._graph, self._body = graph, attribute(loop, "body")
        self._made = {name: one for one in self._body.node for name in one.output}

    def repeat(self) -> _Repeat | None:
        """What the loop appends to its sequence in each step; data, counts: sequences, too."""
        if len(self._body.input) != 3 or len(self._body.output) != 2:
            return None
        given, result = self._body.input[2].name, self._body.output[1].name
        chain = self._chain(result, ("SequenceInsert", 1), ("Reshape", 0), ("Expand", 0))
        if chain is None:
            return None
        insert, shaped, wide = chain
        if insert.input[0] != given or len(insert.input) > 2:  # else it has a place of its own
            return None
        opened = self._made.get(wide.input[0])
        sizes = self._sizes(wide.input[1])
        if opened is None or not is_op(opened, "Unsqueeze") or sizes is None:
            return None
        before, counts, after = sizes
        rows, axis = self._element(opened.input[0]), len(before) - 1
        if before[-1:] != [1] or self._numbers(opened.input[1]) != [axis + 1] or not rows:
            return None
        kept = self._numbers(shaped.input[1]) == [*before[:-1], -1, *after]
        return _Repeat(rows, counts, axis) if kept else None

    def _chain(self, name: str, *steps: tuple[str, int]) -> list[NodeProto] | None:
        """The nodes behind a tensor, each one's operator and the input that the next one makes."""
        found = []
        for op, at in steps:
            node = self._made.get(name)
            if node is None or not is_op(node, op):
                return None
            found.append(node)
            name = node.input[at]
        return found

    def _sizes(self, name: str) -> tuple[list[int], str, list[int]] | None:
        """The sizes of a shape before and after one that is an element of a sequence."""
        node = self._made.get(name)
        if node is not None and is_op(node, "Where"):  # sizes of -1 would stay
            node = self._made.get(node.input[2])
        if node is None or not is_op(node, "Concat"):
            return None
        found = [self._element(one) for one in node.input]
        at = next((at for at, one in enumerate(found) if one), 0)
        before, after = (self._joined(some) for some in (node.input[:at], node.input[at + 1 :]))
        return None if before is None or after is None else (before, found[at], after)

    def _joined(self, names: Sequence[str]) -> list[int] | None:
        parts = [self._numbers(one) for one in names]
        if any(one is None for one in parts):
            return None
        return [number for one in parts for number in one or ()]

    def _numbers(self, name: str) -> list[int] | None:
        """The elements of a constant; None if it is not known."""
        node = self._made.get(name)
        if node is None:
            value = self._graph.value(name)
        else:
            tensor = constant_tensor(node) if is_op(node, "Constant") else None
            value = None if tensor is None else numpy_helper.to_array(tensor)
        return None if value is None else [int(one) for one in value.ravel()]

    def _element(self, name: str) -> str:
        """The sequence of which a tensor is the element of the present step; else ""."""
        node = self._made.get(name)
        if (
            node is None
            or not is_op(node, "SequenceAt")
            or node.input[1] != self._body.input[0].name
        ):
            return ""
        return str(node.input[0])
