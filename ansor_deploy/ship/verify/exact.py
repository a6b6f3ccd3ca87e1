"""Compare outputs that are the same bytes on every processor with an evaluation in NumPy.

ONNX Runtime itself varies by steps of a quantised network's scales, so a comparison with it cannot
reveal a wrong rounding. The results of the network's integers are defined to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...model.canonicalize import canonical_graph
from ...model.evaluation import evaluated
from ...model.graph.cuts import Graph
from ...model.onnx.skeleton import name_of
from ...request import Tolerance
from .judges import Arrays, Tolerances
from .tolerance import Verdict, judge

if TYPE_CHECKING:
    import onnx

    from ...model.graph.places import Place

_EQUAL = Tolerance(0.0, 0.0)


def exact_outputs(
    proto: onnx.ModelProto, islands: Collection[Place] | None, feed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The outputs that are the same on all processors, by name, for these inputs.

    islands: places where processors may differ, in this shape of the model; None for a model that
    is not quantised.
    """
    if islands is None:
        return {}
    graph = Graph(proto)
    open_nodes = numbers(graph, islands)
    names = [one.name for one in proto.graph.output]
    same = [name for name in names if open_nodes.isdisjoint(graph.needed([name]))]
    return evaluated(canonical_graph(proto), feed, same) if same else {}


def numbers(graph: Graph, places: Collection[Place]) -> set[int]:
    """The positions of the nodes of these places in the graph."""
    names = {node.name for place in places for node in place.nodes}
    return {at for at, node in enumerate(graph.nodes) if name_of(node) in names}


def judge_exactly(
    actual: Arrays, exact: Arrays, allowed: Tolerances
) -> Iterator[tuple[str, Verdict]]:
    """Whether each exactly known output is equal, except for those that the user lets differ.

    allowed: the differences that the user allows.
    """
    for name, output in exact.items():
        if allowed.get(name, allowed.get("")) is None:
            yield name, judge(actual[name], output, given=_EQUAL)


def exactly_wrong(name: str, verdict: Verdict) -> str:
    """The message about an output that is not exact."""
    return (
        f"tensor '{name}' is off by {verdict.abs_err:.3g}, at {list(verdict.at)}, from what its "
        "integers come to"
    )
