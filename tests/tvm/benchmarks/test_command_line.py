"""`python -m benchmarks`: its names, their pages of help, and the smallest run of what is cheap."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import NAMES, main
from benchmarks.machine import peak
from benchmarks.registry import large, team

HEAVY = ("tvm", "onnx", "numpy", "ansor_deploy")
LISTED = f"""
import sys
from benchmarks.__main__ import main
main(["--help"], standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_names_are_listed_and_none_is_imported(pytestconfig):
    command = [sys.executable, "-c", LISTED]
    env = os.environ | {"PYTHONPATH": str(pytestconfig.rootpath)}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    *lines, heavy = said.split("Benchmarks:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert heavy == "[]"


def test_the_page_has_a_line_for_each(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "benchmarks.md").read_text("utf-8")
    assert [name for name in NAMES if f"\npython -m benchmarks {name} " not in page] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_says_what_it_is(name):
    said = CliRunner().invoke(main, [name, "--help"])
    assert said.exit_code == 0, said.output
    assert f" {name} " in said.output.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "small", "keys"),
    [
        ("peak", (peak, {"ROUNDS": 1, "FMA_STEPS": 10, "TRIAD_ELEMENTS": 1 << 12}), "gflops"),
        ("registry", (large, {"WORKLOADS": 60, "LOOKUPS": 10, "PLANNED": 5}), "lookup_p99_ms"),
        ("team", (team, {}), "offline"),
    ],
)
def test_the_smallest_run(name, small, keys, monkeypatch, tmp_path):
    monkeypatch.setenv("TVM_NUM_THREADS", "2")  # which a benchmark sets
    module, sizes = small
    for constant, value in sizes.items():
        monkeypatch.setattr(module, constant, value)
    words = [name, "--json", str(tmp_path / "found.json")]
    words += ["--records", "20"] if name in ("registry", "team") else []
    words += ["--tasks", "9", "--asked", "3", "--rounds", "1"] if name == "team" else []
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert json.loads((tmp_path / "found.json").read_text())[keys] > 0
