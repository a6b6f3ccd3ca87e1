"""Prove the integers of a network without its islands of floats: their results become inputs.

Islands end where kernels end, so that the kernels of the rest are those of the whole.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...errors import AnsorError
from ...model.graph.cuts import Graph
from ..islands import islands
from .draws import seeded_inputs
from .exact import exact_outputs, judge_exactly, numbers
from .parts import run_part

if TYPE_CHECKING:
    from ...model.graph.places import Place
    from ...model.prepare import Prepared
    from .parts import How
    from .tolerance import Verdict


def proved_apart(model: Prepared, places: Collection[Place], how: How) -> dict[str, Verdict]:
    """Whether outputs, and tensors that islands read, equal the network's integers exactly.

    places: those of the islands. Only the model's first shape is checked; the result is empty where
    the rest cannot be built or run, as where an island makes indices.
    """
    graph = Graph(model.protos[0])
    rest = graph.without(numbers(graph, [one for one in places if one.shape == 0]))
    if rest is None:
        return {}
    feed = seeded_inputs(model.imported.inputs, how.seed, upper=2)
    try:
        ran = run_part(rest, how, feed)
    except AnsorError:
        return {}
    exact = exact_outputs(ran.part.protos[0], islands(ran.part, how.target), ran.feed)
    return dict(judge_exactly(ran.outputs, exact, {}))
