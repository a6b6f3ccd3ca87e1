"""Convolutions of one tensor that are added up are one, where none gets more work by it."""

import pytest
from helpers.graphs import assert_same, batch_norm, model, node, ops, randn

from ansor_deploy.model.canonicalize import canonicalize

BN = "n.s n.b n.m n.v"
SAME = {"pads": [1, 1, 1, 1]}


def added(first, second, channels=4, size=9, weights=((4, 4, 3, 3), (4, 4, 1, 1))):
    """Two convolutions of x that are added up. first, second: their attributes."""
    nodes = [
        node("Conv", "x v a", "c", **first),
        node("Conv", "x w", "d", **second),
        node("Add", "c d", "s"),
        node("Relu", "s", "y"),
    ]
    shapes = zip("vw", weights, strict=True)
    constants = {name: randn(at, *shape) for at, (name, shape) in enumerate(shapes)}
    constants["a"] = randn(7, weights[0][0])
    return model(nodes, {"x": (2, channels, size, size)}, constants=constants)


def check(proto, want):
    after = canonicalize(proto)
    assert ops(after) == want
    assert_same(proto, after, 1e-5)


@pytest.mark.parametrize(
    ("first", "second", "weights"),
    [
        (SAME, {}, ((4, 4, 3, 3), (4, 4, 1, 1))),
        (SAME, SAME, ((6, 4, 3, 3), (6, 4, 3, 3))),
        ({**SAME, "strides": [2, 2]}, {"strides": [2, 2]}, ((4, 4, 3, 3), (4, 4, 1, 1))),
        ({**SAME, "group": 4}, {"pads": [2] * 4, "group": 4}, ((4, 1, 3, 3), (4, 1, 5, 5))),
        ({**SAME, "group": 2}, {"group": 2}, ((6, 2, 3, 3), (6, 2, 1, 1))),
        ({**SAME, "group": 2}, {"group": 4}, ((4, 2, 3, 3), (4, 1, 1, 1))),
        ({"pads": [1, 0, 1, 0]}, {}, ((4, 4, 3, 1), (4, 4, 1, 1))),
        ({"pads": [2] * 4, "dilations": [2, 2]}, {}, ((4, 4, 3, 3), (4, 4, 1, 1))),
        ({"pads": [2] * 4}, {"pads": [2] * 4, "dilations": [2, 2]}, ((4, 4, 5, 5), (4, 4, 3, 3))),
    ],
)
def test_two_of_which_one_has_room_for_the_other(first, second, weights):
    check(added(first, second, weights=weights), ["Conv", "Relu"])


@pytest.mark.parametrize(
    ("first", "second", "weights"),
    [
        ({"pads": [1, 0, 1, 0]}, {"pads": [0, 1, 0, 1]}, ((4, 4, 3, 1), (4, 4, 1, 3))),
        ({"group": 4, **SAME}, {}, ((4, 1, 3, 3), (4, 4, 1, 1))),
        ({"pads": [2] * 4, "dilations": [2, 2]}, SAME, ((4, 4, 3, 3), (4, 4, 3, 3))),
        ({"pads": [1] * 4}, {"pads": [2, 2, 0, 0]}, ((4, 4, 3, 3), (4, 4, 3, 3))),
    ],
    ids=["crossed", "more work", "dilated", "elsewhere"],
)
def test_two_of_which_none_has_room_stay(first, second, weights):
    check(added(first, second, weights=weights), ["Conv", "Conv", "Add", "Relu"])


@pytest.mark.parametrize("op", ["first second", "second first"])
def test_one_that_is_subtracted(op):
    places = dict(zip(op.split(), "cd", strict=True))
    nodes = [
        node("Conv", "x v a", places["first"], **SAME),
        node("Conv", "x w", places["second"]),
        node("Sub", "c d", "y"),
    ]
    constants = {"v": randn(0, 4, 4, 3, 3), "w": randn(1, 4, 4, 1, 1), "a": randn(2, 4)}
    check(model(nodes, {"x": (1, 4, 5, 5)}, constants=constants), ["Conv"])


@pytest.mark.parametrize("group", [1, 2, 4])
def test_a_row_of_branches_and_a_batch_norm_beside_them(group):
    nodes = [
        node("Relu", "x0", "x"),
        node("BatchNormalization", f"x {BN}", "i", epsilon=1e-3),
        node("Conv", "x u", "c", group=group, **SAME),
        node("Conv", "x v", "d", group=group, **SAME),
        node("Conv", "x w", "e", group=group),
        node("Add", "c d", "cd"),
        node("Add", "cd e", "cde"),
        node("Add", "cde zero", "all"),
        node("Add", "all i", "y"),
    ]
    taps = {"u": 3, "v": 3, "w": 1}
    constants = {k: randn(n, 4, 4 // group, n, n) for k, n in taps.items()}
    constants |= {**batch_norm("n", 4), "zero": randn(9, 1) * 0}
    proto = model(nodes, {"x0": (1, 4, 7, 7)}, constants=constants)
    check(proto, ["Relu", "Conv"])


def test_what_something_else_reads_stays():
    nodes = [node("Conv", "x v", "c"), node("Conv", "x w", "d"), node("Add", "c d", "y")]
    constants = {name: randn(at, 4, 4, 1, 1) for at, name in enumerate("vw")}
    proto = model(
        [*nodes, node("Relu", "c", "z")], {"x": (1, 4, 5, 5)}, ("y", "z"), constants=constants
    )
    check(proto, ["Conv", "Conv", "Add", "Relu"])
    data = {"x": (1, 4, 5, 5), "t": (1, 4, 5, 5)}
    nodes[1] = node("Conv", "t w", "d")
    check(model(nodes, data, constants=constants), ["Conv", "Conv", "Add"])
