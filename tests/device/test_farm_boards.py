"""Jobs of a farm on boards: each board has one at a time, whoever reaches it."""

import json

import onnx
import pytest
from helpers.device_runs import Run
from helpers.farm import Farm
from helpers.graphs import dense
from helpers.plain_board import PlainBoard, add_board

TUNE = ("--registry", "r.db", "--effort", "quick", "--json")
NETS = ("a.onnx", "b.onnx", "c.onnx")

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(folder):
    for at, name in enumerate(NETS):
        onnx.save(dense(16 + at, 32 + at), folder / name)
    return folder


@pytest.fixture
def boards(tmp_path, folder):
    made = [PlainBoard(tmp_path / name) for name in ("left", "right")]
    for board, name in zip(made, ("left", "right"), strict=True):
        add_board(board.sshd, name, str(folder / "board.toml"))
    yield made
    for board in made:
        board.pull_plug()


def test_no_two_jobs_use_a_board_at_a_time(tmp_path, folder, boards):
    (tmp_path / "farm").mkdir()
    farm = Farm(tmp_path / "farm")
    try:
        for name in ("one", "two"):  # both reach both boards
            farm.worker(name, threads=2)
        run = Run(folder, "tune", *NETS, "--target", "board.toml", "--farm", farm.address, *TUNE)
        run.until(r"\.onnx +board +(one|two) +wait ")  # the third, which finds no board
        both = False
        while run.process.poll() is None:
            both = both or all(board.agents() for board in boards)
        assert run.end() == 0, run.told
    finally:
        farm.close()
    jobs = json.loads(run.answer)["jobs"]
    assert {job["device"] for job in jobs} == {"left", "right"}
    assert {job["state"] for job in jobs} == {"done"}
    assert both
