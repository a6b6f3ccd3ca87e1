"""Which of the model's nodes a kernel computes, where a loop was written out."""

from itertools import pairwise

import numpy as np
from helpers.graphs import model, node

from ansor_deploy.model.graph import nodes
from ansor_deploy.model.graph.nodes import Origin

STEPS = 50


def test_steps_of_a_loop_are_gone_through_once_for_all_kernels(monkeypatch):
    looked, sources = [], nodes._Wires.sources
    monkeypatch.setattr(
        nodes._Wires, "sources", lambda wires, name: looked.append(name) or sources(wires, name)
    )
    constants = {"w": np.ones(4, np.float32)}
    proto = model(
        [node("Loop", "x w", "y"), node("Relu", "y", "z")], {"x": (4,)}, ("z",), constants
    )
    names = ["x", *(f"step{at}" for at in range(STEPS)), "y"]
    steps = [node("Mul", f"{one} w", other) for one, other in pairwise(names)]
    origin = Origin(proto, [*steps, node("Relu", "y", "z")], {"w"})
    for one, other in pairwise(names):
        assert [made.op for made in origin.between([one], [other])] == ["Loop"]
    assert len(looked) <= STEPS
