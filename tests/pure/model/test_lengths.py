"""Which lengths a model's inputs have, and what they are called."""

from helpers.graphs import model, node
from helpers.ranges import LONG, MOST

from ansor_deploy.model.batches import Span
from ansor_deploy.model.counted import ranges
from ansor_deploy.model.misfit import Trials


def test_a_length_of_a_name_that_an_input_has_gets_another():
    (asked,) = ranges_of({"x": (1, "n")}, {"x": (1, LONG)}, "x", "length")
    assert (asked.length, asked.places) == ("length_", (("x", 1),))
    assert not ranges_of({"x": ("n", 3)}, {"x": (LONG, 3)})  # a batch
    assert not ranges_of({"x": (1, 3)}, {"x": (1, 3)})


def ranges_of(rows, shapes, reads="x", makes="z"):
    return ranges.asked_of(Trials(model([node("Relu", reads, makes)], rows)), shapes)


def test_two_axes_of_an_input_are_of_two_lengths():
    pair = {"x": (1, LONG, LONG), "y": (1, LONG)}
    (square,) = ranges_of({"x": (1, "n", "n"), "y": (1, "n")}, pair)
    assert square.places == (("x", 1), ("x", 2), ("y", 1))
    high, wide = ranges_of({"x": (1, "high", "wide"), "y": (1, "high")}, pair)
    assert (high.length, high.places) == ("high", (("x", 1), ("y", 1)))
    assert (wide.length, wide.places) == ("wide", (("x", 2),))
    first, second = ranges_of({"x": (1, 4, 4), "y": (1, 4)}, pair)
    assert (first.places, second.places) == ((("x", 1), ("y", 1)), (("x", 2),))
    short, long = ranges_of({"x": (1, "n")}, {"x": (1, LONG), "y": (1, Span(1, 4))})
    assert [one.most for one in (short, long)] == [MOST, 4]


def test_lengths_of_other_names_are_apart_where_the_graph_takes_that():
    rows = {"a": (1, "src", 4), "b": (1, "new", 4), "mask": (1, "mask[1]", 4)}
    nodes = [node("Add", "a mask", "c"), node("Transpose", "b", "t", perm=[0, 2, 1]),
             node("MatMul", "c t", "y")]  # fmt: skip
    shapes = dict.fromkeys(rows, (1, LONG, 4))
    one, other = ranges.asked_of(Trials(model(nodes, rows)), shapes)
    assert (one.length, one.places) == ("src", (("a", 1), ("mask", 1)))
    assert (other.length, other.places) == ("new", (("b", 1),))
    together = model([node("Add", "c b", "y"), nodes[0]], {**rows, "mask": (1, "rows", 4)})
    (same,) = ranges.asked_of(Trials(together), shapes)
    assert len(same.places) == 3


def test_a_first_axis_of_time_is_a_length():
    (asked,) = ranges_of({"x": ("time", 3)}, {"x": (LONG, 3)})
    assert asked.places == (("x", 0),)
