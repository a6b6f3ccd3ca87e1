"""A farm's worker: it offers boards and its own machine, and runs each job in a child process."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Queue, Semaphore, WorkerPlugin, get_worker

from ..devices.inventory import Inventory
from ..devices.machine import runs_here
from ..devices.registered import registered_for
from ..errors import AnsorError, DeviceError, MachineError
from ..system.environment import shipped
from ..system.machine_fault import fault_of
from ..system.worker import Worker, WorkerFailure
from ..target import HOST, Target, load_target
from ..views import Report
from .job import CALLED_OFF, NEWS, Job

_CHILD = "ansor_deploy.farm.job"
_LOOK_SECONDS = 1.0  # seconds between two looks whether a job is still wanted, or a board free
_END_SECONDS = 10.0  # seconds that a job which is called off has to save its measurements


def resource(target: Target) -> str:
    """The name of a target's machines as a Dask resource."""
    return f"ansor-deploy {target.fingerprint}"


@dataclass(frozen=True)
class Offers(WorkerPlugin):
    """Declares the boards that a worker reaches as its resources, also on workers that join later.

    name: that of the tuning run. A worker that reaches no board of a target offers its own machine
    if that can run the target's code, as `tune` would.
    """

    name: str
    targets: tuple[Target, ...]

    async def setup(self, worker: Any) -> None:
        """Declare the resources anew: boards may have been added since the last time."""
        found = {resource(target): float(_machines(target)) for target in self.targets}
        await worker.set_resources(**found)


def offered(dask_worker: Any) -> tuple[str, dict[str, float]]:
    """The name and the resources of the worker that this runs on."""
    return str(dask_worker.name), dict(dask_worker.state.total_resources)


def carry_out(job: Job, files: Mapping[str, bytes], inbox: str) -> dict[str, Any]:
    """Do a job on a board that no other job of the farm uses, or on this machine.

    inbox: name of the queue for its messages.

    DeviceError where a board or this machine fails: the job may be tried again, best by another
    worker.
    """
    queue, here = Queue(inbox), str(get_worker().name)

    def say(**words: Any) -> None:
        queue.put({"job": job.number, "worker": here, **words})

    say(state="begin", trials=0)
    with (
        _named(here),
        _machine_for(job.request.target, say) as device,
        _folder() as folder,
    ):
        say(state="read", device=device)
        job.write(folder, files, device)

        def pass_on(words: dict[str, Any]) -> None:
            if words.get("news"):
                words["news"] = (folder / NEWS).read_bytes()
            with suppress(KeyError):  # the queue is gone: the job is about to be called off
                say(**words)

        answer = _tuned_in_child(folder, pass_on)
        error = answer.get("error")
        if error and answer["exit_code"] in (DeviceError.exit_code, MachineError.exit_code):
            raise DeviceError(error, answer["hint"])
    return answer


@contextmanager
def _named(worker: str) -> Iterator[None]:
    """DeviceError, with the worker's name, for what its machine or its boards cannot do."""
    try:
        yield
    except Exception as error:
        found = error if isinstance(error, DeviceError) else fault_of(error)
        if found is None:
            raise
        hint = f"on {worker}: {found.hint}" if found.hint else ""
        raise DeviceError(f"{worker}: {found.message}", hint) from error


def _tuned_in_child(folder: Path, pass_on: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    with closing(Worker(_CHILD)) as child, _ended_when_unwanted(child):
        try:
            answer: dict[str, Any] = child.call(
                f"{_CHILD}:run", {"folder": str(folder)}, math.inf, pass_on
            )
        except WorkerFailure as failure:
            raise MachineError(f"its process failed: {failure.message}") from failure
    return answer


@contextmanager
def _ended_when_unwanted(child: Worker) -> Iterator[None]:
    """Call the child off when nobody waits for this thread's Dask task any more."""
    wanted, ended = _wanted(), threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            if not wanted():
                child.call_off()
                if not ended.wait(_END_SECONDS):
                    child.interrupt()
                return

    threading.Thread(target=watch, name="ansor-deploy-wanted", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _wanted() -> Callable[[], bool]:
    """A function that tells any thread whether this thread's Dask task is still wanted."""
    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return lambda: task.state == "executing"  # later "cancelled"


@contextmanager
def _machine_for(target: Target, say: Callable[..., None]) -> Iterator[str]:
    """A board that only this job uses within the block; "" for this machine."""
    boards = registered_for(target, Report())
    if not (boards or _is_here(target)):
        raise DeviceError(f"this worker reaches no board of target {target.name} any more")
    if not boards:
        yield ""
        return
    # Dask ends the lease of a worker that is lost.
    leases = {board: Semaphore(1, name=f"ansor-deploy {_identity(board)}") for board in boards}
    if (free := _leased(leases)) is None:
        say(state="wait")
    wanted = _wanted()
    while free is None:
        if not wanted():
            raise AnsorError(CALLED_OFF)
        time.sleep(_LOOK_SECONDS)
        free = _leased(leases)
    try:
        yield free
    finally:
        leases[free].release()


def _leased(leases: Mapping[str, Semaphore]) -> str | None:
    """Take the first free board, and return its name; None where none is free."""
    return next((board for board, one in leases.items() if one.acquire(timeout=0)), None)


def _machines(target: Target) -> int:
    return len(registered_for(target, Report())) or int(_is_here(target))


def _is_here(target: Target) -> bool:
    """Whether `tune` would measure on this machine. The "host" of others may be another machine."""
    own = (
        target.name != HOST
        or target.fingerprint == load_target(HOST, [shipped("targets")]).fingerprint
    )
    return own and runs_here(target)


def _identity(board: str) -> str:
    """A name for a board that is the same on every worker: its host key's fingerprint."""
    from ..devices.ssh import known_keys

    inventory = Inventory.find()
    return min(key.fingerprint for key in known_keys(inventory.get(board), inventory))


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-job-") as folder:
        yield Path(folder)
