"""Write the nodes that replace a node, with one call for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from ...errors import ModelError
from ..graph.graph import OWN, Graph, Shape
from .operator import Expand, Use

INT64 = TensorProto.INT64


class UnknownShapeError(ModelError):
    """A node's rewriting needs a shape that is not known yet."""


class Emitter(Use):
    """A node that is being rewritten: a call with an operator and inputs appends a node.

    Tensors are given by name, as in the graph. nodes: those written so far.
    """

    def __init__(self, graph: Graph, node: NodeProto) -> None:
        super().__init__(graph, node)
        self.nodes: list[NodeProto] = []
        self._stem = node.name or next(name for name in node.output if name)

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output; returns the output."""
        return self.several(op, inputs, 1, **attributes)[0]

    def several(self, op: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Append a node with several outputs; returns the outputs."""
        made = [self.graph.fresh(f"{self._stem}_{op}") for _ in range(count)]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, list(inputs), made, name=made[0], **given))
        return made

    def own(
        self, op: str, inputs: Sequence[str], kind: int, shape: Shape | None, **attributes: Any
    ) -> str:
        """Append a node of one of our own operators; returns its output, of this type and shape.

        shape: None if it is not known yet.
        """
        made = self.graph.fresh(f"{inputs[0]}_{op}")
        node = helper.make_node(op, list(inputs), [made], made, domain=OWN, **attributes)
        self.nodes.append(node)
        self.graph.declare(made, kind, shape)
        return made

    def constant(self, value: Any, kind: int = TensorProto.FLOAT) -> str:
        """A constant of an ONNX element type."""
        array = np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(kind))
        name = self.graph.add_constant(array, f"{self._stem}_constant")
        self.graph.shapes[name], self.graph.dtypes[name] = array.shape, kind
        return name

    def constant_input(self, index: int) -> np.ndarray:
        """The value of an input; raises a ModelError if it is not a constant."""
        value = self.graph.value(self.input(index))
        if value is None:
            raise self.refuse(f"its input '{self.input(index)}' must be a constant")
        return value

    def wants(self, index: int) -> bool:
        """Whether the node names this output."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def dtype(self, name: str) -> int:
        """The ONNX element type of a tensor that the node reads."""
        self._infer(name)
        return self.graph.dtypes[name]

    def shape(self, name: str) -> Shape:
        """The static shape of a tensor that the node reads.

        Raises:
            ModelError: it is not static.
        """
        self._infer(name)
        return self.graph.shapes[name]

    def known_shape(self, name: str) -> Shape | None:
        """The static shape of a tensor that the node reads; None if it is not known yet."""
        if name not in self.graph.shapes:
            self.graph.infer()
        return self.graph.shapes.get(name)

    def room_for(self, *shape: int) -> None:
        """ModelError if there is no room for constants of this shape, of 8 bytes each.

        To be called before they are made: a file pays nothing for constants that follow from sizes
        alone.
        """
        self.graph.room.check(self._stem, 8 * prod(shape))

    def refuse(self, reason: str, kind: type[ModelError] = ModelError) -> ModelError:
        """The error that names the node and says what of it cannot be compiled."""
        return kind(
            f"node '{self._stem}': {self.node.op_type}: {reason}",
            "Replace it in the exporting framework, or cut the graph before it.",
        )

    def looked_up(self, table: str, index: str, kind: int, axis: int = 0) -> str:
        """Look up a table by indices of which negative ones are out of range."""
        end = self.constant(self.shape(table)[axis], kind)
        below = self("Less", index, self.constant(0, kind))
        return self("Gather", table, self("Where", below, end, index), axis=axis)

    def known(self, name: str, end: int) -> str:
        """A tensor of int64 whose values are checked to be at least 0 and below `end`."""
        return self.looked_up(self.constant(np.arange(end), INT64), name, INT64)

    def reshape(self, name: str, *shape: int) -> str:
        """A tensor in a shape; -1 where a size follows from the others, 0 where it stays."""
        return self("Reshape", name, self.constant(shape, TensorProto.INT64))

    def unsqueeze(self, name: str, axis: int) -> str:
        """A tensor with one more axis, of extent one."""
        if self.graph.opset >= 13:
            return self("Unsqueeze", name, self.constant([axis], TensorProto.INT64))
        return self("Unsqueeze", name, axes=[axis])

    def slice(self, name: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """A part of a tensor along one axis."""
        if self.graph.opset < 10 and step == 1:
            return self("Slice", name, starts=[start], ends=[end], axes=[axis])
        bounds = ([value] for value in (start, end, axis, step))
        return self("Slice", name, *(self.constant(b, TensorProto.INT64) for b in bounds))

    def pad(self, name: str, pads: Sequence[int]) -> str:
        """A tensor with zeros in front of each axis, and behind each."""
        if self.graph.opset < 11:
            return self("Pad", name, pads=pads)
        return self("Pad", name, self.constant(pads, TensorProto.INT64))

    def reduce(self, op: str, name: str, *axes: int, keepdims: int = 1) -> str:
        """A reduction; its axes stay, with extent one, unless `keepdims` is 0."""
        if self.graph.opset >= (13 if op == "ReduceSum" else 18):
            return self(op, name, self.constant(axes, TensorProto.INT64), keepdims=keepdims)
        return self(op, name, axes=axes, keepdims=keepdims)

    def reduce_in_turn(self, op: str, name: str, axes: Iterable[int], keepdims: int = 1) -> str:
        """A reduction along one axis after the other, which rounds far less than one long sum."""
        for axis in sorted(axes, reverse=True):
            name = self.reduce(op, name, axis, keepdims=keepdims)
        return name

    def cast(self, name: str, kind: int) -> str:
        """A tensor in another element type."""
        return self("Cast", name, to=kind)

    def _infer(self, name: str) -> None:
        if self.known_shape(name) is None or not self.graph.dtypes.get(name):
            unknown = f"type and shape of its input '{name}' must be known"
            raise self.refuse(unknown, UnknownShapeError)


def expanded(graph: Graph, node: NodeProto, expand: Expand) -> list[NodeProto] | None:
    """The nodes that a function emits in place of a node; None if the node stays."""
    emit = Emitter(graph, node)
    made = expand(emit)
    if made is None:
        return None
    results = [made] if isinstance(made, str) else made
    for index, name in enumerate(node.output):
        if not name:
            continue
        if index >= len(results) or not results[index]:
            raise emit.refuse(f"its output '{name}' is not computed")
        emit.nodes.append(helper.make_node("Identity", [results[index]], [name]))
    return emit.nodes
