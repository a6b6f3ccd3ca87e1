"""Models that once ended the tool, or came out wrong: each is refused, or built.

`python -m benchmarks fuzz` found them; its findings are added here under a name for their cause.
"""

from pathlib import Path

import pytest
from helpers.cli_inside import program

FOUND = Path(__file__).parents[2] / "assets" / "findings" / "models"
BUILT = {"division-by-zero", "keepdims-that-is-no-flag"}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOUND.iterdir()))
def test_what_once_ended_the_tool(tmp_path, name):
    words = ("--trials", "0", "--registry", "r.db", "-o", "net.so")
    result = program(tmp_path, "build", FOUND / f"{name}.onnx", *words)
    assert result.returncode == (0 if name in BUILT else 3)
    assert (tmp_path / "net.so").exists() == (name in BUILT)
