"""Layers that carry a state from step to step, for as many steps as count.

y, h = LSTM(x, w, r, b), n steps of x count   -->   y, h = LSTM(x, w, r, b, lengths n)

Of n sequences that count, the states of n count.
"""

from __future__ import annotations

from onnx import TensorProto, helper

from ..graph.graph import OWN
from ..operators.recurrent import COUNT
from .known import Axes, Step

# Inputs: the number of steps of each sequence, and the states that sequences begin with.
_LENGTHS = 4
_INITIAL = (5, 6)


def carried(step: Step) -> list[tuple[str, Axes]] | None:
    """LSTM, GRU and RNN. Backwards, they begin with the last step that counts.

    Sequences that do not count are computed like the others, of whatever they hold.
    """
    shape, own, node = step.known_shape(step.input(0)), step.axes(0), step.node
    steps = 1 if step.attribute("layout", 0) else 0
    each = 1 - steps  # the axis of the sequences, in the input and in a state
    allowed = {at: {each} if at in _INITIAL else set() for at in range(1, len(node.input))}
    if not shape or not own or own.keys() - {0, 1}:
        return None
    if any(step.axes(at).keys() - axes for at, axes in allowed.items()):
        return None
    lengths = step.input(_LENGTHS)  # none of them exceeds what counts
    if steps in own and not lengths:
        number = step.cast(step.scalar(own[steps]), TensorProto.INT32)
        lengths = step("Expand", number, step.numbers(shape[each]))
    weights = [step.input(at) for at in range(_LENGTHS)]
    count = step.scalar(own[steps]) if steps in own else ""
    made = _again(step, [*weights, lengths, *node.input[_INITIAL[0] :]])
    if count and step.input(2) in step.graph.constants:
        _say_count(step, count)
    behind = {at if steps else 2 * at: number for at, number in own.items()}
    state = {at: number for at, number in own.items() if at == each}
    return [(made[0], behind), *((one, state) for one in made[1:])]


def _again(step: Step, given: list[str]) -> list[str]:
    """The results of the same layer with other inputs."""
    node = step.node
    words = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.domain:  # one of ours, whose shapes are not inferred
        words["domain"] = node.domain
    made = step.several(node.op_type, given, len(node.output), **words)
    for name, old in zip(made, node.output, strict=True):
        if name not in step.graph.shapes:
            step.graph.declare(name, step.graph.dtypes[old], step.graph.shapes.get(old))
    return made


def _say_count(step: Step, number: str) -> None:
    """Make the last node one of ours, which says how many steps it reads, so that no more is made.

    Its results, of inferred shapes, stay as they are.
    """
    node = step.nodes[-1]
    node.domain = OWN
    node.input.extend([""] * (COUNT - len(node.input)) + [number])
    for name in node.output:
        step.graph.declare(name, step.graph.dtypes[name], step.graph.shapes[name])


def turned(step: Step) -> list[tuple[str, Axes]] | None:
    """ReverseSequence: the first so many steps of each sequence backwards; all of them count."""
    if not step.known_shape(step.input(0)) or step.axes(1):
        return None
    return [(step.again(), step.axes(0))]


RULES = {**dict.fromkeys(("GRU", "LSTM", "RNN"), carried), "ReverseSequence": turned}
