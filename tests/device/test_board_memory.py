"""A board with little memory: what does not fit is refused before it is sent, in words."""

import json
import os

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.cli_process import program, refused
from helpers.device_runs import TARGET
from helpers.plain_board import PlainBoard, add_board

MB = 10**6
# What the board's kernel says of its memory is what the file says.
LITTLE = 'mount --bind "$0" /proc/meminfo; exec "$@"'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount"),
]


class Small:
    """A board that says how much memory it has, and a folder with a model of 4 MB."""

    def __init__(self, folder):
        self.meminfo, self.folder = folder / "meminfo", folder / "work"
        self.folder.mkdir()
        self.has(900 * MB)
        private = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", LITTLE)
        self.board = PlainBoard(folder / "pi", prefix=(*private, str(self.meminfo)))
        (self.folder / "board.toml").write_text(TARGET)
        nodes = [graphs.node("MatMul", "x w", "y")]
        proto = graphs.model(nodes, {"x": (4, 1024)}, constants={"w": graphs.randn(0, 1024, 1024)})
        onnx.save(proto, self.folder / "net.onnx")
        np.save(self.folder / "x.npy", np.ones((4, 1024), np.float32))

    def has(self, size):
        self.meminfo.write_text(f"MemTotal: 1000000 kB\nMemAvailable: {size // 1024} kB\n")

    def does(self, *words):
        return program(self.folder, *words)

    def builds(self, *words):
        registry = () if "--registry" in words else ("--registry", "r.db")
        return self.does("build", "net.onnx", "--device", "pi", *registry, *words)

    def manifest(self, name):
        return json.loads((self.folder / f"{name}.json").read_text())

    def runs(self):
        return self.does("run", "net.so", "--input", "x=x.npy", "--device", "pi")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = Small(tmp_path_factory.mktemp("small"))
    yield made
    made.board.pull_plug()


@pytest.fixture
def small(made):
    """The same for each test, whose user has added the board."""
    add_board(made.board.sshd, "pi", str(made.folder / "board.toml"))
    return made


def test_a_library_that_does_not_fit_is_not_sent(small):
    small.has(900 * MB)
    built = small.builds("--trials", 0)
    assert built.returncode == 0, built.stderr
    assert small.runs().returncode == 0
    small.has(3 * MB)
    refused(
        small.runs(), 4, "its runs take 4.", "MB of memory, and pi has 3 MB free; it was not sent"
    )
    small.has(900 * MB)
    assert small.runs().returncode == 0


def test_a_model_that_does_not_fit_is_not_tuned(small):
    small.has(3 * MB)
    refused(
        small.builds("--trials", 2, "-o", "other.so"),
        4,
        "a run takes 4.2",
        "of memory, and pi has less",
    )
    assert not (small.folder / "other.so").exists()


def test_two_libraries_that_do_not_fit_together_are_not_compared(small):
    small.has(900 * MB)
    assert small.builds("--trials", 4, "-o", "tuned.so").returncode == 0
    assert small.manifest("tuned")["speed"]["verdict"] is not None
    small.has(7 * MB)
    built = small.builds("--trials", 0, "-o", "alone.so")
    assert built.returncode == 0, built.stderr
    assert "pi has no memory for two libraries" in " ".join(built.stderr.split())
    manifest = small.manifest("alone")
    assert manifest["shipped"] == "tuned"
    assert manifest["speed"]["verdict"] is None
    assert manifest["verify"]["ok"]


def test_a_task_that_does_not_fit_with_its_copies_keeps_its_default_schedule(small):
    small.has(12 * MB)
    built = small.builds("--trials", 4, "-o", "default.so", "--registry", "empty.db")
    assert built.returncode == 0, built.stderr
    assert "is not tuned: its trials take" in " ".join(built.stderr.split())
    assert small.manifest("default")["shipped"] == "untuned"
    again = small.builds("--trials", 4, "-o", "default.so", "--registry", "empty.db")
    assert "default.so is up to date" in again.stdout
    small.has(900 * MB)
    words = ("-o", "default.so", "--registry", "empty.db", "--retune", "all")
    assert small.builds("--trials", 4, *words).returncode == 0
    assert small.manifest("default")["tuning"]["trials"] == 4
