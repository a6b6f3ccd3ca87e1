"""What becomes of a run when a board, the way to it, or this machine fails: real faults."""

import fcntl
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.cli_process import everything
from helpers.device_runs import COMMAND, HASTY, Run, measured

BATCH = r"(\d+)/\d+ trials"

pytestmark = pytest.mark.slow


@pytest.fixture
def begun(folder):
    """`begun(device, ...)`: a build on devices, of which a batch is in the registry."""
    runs = []

    def begin(*devices, program=None, words=()):
        named = [word for device in devices for word in ("--device", device)]
        options = {"program": program} if program else {}
        runs.append(Run(folder, *COMMAND, *named, *words, "--json", **options))
        runs[-1].acknowledged = int(runs[-1].until(BATCH)[1])
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


@pytest.fixture
def ended(folder):
    """`ended(run, code, *boards)`: checks how it ended, and that it left nothing anywhere."""

    def check(run, code, *boards):
        assert run.end() == code, run.told
        assert "Traceback" not in run.told
        assert measured(folder) >= run.acknowledged
        assert [board.left for board in boards] == [[] for _ in boards]
        assert everything(folder / "tmp") == {}
        made = {"net.so", "net.intoto.json", "net.json"}
        assert set(everything(folder / "out")) == (set() if code else made)
        if code == 0:
            manifest = json.loads((folder / "out/net.json").read_text())
            assert manifest["verify"]["ok"]

    return check


def test_an_agent_that_is_killed_is_started_again(made, begun, ended, folder):
    board = made()
    run = begun("pi")
    for pid in board.agents():
        os.kill(pid, signal.SIGKILL)
    ended(run, 0, board)
    assert "pi is lost" in run.told
    assert "looking for it again" in run.told
    assert len(board.bundles) == 1


def test_a_server_that_is_killed_and_comes_back(made, begun, ended):
    board = made()
    run = begun("pi")
    board.shut_door()
    run.until("looking for it again")
    assert board.left == []
    board.sshd.stop()
    board.sshd.start()
    ended(run, 0, board)


def test_a_server_that_stays_away_ends_the_run_and_the_same_command_resumes(
    made, begun, ended, folder
):
    board = made()
    run = begun("pi", program=HASTY)
    board.pull_plug()
    ended(run, 4, board)
    assert "no device is left to measure on: pi" in run.told
    assert "what was measured is kept" in run.told
    before = measured(folder)
    board.sshd.start()
    again = begun("pi")
    ended(again, 0, board)
    assert measured(folder) == before + json.loads(again.answer)["trials"]


def test_a_network_that_goes_and_comes_back(made, begun, ended, cable):
    board = made(address=cable.address, prefix=cable.prefix)
    run = begun("pi")
    cable.pull()
    run.until("looking for it again")
    cable.plug()
    ended(run, 0, board)


def test_a_network_that_stays_away_ends_the_run_and_the_agent(made, begun, ended, cable):
    board = made(address=cable.address, prefix=cable.prefix)
    run = begun("pi", program=HASTY)
    cable.pull()
    ended(run, 4, board)
    assert "no device is left to measure on: pi" in run.told


def test_a_board_that_starts_anew_gets_the_runtime_again(made, begun, ended):
    board = made()
    run = begun("pi")
    (before,) = board.bundles
    board.pull_plug()
    assert board.bundles == []
    board.sshd.start()
    ended(run, 0, board)
    assert board.bundles == [before]


def test_a_host_that_is_killed_leaves_nothing_on_the_board_and_the_run_resumes(
    made, begun, ended, folder
):
    board = made()
    killed = begun("pi")
    killed.process.kill()
    assert killed.end() == -signal.SIGKILL
    assert board.left == []
    before = measured(folder)
    assert before >= killed.acknowledged
    for left in (folder / "tmp").iterdir():
        os.utime(left, (0, 0))  # it was long ago
    again = begun("pi")
    ended(again, 0, board)
    assert measured(folder) == before + json.loads(again.answer)["trials"]


def test_ctrl_c_is_answered_with_130(made, begun, ended, folder):
    board = made()
    run = begun("pi")
    run.process.send_signal(signal.SIGINT)
    ended(run, 130, board)
    assert "interrupted; what was measured is kept" in run.told
    assert "looking for it again" not in run.told
    ended(begun("pi"), 0, board)


def test_ctrl_c_while_a_board_is_looked_for(made, begun, ended):
    board = made()
    run = begun("pi")
    board.pull_plug()
    run.until("looking for it again")
    run.process.send_signal(signal.SIGINT)
    ended(run, 130, board)


def test_ctrl_c_while_another_host_has_the_board(made, begun, ended):
    board = made()
    run = begun("pi")
    for pid in board.agents():
        os.kill(pid, signal.SIGKILL)
    with board.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run.until("for pi, which serves")
        run.process.send_signal(signal.SIGINT)
        assert run.end(patience=30) == 130
    ended(begun("pi"), 0, board)


def test_a_board_that_comes_back_with_another_key_is_not_used(made, begun, ended):
    board = made()
    run = begun("pi", program=HASTY)
    board.shut_door()
    board.sshd.new_host_key()
    ended(run, 4)  # the board's agent was killed with its server: the next one cleans up
    assert "THE HOST KEY HAS CHANGED" in run.told
    assert "what was measured is kept" in run.told


# A home of so many bytes, which the board alone sees.
SMALL_HOME = 'mount -t tmpfs -o size=300m home "$0"; exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_a_disk_that_is_full_for_a_while(made, begun, ended, tmp_path):
    """What the board cannot keep is no fault of a candidate: it is lost until there is room."""
    home = str(tmp_path / "pi" / "home")
    private = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", SMALL_HOME, home)
    board = made(prefix=private)
    run = begun("pi")
    large = Path(f"/proc/{board.sshd.pid}/root{home}/large")
    with suppress(OSError), large.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
    run.until("looking for it again")
    large.unlink()
    ended(run, 0, board)
    assert "no space left on device: " in run.told


def test_another_board_takes_over(made, begun, ended, folder):
    lost, other = made("left"), made("right")
    run = begun("right", "left", program=HASTY)
    lost.pull_plug()
    ended(run, 0, lost, other)
    assert "nothing is measured on left any more" in run.told
    assert json.loads((folder / "out/net.json").read_text())["ran_on"] == "right"
