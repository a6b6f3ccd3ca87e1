"""Which branches a run of a model takes, and what decides that."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..onnx.bind import model_inputs
from ..onnx.skeleton import cone, name_of, with_initializers
from .graph import is_op

_FEW = 16  # elements of a constant that an input may be compared with


@dataclass(frozen=True)
class Choice:
    """An If of a model, by its name, of which inputs decide the condition.

    inputs: these. numbers: that the condition is computed with.
    """

    name: str
    condition: str
    inputs: tuple[str, ...]
    numbers: tuple[float, ...]


def choices(proto: ModelProto) -> list[Choice]:
    """Those of a model, but for those in branches of others."""
    known = {one.name for one in model_inputs(proto)}
    found = []
    for node in (node for node in proto.graph.node if is_op(node, "If")):
        body, read = cone(proto.graph.node, [node.input[0]])
        if inputs := sorted(read & known):
            numbers = sorted(set(_numbers(proto.graph, body, read)))
            found.append(Choice(name_of(node), node.input[0], tuple(inputs), tuple(numbers)))
    return found


def deciding(proto: ModelProto, known: Collection[Choice]) -> tuple[ModelProto, list[str]]:
    """A model of conditions alone, which are its outputs; and their names."""
    names = list(dict.fromkeys(one.condition for one in known))
    body, read = cone(proto.graph.node, names)
    kept = [one for one in proto.graph.initializer if one.name in read]
    made = with_initializers(proto, kept, leave=("node", "output", "value_info"))
    made.graph.node.extend(body)
    for name in names:
        made.graph.node.append(helper.make_node("Identity", [name], [f"{name}__taken"]))
        output = helper.make_tensor_value_info(f"{name}__taken", TensorProto.BOOL, None)
        made.graph.output.append(output)
    return made, names


def _numbers(graph: GraphProto, body: list[NodeProto], read: Collection[str]) -> Iterator[float]:
    """The few numbers of the constants that a condition is computed with."""
    tensors = [one for one in graph.initializer if one.name in read]
    tensors += [one.t for node in body for one in node.attribute if one.HasField("t")]
    for tensor in tensors:
        if np.prod(tensor.dims) <= _FEW and tensor.data_type != TensorProto.STRING:
            array = numpy_helper.to_array(tensor)
            yield from array[np.isfinite(array)].astype(float).reshape(-1).tolist()
