"""A library with a range of lengths, as its callers see it."""

import json
from pathlib import Path

import numpy as np
import pytest

from ansor_deploy.errors import AnsorError, UsageError
from ansor_deploy.runtime.fit import fitting
from ansor_deploy.runtime.interface import Interface
from ansor_deploy.runtime.lengths import Lengths, tried_together
from ansor_deploy.runtime.manifest_json import read_json

CALLED = {
    "inputs": [
        {"name": "ids", "shape": [1, 8], "dtype": "int64"},
        {"name": "scale", "shape": [2], "dtype": "float32"},
        {"name": "length", "shape": [], "dtype": "int64"},
    ],
    "outputs": [
        {"name": "y", "shape": [1, 8, 4], "dtype": "float32", "lengths": [[1, "y.length"]]},
        {"name": "y.length", "shape": [], "dtype": "int64"},
    ],
}
SAID = {"least": 2, "most": 8, "step": 1, "length": "length", "places": [["ids", 1]]}
LENGTHS = Lengths([SAID], [Interface.from_json(CALLED)])


def feed(length):
    return {"ids": np.arange(length)[None], "scale": np.ones(2, np.float32)}


def test_what_it_takes():
    assert LENGTHS.takes == "ids: int64[1, 2..8], scale: float32[2]"
    assert [one.input_shapes["ids"] for one in LENGTHS.interfaces] == [(1, 8), (1, 5), (1, 2)]
    assert LENGTHS.of(feed(1)) is None
    assert LENGTHS.of(feed(9)) is None
    assert LENGTHS.of({}) is None


def test_what_its_function_gets():
    ((number, inputs, _),) = LENGTHS.parts(feed(3), {})
    assert number == 0
    assert inputs["ids"].tolist() == [[0, 1, 2, 0, 0, 0, 0, 0]]
    assert int(inputs["length"]) == 3
    whole = feed(8)
    ((_, inputs, _),) = LENGTHS.parts(whole, {})
    assert inputs["ids"] is whole["ids"]


def test_results_belong_to_the_caller_and_small_ones_leave_their_room():
    rooms = []

    def run(length):
        def write(outputs):
            rooms.append(outputs["y"])
            outputs["y"][:, :length] = length
            outputs["y.length"][...] = length

        return LENGTHS.results(write)["y"]

    small, again, large, last = run(3), run(4), run(8), run(2)
    assert rooms[0] is rooms[1] is rooms[2]
    assert rooms[3] is not rooms[2]
    for length, found in ((3, small), (4, again), (8, large), (2, last)):
        np.testing.assert_array_equal(found, np.full((1, length, 4), length, np.float32))


def test_what_does_not_fit_is_said():
    with pytest.raises(UsageError, match="do not fit") as caught:
        fitting(Path("m.so"), LENGTHS.interfaces, feed(9), LENGTHS)
    assert caught.value.hint == "it takes ids: int64[1, 2..8], scale: float32[2]"
    wrong = {**feed(3), "scale": np.ones(3, np.float32)}
    with pytest.raises(UsageError, match=r"scale: float32\[3\] given"):
        fitting(Path("m.so"), LENGTHS.interfaces, wrong, LENGTHS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": "2"},
        {"step": None},
        {"most": None},
        {"places": []},
        {"places": [["ids"]]},
        {"places": [[1, 1]]},
    ],
)
def test_a_manifest_with_no_such_range_is_none(tmp_path, wrong):
    (tmp_path / "m.so").write_bytes(b"code")
    target = {"triple": "x86_64-linux-gnu", "cores": 1}
    whole = {**CALLED, "ranges": [SAID], "target": target, "artifact": {"bytes": 4}}
    (tmp_path / "m.json").write_text(json.dumps(whole))
    assert read_json(tmp_path / "m.so") == whole
    (tmp_path / "m.json").write_text(json.dumps({**whole, "ranges": [{**SAID, **wrong}]}))
    with pytest.raises(AnsorError, match="not a manifest"):
        read_json(tmp_path / "m.so")


def test_lengths_that_are_tried():
    assert tried_together([(1, 512, 1)]) == [(512,), (321,), (1,)]
    assert tried_together([(1, 2, 1)]) == [(2,), (1,)]
    assert tried_together([(320, 640, 32)]) == [(640,), (416,), (320,)]
    together = [(64, 64), (40, 40), (8, 64), (8, 16)]
    assert tried_together([(8, 64, 8), (16, 64, 8)]) == together


SIZES = Lengths(
    [
        {"least": 8, "most": 64, "step": 8, "length": "height", "places": [["x", 1], ["mask", 0]]},
        {"least": 2, "most": 5, "step": 1, "length": "width", "places": [["x", 2]]},
    ],
    [
        Interface.from_json(
            {
                "inputs": [
                    {"name": "x", "shape": [1, 64, 5], "dtype": "int64"},
                    {"name": "mask", "shape": [64], "dtype": "int64"},
                    {"name": "height", "shape": [], "dtype": "int64"},
                    {"name": "width", "shape": [], "dtype": "int64"},
                ],
                "outputs": [],
            }
        )
    ],
)


def test_axes_that_are_multiples_of_a_length():
    said = {"least": 1, "most": 4, "step": 1, "length": "n", "places": [["x", 0], ["z", 1]]}
    inputs = [{"name": "x", "shape": [4], "dtype": "int64"}]
    inputs += [{"name": "z", "shape": [2, 12], "dtype": "int64"}]
    inputs += [{"name": "n", "shape": [], "dtype": "int64"}]
    called = Interface.from_json({"inputs": inputs, "outputs": []})
    codes = Lengths([{**said, "times": [1, 3]}], [called])
    assert codes.takes == "x: int64[1..4], z: int64[2, 3..12:3]"
    fed = {"x": np.ones(2, np.int64), "z": np.ones((2, 6), np.int64)}
    ((_, given, _),) = codes.parts(fed, {})
    assert (int(given["n"]), given["z"].sum()) == (2, 12)
    assert codes.of(fed).input_shapes == {"x": (2,), "z": (2, 6)}
    with pytest.raises(UsageError, match="do not fit"):
        fitting(Path("m.so"), codes.interfaces, {**fed, "z": np.ones((2, 5), np.int64)}, codes)


def image(height, width, rows=None):
    return {"x": np.ones((1, height, width), np.int64), "mask": np.ones(rows or height, np.int64)}


def test_lengths_that_are_apart():
    assert SIZES.takes == "x: int64[1, 8..64:8, 2..5], mask: int64[8..64:8]"
    ((_, inputs, _),) = SIZES.parts(image(16, 3), {})
    assert inputs["x"].sum() == 16 * 3
    assert (int(inputs["height"]), int(inputs["width"])) == (16, 3)
    assert SIZES.of(image(16, 3)).input_shapes == {"x": (1, 16, 3), "mask": (16,)}


@pytest.mark.parametrize("size", [(16, 6), (17, 3), (0, 3), (72, 3), (16, 3, 24)])
def test_sizes_that_are_in_no_range(size):
    with pytest.raises(UsageError, match="do not fit"):
        fitting(Path("m.so"), SIZES.interfaces, image(*size), SIZES)
