"""Run turns of a race in fresh processes: each loads both sides anew, runs them, and ends.

One process is warm and runs nothing. It forks for each load, which costs some milliseconds. The
fork loads libraries from fresh copies of their files, which lie elsewhere in memory each time,
after a gap of random size.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import random
import shutil
import signal
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from ...devices.bare import BareModel
from ...errors import AnsorError, MachineError, ModelError, UsageError
from ...runtime import native
from ...runtime.interface import of_calls
from ...runtime.model import Model
from ...system.child import describe
from ...system.machine_fault import fault_of, killed
from ...system.worker import Worker, WorkerFailure
from ..verify.draws import inputs_that_run
from . import turn as one_turn
from .peers import CALL_SECONDS, ended, name_of, open_peer
from .race import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..verify.verify import Library

Local = Model | BareModel
Side = dict[str, Any]  # what a process loads: of `library_side`, or of `engine_side`

_THEIRS = b"\1"  # the number of the other side
COPIED_BYTES = 64 << 20  # larger files are not copied: the places of their pages average out
GAP_PAGES = 4096  # the largest gap
_ERRORS = {kind.__name__: kind for kind in (UsageError, ModelError, MachineError)}


def on_this_machine(library: Library) -> TypeGuard[Local]:
    """Whether a library runs here, and not on a device."""
    return isinstance(library, Local)


def library_side(library: Local) -> Side:
    """The side of a library of this machine. Its manifest need not lie beside it."""
    manifest = of_calls(library.manifest)
    path = str(library.path.absolute())
    return {"library": path, "manifest": manifest, "threads": library.threads}


def engine_side(engine: str, model: Path, threads: int) -> Side:
    """The side of an engine of `request.ENGINES` with the model in a file."""
    return {"engine": engine, "model": str(model.absolute()), "threads": threads}


class FreshTurns:
    """Turns of a library and another side, each on a load of its own.

    peer: the other's name. An engine that loads a model slowly stays loaded for some turns, so that
    at least half of the time is spent on runs.
    """

    def __init__(self, worker: Worker, payload: dict[str, Any]) -> None:
        self._worker, self._payload = worker, payload
        self._turns = 1
        self.peer: str = self._call("prepare")

    def take(self, ours_first: bool) -> Sequence[Turn]:
        """The turns of one load. ours_first: whether ours is loaded first, and runs first."""
        found = self._call("turns", ours_first=ours_first, turns=self._turns)
        if self._payload["pause"]:
            self._turns = max(1, math.ceil(found["loading"] / found["turning"]))
        return [
            Turn(ours, theirs, tuple(loop), tuple(each))
            for ours, theirs, loop, each in found["turns"]
        ]

    def _call(self, function: str, **words: Any) -> Any:
        what = f"{__name__}:{function}"
        try:
            found = self._worker.call(what, {**self._payload, **words}, CALL_SECONDS)
        except WorkerFailure as failure:
            raise self._explained(failure) from failure
        if name := found.get("ended"):
            raise self._explained(WorkerFailure("crash", name))
        if "error" in found:
            kind, text, hint = found["error"]
            raise _ERRORS.get(kind, AnsorError)(text, hint)
        return found["answer"]

    def _explained(self, failure: WorkerFailure) -> AnsorError:
        """The error of turns that ended their process: it blames the side that was at work."""
        theirs = self._payload["sides"][1]
        if failure.message == "SIGKILL":
            return killed("it cannot be timed: a process of the race was killed")
        if "engine" in theirs and _active(self._payload).read_bytes() == _THEIRS:
            return ended(theirs["engine"], failure)
        hint = "run it once by itself: ansor-deploy run"
        return AnsorError(f"it cannot be timed: {failure.message}", hint)


@contextmanager
def fresh_turns(
    ours: Side,
    theirs: Side,
    shapes: Sequence[int],
    seed: int,
    until: float,
    folder: Path | None = None,
) -> Iterator[FreshTurns]:
    """The turns of a library and another side.

    shapes: the library's shapes in which a run is made. seed: that of the inputs. until: a time of
    `time.monotonic`, after which a load makes no second turn. folder: for copies; None for that of
    temporary files. ModelError where an engine refuses the model, UsageError where it is not
    installed.
    """
    payload = {
        "sides": [ours, theirs],
        "shapes": list(shapes),
        "seed": seed,
        "until": until,
        "pause": one_turn.PAUSE_SECONDS if "engine" in theirs else 0.0,
    }
    with (
        tempfile.TemporaryDirectory(
            prefix="ansor-deploy-", dir=folder, ignore_cleanup_errors=True
        ) as place,
        closing(Worker(__name__)) as worker,
    ):
        payload["folder"] = str(Path(place).absolute())
        _active(payload).write_bytes(_THEIRS)  # it is imported first
        yield FreshTurns(worker, payload)


class _Noted:
    """A side of a race that notes when it is at work, for who asks after a crash.

    mark: writes it, for the side of this number.
    """

    def __init__(self, side: one_turn.Timed, number: int, mark: mmap.mmap) -> None:
        self._side, self._number, self._mark = side, number, mark

    def times(self, inputs: dict[str, Any], runs: int) -> list[float]:
        """As the side's own."""
        self._mark[0] = self._number
        return self._side.times(inputs, runs)


def _active(payload: dict[str, Any]) -> Path:
    """A file of one byte: the number of the side that is at work."""
    return Path(payload["folder"], "active")


def prepare(payload: dict[str, Any]) -> dict[str, Any]:
    """In the process that forks: import what both sides need; the answer is the peer's name."""
    native.ffi()
    theirs = payload["sides"][1]
    return _answered(lambda _: name_of(theirs["engine"]) if "engine" in theirs else "", {})


def turns(payload: dict[str, Any]) -> dict[str, Any]:
    """In a fork of this process: load both sides, and let them run in turns.

    The answer has "ended" and the signal's name where one has ended the fork.
    """
    reading, writing = os.pipe()
    if (copy := os.fork()) == 0:
        try:
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(_answered(_turns, payload)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read()
    status = os.waitpid(copy, 0)[1]
    if not text:
        names = {one.value: one.name for one in signal.Signals}
        return {"ended": names.get(os.WTERMSIG(status), str(status))}
    return dict(json.loads(text))


def _answered(function: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """The answer, or the error that the parent is to raise."""
    try:
        return {"answer": function(payload)}
    except Exception as error:  # noqa: BLE001 - whatever a library or an engine raises
        found = fault_of(error) or error
        if isinstance(found, AnsorError):
            return {"error": [type(found).__name__, found.text, found.hint]}
        return {"error": ["", f"it cannot be timed: {describe(found)}", ""]}


def _turns(payload: dict[str, Any]) -> dict[str, Any]:
    began, first = time.monotonic(), payload["ours_first"]
    gap = mmap.mmap(-1, mmap.PAGESIZE * random.randint(1, GAP_PAGES))  # noqa: S311 - no secret
    with _active(payload).open("r+b") as file:
        mark = mmap.mmap(file.fileno(), 1)
    opened: dict[int, Any] = {}
    for number, at in enumerate((0, 1) if first else (1, 0)):
        mark[0] = at
        opened[at] = _opened(payload["sides"][at], Path(payload["folder"], f"{number}.so"))
    library, other = opened[0], opened[1]
    mark[0] = 0
    feeds = [
        inputs_that_run(library, library.interfaces[at], payload["seed"])
        for at in payload["shapes"]
    ]
    sides = _Noted(library, 0, mark), _Noted(other, 1, mark)
    one_turn.warm(sides, feeds)
    loaded, found = time.monotonic(), list[tuple[Any, ...]]()
    while not found or (len(found) < payload["turns"] and time.monotonic() < payload["until"]):
        taken = one_turn.take(sides, feeds, ours_first=first, pause=payload["pause"])
        found.append((taken.ours, taken.theirs, taken.reference, taken.shapes))
        first = random.random() < 0.5  # noqa: S311 - no secret
    gap.close()
    turning = (time.monotonic() - loaded) / len(found)
    return {"turns": found, "loading": loaded - began, "turning": turning}


def _opened(side: Side, place: Path) -> Any:
    """A side, loaded and ready to be timed. place: where to copy a library to."""
    if "engine" in side:
        return open_peer(side["engine"], Path(side["model"]), side["threads"])
    path = Path(side["library"])
    if path.stat().st_size <= COPIED_BYTES:
        place.unlink(missing_ok=True)  # the old file's pages may be in use: they need a new file
        with suppress(OSError):  # without space for a copy, the file itself is loaded
            path = Path(shutil.copyfile(path, place))
    return Model(path, side["manifest"], side["threads"])
