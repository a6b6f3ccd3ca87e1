"""A network with islands of floats, proved without them: what they make is an input there.

They end where kernels do, so that the kernels of the rest are those of the whole.
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
    """Of the tensors that islands read, and outputs, whether they are what their integers come to.

    places: of the islands. It is of the model's first shape; nothing where the rest of it cannot be
    built or run, as where an island makes indices.
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
