"""A library with a range of lengths, as its callers see it."""

import json
from pathlib import Path

import numpy as np
import pytest

from ansor_deploy.errors import AnsorError, UsageError
from ansor_deploy.runtime.fit import fitting
from ansor_deploy.runtime.interface import Interface
from ansor_deploy.runtime.lengths import Lengths, tried_lengths
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
SAID = {"least": 2, "most": 8, "length": "length", "places": [["ids", 1]]}
LENGTHS = Lengths(SAID, [Interface.from_json(CALLED)])


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


def test_what_does_not_fit_is_said():
    with pytest.raises(UsageError, match="do not fit") as caught:
        fitting(Path("m.so"), LENGTHS.interfaces, feed(9), LENGTHS)
    assert caught.value.hint == "it takes ids: int64[1, 2..8], scale: float32[2]"
    wrong = {**feed(3), "scale": np.ones(3, np.float32)}
    with pytest.raises(UsageError, match=r"scale: float32\[3\] given"):
        fitting(Path("m.so"), LENGTHS.interfaces, wrong, LENGTHS)


@pytest.mark.parametrize(
    "wrong",
    [{"least": "2"}, {"most": None}, {"places": []}, {"places": [["ids"]]}, {"places": [[1, 1]]}],
)
def test_a_manifest_with_no_such_range_is_none(tmp_path, wrong):
    (tmp_path / "m.so").write_bytes(b"code")
    target = {"triple": "x86_64-linux-gnu", "cores": 1}
    whole = {**CALLED, "range": SAID, "target": target, "artifact": {"bytes": 4}}
    (tmp_path / "m.json").write_text(json.dumps(whole))
    assert read_json(tmp_path / "m.so") == whole
    (tmp_path / "m.json").write_text(json.dumps({**whole, "range": {**SAID, **wrong}}))
    with pytest.raises(AnsorError, match="not a manifest"):
        read_json(tmp_path / "m.so")


def test_lengths_that_are_tried():
    assert tried_lengths(1, 512) == (512, 321, 1)
    assert tried_lengths(1, 2) == (2, 1)
    assert tried_lengths(400, 16000) == (16000, 10001, 400)
