"""Scan and Loop with a known number of steps, written out step by step.

for t: state, y[t] = body(state, x[t])
-->
state1, y0 = body(state0, x[0]) ; state2, y1 = body(state1, x[1]) ; ... ; y = [y0, y1, ...]
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from onnx import GraphProto, TensorProto

from ...errors import ModelError
from ..graph.fold import fold_constants
from ..graph.graph import Graph, is_op
from ..graph.subgraph import adopt_constants, spliced
from ..onnx.bind import declared_shape
from ..onnx.skeleton import attribute, nodes, tensors
from ..onnx.tensor_data import byte_size
from .emitter import Emitter, expanded
from .loop_steps import Condition
from .operator import Operator

# The most nodes that all steps may become; more would take too long to import.
MOST_NODES = 20_000


def write_out_loops(graph: Graph) -> None:
    """Write out each Loop whose results have unknown sizes, if its number of steps is constant.

    Sizes that follow are known then, maybe also the steps of the next Loop. A Loop that is refused
    stays, and is so again when all nodes are rewritten.

    graph: sorted, its constants folded; both is so again.
    """
    for node in [node for node in graph.nodes if is_op(node, "Loop")]:
        if all(name in graph.shapes for name in node.output if name):
            continue
        with suppress(ModelError):
            if (made := expanded(graph, node, loop)) is not None:
                at = next(at for at, one in enumerate(graph.nodes) if one is node)
                graph.nodes[at : at + 1] = made
                fold_constants(graph)


def scan(emit: Emitter) -> list[str] | None:
    """A body over the elements of sequences, along any axes and in both directions."""
    fed = emit.attribute("num_scan_inputs")
    given = list(emit.node.input)
    states, sequences = given[:-fed], given[-fed:]
    axes = emit.attribute("scan_input_axes") or [0] * fed
    backwards = emit.attribute("scan_input_directions") or [0] * fed
    shape = emit.known_shape(sequences[0])
    if shape is None or emit.graph.opset < 9:  # older versions have batches
        return None
    steps = shape[axes[0]]
    body = _Body(emit, steps)
    kept = len(states)
    rows = []
    for step in range(steps):
        ways = zip(sequences, axes, backwards, strict=True)
        parts = [
            _element(emit, n, axis, steps - 1 - step if back else step) for n, axis, back in ways
        ]
        made = body.step([*states, *parts])
        states, row = made[:kept], made[kept:]
        rows.append(row)
    outputs = len(body.graph.output) - kept
    return [*states, *_stacked(emit, rows, outputs)]


def loop(emit: Emitter) -> list[str] | None:
    """A body that is run as often as constants say, by a number of steps or by a condition."""
    count, start = (emit.graph.value(emit.input(at)) if emit.input(at) else None for at in (0, 1))
    if emit.input(1) and start is None:
        raise emit.refuse("how often it runs must be constant")
    if emit.input(0) and count is None:
        return None  # it may become constant when the graph around it is folded
    most = MOST_NODES if count is None else int(count.reshape(()))
    steps = most if start is None or bool(start.reshape(())) else 0
    inner = attribute(emit.node, "body")
    if steps and not _goes_on(emit.graph, inner):
        most = min(steps, MOST_NODES)  # each step has a node, since its condition is computed
        condition = Condition(emit.graph, emit.node, inner)
        if (found := condition.steps(emit.graph.value, most)) is None:
            raise emit.refuse("how often it runs must be constant, or follow from a counter")
        steps = found if found < most else steps
    elif count is None:
        raise emit.refuse("it runs for ever")
    states, rows = _run(emit, steps)
    return [*(after[-1] for after in states), *rows]


def counted_loop(emit: Emitter, steps: int, number: str) -> list[str]:
    """A body that is run so many times, of which the first ones count.

    number: how many of them. Steps behind these change nothing: the states are those before them.
    """
    states, rows = _run(emit, steps)
    whole = [emit("Concat", *(emit.unsqueeze(one, 0) for one in after), axis=0) for after in states]
    ends = [emit("Gather", every, number, axis=0) for every in whole]
    bounds = emit.constant([0], TensorProto.INT64), emit.reshape(number, 1)
    return [*ends, *(emit("Slice", row, *bounds, bounds[0]) for row in rows)]


def _run(emit: Emitter, steps: int) -> tuple[list[list[str]], list[str]]:
    """Each state before every step and at the end, and what all steps add to each row."""
    body = _Body(emit, steps)
    states = list(emit.node.input[2:])
    kept, rows, after = len(states), [], [states]
    # The number of the step and its condition are scalars, or lists of one where the body says so.
    forms = [(1,) * len(declared_shape(value) or ()) for value in body.graph.input[:2]]
    for step in range(steps):
        number = emit.constant(np.full(forms[0], step), TensorProto.INT64)
        goes = emit.constant(np.full(forms[1], fill_value=True), TensorProto.BOOL)
        _, *made = body.step([number, goes, *states])
        states, row = made[:kept], made[kept:]
        rows.append(row)
        after.append(states)
    count = len(body.graph.output) - 1 - kept
    return [list(each) for each in zip(*after, strict=True)], _stacked(emit, rows, count)


class _Body:
    """The graph of a step; its constants are kept once for all steps."""

    def __init__(self, emit: Emitter, steps: int) -> None:
        self.emit = emit
        self.graph = GraphProto()
        self.graph.CopyFrom(attribute(emit.node, "body"))
        size = steps * sum(1 for _ in nodes(self.graph))
        if not steps or size > MOST_NODES:
            raise emit.refuse(
                f"its {steps} steps would be {size} nodes, and {MOST_NODES} are compiled at most"
                if steps
                else "it takes no step"
            )
        self._constants = adopt_constants(emit.graph, self.graph)
        self.graph.ClearField("initializer")
        copied = sum(byte_size(tensor) or 0 for tensor in tensors(self.graph))
        emit.room_for(steps, (copied + 7) // 8)

    def step(self, arguments: Sequence[str]) -> list[str]:
        """Append the nodes of one step; returns their results."""
        emit = self.emit
        made = [emit.graph.fresh(value.name) for value in self.graph.output]
        takes = [value.name for value in self.graph.input]
        if len(takes) != len(arguments):
            raise emit.refuse(f"its body takes {len(takes)} inputs, and gets {len(arguments)}")
        given = {**self._constants, **dict(zip(takes, arguments, strict=True))}
        emit.nodes += spliced(emit.graph, self.graph, given, made)
        return made


def _element(emit: Emitter, sequence: str, axis: int, at: int) -> str:
    return emit("Gather", sequence, emit.constant(at, TensorProto.INT64), axis=axis)


def _stacked(emit: Emitter, rows: list[list[str]], count: int) -> list[str]:
    """The results of all steps as one tensor for each of the body's last outputs."""
    axes = emit.attribute("scan_output_axes") or [0] * count
    backwards = emit.attribute("scan_output_directions") or [0] * count
    stacked = []
    for number, (axis, back) in enumerate(zip(axes, backwards, strict=True)):
        parts = [emit.unsqueeze(row[number], axis) for row in (reversed(rows) if back else rows)]
        stacked.append(emit("Concat", *parts, axis=axis))
    return stacked


def _goes_on(graph: Graph, body: GraphProto) -> bool:
    """Whether a step's condition is the one it was given, or constant and true.

    graph: the one around the body, from which the body may read a constant.
    """
    name, given = body.output[0].name, body.input[1].name
    for node in reversed(body.node):
        if name in node.output:
            if is_op(node, "Constant"):
                value = attribute(node, "value")
                return value is not None and any(value.raw_data or value.int32_data)
            if not is_op(node, "Identity", "Cast"):
                return False
            name = node.input[0]
    around = None if name == given else graph.value(name)
    return name == given or (around is not None and bool(around.all()))


OPERATORS = (
    Operator("Scan", since=9, expand=scan),
    Operator("Loop", since=1, constant=(0,), expand=loop),
)
