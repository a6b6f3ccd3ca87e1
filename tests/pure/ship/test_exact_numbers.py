"""What a quantised network's integers come to is known to the last bit, and nothing else is right.

A wrong library is what NumPy makes of the graph with a fault in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pytest
from helpers.graphs import node, run, typed
from onnx import helper, numpy_helper

from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.evaluation import evaluated
from ansor_deploy.model.graph.places import Node, Place
from ansor_deploy.request import Tolerance
from ansor_deploy.runtime.interface import Interface, TensorInfo
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.verify import verify_model

RNG = np.random.default_rng(0)
# Sums of eighths in steps of quarters: half of the ways to a next step are ties.
CONSTANTS = {
    "xs": np.float32(0.25), "xz": np.uint8(3), "ws": np.float32(0.5), "wz": np.int8(0),
    "ys": np.float32(0.25), "yz": np.uint8(7), "w": RNG.integers(-2, 3, (4, 3, 3, 3), np.int8),
    "b": RNG.integers(-9, 9, 4).astype(np.int32),
    "m": RNG.integers(-2, 3, (4, 5), np.int8),
}  # fmt: skip


def network():
    """A convolution, the largest of windows, and a product, of bytes that lie in a run's input."""
    nodes = [
        node("QLinearConv", "x xs xz w ws wz ys yz b", "c", pads=[1] * 4),
        node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", "p", "t", perm=[0, 2, 3, 1]),
        node("QLinearMatMul", "t ys yz m ws wz ys yz", "q"),
        node("DequantizeLinear", "q ys yz", "y"),
    ]
    made = {"c": ("uint8", (1, 4, 8, 8)), "y": ("float32", (1, 4, 4, 5))}
    return typed(nodes, {"x": ("uint8", (1, 3, 8, 8))}, made, CONSTANTS)


@dataclass
class Evaluated:
    """A library that is the evaluation of a graph; the first element of y is off by some steps."""

    graph: object
    steps: int = 0
    batches: None = None
    interfaces: list[Interface] = field(
        default_factory=lambda: [
            Interface(
                (TensorInfo("x", (1, 3, 8, 8), "uint8"),),
                (TensorInfo("c", (1, 4, 8, 8), "uint8"), TensorInfo("y", (1, 4, 4, 5), "float32")),
            )
        ]
    )

    def __call__(self, **inputs):
        made = evaluated(self.graph, inputs, ["c", "y"])
        made["y"].reshape(-1)[0] += self.steps * CONSTANTS["ys"]
        return made


def verified(graph, islands=(), allowed=MappingProxyType({}), steps=0):
    return verify_model(Evaluated(graph, steps), [Oracle(network(), 1)], 0, allowed, islands)


def the(graph, op, at=0):
    return [one for one in graph.nodes if one.op_type == op][at]


def before(graph, one, op, constant):
    """Put an operation with a constant before a node's first input."""
    name = graph.add_constant(np.asarray(constant), "fault")
    made = helper.make_node(op, [one.input[0], name], [graph.fresh("faulty")])
    graph.replace(one, [made, one])
    one.input[0] = made.output[0]


def changed(graph, name, change):
    """Another value of a constant."""
    value = change(graph.value(name)).astype(graph.value(name).dtype)
    graph.constants[name] = numpy_helper.from_array(value, name)


def half_up(graph):
    rounding = the(graph, "Round")
    before(graph, rounding, "Add", np.float32(0.5))
    rounding.op_type = "Floor"


def cut_off(graph):
    the(graph, "Round").op_type = "Floor"


def other_scale(graph):
    changed(graph, the(graph, "Mul").input[1], lambda factor: factor * 1.02)


def other_zero_point(graph):
    before(graph, the(graph, "ConvInteger"), "Max", np.uint8(4))


def border_of_zeros(graph):
    """Where it is the zero point that stands for zero."""
    conv = the(graph, "ConvInteger")
    kept = [one for one in conv.attribute if one.name != "pads"]
    del conv.attribute[:]
    conv.attribute.extend(kept)
    pads = graph.add_constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads")
    made = helper.make_node("Pad", [conv.input[0], pads], [graph.fresh("padded")])
    graph.replace(conv, [made, conv])
    conv.input[0] = made.output[0]


def one_weight(graph):
    def change(weight):
        weight = weight.copy()
        weight.reshape(-1)[17] += 1
        return weight

    changed(graph, the(graph, "ConvInteger").input[1], change)


def last_bias(graph):
    def change(bias):
        return bias + (np.arange(bias.size).reshape(bias.shape) == bias.size - 1)

    changed(graph, the(graph, "Add").input[1], change)


def saturated_pairs(graph):
    """Sums that are cut off, as those of 16 bits are: here of fewer, for small numbers."""
    before(graph, the(graph, "Cast"), "Min", np.int32(60))


FAULTS = [
    half_up, cut_off, other_scale, other_zero_point, border_of_zeros, one_weight, last_bias,
    saturated_pairs,
]  # fmt: skip


def test_the_evaluation_is_the_oracles():
    proto = network()
    x = RNG.integers(0, 256, (1, 3, 8, 8)).astype(np.uint8)
    found = evaluated(canonical_graph(proto), {"x": x}, ["c", "y"])
    for name, want in zip(("c", "y"), run(proto, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[name], want)


def test_a_right_library_is_proved():
    found = verified(canonical_graph(network()))
    assert (found.ok, found.exact) == (True, ("c", "y"))


def test_one_step_of_one_element_is_seen():
    graph = canonical_graph(network())
    assert verified(graph, None, steps=1).ok  # ONNX Runtime alone says no more
    found = verified(graph, steps=1)
    assert found.wrong.keys() == {"y"}
    assert "what its integers come to" in found.wrong["y"]


def test_what_hangs_on_an_island_is_not_held_to_it():
    island = Place(0, (Node("q", "QLinearMatMul"),))
    found = verified(canonical_graph(network()), [island], steps=1)
    assert (found.ok, found.exact) == (True, ("c",))


def test_nor_is_what_may_differ_by_more():
    found = verified(canonical_graph(network()), allowed={"y": Tolerance(atol=1.0)}, steps=1)
    assert (found.ok, found.exact) == (True, ("c",))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__)
def test_a_wrong_one_is_refused(fault):
    graph = canonical_graph(network())
    fault(graph)
    found = verified(graph)
    assert not found.ok
    assert set(found.wrong) == {"c", "y"}
