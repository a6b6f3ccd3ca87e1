"""Which sizes of a batch there is code for, and which parts a batch is run in."""

import numpy as np
import pytest

from ansor_deploy.model.batches import Batch, Span
from ansor_deploy.runtime.batches import Batches, tried_size
from ansor_deploy.runtime.interface import Interface, TensorInfo


def sizes(least, most, row, weights):
    return list(
        Batch.of(Span(least, most), {"x": (Span(least, most), 3)}, row * least, weights).sizes()
    )


def test_sizes_double_as_long_as_weights_serve_few_rows():
    assert sizes(1, 64, 10**9, 1000) == [1, 2, 4]
    assert sizes(1, 64, 2000, 4000) == [1, 2, 4, 8, 16, 32, 64]
    assert sizes(1, 3, 2000, 4000) == [1, 2]
    assert sizes(3, 100, 10**9, 1000) == [3, 6]


def batches(known, most, part):
    """Of x and twice as many lines of y, beside an input that all rows share."""
    interfaces = [
        Interface(
            (TensorInfo("w", (2,), "float32"), TensorInfo("x", (size, 3), "float32")),
            (TensorInfo("y", (2 * size,), "float32"),),
        )
        for size in known
    ]
    said = {"least": known[0], "most": most, "inputs": ["x"], "part": part}
    return Batches(said, interfaces), interfaces


def ran(known, rows, part):
    """The sizes of the parts that a batch is run in; each gives its rows' sums, twice."""
    taken, (made, interfaces) = [], batches(known, 16, part)

    x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    inputs, outputs = {"w": np.zeros(2, np.float32), "x": x}, {"y": np.zeros(2 * rows, np.float32)}
    for number, given, room in made.parts(inputs, outputs):
        taken.append(len(given["x"]))
        assert interfaces[number].inputs[1].shape == given["x"].shape
        assert given["w"].shape == (2,)
        room["y"][...] = np.repeat(given["x"].sum(axis=1), 2)
    assert np.array_equal(outputs["y"], np.repeat(x.sum(axis=1), 2))
    return taken


@pytest.mark.parametrize(
    ("rows", "parts"), [(3, [2, 1]), (5, [4, 1]), (7, [4, 2, 1]), (13, [4, 4, 4, 1])]
)
def test_rows_that_cost_are_not_filled_up(rows, parts):
    assert ran([1, 2, 4], rows, part=100) == parts


@pytest.mark.parametrize(("rows", "parts"), [(3, [4]), (5, [8]), (9, [8, 1]), (13, [8, 8])])
def test_parts_that_cost_are_filled_up(rows, parts):
    assert ran([1, 2, 4, 8], rows, part=4500) == parts


def test_what_fits_code_is_no_matter_of_parts():
    made, _ = batches([2, 4], 9, part=100)
    given = {rows: made.of({"x": np.zeros((rows, 3), np.float32)}) for rows in range(12)}
    assert [rows for rows, one in given.items() if one] == [3, 5, 6, 7, 8, 9]
    assert given[9].outputs[0].shape == (18,)
    assert made.of({}) is None
    assert made.takes == "w: float32[2], x: float32[2..9, 3]"


def test_parts_are_tried_by_one_of_each():
    assert tried_size([1, 2, 4], 100) == 7
    assert tried_size([1, 2, 4, 8], 8) == 7
    assert tried_size([1, 2], 2) is None
    assert tried_size([3, 6], 8) == 8
