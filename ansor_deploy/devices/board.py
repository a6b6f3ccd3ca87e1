"""A board as a site that runs code, over one SSH connection after another."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, DeviceLost, UsageError
from ..system.untrusted import Refused, brief
from ..system.worker import WorkerFailure
from ..target import Target
from .agent_client import PING_SECONDS, SILENCE_SECONDS, AgentClient
from .answers import Failure, Hello, check_answer
from .board_bundle import install
from .connection import Connection, Stream
from .facts import PYTHON, Facts, facts_of, look_at, run_probe
from .frames import CHUNK
from .inventory import Inventory, target_of
from .room import Room
from .site import RUNS
from .strain import Strain, strain

if TYPE_CHECKING:
    from ..views import Report

WAIT_SECONDS = 600.0  # how long to wait for another host to release the board
_ANSWER_SECONDS = 60.0
_START_SECONDS = 180.0  # the limit for a worker's first start: slow cards, slow processors
# The limit of later starts: so many times the first start's time, plus so many seconds.
_AGAIN, _AGAIN_SECONDS = 4.0, 20.0
_SLOWEST = 50e3  # bytes a second; a slower connection to a board is of no use
_WORDS = 2000  # the most characters of a candidate's failure
_CHECK = "ansor_deploy.devices.library_calls:threads"
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from ansor_deploy.devices.agent import main; main({cache!r}, {runs!r}, {cores}, {silence})"
)


@dataclass(eq=False)
class BoardSite:
    """A `Site` on a board. After the board was lost, `start` connects to it again.

    connect: makes a connection. cores: how many a program may take. wheels: the folder that
    `fetch_wheels` filled; by default the user's, which is filled here. waiting: called with the
    holder while another host has the board. say: called with what is installed. patience: how many
    seconds to wait for another host. pace: as in `Site`. info: the latest greeting of the board's
    agent. Every method raises DeviceLost where trying again may help.
    """

    remote: bool = field(init=False, default=True)
    name: str
    connect: Callable[[], Connection]
    cores: int
    wheels: Path | None = None
    waiting: Callable[[str], None] = lambda holder: None
    say: Callable[[str], None] = lambda line: None
    patience: float = WAIT_SECONDS
    pace: float = 0.0
    info: Hello | None = field(init=False, default=None)
    _connection: Connection | None = field(init=False, default=None)
    _agent: AgentClient | None = field(init=False, default=None)
    _names: Iterator[int] = field(init=False, default_factory=itertools.count)
    _start_seconds: float = field(init=False, default=_START_SECONDS)

    def start(self) -> None:
        """Connect, install the runtime and start an agent, unless there is one.

        DeviceError where the board cannot be used.
        """
        if self._agent is not None:
            return
        self._connection = connection = self.connect()
        with ExitStack() as undo:
            undo.callback(connection.close)
            facts = look_at(self.name, connection)
            root = install(self.name, connection, facts, self.wheels, self.say)
            words = {"root": root, "cache": facts.cache, "runs": RUNS, "cores": self.cores}
            boot = shlex.quote(_BOOT.format(**words, silence=SILENCE_SECONDS))
            self.join(connection.open(f"exec {PYTHON} -c {boot}"))
            undo.pop_all()

    def join(self, stream: Stream) -> None:
        """Begin a session with the agent at the other end of a stream; it raises as `start`."""
        agent = AgentClient(self.name, stream, PING_SECONDS)
        with ExitStack() as undo:
            undo.callback(agent.close)
            self.info = agent.greeting(self.patience, self.waiting)
            self._check(agent)
            undo.pop_all()
        self._agent = agent

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """As `Worker.call`; DeviceLost where the board or the connection is at fault."""
        return self._call(self._connected(), function, payload, timeout)

    def put(self, path: Path) -> str:
        """Send a file, in parts."""
        agent, place = self._connected(), self.scratch(path.name)
        ends = _ends(path.stat().st_size)
        with path.open("rb") as file:
            data = file.read(CHUNK)
            while True:
                self._ask(agent, "append", ends - time.monotonic(), data=data, name=place)
                if not (data := file.read(CHUNK)):
                    return place

    def get(self, place: str, size: int) -> bytes:
        """Fetch a file of `size` bytes, in parts; DeviceLost where a part has another length."""
        agent, whole, ends = self._connected(), bytearray(), _ends(size)
        while (wanted := min(CHUNK, size - len(whole))) > 0:
            words = {"place": place, "offset": len(whole)}
            data = self._ask(agent, "read", ends - time.monotonic(), **words)[1]
            if len(data) != wanted:
                raise self._lost(agent, agent.refuse(f"{len(data)} bytes of a file, not {wanted}"))
            whole += data
        return bytes(whole)

    def drop(self, place: str) -> None:
        """Remove a file of the session, if it is there.

        Files of an earlier session are gone already: another thread may have reconnected to the
        board since this one wrote the file.
        """
        agent = self._agent
        if agent is not None and place.startswith(f"{agent.folder}/"):
            self._ask(agent, "drop", place=place)

    def scratch(self, name: str) -> str:
        """A path in the session's folder."""
        return f"{self._connected().folder}/{next(self._names)}-{name}"

    def room(self) -> Room | None:
        """The memory and disk that the board has free now; None where it does not report them."""
        facts = self._facts()
        return Room(facts.memory, facts.disk) if facts else None

    def strain(self) -> Strain:
        """What keeps the board's clock down now, as far as it reports that."""
        facts = self._facts()
        words = facts and (facts.governors, facts.temperatures, facts.throttled)
        return strain(*words) if words else Strain()

    def _facts(self) -> Facts | None:
        if self._connection is None:
            return None
        try:
            return facts_of(run_probe(self._connection))
        except Refused:
            return None

    def restart(self) -> None:
        """Kill the board's process and start a fresh one in the background."""
        self._ask(self._connected(), "restart")

    def interrupt(self) -> None:
        """Hang up: a thread that waits for an answer, or for its turn, gets a DeviceLost."""
        self.close()

    def close(self) -> None:
        """Hang up: the agent kills its process, removes its folder and ends. Never blocks long."""
        agent, self._agent = self._agent, None
        connection, self._connection = self._connection, None
        if agent is not None:
            agent.close()
        if connection is not None:
            connection.close()

    def _connected(self) -> AgentClient:
        if (agent := self._agent) is None:
            raise DeviceLost(f"{self.name} is lost: not connected", "repeat the command")
        return agent

    def _check(self, agent: AgentClient) -> None:
        """DeviceError where the board's worker does not start; note how long the start takes."""
        self._start_seconds, began = _START_SECONDS, time.monotonic()
        try:
            self._call(agent, _CHECK, {}, _ANSWER_SECONDS)
        except (WorkerFailure, _BoardFault) as failure:
            reason = failure.message.removeprefix(f"{self.name}: ")
            hint = "install what is missing there (Debian: apt-get install libstdc++6)"
            raise DeviceError(f"{self.name} cannot run TVM's runtime: {reason}", hint) from failure
        again = _AGAIN_SECONDS + _AGAIN * (time.monotonic() - began)
        self._start_seconds = min(_START_SECONDS, again)

    def _call(
        self, agent: AgentClient, function: str, payload: dict[str, Any], timeout: float
    ) -> Any:
        """The function's answer, which is checked to be an allowed one."""
        words: dict[str, Any] = {"function": function, "payload": payload, "timeout": timeout}
        value, _ = self._ask(agent, "call", timeout + self._start_seconds, **words)
        try:
            check_answer(function, payload, value)
        except Refused as refused:
            raise self._lost(agent, agent.refuse(str(refused))) from refused
        return value

    def _ask(
        self, agent: AgentClient, do: str, limit: float = _ANSWER_SECONDS, **words: Any
    ) -> tuple[Any, bytes]:
        """The agent's answer; the session is closed where it is lost or the board is at fault."""
        try:
            answer, blob = agent.ask(do, max(limit, 0.0), **words)
        except DeviceLost as lost:
            raise self._lost(agent, lost) from lost
        if not isinstance(answer, Failure):
            return answer.ok, blob
        message = brief(answer.message, _WORDS)
        if answer.error == "board":
            hint = "look at the board's memory and disk, then try again"
            raise self._lost(agent, _BoardFault(f"{self.name}: {message}", hint))
        raise WorkerFailure(answer.error, message)

    def _lost(self, agent: AgentClient, lost: DeviceLost) -> DeviceLost:
        """The same error, after closing the session if it is the current one."""
        if agent is self._agent:
            self.close()
        return lost


def _ends(size: int) -> float:
    """When the transfer of so many bytes must be over, by the monotonic clock."""
    return time.monotonic() + _ANSWER_SECONDS + size / _SLOWEST


class _BoardFault(DeviceLost):
    """The agent is alive, but the board could not do the request."""


def open_devices(names: Sequence[str], target: Target, report: Report) -> Iterator[BoardSite]:
    """Each of the devices that can be used, opened by `open_device`.

    Devices that cannot be used are left out, with a warning. DeviceError where none can be used;
    UsageError where one is unknown, or is another target.
    """
    errors: list[DeviceError] = []
    for name in names:
        made = _try_to_open(name, target, report)
        if isinstance(made, BoardSite):
            yield made
            continue
        errors.append(made)
        if len(names) > 1:
            report.warn(f"{made.message}; {name} is left out")
    if names and len(errors) == len(names):
        raise _none_left(errors)


def _try_to_open(name: str, target: Target, report: Report) -> BoardSite | DeviceError:
    try:
        return open_device(name, target, report)
    except DeviceError as error:
        return error


def _none_left(errors: Sequence[DeviceError]) -> DeviceError:
    """One error for all: the only one, or one with a sentence for each."""
    first, *more = errors
    if more:
        said = "; ".join(error.message for error in errors)
        first = DeviceError(f"no device can be used: {said}", first.hint)
    first.hint = f"{first.hint.rstrip('.')}; or do without a device: --no-device"
    return first


def open_device(name: str, target: Target, report: Report) -> BoardSite:
    """A device of the user's inventory, connected and ready to run code of the target.

    UsageError where there is no such device, or it is another target; DeviceError where it is in
    quarantine or cannot be used; DeviceLost where it cannot be reached.
    """
    from .ssh import connect

    inventory = Inventory.find()
    device = inventory.get(name)
    known = target_of(device)
    if known.fingerprint != target.fingerprint:
        what = f"device {name} is a {known.name}, and the build is for {target.name}"
        hint = f"build with --target {known.name}, or name another device"
        raise UsageError(what, hint)
    if quarantine := inventory.reason(name):
        raise DeviceError(quarantine.text(name), quarantine.remedy(name))

    def waiting(holder: str) -> None:
        report.stage("wait", f"for {name}, which serves {holder}")

    def say(line: str) -> None:
        report.stage("install", line)

    connecting = partial(connect, device, inventory)
    site = BoardSite(name, connecting, target.cores, waiting=waiting, say=say)
    site.pace = inventory.pace(name)
    report.stage("connect", f"to {name} ({device.url})")
    site.start()
    return site
