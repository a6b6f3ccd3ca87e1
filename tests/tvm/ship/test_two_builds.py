"""Two processes miss the same tasks: each is tuned once, and nobody waits for the dead."""

import signal
import subprocess

import onnx
import psutil
import pytest
from helpers.cli_inside import answer
from helpers.cli_process import PROGRAM
from helpers.graphs import dense
from helpers.processes import wait_until_gone


@pytest.fixture
def shop(tmp_path):
    onnx.save(dense(16, 32, 24, 16, 8), tmp_path / "model.onnx")
    return tmp_path


def tune(folder, trials):
    words = [
        "tune",
        "model.onnx",
        "--registry",
        "r.db",
        "--trials",
        str(trials),
        "--min-impact",
        "0%",
    ]
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


def measured(folder):
    return answer(folder, "registry", "stats", "--registry", "r.db")["measurements"]


def test_what_one_tunes_the_other_does_not(shop):
    both = [tune(shop, 12), tune(shop, 12)]
    said = [process.communicate(timeout=500)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert any("[wait] for process" in text for text in said)
    alone = answer(shop, "tune", "model.onnx", "--registry", "r.db", "--trials", 0)
    assert alone["misses"] == 0
    rows = answer(shop, "registry", "query", "--registry", "r.db")["records"]
    assert sum(row["trials"] for row in rows) == measured(shop) <= 12


def test_the_tasks_of_a_killed_process_are_free(shop):
    first = tune(shop, 10_000)
    for line in first.stderr:
        if " gone," in line:
            break
    workers = [child.pid for child in psutil.Process(first.pid).children(recursive=True)]
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_until_gone(workers)
    before = measured(shop)
    assert before > 0
    second = tune(shop, 1)
    said = second.communicate(timeout=300)[1]
    assert second.returncode == 0, said
    assert "[wait]" not in said
    assert measured(shop) == before + 1
