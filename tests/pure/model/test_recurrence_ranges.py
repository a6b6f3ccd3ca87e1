"""Layers that carry a state, over sequences of any length, or over any number of sequences."""

import numpy as np
import pytest
from helpers.graphs import node, randn
from helpers.ranges import LONG, check


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3)])
def test_states_that_are_carried_both_ways(op, gates):
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node(op, "t w r", "h l", hidden_size=3, direction="bidirectional"),
        node("Transpose", "l", "f", perm=[1, 0, 2]),
        node("Unsqueeze", "f one", "u"),
        node("Transpose", "h", "o", perm=[2, 0, 1, 3]),
        node("Add", "o u", "y"),
    ]
    constants = {"w": randn(1, 2, gates * 3, 4), "r": randn(2, 2, gates * 3, 3),
                 "one": np.array([1])}  # fmt: skip
    check(nodes, {"x": (2, LONG, 4)}, (12, 7, 1), constants)


def test_as_many_sequences_as_count():
    """One layer goes through each window of a signal, and another from window to window."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Concat", "one n units", "sizes", axis=0),
        node("ConstantOfShape", "sizes", "s"),
        node("GRU", "x w r - - s", "h e", hidden_size=3),
        node("Add", "h e", "k"),
        node("Squeeze", "k one", "q"),
        node("Transpose", "q", "turned", perm=[1, 0, 2]),
        node("GRU", "turned v r", "y", hidden_size=3),
    ]
    constants = {"w": randn(1, 1, 9, 4), "r": randn(2, 1, 9, 3), "v": randn(3, 1, 9, 3),
                 "one": np.array([1]), "units": np.array([3])}  # fmt: skip
    check(nodes, {"x": (2, LONG, 4)}, (12, 7, 1), constants)


def test_sequences_that_say_their_lengths():
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r - steps", "y", hidden_size=3),
    ]
    constants = {"w": randn(1, 1, 12, 4), "r": randn(2, 1, 12, 3), "steps": np.int32([4, 2])}
    check(nodes, {"x": (2, LONG, 4)}, constants=constants)
