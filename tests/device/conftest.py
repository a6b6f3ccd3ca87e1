"""A user of their own for each test, servers to reach, and an emulated board."""

from contextlib import closing

import pytest
from helpers import arm64
from helpers.cable import laid
from helpers.device_runs import workplace
from helpers.plain_board import PlainBoard, add_board
from helpers.sshd import sshd

from ansor_deploy.devices import emulator, ssh
from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.wheels import fetch_wheels
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

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


@pytest.fixture
def inventory():
    return Inventory.find()


@pytest.fixture
def device(sshd, inventory):
    """`device(board)`: the server as a trusted device."""

    def add(board, name="pi", identity=None, jump="", trusted=True):
        key = board.key if identity is None else identity
        made = parse_url(name, board.url, "host", str(key), jump)
        inventory.put(made)
        if trusted:
            inventory.trust(name, ssh.offered_key(made, inventory))
        return made

    return add


@pytest.fixture
def connected(sshd, device):
    """A server, and a connection to it."""
    board = sshd()
    with closing(ssh.connect(device(board))) as connection:
        yield board, connection


@pytest.fixture
def folder(tmp_path):
    return workplace(tmp_path / "work")


@pytest.fixture
def made(tmp_path, folder):
    """`made(name)` gives a board that is a device of that name."""
    boards = []

    def make(name="pi", **options):
        boards.append(PlainBoard(tmp_path / name, **options))
        add_board(boards[-1].sshd, name, str(folder / "board.toml"))
        return boards[-1]

    yield make
    for board in boards:
        board.pull_plug()


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


@pytest.fixture(scope="module")
def emulated():
    """What runs a Raspberry Pi's libraries, with the wheels; skips where nothing does."""
    wheels = arm64.cache() / "wheels"
    fetch_wheels("aarch64", "3.11", wheels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emulator, "wheels_folder", lambda: wheels)
        with emulator.open_emulator(load_target("rpi3", [shipped("targets")])) as found:
            if found is None:
                pytest.skip("needs qemu-user-static, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross")
            yield found


@pytest.fixture
def cable():
    """The network of a board that is not this machine's; gone after the test."""
    with laid() as made:
        yield made
