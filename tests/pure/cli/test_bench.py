"""What `bench` says of the times of runs, and what it writes to a file."""

import json
from pathlib import Path

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.runtime import Interface
from ansor_deploy.runtime.interface import TensorInfo
from ansor_deploy.ship.race import timing


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A folder with a library, and the times of its runs in each shape."""
    timed = []
    monkeypatch.setattr(timing, "bench", lambda *_: timed)
    monkeypatch.setattr(timing, "split_of", lambda *_: (2, 1))
    (tmp_path / "net.so").touch()
    return tmp_path, timed


def times(rows, seconds):
    """The times of runs with so many rows."""
    return timing.Timing(Interface((TensorInfo("x", (rows, 3), "float32"),), ()), seconds, [])


def test_percentiles(library):
    folder, timed = library
    timed.append(times(1, [n / 1e3 for n in range(11)]))
    said = program(folder, "bench", "net.so").stdout
    percentiles = "median 5.00 ms, p10 1.00 ms, p90 9.00 ms, p95 9.50 ms, p99 9.90 ms"
    assert said == f"{percentiles}; 200 a second (11 runs)\n"
    known = {"median_ms": 5, "p10_ms": 1, "p90_ms": 9, "p95_ms": 9.5, "p99_ms": 9.9}
    known |= {"per_second": 200, "runs": 11, "streams": 1}
    assert answer(folder, "bench", "net.so") == pytest.approx(known)


def test_the_time_of_each_run(library):
    folder, timed = library
    timed += [times(rows, [0.002, 0.001]) for rows in (1, 2)]
    for name in ("runs.csv", "runs.json"):
        assert program(folder, "bench", "net.so", "--times", name).returncode == 0
    rows = ["inputs,ms", '"x=1,3",2.0', '"x=1,3",1.0', '"x=2,3",2.0', '"x=2,3",1.0']
    assert Path(folder, "runs.csv").read_text().splitlines() == rows
    shapes = [{"inputs": {"x": [rows, 3]}, "ms": [2.0, 1.0]} for rows in (1, 2)]
    assert json.loads(Path(folder, "runs.json").read_text()) == {"times": shapes}
    refused(program(folder, "bench", "net.so", "--times", "runs.txt"), 2, "no .csv or .json")
    rated = ("--times", "runs.csv", "--rate", "10/s")
    refused(program(folder, "bench", "net.so", *rated), 2, "leave out --times")
