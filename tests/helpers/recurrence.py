"""A recurrent layer as its tasks have it, in TE."""

from typing import Any

from tvm import te, topi

from ansor_deploy.model.operators.recurrence import Layer


def recurrence() -> tuple[Any, ...]:
    """The inputs and outputs of a GRU of 24 units for three sequences, and of what reads its state.

    The weights are the second input, and the last are constant as well.
    """
    layer = Layer("GRU", 2, 3, 24, 8, (te.sigmoid, te.tanh), linear_before_reset=True)
    shapes = (2, 3, 3, 3, 8), (3, 24, 3, 8), (3, 3, 8), (3, 8)
    inputs = [te.placeholder(shape, name="x") for shape in shapes]
    y, last = layer.compute(*inputs)
    return inputs, y, topi.nn.relu(last)
