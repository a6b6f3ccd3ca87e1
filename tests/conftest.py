"""What every test may not do: touch the user's files, or reach another machine."""

from __future__ import annotations

import gc
import importlib.util
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.turns import turn
from helpers.unsynced import unsynced

# The package of benchmarks, by its place: its folder also holds the checkout of what is tested.
_BENCHMARKS = Path(__file__).parents[1] / "benchmarks" / "__init__.py"
_SPEC = importlib.util.spec_from_file_location("benchmarks", _BENCHMARKS)
assert _SPEC is not None
sys.modules["benchmarks"] = importlib.util.module_from_spec(_SPEC)

# What a build tool or a service for continuous integration says to what it runs.
TOLD = ("CI", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "SOURCE_DATE_EPOCH")
XDG = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays: no collection of garbage need look through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with turn(item):
        return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write tests/golden anew.")


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """Also by children, where a shell in the background, or nohup, has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # no child inherits that


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """HOME and the XDG folders lie in a fresh folder, for this process and its children."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in XDG:
            patch.setenv(name, str(home / name.lower()))
        patch.setenv("ORT_DISABLE_TELEMETRY", "1")
        for name in TOLD:
            patch.delenv(name, raising=False)
        for name in [n for n in os.environ if n.startswith("ANSOR_DEPLOY_")]:
            if not name.startswith("ANSOR_DEPLOY_TEST_"):
                patch.delenv(name)
        yield home


@pytest.fixture(scope="session", autouse=True)
def _no_disk_is_waited_for() -> Iterator[None]:
    with unsynced():
        yield


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """A connection to anything but this machine fails the test that makes it."""
    with pytest.MonkeyPatch.context() as patch:
        for method in ("connect", "connect_ex"):
            patch.setattr(socket.socket, method, _guarded(getattr(socket.socket, method)))
        yield


def _guarded(connect: Any) -> Any:
    def guard(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            pytest.fail(f"the test tried to connect to {address!r}", pytrace=True)
        return connect(self, address)

    return guard


def _is_loopback(host: str) -> bool:
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name other than localhost would have to be looked up
        return False
