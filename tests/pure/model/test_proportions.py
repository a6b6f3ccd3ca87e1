"""Open sizes that stand in a proportion are found from the nodes in which they meet."""

import pytest
from helpers.graphs import model, node
from helpers.tried import assumed

from ansor_deploy.errors import ModelError
from ansor_deploy.model import assumed as assuming
from ansor_deploy.model import misfit
from ansor_deploy.model.shapes import bound

# One code of `slow` counts for two of `middle` and for four of `fast`.
STAGES = [
    node("Concat", "slow slow slow slow", "four", axis=2),
    node("Concat", "middle middle", "two", axis=2),
    node("Add", "four two", "sum"), node("Add", "sum fast", "y"),
]  # fmt: skip


def test_inputs_are_scaled_until_they_fit_together():
    inputs = {"slow": (1, 4, "t0"), "middle": (1, 4, "t1"), "fast": (1, 4, "t2")}
    found = assumed(model(STAGES, inputs), {})
    assert found == {"slow": (1, 4, 64), "middle": (1, 4, 128), "fast": (1, 4, 256)}


def test_both_sides_of_an_image_are_scaled():
    inputs = {"x": (1, 4, "h", "w"), "image": (1, 3, "H", "W")}
    nodes = [
        node("MaxPool", "image", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("ReduceSum", "small", "one", axes=[1]), node("Add", "x one", "y"),
    ]  # fmt: skip
    found = assumed(model(nodes, inputs, opset=11), {})
    assert [2 * size for size in found["x"][2:]] == [*found["image"][2:]]


def test_a_state_that_is_put_behind_a_smaller_image_is_scaled():
    inputs = {"image": (1, 3, "h", "w"), "state": (1, 4, "high", "wide")}
    nodes = [
        node("MaxPool", "image", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "small state", "y", axis=1),
    ]  # fmt: skip
    found = assumed(model(nodes, inputs), {})
    assert [2 * size for size in found["state"][2:]] == [*found["image"][2:]]


def test_what_no_scaling_mends_is_left_to_the_user():
    inputs = {"x": (1, "a", 8), "z": (1, 7, "b")}
    assert not assumed(model([node("MatMul", "x z", "y")], inputs), {})


def test_no_shapes_are_tried_twice_before_a_refusal(monkeypatch):
    seen, once = [], misfit._tried
    monkeypatch.setattr(
        misfit,
        "_tried",
        lambda lean, shapes, *room: seen.append(shapes) or once(lean, shapes, *room),
    )
    inputs = {"x": (1, "a", 8), "z": (1, 7, "b")}
    trials = misfit.Trials(model([node("MatMul", "x z", "y")], inputs))
    assert not assuming.assumed(trials, {})
    with pytest.raises(ModelError, match="unknown dimensions"):
        bound(trials, {})
    assert len(seen) == len({tuple(sorted(one.items())) for one in seen}) > 1
