"""A board as a place where candidates run, over any connection that can start a program."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import DeviceError, DeviceLost
from ..system.worker import WorkerFailure
from .connection import Connection
from .facts import PYTHON
from .frames import CHUNK
from .install import install, look_at
from .link import PING_SECONDS, SILENCE_SECONDS, Link

WAIT_SECONDS = 600.0  # for another host to be done with the board
_ANSWER_SECONDS = 60.0
_START_SECONDS = 180.0  # of a worker, before a call: slow cards, slow processors
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from ansor_deploy.devices.agent import main; main({cache!r}, {cores}, {silence})"
)


def open_site(
    name: str,
    connect: Callable[[], Connection],
    cores: int,
    wheels: Path | None = None,
    waiting: Callable[[str], None] = lambda holder: None,
    patience: float = WAIT_SECONDS,
) -> RemoteSite:
    """Install the runtime on a board unless it is there, start an agent, and wait for its turn.

    cores: how many the candidates take. wheels: the folder that `fetch_wheels` filled. waiting:
    told who has the board while another has. patience: seconds to wait for that.
    DeviceError where the board cannot be used; DeviceLost where trying again may help.
    """
    connection = connect()
    try:
        board = look_at(name, connection)
        root = install(name, connection, board, wheels)
        boot = _BOOT.format(root=root, cache=board.cache, cores=cores, silence=SILENCE_SECONDS)
        link = Link(name, connection.open(f"exec {PYTHON} -c {shlex.quote(boot)}"), PING_SECONDS)
        try:
            site = RemoteSite(name, connection, link, link.greeting(patience, waiting))
            site.check()
        except BaseException:
            link.close()
            raise
    except BaseException:
        connection.close()
        raise
    return site


class RemoteSite:
    """A `Site` on a board. info: what its agent told: session, pid, arch, python, cores, boot."""

    remote = True

    def __init__(self, name: str, connection: Connection, link: Link, info: dict[str, Any]) -> None:
        self.name = name
        self.info = info
        self._connection = connection
        self._link = link
        self._names = itertools.count()

    def check(self) -> None:
        """DeviceError where the board's worker does not start."""
        try:
            self.call("ansor_deploy.devices.served:threads", {}, _ANSWER_SECONDS)
        except (WorkerFailure, _BoardFault) as failure:
            reason = failure.message.removeprefix(f"{self.name}: ")
            raise DeviceError(
                f"{self.name} cannot run TVM's runtime: {reason}",
                "install what is missing there (Debian: apt-get install libstdc++6)",
            ) from failure

    def start(self) -> None:
        """Nothing: the agent starts the process, and starts it again whenever it was killed."""

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """As `Worker.call`; DeviceLost where the board or the connection is at fault."""
        limit = timeout + _START_SECONDS
        value, _ = self._ask("call", limit, function=function, payload=payload, timeout=timeout)
        return value

    def put(self, path: Path) -> str:
        """Send a file, in parts."""
        place = self.scratch(path.name)
        with path.open("rb") as file:
            data = file.read(CHUNK)
            while True:
                self._ask("append", _ANSWER_SECONDS, data, name=place)
                if not (data := file.read(CHUNK)):
                    return place

    def get(self, place: str) -> bytes:
        """Fetch a file, in parts."""
        parts: list[bytes] = []
        while True:
            offset = sum(len(part) for part in parts)
            _, data = self._ask("read", _ANSWER_SECONDS, place=place, offset=offset)
            if not data:
                return b"".join(parts)
            parts.append(data)

    def drop(self, place: str) -> None:
        """Remove a file of the session, if it is there.

        One of an earlier session is gone already: the thread that wants it dropped may not have
        heard yet that another has found the board again.
        """
        if place.startswith(f"{self.info['session']}/"):
            self._ask("drop", _ANSWER_SECONDS, place=place)

    def scratch(self, name: str) -> str:
        """A path in the session's folder."""
        return f"{self.info['session']}/{next(self._names)}-{name}"

    def restart(self) -> None:
        """Kill the process and start a fresh one in the background."""
        self._ask("restart", _ANSWER_SECONDS)

    def close(self) -> None:
        """Hang up: the agent kills its process, removes its folder and ends. Never blocks long."""
        self._link.close()
        self._connection.close()

    def _ask(self, do: str, limit: float, data: bytes = b"", **words: Any) -> tuple[Any, bytes]:
        answer, blob = self._link.ask(do, limit, data, **words)
        if "error" not in answer:
            return answer["ok"], blob
        kind, message = answer["error"], answer["message"]
        if kind == "board":
            raise _BoardFault(
                f"{self.name}: {message}", "see to the board's memory and disk, then try again"
            )
        raise WorkerFailure(kind, message)


class _BoardFault(DeviceLost):
    """The agent lives, and the board could not do what it was asked."""
