"""A results file outlives the process that writes it."""

import json
import signal
import subprocess
import sys

import pytest

from benchmarks.search import results

HERE = results.Machine("cpu", 2, "isa")
PIECES = """
import sys, time
from pathlib import Path
sys.path[:0] = [sys.argv[3]]
from benchmarks.search import results
found = results.Results(Path(sys.argv[1]), results.Machine("cpu", 2, "isa"))
for piece in range(3):
    if piece == 2:
        print("ready", flush=True)
        time.sleep(float(sys.argv[2]))
    found.once("piece", {"number": piece}, lambda: {"value": piece})
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "found.jsonl"


def _never():
    raise AssertionError("it was there already")


def test_a_killed_run_loses_the_piece_under_way_and_no_more(path, pytestconfig):
    command = [sys.executable, "-c", PIECES, path, "600", pytestconfig.rootpath]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    found = results.Results(path, HERE)
    assert [found.once("piece", {"number": n}, _never) for n in (0, 1)] == [
        {"value": 0},
        {"value": 1},
    ]
    assert found.get("piece", {"number": 2}) is None


def test_a_line_that_was_cut_off_is_found_again(path):
    before = results.Results(path, HERE)
    for number in range(2):
        before.once("piece", {"number": number}, lambda: {"value": [1.5, "text"]})
    path.write_bytes(path.read_bytes()[:-7])
    after = results.Results(path, HERE)
    assert len(after.of("piece")) == 1
    assert after.once("piece", {"number": 1}, lambda: {"value": 2}) == {"value": 2}
    assert len(list(map(json.loads, path.read_text().splitlines()))) == 2


def test_another_machine_s_results_are_kept_and_not_used(path):
    results.Results(path, HERE).once("piece", {}, lambda: {"value": 1})
    there = results.Results(path, results.Machine("cpu", 1, "isa"))
    assert there.once("piece", {}, lambda: {"value": 2}) == {"value": 2}
    assert results.Results(path, HERE).once("piece", {}, _never) == {"value": 1}
