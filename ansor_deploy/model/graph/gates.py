"""Gates: a clip from 0 that is divided by its upper bound, so that it ends at 1.

    Div(Clip(x, 0, 6), 6)           -->  Mul(Clip(x, 0, 6), 1 / 6)
    Div(Mul(x, Clip(z, 0, 6)), 6)   -->  Mul(Mul(x, Clip(z, 0, 6)), 1 / 6)

Exporters write hard sigmoids and hard swishes so. Dividing a vector takes as long as everything
else in them. Other quotients stay as they are: the model may round them down, and a product may be
one unit in the last place smaller.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, helper

from .clips import clip_of
from .graph import Graph, is_op


def multiply_gates(graph: Graph) -> None:
    """Multiply gates by the reciprocal of their bound instead of dividing them by it."""
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
    """1 / bound, if bound times that is exactly 1; else None."""
    with np.errstate(all="ignore"):
        factor = np.float32(1) / bound
    return np.asarray(factor) if (bound * factor == 1).all() else None


def _is_gate(graph: Graph, producers: Mapping[str, NodeProto], name: str, bound: float) -> bool:
    """Whether a tensor is a clip from 0 to the bound, or a product with such a clip."""
    node = producers.get(name)
    if node is None:
        return False
    if is_op(node, "Mul"):
        return any(_is_clip(graph, producers.get(one), bound) for one in node.input)
    return _is_clip(graph, node, bound)


def _is_clip(graph: Graph, node: NodeProto | None, bound: float) -> bool:
    clip = None if node is None else clip_of(graph, node)
    return clip is not None and (clip.low, clip.high) == (0, bound)
