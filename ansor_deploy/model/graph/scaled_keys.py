"""A factor of all cached keys multiplies the queries instead, of which there are few.

    MatMul(q, Mul(k, number))
    -->
    MatMul(Mul(q, number), k)

Torch's newer exporter multiplies both by the root of attention's scale.
"""

from __future__ import annotations

from math import prod

from onnx import helper

from .graph import Graph, is_op
from .shared_heads import scaled


def scale_queries(graph: Graph) -> None:
    """Let products of a decoder with caches read the keys as they are."""
    makers = graph.producers() if graph.context is not None else {}
    for node in [one for one in graph.nodes if is_op(one, "MatMul")]:
        maker = makers.get(node.input[1])
        pair = scaled(graph, maker) if maker is not None and is_op(maker, "Mul") else None
        if pair is None or not {node.input[0], pair[0]} <= graph.shapes.keys():
            continue
        queries, (keys, number) = node.input[0], pair
        if prod(graph.shapes[queries]) < prod(graph.shapes[keys]):
            name = graph.fresh(queries)
            product = helper.make_node("MatMul", [name, keys], node.output, node.name)
            graph.replace(node, [helper.make_node("Mul", [queries, number], [name], name), product])
