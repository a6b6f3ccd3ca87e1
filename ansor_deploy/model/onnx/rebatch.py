"""Change sizes that a model's file fixes, such as a batch of 1 to one of 16.

Exporters write the batch into the graph, for instance into the shape for a Reshape. Node by node,
the shapes with the old input sizes are compared with those with the new ones. Where one dimension
of a tensor has another size, a constant that repeats that size is changed, too:

    Reshape (1, 197, 192) to (1, 197, 3, 64)     with a batch of 8: to (8, 197, 3, 64)
    Concat with a constant (1, 1, 192)           that is expanded to (8, 1, 192)
    Expand, Resize to sizes, initial states      likewise

A tensor is stored row by row, so a Reshape can be adapted if as many elements come before the
dimension in its result as in its input. Where nothing fits, the error names the node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, inliner, numpy_helper

from ...errors import ModelError
from ...system.machine_fault import raise_if_fault
from .reference import run_reference
from .skeleton import attribute, name_of, nested, with_initializers

Shape = tuple[int, ...]
_MOST = 64  # the most elements of a tensor that may be a shape: only these are evaluated
_STATES = {4: 0, 5: 1, 6: 1}  # inputs of LSTM, GRU and RNN with a batch: the axis of the batch


def rebatched(proto: ModelProto, old: Mapping[str, Shape], new: Mapping[str, Shape]) -> ModelProto:
    """A copy whose nodes fit other input sizes than those that the model was exported for.

    The copy's declared inputs are unchanged. ModelError names the node that does not allow it.
    """
    if proto.functions:
        proto = inliner.inline_local_functions(proto)
    before = _Walk(proto, old)
    for node in proto.graph.node:
        before.infer(node)
    change = _Change(proto, before, _Walk(proto, new))
    for node in proto.graph.node:
        change.take(NodeProto.FromString(node.SerializeToString()))
    made = with_initializers(proto, [*proto.graph.initializer, *change.constants])
    del made.graph.node[:]
    made.graph.node.extend(change.nodes)
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    return made


class FixedSizesError(ModelError):
    """A node does not allow to change a size that the model's file fixes."""


class _Walk:
    """Types of tensors, and values of those that may be shapes, inferred from the inputs on."""

    def __init__(self, proto: ModelProto, inputs: Mapping[str, Shape]) -> None:
        self._opsets = list(proto.opset_import)
        self._versions = {entry.domain: entry.version for entry in proto.opset_import}
        self.types: dict[str, TypeProto] = {value.name: value.type for value in proto.graph.input}
        self.values: dict[str, np.ndarray] = {}
        for name, shape in inputs.items():
            kind = self.types[name].tensor_type.elem_type
            self.types[name] = helper.make_tensor_type_proto(kind, shape)
        for tensor in proto.graph.initializer:
            self.add(tensor)

    def add(self, tensor: TensorProto) -> None:
        """Add a constant."""
        self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        if math.prod(tensor.dims) <= _MOST:
            self.values[tensor.name] = numpy_helper.to_array(tensor)

    def shape(self, name: str) -> Shape | None:
        """A tensor's shape; None unless all of it is known."""
        kind = self.types.get(name, TypeProto()).tensor_type
        if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
            return None
        return tuple(dim.dim_value for dim in kind.shape.dim)

    def infer(self, node: NodeProto) -> str:
        """Find the types of a node's outputs; returns why they cannot be found, or ""."""
        names = [name for name in node.input if name]
        types = {name: self.types[name] for name in names if name in self.types}
        data = {n: numpy_helper.from_array(self.values[n], n) for n in names if n in self.values}
        try:
            version = self._versions.get(node.domain, 1)
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            found = onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self._opsets
            )
        except onnx.defs.SchemaError:
            return "nothing is known of its operator"
        except Exception as error:  # noqa: BLE001 - a missing type is a KeyError from C++
            raise_if_fault(error)
            return " ".join(str(error).split()).removeprefix("[ShapeInferenceError] ")
        self.types.update(found)
        self._evaluate(node, names)
        return ""

    def _evaluate(self, node: NodeProto, names: list[str]) -> None:
        """Compute tensors that may be shapes, from shapes and constants."""
        if node.op_type == "Shape" and (shape := self.shape(names[0])) is not None:
            first, last = (attribute(node, name) for name in ("start", "end"))
            self.values[node.output[0]] = np.array(shape[first:last], np.int64)
        elif node.op_type == "Size" and (shape := self.shape(names[0])) is not None:
            self.values[node.output[0]] = np.array(math.prod(shape), np.int64)
        elif all(name in self.values for name in names) and self._are_small(node):
            given = [self.values[name] if name else None for name in node.input]
            with suppress(Exception):  # if it cannot be computed, it is not known
                results = run_reference(node, given, self._versions.get("", 1))
                self.values.update(zip(node.output, map(np.asarray, results), strict=True))

    def _are_small(self, node: NodeProto) -> bool:
        sizes = [self.shape(name) for name in node.output]
        return all(size is not None and math.prod(size) <= _MOST for size in sizes)


class _Change:
    """The graph while it gets new sizes. nodes: the new nodes. constants: those that were added."""

    def __init__(self, proto: ModelProto, before: _Walk, after: _Walk) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._before, self._after = before, after
        self._given = {tensor.name: tensor for tensor in proto.graph.initializer}
        changed = [value.name for value in proto.graph.input if self._differs(value.name)]
        grown = [self._grown(name) for name in changed]
        self._batch = all(one is not None and one[0] == 0 for one in grown)

    def take(self, node: NodeProto) -> None:
        """Add a node, changed if necessary; ModelError if it does not fit."""
        if not self._depends(node):
            self._after.types |= {n: t for n, t in self._before.types.items() if n in node.output}
            self._after.values |= {n: v for n, v in self._before.values.items() if n in node.output}
        else:
            self._follow(node)
            self._infer(node)
        self.nodes.append(node)

    def _depends(self, node: NodeProto) -> bool:
        inner = (one for graph in nested(node) for one in graph.node)
        names = [*node.input, *(name for one in inner for name in one.input)]
        return any(self._differs(name) or self._revalued(name) for name in names)

    def _differs(self, name: str) -> bool:
        return self._before.shape(name) != self._after.shape(name)

    def _revalued(self, name: str) -> bool:
        old, new = self._before.values.get(name), self._after.values.get(name)
        return (old is None) != (new is None) or not np.array_equal(old, new)

    def _infer(self, node: NodeProto) -> None:
        if list(nested(node)):
            raise _forbids(node, "it has a graph of its own")
        if why := self._after.infer(node):
            raise _forbids(node, why)
        if node.op_type == "Reshape":
            given, made = self._after.shape(node.input[0]), self._after.shape(node.output[0])
            if given and made and math.prod(given) != math.prod(made):
                raise _forbids(node, f"it makes {_text(made)} of {_text(given)}")
        follows = any(self._differs(name) or self._revalued(name) for name in node.output)
        if self._batch and not follows and any(map(self._differs, node.input)):
            raise _forbids(node, "its result would not grow with the batch")

    def _follow(self, node: NodeProto) -> None:
        """Change old sizes that are repeated in a node's other inputs to the new ones."""
        if node.op_type == "Reshape":
            self._follow_reshape(node)
        elif node.op_type == "Expand":
            self._follow_sizes(node, 1)
        elif node.op_type == "Resize" and len(node.input) > 3 and node.input[3]:
            self._follow_sizes(node, 3)
        elif node.op_type == "Concat":
            self._follow_concat(node)
        elif node.op_type == "Gather" and self._batch:
            self._follow_gather(node)
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            self._follow_states(node)

    def _grown(self, name: str) -> tuple[int, int, int] | None:
        """The one axis of a tensor that has another size, with the old and the new size."""
        old, new = self._before.shape(name), self._after.shape(name)
        if old is None or new is None or len(old) != len(new):
            return None
        axes = [axis for axis in range(len(old)) if old[axis] != new[axis]]
        return (axes[0], old[axes[0]], new[axes[0]]) if len(axes) == 1 else None

    def _follow_reshape(self, node: NodeProto) -> None:
        grown, made = self._grown(node.input[0]), self._before.shape(node.output[0])
        given = self._before.shape(node.input[0])
        sizes = self._fixed(node, 1)
        if grown is None or made is None or given is None or sizes is None:
            return
        axis, old, new = grown
        rows = math.prod(given[:axis])
        places = [at for at in range(len(made)) if math.prod(made[:at]) == rows]
        if self._batch:  # the batch is outermost there, even if it was merged with other axes
            fits = [at for at in places if made[at] * new % old == 0]
        else:
            fits = [at for at in places if made[at] == old]
        place = next(iter(fits), None)
        if place is not None and sizes[place] > 0:
            sizes[place] = made[place] * new // old
            self._set(node, 1, sizes)

    def _follow_sizes(self, node: NodeProto, index: int) -> None:
        """Adapt an input that lists the result's sizes; its last ones are those of the data."""
        grown, sizes = self._grown(node.input[0]), self._fixed(node, index)
        if grown is None or sizes is None:
            return
        axis, old, new = grown
        place = len(sizes) - len(self._before.shape(node.input[0]) or ()) + axis
        if place >= 0 and sizes[place] == old:
            sizes[place] = new
            self._set(node, index, sizes)

    def _follow_concat(self, node: NodeProto) -> None:
        grown = next(filter(None, map(self._grown, node.input)), None)
        rank = len(self._before.shape(node.output[0]) or ())
        if grown and rank and grown[0] != attribute(node, "axis", 0) % rank:
            for index in range(len(node.input)):
                self._expand(node, index, *grown)

    def _follow_gather(self, node: NodeProto) -> None:
        """Adapt constant indices of the rows of a batch: they are repeated for each part of it."""
        grown, rows = self._grown(node.input[0]), self._given.get(node.input[1])
        rank = len(self._before.shape(node.input[0]) or ())
        if not grown or rows is None or grown[0] != attribute(node, "axis", 0) % rank:
            return
        _, old, new = grown
        indices = numpy_helper.to_array(rows)
        if indices.ndim and new % old == 0:
            parts = [indices % old + part * old for part in range(new // old)]
            node.input[1] = self._constant(rows.name, np.concatenate(parts))

    def _follow_states(self, node: NodeProto) -> None:
        """Adapt the states of a recurrent layer whose data is (steps, batch, features)."""
        grown = self._grown(node.input[0])
        if grown and grown[0] == 1 and not attribute(node, "layout", 0):
            for index, axis in _STATES.items():
                if index < len(node.input) and node.input[index]:
                    self._expand(node, index, axis, *grown[1:])

    def _expand(self, node: NodeProto, index: int, axis: int, old: int, new: int) -> None:
        """Repeat an input with a single row along an axis, if it does not depend on the sizes."""
        shape = self._before.shape(node.input[index])
        if old != 1 or self._after.shape(node.input[index]) != shape or not shape:
            return
        if axis >= len(shape) or shape[axis] != 1:
            return
        wider = [new if at == axis else size for at, size in enumerate(shape)]
        sizes = self._constant(f"{node.input[index]}_sizes", wider)
        name = f"{node.input[index]}_{len(self.constants)}_expanded"
        expand = helper.make_node("Expand", [node.input[index], sizes], [name], name)
        self._after.infer(expand)
        self.nodes.append(expand)
        node.input[index] = name

    def _fixed(self, node: NodeProto, index: int) -> list[int] | None:
        """The values of an input; None if they depend on the sizes."""
        name = node.input[index] if index < len(node.input) else ""
        values = self._after.values.get(name)
        if values is None or values.ndim != 1 or self._revalued(name):
            return None
        return [int(value) for value in values]

    def _set(self, node: NodeProto, index: int, sizes: list[int]) -> None:
        node.input[index] = self._constant(node.input[index], sizes)

    def _constant(self, like: str, values: Any) -> str:
        name = f"{like}_{len(self.constants)}_rebatched"
        tensor = numpy_helper.from_array(np.asarray(values, np.int64), name)
        self.constants.append(tensor)
        self._after.add(tensor)
        return str(tensor.name)


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


def _forbids(node: NodeProto, why: str) -> FixedSizesError:
    return FixedSizesError(
        f"these input shapes are not those that the model was exported for, and node "
        f"{name_of(node)} ({node.op_type}) does not fit them: {why}",
        "export the model with these shapes, or with these dimensions dynamic",
    )
