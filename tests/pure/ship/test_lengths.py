"""Outputs of which a run decides the size: in a manifest, in Python and in C."""

import numpy as np

from ansor_deploy.runtime.model import Interface, TensorInfo, interfaces, of_true_size
from ansor_deploy.ship.describe import interface
from ansor_deploy.ship.outputs.c_header import header

BOXES = TensorInfo("boxes", (300, 4), "float32", ((0, "boxes.length"),))
PLAIN = TensorInfo("plain", (2,), "float32")
LENGTH = TensorInfo("boxes.length", (), "int64")
MADE = Interface((PLAIN,), (BOXES, PLAIN, LENGTH))


def test_a_manifest_says_which_output_holds_the_length():
    told = MADE.to_json()
    assert told["outputs"][0]["lengths"] == [[0, "boxes.length"]]
    assert "lengths" not in told["outputs"][1]
    assert interfaces(told) == [MADE]


def test_python_gives_what_counts():
    whole = {
        "boxes": np.arange(1200, dtype=np.float32).reshape(300, 4),
        "plain": np.zeros(2, np.float32),
        "boxes.length": np.array(3),
    }
    given = of_true_size(MADE.outputs, whole)
    assert given.keys() == {"boxes", "plain"}
    assert given["boxes"].tolist() == whole["boxes"][:3].tolist()
    assert given["plain"] is whole["plain"]


def test_it_is_told_in_words():
    assert MADE.gives == "boxes: float32[0..300, 4], plain: float32[2], boxes.length: int64[]"


def test_a_header_says_which_output_holds_the_length():
    (line,) = (
        one
        for one in header("m.so", [interface(MADE)]).splitlines()
        if "OUT_BOXES_COUNT" in one and "define" in one
    )
    assert line.endswith('"boxes"; along axis 0, as many count as "boxes.length" says */')
