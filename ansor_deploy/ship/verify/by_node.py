"""Find the node of a model that is computed wrongly, by bisecting the network.

A part of the model is built as the whole was: with the same records, and default schedules for the
rest. Nothing is fused over a cut, so a fault of fusion may show in the whole model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import AnsorError
from ...model.graph.cuts import Graph
from ...model.onnx.bind import model_inputs
from ...model.onnx.skeleton import name_of
from ...model.relax.importer import tensor_info
from ...system.interrupt import check
from ..islands import islands
from .exact import exact_outputs, judge_exactly
from .judges import judge_outputs
from .oracle import Oracle
from .parts import How, run_part
from .tolerance import Verdict

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from ...model.prepare import Prepared

Step = Callable[[int, int], None]


@dataclass(frozen=True)
class NodeVerdict:
    """The verdict on a node of a model, by one of its tensors."""

    name: str
    op: str
    tensor: str
    verdict: Verdict


def first_wrong_node(
    model: Prepared, outputs: Sequence[str], how: How, step: Step
) -> NodeVerdict | None:
    """The first node that is wrong while its inputs are right; None where no part is wrong.

    outputs: the wrong outputs of the model's first shape. For n nodes it takes about log2(n)
    builds; step is called with how many nodes are ruled out, and how many there are.
    """
    parts = _Parts(model, how)
    graph = parts.graph
    left = sorted(graph.needed(outputs) & graph.shown.keys())
    total, wrong, at = len(left), None, left[-1] if left else 0
    while left:
        check()
        step(total - len(left), total)
        node_verdict = parts.verdict(at)
        needs = graph.needed([graph.shown[at]]) - {at}
        if node_verdict is not None and not node_verdict.verdict.ok:
            wrong, left = node_verdict, [node for node in left if node in needs]
        else:  # its inputs are right as well; a part that cannot be built says nothing of them
            ruled_out = {at, *needs} if node_verdict else {at}
            left = [node for node in left if node not in ruled_out]
        at = left[len(left) // 2] if left else 0
    return wrong


def every_node(model: Prepared, how: How) -> list[NodeVerdict]:
    """Compare a tensor of each node with the oracle's, by a library that outputs all of them.

    AnsorError where that cannot be built. Nothing is fused over a tensor that is an output.
    """
    return _Parts(model, how).verdicts()


class _Parts:
    """Builds parts of a model in its first shape, and compares them with the oracle."""

    def __init__(self, model: Prepared, how: How) -> None:
        self.graph, self._how = Graph(model.protos[0]), how
        inputs = [tensor_info(value) for value in model_inputs(model.protos[0])]
        self._feed, _ = Oracle(model.protos[0]).ask(inputs, how.seed)

    def verdict(self, at: int) -> NodeVerdict | None:
        """The verdict on a node in the model cut after it; None where that cannot be built."""
        try:
            return self._described(at, self._compared([self.graph.shown[at]]))
        except AnsorError:
            return None

    def verdicts(self) -> list[NodeVerdict]:
        """The verdict on every node with a visible tensor."""
        compared = self._compared(list(self.graph.shown.values()))
        return [self._described(at, compared) for at in self.graph.shown]

    def _compared(self, names: Sequence[str]) -> dict[str, Verdict]:
        return compared(self.graph.cut(names), self._how, self._feed)

    def _described(self, at: int, found: Mapping[str, Verdict]) -> NodeVerdict:
        graph, tensor = self.graph, self.graph.shown[at]
        return NodeVerdict(name_of(graph.nodes[at]), graph.nodes[at].op_type, tensor, found[tensor])


def compared(
    proto: onnx.ModelProto, how: How, feed: Mapping[str, np.ndarray]
) -> dict[str, Verdict]:
    """The verdicts on the outputs of a part of a model, computed by a library and by the oracle.

    feed: as in `run_part`. AnsorError where the part cannot be built.
    """
    ran = run_part(proto, how, feed)
    (part,), given = ran.part.protos, ran.feed
    oracle = Oracle(part)
    judged = judge_outputs(ran.outputs, oracle.outputs(given), oracle, given, {})
    exact = exact_outputs(part, islands(ran.part, how.target), given)
    off = ((name, one) for name, one in judge_exactly(ran.outputs, exact, {}) if not one.ok)
    return {**judged, **dict(off)}
