"""One tuning job, for a model and a target, in a child process of the worker that took it.

The job measures into a registry in the cache of the worker's user, which all jobs of a machine
share: a job that is started again finds there what was measured before, and of two jobs with the
same task one leaves it to the other.
"""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from ..errors import AnsorError
from ..registry.exchange import contents, import_bytes, read_bundle
from ..request import Request
from ..system.child import ask
from ..system.environment import cache_folder
from ..system.interrupt import check, interrupt
from ..system.machine_fault import about
from ..views import Report

if TYPE_CHECKING:
    from ..tune.plan import Plan
    from ..tune.scheduler import Progress

CALLED_OFF = "it was called off"
NEWS = "news.jsonl"  # the file of a job's new records, a bundle, in its folder
_JOB = "job"  # the file of the model's path and the request, pickled
_KNOWN = "known.jsonl"  # the file of `Job.known`


@dataclass(frozen=True)
class Job:
    """A job as it is sent to a worker, besides the files that its request names.

    number: the job's row in the table. model: path of the model among the files. known: a bundle of
    what the user's registry knows of the target.
    """

    number: int
    model: str
    request: Request
    known: bytes

    def write(self, folder: Path, files: Mapping[str, bytes], device: str) -> None:
        """Write to a folder the files that `run` reads.

        files: contents by their paths in the folder. device: the board that runs candidates; "" for
        the worker's machine.
        """
        for name, content in {**files, _KNOWN: self.known}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with about(path):
                path.write_bytes(content)
        request = replace(
            self.request,
            registry=cache_folder("farm") / "registry.db",
            rules=tuple(folder / path for path in self.request.rules),
            devices=(device,) if device else (),
        )
        (folder / _JOB).write_bytes(pickle.dumps((folder / self.model, request)))


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """Tune the job in "folder"; return the figures, or the "error". Runs in the child."""
    from ..pipeline import tune

    signal.signal(signal.SIGTERM, lambda _, frame: interrupt(KeyboardInterrupt, frame))
    folder = Path(payload["folder"])
    # The parent wrote this file, from what Dask had passed to it.
    model, request = pickle.loads((folder / _JOB).read_bytes())  # noqa: S301
    known = (folder / _KNOWN).read_bytes()
    import_bytes(request.registry, known, "what the user knows")
    events = _Events(request, folder / NEWS, known)
    try:
        tuned = tune([model], request, events)
        check()
        return dict(to_builtins(tuned.figures))
    except AnsorError as error:
        return failed(error)
    except KeyboardInterrupt:
        return failed(AnsorError(CALLED_OFF))
    finally:
        events.send()


def failed(error: AnsorError) -> dict[str, Any]:
    """An error as a job's answer: the fields of its row."""
    return {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}


class _Events(Report):
    """Sends events to the parent, along with new content of the registry."""

    def __init__(self, request: Request, news: Path, known: bytes) -> None:
        self._request, self._news = request, news
        self._sent = [read_bundle(known, "what the user knows")]
        self._workloads: set[str] = set()
        self._lock = threading.Lock()  # sites warn from threads of their own

    def stage(self, name: str, detail: str = "") -> None:
        """Send the stage's name."""
        self._say(state=name)

    def plan(self, plan: Plan) -> None:
        """Send how many trials are planned."""
        self._workloads = {row.task.key.workload for row in plan.rows}
        self.send(total=plan.trials, latency_ms=plan.latency * 1e3)

    def progress(self, progress: Progress) -> None:
        """Send how many trials are done."""
        now = progress.round.end_to_end_ms
        total = progress.total_trials
        self.send(state="tune", trials=progress.trials, total=total, latency_ms=now)

    def warn(self, message: str) -> None:
        """Send the message."""
        self._say(warning=message)

    def send(self, **figures: Any) -> None:
        """Send figures, and what is new of the model's tasks since the last time."""
        target, wanted = self._request.target.fingerprint, self._workloads
        found, _ = contents(self._request.registry, lambda w, t: t == target and w in wanted)
        news = found.without(self._sent)
        if news.records or news.searches or news.contests:
            self._news.write_bytes(news.to_bytes())
            self._sent.append(news)
            figures["news"] = True
        self._say(**figures)

    def _say(self, **words: Any) -> None:
        with self._lock:
            ask(words)
