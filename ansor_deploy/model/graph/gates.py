"""Gates: a clip that is divided by its own upper bound, so that it ends at 1.

    Div(Clip(x, 0, 6), 6)           -->  Mul(Clip(x, 0, 6), 1 / 6)
    Div(Mul(x, Clip(z, 0, 6)), 6)   -->  Mul(Mul(x, Clip(z, 0, 6)), 1 / 6)

Exporters write hard sigmoids and hard swishes so. A vector's division takes as long as all the
rest of them. Other quotients stay: somebody may round them down, and a product may be one unit in
the last place less.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, helper

from .clips import clip_of
from .graph import Graph, is_op


def multiply_gates(graph: Graph) -> None:
    """Products with the reciprocal of the bound where gates are divided by it."""
    producers = graph.producers()
    for node in [node for node in graph.nodes if is_op(node, "Div")]:
        bound = graph.value(node.input[1])
        if bound is None or bound.size != 1 or bound.dtype != np.float32:
            continue
        factor = _reciprocal(bound)
        if factor is not None and _is_gate(graph, producers, node.input[0], bound.item()):
            name = graph.add_constant(factor, f"{node.output[0]}_reciprocal")
            made = helper.make_node("Mul", [node.input[0], name], node.output, name=node.name)
            graph.replace(node, [made])


def _reciprocal(bound: np.ndarray) -> np.ndarray | None:
    """1 / bound, if the bound times that is 1 and nothing else."""
    with np.errstate(all="ignore"):
        factor = np.float32(1) / bound
    return np.asarray(factor) if (bound * factor == 1).all() else None


def _is_gate(graph: Graph, producers: Mapping[str, NodeProto], name: str, bound: float) -> bool:
    """Whether a tensor is a clip from 0 to a bound, or a product with one."""
    node = producers.get(name)
    if node is None:
        return False
    if is_op(node, "Mul"):
        return any(_is_clip(graph, producers.get(one), bound) for one in node.input)
    return _is_clip(graph, node, bound)


def _is_clip(graph: Graph, node: NodeProto | None, bound: float) -> bool:
    clip = None if node is None else clip_of(graph, node)
    return clip is not None and (clip.low, clip.high) == (0, bound)
