"""A network namespace for a board, with a cable that can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.turns import locked

HERE, THERE = "10.231.77.1", "10.231.77.2"


class Cable:
    """A network namespace, joined to this one by a pair of virtual interfaces."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.prefix = ("ip", "netns", "exec", name)  # for commands that run at the other end

    def pull(self) -> None:
        """Disconnect: no socket is closed, but nothing answers any more."""
        ip("link", "set", self.name, "down")

    def plug(self) -> None:
        """Reconnect: the other end answers again."""
        ip("link", "set", self.name, "up")


@contextmanager
def laid() -> Iterator[Cable]:
    """A cable between HERE and THERE; the test is skipped where that cannot be made."""
    name = f"ansor-{uuid.uuid4().hex[:6]}"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make a network to cut")
    with locked(Path(tempfile.gettempdir(), "ansor-deploy-tests.cable")):  # the addresses are fixed
        yield from _laid(name)


def _laid(name: str) -> Iterator[Cable]:
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{HERE}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "addr", "add", f"{THERE}/30", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        yield Cable(name)
    finally:
        ip("netns", "del", name)


def ip(*words: str) -> None:
    """Run iproute2's program."""
    command = ["ip", *words]
    subprocess.run(command, check=True, capture_output=True)
