"""A recurrent layer in TE, as it becomes tasks."""

from typing import Any

from tvm import te, topi

from ansor_deploy.model.operators.recurrence import Layer

_LANES = 8


def recurrence(units: int = 24, directions: int = 1) -> tuple[Any, ...]:
    """The inputs and outputs of a GRU for three sequences, and of a reader of its last state.

    The second and the last input are constants: weights and bias.
    """
    functions = ((te.sigmoid, te.tanh),) * directions
    reverses = (False, True)[:directions]
    layer = Layer("GRU", 2, 3, units, _LANES, functions, reverses, linear_before_reset=True)
    own = layer.panels, _LANES
    shapes = [(2, 3, directions, layer.panels, 3, _LANES)]
    shapes += [(directions, *rest) for rest in ((own[0], units, 3, own[1]), (3, *own), own)]
    inputs = [te.placeholder(shape, name="x") for shape in shapes]
    y, last = layer.compute(*inputs)
    return inputs, y, topi.nn.relu(last)
