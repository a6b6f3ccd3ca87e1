"""Nodes whose results have a data-dependent size, and the faults that follow from them.

A detector that selects boxes has few such nodes, and a hundred that cannot be compiled because of
them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from onnx import NodeProto

from ..onnx.skeleton import uses, with_nested

_COUNTED = ("Compress", "NonMaxSuppression", "NonZero", "Unique")


class Fault(NamedTuple):
    """Why a node cannot be compiled. unknown: an input that should be a constant, but is not."""

    node: NodeProto
    text: str
    unknown: str = ""


def without_consequences(nodes: Iterable[NodeProto], faults: Sequence[Fault]) -> list[Fault]:
    """The faults, where one for each counting operator replaces all that follow from it.

    nodes: of the graph, in order.
    """
    causes = _counted(nodes)
    named = {id(fault.node) for fault in faults}
    kept, of_operator = [], defaultdict(list)
    for fault in faults:
        if (cause := causes.get(fault.unknown)) is None:
            kept.append(fault)
        elif id(cause) not in named:
            of_operator[cause.op_type].append((cause, fault.node))
    return [*kept, *(_together(pairs) for pairs in of_operator.values())]


def _counted(nodes: Iterable[NodeProto]) -> dict[str, NodeProto]:
    """For each tensor that depends on how many a node found: the first such node."""
    causes: dict[str, NodeProto] = {}
    for node in nodes:
        before = (causes[name] for name in sorted(uses(node)) if name in causes)
        itself = (one for one in with_nested([node]) if one.op_type in _COUNTED)
        if cause := next(before, None) or next(itself, None):
            causes.update(dict.fromkeys(node.output, cause))
    return causes


def _together(pairs: Sequence[tuple[NodeProto, NodeProto]]) -> Fault:
    """The fault of all nodes of one operator, with the nodes that fail because of them."""
    others = len({id(cause) for cause, _ in pairs}) - 1
    more = f"as at {others} more, " if others else ""
    failing = ", ".join(sorted({node.op_type for _, node in pairs}))
    how_many = "the input's values decide how much it finds, and sizes for"
    return Fault(pairs[0][0], f"{more}{how_many} {failing} are computed of that")
