"""How often a Loop runs, where its condition follows from constants and counters.

i = 0 ; while i < n: ..., i = i + 1     runs n times
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from ...system.machine_fault import raise_if_fault
from ..graph.graph import Graph
from ..onnx.skeleton import cone


def steps_of(graph: Graph, node: NodeProto, body: GraphProto, most: int) -> int | None:
    """How many steps a Loop takes: `most` if it takes more; None if the data decide that.

    graph: the one around the body, its constants folded.
    """
    nexts = dict(zip([one.name for one in body.input[1:]], body.output, strict=False))
    states = dict(zip([one.name for one in body.input[2:]], node.input[2:], strict=True))
    number = body.input[0].name
    counters = _counters(body, nexts)
    kept, read = cone(body.node, [body.output[0].name, *(nexts[name].name for name in counters)])
    held = {tensor.name: tensor for tensor in body.initializer}
    outer = read - nexts.keys() - held.keys() - {number}
    started = {name: graph.value(states[name]) for name in counters if name in states}
    if not outer <= graph.constants.keys() or any(one is None for one in started.values()):
        return None
    inputs = [one for one in body.input if one.name in read]
    outputs = [body.output[0], *(nexts[name] for name in counters)]
    constants = [*(held[name] for name in read & held.keys()), *(graph.constants[n] for n in outer)]
    names = dict.fromkeys(one.name for one in outputs)
    ends = [helper.make_empty_tensor_value_info(name) for name in names]
    alone = helper.make_graph(kept, "condition", inputs, ends, constants)
    model = helper.make_model(alone, opset_imports=graph.proto.opset_import)
    given = {**started, body.input[1].name: np.array(True)}
    try:
        run = ReferenceEvaluator(model)
        for step in range(most):
            given[number] = np.array(step)
            feeds = {one.name: given[one.name] for one in inputs}
            made = dict(zip(names, run.run(None, feeds), strict=True))
            if not np.all(made[body.output[0].name]):
                return step + 1
            given.update((name, made[nexts[name].name]) for name in counters)
    except Exception as error:  # noqa: BLE001 - the condition may be of a foreign operator
        raise_if_fault(error)
        return None
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
