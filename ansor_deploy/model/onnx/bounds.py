"""Bounds on what a model may ask for: a file of a kilobyte can ask for terabytes, and is refused.

The bounds are far above what networks have. Constants that are computed during the import have a
bound of their own (`Graph.keep`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ...errors import ModelError
from .skeleton import domain_of, name_of, nested, with_nested

MOST_NODES = 50_000  # with functions and loops written out
MOST_ELEMENTS = 2**31 - 1  # of a tensor: kernels count them in 32 bits
_MOST_TENSORS = 200_000  # named in a graph
_MOST_ENDS = 4096  # the most inputs, and the most outputs, of one node or graph
_MOST_NUMBERS = 1 << 20  # in one attribute
_MOST_LETTERS = 2000  # of a name that a library takes over; its manifest holds twice as many
_MOST_AXES = 32  # every version of NumPy supports these
_SHAPED = ("Reshape", "Expand", "Tile", "Unsqueeze", "Squeeze")  # read a shape, or axes
_MOST_CALLS = 100  # of functions within each other: ONNX's own limit
_SIMPLER = "Simplify the model (onnxslim model.onnx simple.onnx), or cut it into several."

Key = tuple[str, str, str]  # of a function: domain, name, overload


def check_graph(proto: ModelProto) -> None:
    """ModelError for too many nodes, with functions written out, or too long lists or names."""
    _check_names(proto.graph)
    functions = {(domain_of(f), f.name, f.overload): f for f in proto.functions}
    _check_lists(proto.graph)
    count_nodes(sum(len(function.node) for function in proto.functions))
    count_nodes(_written_out(proto.graph.node, functions, {}, ()))
    for body in (proto.graph.node, *(function.node for function in proto.functions)):
        for node in with_nested(body):
            _check_node(node)


def count_nodes(count: int) -> None:
    """ModelError if a graph has more nodes than are compiled."""
    if count > MOST_NODES:
        what = f"the graph has more than {MOST_NODES} nodes with functions and loops written out"
        raise ModelError(what, _SIMPLER)


def check_shape(name: str, shape: Sequence[int]) -> None:
    """ModelError for a tensor with more elements, or more dimensions, than can be compiled."""
    hint = "Check the shapes given with --input-shape, or export the model again."
    if len(shape) > _MOST_AXES:
        fault = f"tensor '{name}' has {len(shape)} dimensions; at most {_MOST_AXES} are compiled"
        raise ModelError(fault, hint)
    # Each dimension is tested, too: a size of 0 would hide the others in the product.
    if max(shape, default=1) > MOST_ELEMENTS or prod(shape) > MOST_ELEMENTS:
        sizes = "x".join(map(str, shape))
        fault = f"tensor '{name}' of shape {sizes} is too large: 2**31 elements or more"
        raise ModelError(fault, hint)


def check_rank(node: NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """ModelError if a node gets a shape, or axes, with more dimensions than can be compiled.

    Shape inference does not notice, because it is given only short constants.
    """
    given = node.input[1:2] if node.op_type in _SHAPED else ()
    for name in given:
        if (shape := shapes.get(name)) and shape[0] > _MOST_AXES:
            check_shape(node.output[0], (1,) * shape[0])


def _written_out(
    body: Iterable[NodeProto],
    functions: dict[Key, FunctionProto],
    known: dict[Key, int],
    callers: tuple[Key, ...],
) -> int:
    """How many nodes a body has with its functions written out; it stops above `MOST_NODES`."""
    count = 0
    for node in with_nested(body):
        key = (domain_of(node), node.op_type, node.overload)
        if key in functions and key not in known:
            if key in callers or len(callers) >= _MOST_CALLS:
                fault = f"function '{node.op_type}' calls itself, or others too deeply"
                raise ModelError(fault, "Export the model again.")
            called = functions[key].node
            known[key] = _written_out(called, functions, known, (*callers, key))
        count += known.get(key, 1)
        if count > MOST_NODES:
            break
    return count


def _check_node(node: NodeProto) -> None:
    where = f"node '{name_of(node)}' ({node.op_type})"
    if max(len(node.input), len(node.output)) > _MOST_ENDS:
        fault = f"has more than {_MOST_ENDS} inputs or outputs"
        raise ModelError(f"{where} {fault}", _SIMPLER)
    for entry in node.attribute:
        longest = max(len(entry.ints), len(entry.floats), len(entry.strings))
        # Shape inference would allocate all these outputs.
        if entry.name == "num_outputs" and entry.i > _MOST_ENDS:
            raise ModelError(f"{where} has {entry.i} outputs", _SIMPLER)
        if longest > _MOST_NUMBERS and not _has_data(node):
            fault = f"attribute '{entry.name}' has {longest} values"
            raise ModelError(f"{where}: {fault}", _SIMPLER)
    for graph in nested(node):
        _check_lists(graph)


def _has_data(node: NodeProto) -> bool:
    """Whether a node's attributes are weights, such as those of a forest."""
    return node.op_type == "Constant" or domain_of(node) == "ai.onnx.ml"


def _check_names(graph: GraphProto) -> None:
    for end in (*graph.input, *graph.output):
        for name in (end.name, *(dim.dim_param for dim in end.type.tensor_type.shape.dim)):
            if len(name) > _MOST_LETTERS:
                what = f"the name '{name[:20]}...' of an input, an output or a size is too long"
                raise ModelError(f"{what}: {len(name)} letters", "Export the model again.")


def _check_lists(graph: GraphProto) -> None:
    named = max(len(graph.node), len(graph.initializer), len(graph.value_info))
    if named > _MOST_TENSORS:
        raise ModelError(f"the graph has {named} nodes or tensors", _SIMPLER)
    if max(len(graph.input) - len(graph.initializer), len(graph.output)) > _MOST_ENDS:
        raise ModelError(f"the graph has more than {_MOST_ENDS} inputs or outputs", _SIMPLER)
