"""A network namespace for a board, with a cable that can be pulled."""

from __future__ import annotations

import ipaddress
import os
import random
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ADDRESSES = ipaddress.ip_network("10.231.0.0/16")


class Cable:
    """A network namespace, joined to this one by a pair of virtual interfaces.

    address: that of the other end.
    """

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.prefix = ("ip", "netns", "exec", name)  # for commands that run at the other end

    def pull(self) -> None:
        """Disconnect: no socket is closed, but nothing answers any more."""
        ip("link", "set", self.name, "down")

    def plug(self) -> None:
        """Reconnect: the other end answers again."""
        ip("link", "set", self.name, "up")


@contextmanager
def laid() -> Iterator[Cable]:
    """A cable; the test is skipped where that cannot be made.

    Its addresses are random, since a killed run leaves its own behind.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make a network to cut")
    name, block = f"ansor-{uuid.uuid4().hex[:6]}", random.randrange(1 << 14)
    here, there = (str(ADDRESSES[4 * block + end]) for end in (1, 2))
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{here}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "addr", "add", f"{there}/30", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        yield Cable(name, there)
    finally:
        ip("netns", "del", name)


def ip(*words: str) -> None:
    """Run iproute2's program."""
    command = ["ip", *words]
    subprocess.run(command, check=True, capture_output=True)
