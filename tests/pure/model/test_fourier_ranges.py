"""Fourier transforms along axes of any length."""

import numpy as np
import pytest
from helpers.graphs import model, node
from helpers.ranges import LONG, check, opened


@pytest.mark.parametrize(
    ("parts", "words"), [(1, {"onesided": 1}), (1, {"inverse": 1}), (2, {"inverse": 1}), (2, {})]
)
def test_transforms_of_what_counts(parts, words):
    """Half of a spectrum is that of real numbers."""
    check([node("DFT", "x", "y", axis=1, **words)], {"x": (2, LONG, parts)}, (12, 7, 1))


def test_both_axes_one_after_the_other():
    """As FNet does it, which takes the real part."""
    nodes = [
        node("DFT", "x", "columns", axis=2),
        node("DFT", "columns", "both", axis=1),
        node("Gather", "both real", "y", axis=-1),
    ]
    check(nodes, {"x": (1, LONG, 6, 1)}, (12, 7, 1), {"real": np.array(0)})


def test_a_length_that_is_said():
    nodes = [
        node("Shape", "x", "whole"),
        node("Gather", "whole one", "count"),
        node("DFT", "x count", "y", axis=1),
    ]
    check(nodes, {"x": (1, LONG, 1)}, constants={"one": np.array(1)})


def test_angles_are_looked_up_as_far_as_they_count():
    """Their places are said to be in range: a check of them would compute all that has room."""
    graph = opened(model([node("DFT", "x", "y", axis=1)], {"x": (1, "n", 2)}), {"x": (1, LONG, 2)})
    makers = {name: one.op_type for one in graph.nodes for name in one.output}
    turns = {name for one in graph.nodes if one.op_type == "Places" for name in one.input[:1]}
    assert {makers[name] for name in turns} == {"Mod"}
