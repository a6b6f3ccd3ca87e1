"""Hard sigmoids and swishes that exporters write as quotients are products."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize

SUM = [node("Add", "x three", "a"), node("Clip", "a zero six", "c")]
GATES = {
    "hard sigmoid": [*SUM, node("Div", "c six", "y")],
    "hard swish": [*SUM, node("Mul", "x c", "m"), node("Div", "m six", "y")],
    "hard swish of a quotient": [*SUM, node("Div", "c six", "g"), node("Mul", "g x", "y")],
}
OTHERS = {
    "no bound": [node("Div", "x six", "q"), node("Floor", "q", "y")],
    "another bound": [*SUM, node("Div", "c seven", "y")],
    "a bound of which the reciprocal is less": [
        node("Clip", "x zero wide", "c"),
        node("Div", "c wide", "y"),
    ],
}


def after(nodes):
    bounds = {"zero": 0, "three": 3, "six": 6, "seven": 7, "wide": 41}
    proto = model(nodes, {"x": (3, 9)}, constants={n: np.float32(b) for n, b in bounds.items()})
    found = canonicalize(proto)
    assert_same(proto, found)
    return ops(found)


@pytest.mark.parametrize("nodes", GATES.values(), ids=GATES)
def test_gate_is_multiplied(nodes):
    assert "Div" not in after(nodes)


@pytest.mark.parametrize("nodes", OTHERS.values(), ids=OTHERS)
def test_other_quotients_stay(nodes):
    assert "Div" in after(nodes)
