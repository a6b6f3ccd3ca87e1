"""How often a Loop runs, where its condition follows from known numbers and counters.

i = 0 ; while i < n: ..., i = i + 1     runs n times
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ...system.machine_fault import raise_if_fault
from ..graph.graph import Graph
from ..onnx.skeleton import cone

Value = Callable[[str], np.ndarray | None]  # the value of a tensor; None if it is not known


class Condition:
    """What decides after each step of a Loop whether there is another one.

    reads: the tensors of the graph around the Loop on which it depends.
    """

    def __init__(self, graph: Graph, node: NodeProto, body: GraphProto) -> None:
        self._graph, self._body = graph, body
        self._nexts = dict(zip([one.name for one in body.input[1:]], body.output, strict=False))
        states = dict(zip([one.name for one in body.input[2:]], node.input[2:], strict=True))
        self._counters = _counters(body, self._nexts)
        wanted = [body.output[0].name, *(self._nexts[name].name for name in self._counters)]
        self._nodes, self._read = cone(body.node, wanted)
        self._held = {tensor.name: tensor for tensor in body.initializer}
        self._starts = {name: states[name] for name in self._counters if name in states}
        number = body.input[0].name
        self._around = self._read - self._nexts.keys() - self._held.keys() - {number}
        self.reads = sorted({*self._around, *self._starts.values()})

    def steps(self, value: Value, most: int) -> int | None:
        """How many steps the Loop takes: `most` if it takes more; None if that is not known."""
        known = {name: value(name) for name in self.reads}
        if any(one is None for one in known.values()):
            return None
        try:
            return self._steps(known, most)
        except Exception as error:  # noqa: BLE001 - the condition may be of a foreign operator
            raise_if_fault(error)
            return None

    def _steps(self, known: Mapping[str, np.ndarray | None], most: int) -> int:
        body, nexts = self._body, self._nexts
        inputs = [one for one in body.input if one.name in self._read]
        outputs = [body.output[0], *(nexts[name] for name in self._counters)]
        names = dict.fromkeys(one.name for one in outputs)
        ends = [helper.make_empty_tensor_value_info(name) for name in names]
        constants = [self._held[name] for name in self._read & self._held.keys()]
        constants += [numpy_helper.from_array(known[name], name) for name in self._around]
        alone = helper.make_graph(self._nodes, "condition", inputs, ends, constants)
        run = ReferenceEvaluator(
            helper.make_model(alone, opset_imports=self._graph.proto.opset_import)
        )
        given = {name: known[start] for name, start in self._starts.items()}
        given[body.input[1].name] = np.array(True)
        for step in range(most):
            given[body.input[0].name] = np.array(step)
            feeds = {one.name: given[one.name] for one in inputs}
            made = dict(zip(names, run.run(None, feeds), strict=True))
            if not np.all(made[body.output[0].name]):
                return step + 1
            given.update((name, made[nexts[name].name]) for name in self._counters)
        return most


def _counters(body: GraphProto, nexts: Mapping[str, ValueInfoProto]) -> list[str]:
    """The states on which the condition depends, after any number of steps."""
    found: list[str] = []
    wanted = [body.output[0].name]
    while True:
        _, read = cone(body.node, wanted)
        new = sorted((read & nexts.keys()) - {*found})
        if not new:
            return found
        found += new
        wanted += [nexts[name].name for name in new]
