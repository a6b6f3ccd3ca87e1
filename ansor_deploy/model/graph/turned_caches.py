"""Store each cache in the axis order of its reader, so that no transpose copies it in a run.

y = Append(cache, new) ; z = Transpose(y)            and nothing else reads y
-->
z = Append(cache as z has it, Transpose(new))
"""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, helper

from ...errors import ModelError
from ...runtime.context import Cache
from ..onnx.bind import set_shape
from ..onnx.skeleton import attribute
from .graph import Graph, is_op


def turn_caches(graph: Graph) -> None:
    """Turn the caches whose readers all transpose them in the same way."""
    if graph.context is None:
        return
    readers, caches = graph.consumers(), []
    for cache in graph.context.caches:
        append = _append(cache, readers[cache.input])
        orders = {_order(node) for node in readers[append.output[0]]}
        alone = len(orders) == 1 and len(readers[cache.input]) == 1
        order = orders.pop() if alone else ()
        found = readers[append.output[0]]
        caches.append(_turned(graph, cache, append, order, found) if order else cache)
    graph.context = replace(graph.context, caches=tuple(caches))


def _append(cache: Cache, readers: list[NodeProto]) -> NodeProto:
    """The node that appends to a cache; ModelError if there is not exactly one."""
    found = [node for node in readers if node.op_type == "Append"]
    if len(found) == 1:
        return found[0]
    raise ModelError(
        f"the cache '{cache.input}' needs one node that appends to it, and has {len(found)}",
        "build the model without --context",
    )


def _order(node: NodeProto) -> tuple[int, ...]:
    """The axis order of a Transpose that keeps the first axis; empty for other nodes."""
    order = tuple(attribute(node, "perm", ())) if is_op(node, "Transpose") else ()
    return order if order[:1] == (0,) else ()


def _turned(
    graph: Graph, cache: Cache, append: NodeProto, order: tuple[int, ...], readers: list[NodeProto]
) -> Cache:
    shape = graph.shapes[cache.input]
    turned = tuple(shape[axis] for axis in order)
    for value in graph.proto.graph.input:
        if value.name == cache.input:
            set_shape(value, turned)
    new = graph.fresh(append.input[1])
    transpose = helper.make_node("Transpose", [append.input[1]], [new], new, perm=order)
    append.input[1] = new
    for entry in append.attribute:
        if entry.name == "axis":
            entry.i = order.index(entry.i)
    graph.declare(append.output[0], graph.dtypes[append.output[0]], turned)
    graph.shapes[cache.input] = turned
    graph.replace(append, [transpose, append])
    graph.rename_uses({node.output[0]: append.output[0] for node in readers})
    graph.nodes = [node for node in graph.nodes if all(node is not one for one in readers)]
    return replace(cache, order=order)
