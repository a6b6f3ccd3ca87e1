"""Elements that are picked by index, where a run decides how many there are."""

import numpy as np
import pytest
from helpers.graphs import either, model, node, randn, run
from helpers.ranges import LONG, as_given, check, opened
from onnx import TensorProto
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

ROOM, LENGTH = LONG.most, 5
# Of each operator: its node, and the shapes of data and places. "n" is any length, which the last
# place indexes.
CASES = {
    "picked": (node("Gather", "x i", "y", axis=1), (1, "n", 4), (2,)),
    "each picked": (node("GatherElements", "x i", "y", axis=1), (1, "n", 4), (1, 3, 4)),
    "rows picked": (node("GatherND", "x i", "y"), (1, "n", 4), (3, 2)),
}  # fmt: skip


def compared(name, last):
    """What ONNX Runtime makes of the model, and of its graph for a range; zeros and a last place.

    The graph's inputs have room for the largest size, with places behind that none may read.
    """
    nodes, *shapes = CASES[name]
    used = dict(zip("xp", shapes, strict=True))
    nodes = [node("Cast", "p", "i", to=TensorProto.INT64), nodes]
    proto = model(nodes, used)
    spans = {key: tuple(LONG if k == "n" else k for k in shape) for key, shape in used.items()}
    exact = {key: [LENGTH if k == "n" else k for k in shape] for key, shape in used.items()}
    feeds = {key: randn(at, *shape) for at, (key, shape) in enumerate(exact.items())}
    feeds["p"][:] = 0
    feeds["p"].flat[-1] = last
    rooms = {}
    for key, shape in used.items():
        rooms[key] = np.full([ROOM if k == "n" else k for k in shape], 99, np.float32)
        rooms[key][tuple(map(slice, feeds[key].shape))] = feeds[key]
    graph = as_given(opened(proto, spans).to_proto())
    rooms["length"] = np.array(LENGTH, np.int64)
    return lambda: run(proto, feeds)[0], lambda: run(graph, rooms)[0]


@pytest.mark.parametrize("name", CASES)
def test_places_count_from_either_end_of_what_counts(name):
    for last in (0, LENGTH - 1, -1, -LENGTH):
        want, have = (each() for each in compared(name, last))
        np.testing.assert_array_equal(have[tuple(map(slice, want.shape))], want)


@pytest.mark.parametrize("name", CASES)
def test_a_place_beyond_what_counts_is_an_error(name):
    for last in (LENGTH, -LENGTH - 1):
        for each in compared(name, last):
            with pytest.raises((Fail, InvalidArgument), match=r"index|indice"):
                each()


def test_a_branch_that_is_not_taken_picks_anything():
    """Both branches are computed where one of them is as long as a run says."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Greater", "n p", "c"),
        either("c", "y", [node("Gather", "x p", "r", axis=1)],
               [node("Slice", "x none n one", "s"), node("Neg", "s", "t")]),
    ]  # fmt: skip
    for place in (3, 8):
        constants = {"p": np.array([place]), "none": np.array([0]), "one": np.array([1])}
        check(nodes, {"x": (1, LONG, 4)}, (12, 7, 3), constants)
