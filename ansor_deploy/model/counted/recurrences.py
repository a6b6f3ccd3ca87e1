"""Layers that carry a state from step to step, for as many steps as count.

y, h = LSTM(x, w, r, b), n steps of x count   -->   y, h = LSTM(x, w, r, b, lengths n)
"""

from __future__ import annotations

from onnx import TensorProto, helper

from .known import Axes, Step

# Inputs: the number of steps of each sequence, and the first input behind that.
_LENGTHS = 4
_INITIAL = 5


def carried(step: Step) -> list[tuple[str, Axes]] | None:
    """LSTM, GRU and RNN. Backwards, they begin with the last step that counts."""
    shape, own, node = step.known_shape(step.input(0)), step.axes(0), step.node
    steps = 1 if step.attribute("layout", 0) else 0
    others = any(step.axes(at) for at in range(1, len(node.input)))
    if not shape or others or own.keys() != {steps}:
        return None
    lengths = step.input(_LENGTHS)  # none of them exceeds what counts
    if not lengths:
        number = step.cast(step.scalar(own[steps]), TensorProto.INT32)
        lengths = step("Expand", number, step.numbers(shape[1 - steps]))
    weights = [step.input(at) for at in range(_LENGTHS)]
    given = [*weights, lengths, *node.input[_INITIAL:]]
    words = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.domain:  # one of ours, whose shapes are not inferred
        words["domain"] = node.domain
    made = step.several(node.op_type, given, len(node.output), **words)
    for name, old in zip(made, node.output, strict=True):
        if name not in step.graph.shapes:
            step.graph.declare(name, step.graph.dtypes[old], step.graph.shapes.get(old))
    return [(made[0], own), *((one, {}) for one in made[1:])]


def turned(step: Step) -> list[tuple[str, Axes]] | None:
    """ReverseSequence: the first so many steps of each sequence backwards; all of them count."""
    if not step.known_shape(step.input(0)) or step.axes(1):
        return None
    return [(step.again(), step.axes(0))]


RULES = {**dict.fromkeys(("GRU", "LSTM", "RNN"), carried), "ReverseSequence": turned}
