"""The examples' program: it must print what ONNX Runtime computes."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import onnx
import pytest

from helpers.graphs import run as reference

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHARED = EXAMPLES / "classifier"
IMAGES = ("vertical", "falling")

sys.path.append(str(SHARED))
from stripes_model import DIRECTIONS  # noqa: E402 - from the examples' folder


def require_avx2() -> None:
    """Skip the test where code for the examples' target cannot run."""
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the examples are for a processor with AVX2")


def assert_classifies(program: Path, library: Path, model: Path = SHARED / "stripes.onnx") -> None:
    """The program, built with this model's library, prints each image's right probabilities."""
    for name in IMAGES:
        image = SHARED / f"{name}.pgm"
        done = run([program, library, image], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed = dict(line.split() for line in done.stdout.splitlines())
        (wanted,) = reference(onnx.load(model), {"image": _pixels(image)})
        assert list(printed) == list(DIRECTIONS)
        have = [float(value) for value in printed.values()]
        np.testing.assert_allclose(have, wanted[0], rtol=0, atol=2e-6)  # it prints six digits


def _pixels(image: Path) -> np.ndarray:
    """A plain PGM image as the model's input."""
    magic, width, height, white, *values = image.read_text().split()
    assert magic == "P2"
    shape = (1, 1, int(height), int(width))
    return np.array(values, np.float32).reshape(shape) / np.float32(white)
