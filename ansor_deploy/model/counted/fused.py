"""Operators of ONNX Runtime's optimiser and quantiser: written as the plain nodes that they are.

    y = BiasGelu(x, b)
    -->
    s = Add(x, b) ; y = Mul(Mul(s, 0.5), Add(Erf(Mul(s, ..)), 1))

So the rules for plain nodes are enough. A product with block-quantised weights has a rule here.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, defs

from ..dequantised.operators import conversions
from ..graph.graph import Graph
from ..onnx.skeleton import domain_of
from ..operators import block_products
from ..operators.emitter import expanded
from ..operators.table import find
from . import recurrences
from .known import Axes, Step


def written_out(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """The plain nodes of one that ONNX does not define, or that is quantised; None for others."""
    if (made := conversions(graph, node)) is not None:
        return made
    operator = None if defs.has(node.op_type, domain_of(node)) else find(node)
    return expanded(graph, node, operator.expand) if operator and operator.expand else None


def of_rows(step: Step) -> list[tuple[str, Axes]] | None:
    """A product of rows and block-quantised weights."""
    shape, own = step.known_shape(step.input(0)), step.axes(0)
    if not shape or len(shape) - 1 in own:
        return None
    made = (*shape[:-1], step.shape(step.input(1))[-1])
    words = {"size": step.attribute("size")}
    return [(step.own(block_products.NAME, step.node.input, TensorProto.FLOAT, made, **words), own)]


# Rules for operators of our own.
RULES = {block_products.NAME: of_rows, **recurrences.RULES}
