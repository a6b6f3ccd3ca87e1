"""Stacks are concatenated as they are, where that is the same."""

import pytest
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize


def stacked(axis, *axes, shapes=((3, 4), (3, 4))):
    """Two tensors, each with a new axis, and concatenated along an axis."""
    makes = [node("Tanh", "a", "p"), node("Relu", "b", "q")]
    spreads = [node("Unsqueeze", f"{one} axes{at}", f"{one}1") for at, one in enumerate("pq")]
    nodes = [*makes, *spreads, node("Concat", "p1 q1", "y", axis=axis)]
    inputs = dict(zip("ab", shapes, strict=True))
    return model(nodes, inputs, constants={f"axes{at}": [one] for at, one in enumerate(axes)})


@pytest.mark.parametrize(("axis", "made"), [(0, 0), (1, 1), (-2, 1), (0, -3)])
def test_a_stack_is_a_view_of_a_concatenation(axis, made):
    proto = stacked(axis, made, made)
    after = canonicalize(proto)
    assert ops(after) == ["Tanh", "Relu", "Concat", "Reshape"]
    assert_same(proto, after)


@pytest.mark.parametrize(
    "proto",
    [
        stacked(2, 2, 2),  # elements of one and of the other in turns
        stacked(1, 0, 0),
        stacked(1, 0, 0, shapes=((3, 4), (5, 4))),
        stacked(0, 0, 0, shapes=((), ())),
    ],
)
def test_what_is_no_stack_of_rows_stays(proto):
    after = canonicalize(proto)
    assert "Reshape" not in ops(after)
    assert_same(proto, after)
