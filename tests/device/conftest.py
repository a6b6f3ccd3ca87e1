"""A user of their own for each test, servers to reach, and an emulated board."""

import arm64
import pytest
from sshd import sshd

__all__ = ["sshd"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A fresh home with an empty ~/.ssh, no devices and no ssh-agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture(scope="session")
def arm64_root():
    """The system of the board; the tests are skipped, with the reason, where it cannot be made."""
    if reason := arm64.missing():
        pytest.skip(f"the emulated board {reason}")
    return arm64.base_root()


@pytest.fixture(scope="module")
def board(arm64_root, tmp_path_factory):
    """A fresh board, gone after the module."""
    board = arm64.Board(tmp_path_factory.mktemp("board"), arm64_root)
    yield board
    board.stop()
