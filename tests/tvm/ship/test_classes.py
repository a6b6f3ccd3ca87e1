"""A classifier with maps and text becomes a library of numbers; its build says what they mean."""

import json

import numpy as np
import onnx
from helpers.cli_inside import program
from helpers.graphs import randn, run
from helpers.named_classes import NAMES, by_label

from ansor_deploy.runtime import load


def test_it_is_verified_and_gives_rows_and_places(tmp_path):
    onnx.save(by_label(), tmp_path / "model.onnx")
    built = program(tmp_path, "build", "model.onnx", "--trials", 0, "--beside", "none")
    assert built.returncode == 0, built.stderr
    told = "warning: maps, text: numbers stand for maps or text; 'labels' in model.json says"
    assert told in " ".join(built.stderr.split())
    manifest = json.loads((tmp_path / "model.json").read_text())
    assert manifest["labels"] == {"maps": list(NAMES), "text": list(NAMES)}
    assert manifest["verify"]["ok"]
    have = load(tmp_path / "model.so")(x=(x := randn(0, 9, 6)))
    maps, text = run(by_label(), {"x": x})
    np.testing.assert_allclose(have["maps"], [list(row.values()) for row in maps], rtol=1e-5)
    assert [NAMES[place] for place in have["text"]] == list(text)
