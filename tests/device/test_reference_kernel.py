"""The doctor's last check: a kernel of known result on a board that has the runtime."""

import fcntl

import pytest
from helpers.cli_inside import program
from helpers.device_runs import workplace
from helpers.plain_board import PlainBoard, add_board

from ansor_deploy.doctor.reference_kernel import check_times

pytestmark = pytest.mark.slow


@pytest.fixture
def board(tmp_path):
    made = PlainBoard(tmp_path / "pi")
    add_board(made.sshd, "pi", str(workplace(tmp_path / "work") / "board.toml"))
    yield made
    made.pull_plug()


@pytest.fixture
def examined(board, tmp_path):
    """`examined(code)`: what the doctor says, and its exit code is that."""

    def examine(code):
        result = program(tmp_path, "devices", "doctor", "pi")
        assert result.returncode == code, result.stdout + result.stderr
        return result.stdout

    return examine


@pytest.mark.parametrize(
    ("times", "level", "found"),
    [
        ([0.001, 0.00114, 0.00105], "ok", "1 to 1.14 ms"),
        ([0.001, 0.00116, 0.00105], "warn", "1 to 1.16 ms"),
    ],
)
def test_times_that_spread_are_a_warning(times, level, found):
    check = check_times(times)
    assert (check.level, check.found, bool(check.remedy)) == (level, found, level == "warn")


def test_a_board_that_does_not_run_the_kernel_rightly_fails(board, examined, tmp_path):
    assert "reference kernel" not in examined(0)
    assert program(tmp_path, "devices", "install", "pi").returncode == 0
    with board.lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another host's agent
        assert "warn  reference kernel: pi is in use by" in examined(0)
    (bundle,) = board.bundles
    (kernel,) = bundle.rglob("head_to_head.py")
    kernel.write_text(kernel.read_text().replace("a @ b", "a + b"))
    assert "FAIL  reference kernel: ValueError: the product of two matrices" in examined(4)
    (runtime,) = bundle.rglob("libtvm_runtime.so")
    runtime.write_bytes(b"torn")
    assert "FAIL  reference kernel: pi cannot run TVM's runtime" in examined(4)
    assert board.left == []
