"""Helpers for ONNX messages: nested graphs, tensors, and a model without its weights.

The checker and shape inference serialise what they get, and protobuf has a limit of 2 GiB.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import get_attribute_value, make_tensor_value_info

from .tensor_data import byte_size

_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS
_SMALL = 4096  # bytes; shapes, axes and scalars are smaller, and must keep their values
# The standard operators that have graphs; the checker refuses them in others.
WITH_GRAPHS = frozenset(("If", "Loop", "Scan", "SequenceMap"))


def nested(node: NodeProto) -> list[GraphProto]:
    """The graphs in a node's attributes, for example of an If or a Loop."""
    if node.op_type not in WITH_GRAPHS and node.domain in ("", "ai.onnx"):
        return []  # at once: passes ask for those of every node
    found = list[GraphProto]()
    for entry in node.attribute:
        if entry.type == _GRAPH:
            found.append(entry.g)
        elif entry.type == _GRAPHS:
            found.extend(entry.graphs)
    return found


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Every node of a graph, and of the graphs nested in it."""
    return with_nested(graph.node)


def with_nested(body: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, each followed by those of the graphs in it."""
    for node in body:
        yield node
        for graph in nested(node):
            yield from with_nested(graph.node)


def uses(node: NodeProto) -> set[str]:
    """Names that a node reads, including those that nested graphs read from outside."""
    found = {*node.input}
    for graph in nested(node):
        found |= _read_outside(graph)
    found.discard("")
    return found


def needed(body: Sequence[NodeProto], names: Iterable[str]) -> list[NodeProto]:
    """The nodes, of sorted ones, that are needed to compute some tensors, in their order."""
    wanted, found = set(names), list[NodeProto]()
    for node in reversed(body):
        if not wanted.isdisjoint(node.output):
            wanted |= uses(node)
            found.append(node)
    return found[::-1]


def cone(body: Sequence[NodeProto], names: Iterable[str]) -> tuple[list[NodeProto], set[str]]:
    """The nodes that are needed to compute some tensors, and the names that none of them makes.

    The names are those that the nodes read, and of the tensors. body: sorted nodes.
    """
    wanted = set(names)
    found = needed(body, wanted)
    return found, wanted.union(*map(uses, found)) - {made for node in found for made in node.output}


def nested_names(node: NodeProto) -> Iterator[str]:
    """Names that the graphs in a node read from outside; their own names may exist outside, too."""
    for graph in nested(node):
        yield from _read_outside(graph)


def _read_outside(graph: GraphProto) -> set[str]:
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own.update(name for inner in graph.node for name in inner.output)
    return {value.name for value in graph.output}.union(*map(uses, graph.node)) - own


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Every dense tensor of a graph: initializers, attributes, and those of nested graphs."""
    yield from graph.initializer
    for node in nodes(graph):
        for inner in nested(node):
            yield from inner.initializer
        for entry in node.attribute:
            if entry.type == onnx.AttributeProto.TENSOR:
                yield entry.t
            yield from entry.tensors


def skeleton(proto: ModelProto) -> ModelProto:
    """The same graph, in which initializers above 4 KiB become inputs of their shape and type."""
    small, large = divide(proto.graph.initializer)
    bare = with_initializers(proto, small)
    given = {value.name for value in bare.graph.input}
    bare.graph.input.extend(value for value in large if value.name not in given)
    return bare


def divide(tensors: Iterable[TensorProto]) -> tuple[list[TensorProto], list[onnx.ValueInfoProto]]:
    """The small tensors, and the name, type and shape of each large one."""
    small, large = [], []
    for tensor in tensors:
        size = byte_size(tensor)  # computed from the shape: protobuf would serialise the tensor
        if size is None or size <= _SMALL:
            small.append(tensor)
        else:
            large.append(make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return small, large


def with_initializers(
    proto: ModelProto, initializers: Iterable[TensorProto], leave: Collection[str] = ()
) -> ModelProto:
    """A copy with these initializers instead of the model's; fields in `leave` stay empty."""
    model = ModelProto()
    _copy_fields(proto, model, {"graph", *leave})
    # In parts: a CopyFrom of the whole graph with its weights could exceed 2 GiB.
    _copy_fields(proto.graph, model.graph, {"initializer", *leave})
    for tensor in initializers:
        model.graph.initializer.add().CopyFrom(tensor)
    return model


def _copy_fields(source: object, target: object, leave: set[str]) -> None:
    """Copy a protobuf message field by field, except for the fields in `leave`."""
    for field, value in source.ListFields():  # type: ignore[attr-defined]
        if field.name in leave:
            continue
        if isinstance(value, (bool, int, float, str, bytes)):
            setattr(target, field.name, value)
        elif hasattr(value, "CopyFrom"):
            getattr(target, field.name).CopyFrom(value)
        else:
            getattr(target, field.name).extend(value)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The value of a node's attribute, with bytes decoded to a string; or the default."""
    values = (get_attribute_value(e) for e in node.attribute if e.name == name)
    value = next(values, default)
    return value.decode() if isinstance(value, bytes) else value


def domain_of(node: NodeProto | FunctionProto) -> str:
    """The domain of a node or function; "" for both names of ONNX's own."""
    return "" if node.domain == "ai.onnx" else str(node.domain)


def name_of(node: NodeProto) -> str:
    """The name of a node in messages: its own, or that of its first output."""
    return str(node.name or next(filter(None, node.output), "without a name"))
