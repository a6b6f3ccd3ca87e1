"""Tensors without elements: nothing has to be computed for them, whatever makes them."""

import numpy as np
from onnx import NodeProto, helper

from ..onnx.bind import model_inputs
from ..onnx.skeleton import uses
from .graph import Graph


def fold_empty(graph: Graph) -> bool:
    """Put an empty constant in the place of every tensor whose shape has no elements.

    graph: its shapes are inferred.

    Returns:
        Whether there was such a tensor that something reads or that is an output.
    """
    empties = {name for name, shape in graph.shapes.items() if 0 in shape}
    empties -= graph.constants.keys()
    if not empties:
        return False
    producers, captured = graph.producers(), graph.captured()
    consumed = {name for node in graph.nodes for name in uses(node)}
    inputs = [value.name for value in model_inputs(graph.proto)]
    found = [
        name for name in [*inputs, *sorted(producers)] if name in empties and graph.dtypes.get(name)
    ]
    empty: dict[str, str] = {}  # for each name, that of the constant in its place
    for name in found:
        producer = producers.get(name)
        given = name in graph.output_names and producer is not None
        passed_on = producer is not None and producer.op_type == "Identity"
        if name in captured or not (name in consumed or (given and not passed_on)):
            continue
        empty[name] = _constant(graph, name)
    graph.rename_uses(empty)  # once: it goes through all nodes
    for name, constant in empty.items():
        _part(graph, name, constant, producers.get(name))
    return bool(empty)


def _constant(graph: Graph, name: str) -> str:
    """An empty constant like a tensor."""
    kind = helper.tensor_dtype_to_np_dtype(graph.dtypes[name])
    return graph.add_constant(np.zeros(graph.shapes[name], kind), name)


def _part(graph: Graph, name: str, constant: str, producer: NodeProto | None) -> None:
    """Let the producer of a tensor make another one; an output is an Identity of the constant."""
    if producer is None:
        return
    producer.output[list(producer.output).index(name)] = graph.fresh(name)
    if name in graph.output_names:
        graph.nodes.append(helper.make_node("Identity", [constant], [name]))
