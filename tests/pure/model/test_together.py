"""Axes of different names that have one length."""

from helpers.graphs import model, node, randn
from helpers.tried import assumed

from ansor_deploy.model.batches import Span
from ansor_deploy.model.counted import ranges
from ansor_deploy.model.misfit import Trials
from ansor_deploy.model.together import tied, together

ANY = Span(1, 128)


def test_tokens_of_an_image_and_of_a_text_with_places_of_their_own():
    """As the dynamo exporter writes Flux: each input has names of its own."""
    shapes = {"image": ("b", "s1", 2), "text": ("b", "s2", 2), "at": ("s3", 2), "of": ("s4", 2)}
    nodes = [
        node("Concat", "image text", "all", axis=1),
        node("Concat", "at of", "places", axis=0),
        node("Add", "all places", "y"),
    ]
    proto = model(nodes, shapes)
    found = assumed(proto, {})
    assert found == {"image": (1, ANY, 2), "text": (1, ANY, 2), "at": (ANY, 2), "of": (ANY, 2)}
    lengths = ranges.asked_of(Trials(proto), found)
    assert [one.places for one in lengths] == [(("image", 1), ("at", 0)), (("text", 1), ("of", 0))]


def test_what_is_added_up_has_one_length_by_any_names():
    proto = model([node("Add", "x z", "y")], {"x": ("b", "s1", 2), "z": ("b", "s2", 2)})
    found = assumed(proto, {})
    assert found == {"x": (1, ANY, 2), "z": (1, ANY, 2)}
    (length,) = ranges.asked_of(Trials(proto), found)
    assert length.places == (("x", 1), ("z", 1))


def test_rows_without_the_batch_that_others_share_are_a_list():
    """As the places of an image's patches are, beside the patches."""
    nodes = [node("MatMul", "places w", "e"), node("Add", "x e", "m"), node("Add", "m z", "y")]
    inputs = {"x": ("a", "n", 4), "z": ("a", 1, 4), "places": ("k", 3)}
    proto = model(nodes, inputs, constants={"w": randn(0, 3, 4)})
    assert assumed(proto, {}) == {"x": (1, ANY, 4), "z": (1, 1, 4), "places": (ANY, 3)}


def test_sides_of_squares_are_one_length():
    nodes = [node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("Add", "x t", "y")]
    proto = model(nodes, {"x": (1, 3, "h", "w")})
    found, side = assumed(proto, {}), Span(96, 224, 32)
    assert found == {"x": (1, 3, side, side)}
    assert [one.places for one in ranges.asked_of(Trials(proto), found)] == [(("x", 2), ("x", 3))]


def test_lengths_that_change_alone_are_not_tied():
    things = [[1], [2], [3], [4]]
    never = lambda one, other: False  # noqa: E731
    assert tied(things, lambda some: some == [[2]], never) == [[[1]], [[2]], [[3]], [[4]]]
    pair = lambda some: some in ([[2]], [[1], [4]])  # noqa: E731
    assert tied(things, pair, never) == [[[1], [4]], [[2]], [[3]]]
    odd = lambda one, other: other == [3]  # noqa: E731
    assert tied(things, lambda some: some == [[1], [3]], odd) == [[[1], [3]], [[2]], [[4]]]


def test_names_of_which_no_two_fit_stay_together():
    assert together(list("abcd"), lambda some: some == ["b"]) == ([["b"]], ["a", "c", "d"])
    assert together(list("abcd"), lambda some: False) == ([], list("abcd"))
