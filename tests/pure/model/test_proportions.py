"""Open sizes that stand in a proportion are found from the nodes in which they meet."""

import numpy as np
import pytest
from helpers.graphs import model, node, randn, run
from helpers.ranges import as_given, opened
from helpers.tried import assumed

from ansor_deploy.errors import ModelError
from ansor_deploy.model import assumed as assuming
from ansor_deploy.model import misfit
from ansor_deploy.model.batches import Span
from ansor_deploy.model.counted.ranges import asked_of
from ansor_deploy.model.misfit import Trials
from ansor_deploy.model.ranges import Range
from ansor_deploy.model.shapes import bound

# One code of `slow` counts for two of `middle` and for four of `fast`.
STAGES = [
    node("Concat", "slow slow slow slow", "four", axis=2),
    node("Concat", "middle middle", "two", axis=2),
    node("Add", "four two", "sum"), node("Add", "sum fast", "y"),
]  # fmt: skip


def test_inputs_are_scaled_until_they_fit_together():
    inputs = {"slow": (1, 4, "t0"), "middle": (1, 4, "t1"), "fast": (1, 4, "t2")}
    proto = model(STAGES, inputs)
    found = assumed(proto, {})
    assert found["slow"] == (1, 4, Span(1, 64))
    assert (found["middle"], found["fast"]) == ((1, 4, Span(2, 128, 2)), (1, 4, Span(4, 256, 4)))
    (one,) = asked_of(Trials(proto), found)
    assert one == Range(1, 64, "length", (("slow", 2), ("middle", 2), ("fast", 2)), 1, (1, 2, 4))


def test_lengths_in_proportion_are_given_by_one_number():
    nodes = [
        node("MaxPool", "fast", "m", kernel_shape=[2], strides=[2]),
        node("Add", "m slow", "y"),
    ]
    spans = {"slow": Span(1, 3), "fast": Span(2, 6, 2)}
    proto = model(nodes, dict.fromkeys(spans, (1, 4, "?")))
    whole = as_given(opened(proto, {name: (1, 4, one) for name, one in spans.items()}).to_proto())
    for length in (1, 2, 3):
        fed = {n: randn(at, 1, 4, one.step * length) for at, (n, one) in enumerate(spans.items())}
        rooms = {n: np.zeros((1, 4, one.most), np.float32) for n, one in spans.items()}
        for name, array in fed.items():
            rooms[name][:, :, : array.shape[2]] = array
        made, count = run(whole, {**rooms, "length": np.array(length, np.int64)})
        np.testing.assert_allclose(made[:, :, : int(count)], run(proto, fed)[0])


def test_both_sides_of_an_image_are_scaled():
    inputs = {"x": (1, 4, "h", "w"), "image": (1, 3, "H", "W")}
    nodes = [
        node("MaxPool", "image", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("ReduceSum", "small", "one", axes=[1]), node("Add", "x one", "y"),
    ]  # fmt: skip
    proto = model(nodes, inputs, opset=11)
    found = assumed(proto, {})
    assert [one.times(found["image"][2]) for one in found["x"][2:]] == [2, 2]
    places = [one.places for one in asked_of(Trials(proto), found)]
    assert places == [(("x", 2), ("image", 2)), (("x", 3), ("image", 3))]


def test_a_state_that_is_put_behind_a_smaller_image_is_scaled():
    inputs = {"image": (1, 3, "h", "w"), "state": (1, 4, "high", "wide")}
    nodes = [
        node("MaxPool", "image", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "small state", "y", axis=1),
    ]  # fmt: skip
    found = assumed(model(nodes, inputs), {})
    assert [one.times(found["image"][2]) for one in found["state"][2:]] == [2, 2]


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


def test_a_state_that_is_expanded_to_a_part_of_an_image_has_a_part_of_its_step():
    """As in RobustVideoMatting, whose first state may also be of one pixel."""
    nodes = [
        node("AveragePool", "image", "small", kernel_shape=[4, 4], strides=[4, 4]),
        node("Shape", "small", "sizes"), node("Expand", "state sizes", "e"),
        node("Add", "e small", "y"),
    ]  # fmt: skip
    inputs = {"image": (1, 3, "h", "w"), "state": (1, 3, "high", "wide")}
    proto = model(nodes, inputs)
    image, state = Span(96, 224, 32), Span(24, 56, 8)
    assert assumed(proto, {}) == {"image": (1, 3, image, image), "state": (1, 3, state, state)}
