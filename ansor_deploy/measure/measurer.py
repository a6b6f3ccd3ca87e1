"""Measure candidates: built here or on a farm, run on this machine or on boards."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..devices.site import LocalSite, Site
from ..errors import DeviceError, DeviceLost
from ..system.machine_lock import exclusive
from ..system.scratch import Scratch
from ..target import Target
from .build import Builder, BuildFailure, BuildJob, Built
from .health import DRIFT, Health, Unfit, drift
from .outcome import Outcome
from .site_runner import SiteRunner

if TYPE_CHECKING:
    from ..model.tasks import Task

CHUNK = 8  # candidates between two looks at the reference kernel
KEEP = 3  # libraries of a task's fastest, for the contest that ends its search
# Seconds before each attempt to find a lost board again: a reboot takes a minute.
RETURN_SECONDS = (0, 2, 5, 10, 20, 30, 60)
LOSSES = 3  # of a board without one chunk measured in between, after which it is given up


@dataclass
class Batch:
    """Candidates of one task on their way. halt: is set when no further one is to be taken up."""

    task: Task
    traces: Sequence[str]
    best: float
    building: list[Future[dict[str, Any]]]
    outcomes: list[Outcome] = field(default_factory=list)
    halt: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Take up no further candidate."""
        self.halt.set()
        for building in self.building:
            building.cancel()


class Stopped(Exception):  # noqa: N818 - no error: somebody wanted it
    """A batch was told to stop."""


class Measurer:
    """Builds and runs candidates of one target. A context manager.

    sites: where candidates run, each of them one at a time; this machine if none is given. They
    stay their owner's to close.
    Where every site is remote, builds overlap runs; on this machine they never do.
    executor: builds instead of this machine (see `build.Builder`). seed: of the inputs.
    warn: is told what a person should know. unfit: is told of a site that fails the reference
    kernel, and why; nothing runs there any more.
    """

    def __init__(
        self,
        target: Target,
        sites: Sequence[Site] = (),
        seed: int = 0,
        executor: Executor | None = None,
        warn: Callable[[str], None] = lambda _: None,
        unfit: Callable[[str, str], None] = lambda name, why: None,
    ) -> None:
        self._target, self._seed = target, seed
        self._warn, self._unfit = warn, unfit
        self._scratch = Scratch()
        self.builder = Builder(target, self._scratch.path, executor)
        self._own = [] if sites else [LocalSite(target.cores)]
        self.sites: list[Site] = [*sites, *self._own]
        self._free: SimpleQueue[SiteRunner] = SimpleQueue()
        for site in self.sites:
            self._free.put(self._runner(site))
        self._gone: list[str] = []  # why each site that is given up is
        self._losses: Counter[str] = Counter()  # of each site, in a row
        self._threads = ThreadPoolExecutor(len(self.sites), "ansor-deploy-site")
        self._jobs: dict[Future[list[Outcome]], Batch] = {}
        self._lock = threading.Lock()
        self._oracles: dict[tuple[str, str], Future[dict[str, Any]]] = {}
        self._kept: dict[str, dict[str, tuple[float, Built]]] = {}
        self._health = Health(self.builder, target)
        self._told_of_drift = False
        self.repeated = 0  # chunks measured again because a site's speed changed

    def __enter__(self) -> Measurer:  # noqa: PYI034 - Self is newer than Python 3.10
        try:
            self.builder.start()
            for site in self.sites:
                site.start()
            self._health.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill what builds and what runs, and remove every file. May be called twice.

        The sites that were given stay open, unless something still runs there.
        """
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stop()
        self.builder.close()
        self._threads.shutdown(wait=True)
        for site in self._own:
            site.close()
        self._scratch.close()

    @property
    def depth(self) -> int:
        """How many batches may be under way: one a site, and one that is built meanwhile."""
        remote = all(site.remote for site in self.sites)
        return len(self.sites) + 1 if remote else 1

    def measure(self, task: Task, traces: Sequence[str], best: float = math.inf) -> list[Outcome]:
        """An outcome a trace, in order; a failure is an outcome and never an exception.

        best: seconds of the best candidate known; one that is clearly slower gets one repeat.
        AnsorError where this machine cannot build at all; DeviceLost where no site is left.
        """
        return self.wait(self.submit(task, traces, best))

    def submit(
        self, task: Task, traces: Sequence[str], best: float = math.inf
    ) -> tuple[Batch, Future[list[Outcome]]]:
        """Begin what `wait` ends."""
        self._library(task, "default")
        text = task.workload.text
        building = [self.builder.submit(BuildJob(text, "trace", trace)) for trace in traces]
        batch = Batch(task, traces, best, building)
        return batch, self._begin(self._run, batch)

    def wait(self, submitted: tuple[Batch, Future[list[Outcome]]]) -> list[Outcome]:
        """The outcomes of a batch; raises as `measure`."""
        try:
            return submitted[1].result()
        except BaseException:  # interrupted, for one
            self._stop()
            raise

    def contest(self, task: Task, traces: Sequence[str], default: str) -> list[Outcome]:
        """These schedules measured in turns, so that their times can be compared.

        default: trace of the default schedule, whose library is there already.
        """
        return self.wait(self.submit_contest(task, traces, default))

    def submit_contest(
        self, task: Task, traces: Sequence[str], default: str
    ) -> tuple[Batch, Future[list[Outcome]]]:
        """Begin a contest that `wait` ends."""
        kept = {t: built for t, (_, built) in self._kept.get(task.workload.key, {}).items()}
        text = task.workload.text
        building = {
            trace: self.builder.submit(BuildJob(text, "trace", trace))
            for trace in traces
            if trace not in kept and trace != default
        }
        batch = Batch(task, traces, math.inf, list(building.values()))
        if default not in kept:
            building[default] = self._library(task, "default")
        return batch, self._begin(self._contest, batch, kept, building)

    def finalists(self, task: Task, within: float) -> list[str]:
        """Traces of the fastest measured here, those within a share of the best, best first."""
        kept = self._kept.get(task.workload.key, {})
        ranked = sorted(kept, key=lambda trace: kept[trace][0])
        return [t for t in ranked if kept[t][0] <= kept[ranked[0]][0] * (1 + within)]

    def _begin(
        self, job: Callable[..., list[Outcome]], batch: Batch, *words: Any
    ) -> Future[list[Outcome]]:
        running = self._threads.submit(job, batch, *words)
        self._jobs[running] = batch
        running.add_done_callback(lambda done: self._jobs.pop(done, None))
        return running

    def _stop(self) -> None:
        """Leave nothing of what is under way behind, and everything ready for the next batch."""
        if not (under_way := dict(self._jobs)):
            return
        for batch in under_way.values():
            batch.stop()
        self.builder.interrupt()
        for site in self.sites:
            site.interrupt()
        wait(under_way)

    # What follows runs in the threads, one a site

    def _run(self, batch: Batch) -> list[Outcome]:
        if not all(site.remote for site in self.sites):
            wait(batch.building)  # a build beside a run would disturb it
        built: dict[int, Built | BuildFailure] = {}
        try:
            while len(batch.outcomes) < len(batch.traces):
                with self._site(batch) as runner:
                    self._run_on(runner, batch, built)
        finally:
            self._keep(batch, built)
        return batch.outcomes

    def _run_on(
        self, runner: SiteRunner, batch: Batch, built: dict[int, Built | BuildFailure]
    ) -> None:
        """The rest of the batch on one site, chunk by chunk, the reference kernel in between."""
        pulse = 0.0
        while (start := len(batch.outcomes)) < len(batch.traces):
            chunk = range(start, min(start + CHUNK, len(batch.traces)))
            outcomes, pulse = self._steady(runner, batch, built, chunk, pulse)
            batch.outcomes += outcomes
            self._losses.pop(runner.site.name, None)

    def _steady(
        self,
        runner: SiteRunner,
        batch: Batch,
        built: dict[int, Built | BuildFailure],
        chunk: range,
        before: float,
    ) -> tuple[list[Outcome], float]:
        """A chunk's outcomes, the better of two where the site's speed changed meanwhile.

        And what the reference kernel took after it. before: what it took; 0 if not known yet.
        """
        with _turn(runner.site):
            before = before or self._pulse(runner)
            outcomes = list(self._each(runner, batch, built, chunk))
            after = self._pulse(runner)
            changed = drift(before, after)
            if changed > DRIFT:
                self._note_drift(runner.site, changed)
                again = list(self._each(runner, batch, built, chunk))
                # What disturbs a run makes it slower: the faster is nearer to the truth.
                pairs = zip(outcomes, again, strict=True)
                outcomes = [min(pair, key=lambda one: one.latency) for pair in pairs]
        return outcomes, after

    def _each(
        self,
        runner: SiteRunner,
        batch: Batch,
        built: dict[int, Built | BuildFailure],
        chunk: range,
    ) -> Iterator[Outcome]:
        """Each candidate as soon as it is built: a board need not wait for the rest."""
        best = min([batch.best, *(outcome.latency for outcome in batch.outcomes)])
        for at in chunk:
            if at not in built:
                built[at] = self.builder.result(batch.building[at])
            if batch.halt.is_set():
                raise Stopped
            outcome = runner.run(batch.task, built[at], batch.traces[at], best)
            best = min(best, outcome.latency)
            yield outcome

    def _contest(
        self, batch: Batch, kept: dict[str, Built], building: dict[str, Future[dict[str, Any]]]
    ) -> list[Outcome]:
        made = {trace: self.builder.result(one) for trace, one in building.items()}
        built: list[Built | BuildFailure] = [(kept | made)[trace] for trace in batch.traces]
        while True:
            with self._site(batch) as runner, _turn(runner.site):
                return runner.contest(batch.task, built, batch.traces)

    def _pulse(self, runner: SiteRunner) -> float:
        return self._health.pulse(runner)

    @contextmanager
    def _site(self, batch: Batch) -> Iterator[SiteRunner]:
        """A free site; one that is lost meanwhile is looked for again, and then given up."""
        runner = self._next_free(batch)
        try:
            yield runner
        except DeviceLost as lost:
            self._find_again(runner.site, lost, batch)
        except Unfit as reason:
            self._quarantine(runner.site, str(reason))
        except BaseException:
            self._free.put(runner)
            raise
        else:
            self._free.put(runner)

    def _next_free(self, batch: Batch) -> SiteRunner:
        while len(self._gone) < len(self.sites):
            if batch.halt.is_set():
                raise Stopped
            with suppress(Empty):
                return self._free.get(timeout=1)
        raise DeviceLost(
            f"no device is left to measure on: {'; '.join(self._gone)}",
            "see `ansor-deploy devices doctor NAME`; what was measured is kept, and the same "
            "command goes on from there",
        )

    def _find_again(self, site: Site, lost: DeviceLost, batch: Batch) -> None:
        """A batch that is stopped leaves the search to the next."""
        if batch.halt.is_set():
            self._free.put(self._runner(site))
            return
        self._losses[site.name] += 1
        if self._losses[site.name] == LOSSES:
            self._quarantine(site, f"lost {LOSSES} times in a row; the last time: {lost.message}")
            return
        self._warn(f"{lost.message}; looking for it again")
        for seconds in RETURN_SECONDS:
            if batch.halt.wait(seconds):
                break
            try:
                site.start()
            except DeviceError as error:
                lost = DeviceLost(error.message, error.hint)
            else:
                break
        else:
            self._give_up(site, lost.message)
            return
        self._free.put(self._runner(site))

    def _quarantine(self, site: Site, reason: str) -> None:
        self._unfit(site.name, reason)
        self._give_up(site, f"{site.name}: {reason}")

    def _give_up(self, site: Site, reason: str) -> None:
        self._warn(f"{reason}; nothing is measured on {site.name} any more")
        self._gone.append(reason)

    def _note_drift(self, site: Site, changed: float) -> None:
        self.repeated += 1
        if not self._told_of_drift:
            self._told_of_drift = True
            self._warn(
                f"{site.name}: its speed changed by {changed:.0%} while measuring; what it meets "
                "is measured again (is other work running there?)"
            )

    def _runner(self, site: Site) -> SiteRunner:
        return SiteRunner(site, self._target, self._seed, self._oracle)

    def _oracle(self, task: Task, how: str) -> Built | BuildFailure:
        return self.builder.result(self._library(task, how))

    def _library(self, task: Task, how: str) -> Future[dict[str, Any]]:
        """The task under the schedule "default" or "plain", built once."""
        with self._lock:
            key = (task.workload.key, how)
            if key not in self._oracles:
                self._oracles[key] = self.builder.submit(BuildJob(task.workload.text, how))
            return self._oracles[key]

    def _keep(self, batch: Batch, built: dict[int, Built | BuildFailure]) -> None:
        """The libraries of the task's fastest; all others are removed."""
        kept = self._kept.setdefault(batch.task.workload.key, {})
        for at, library in built.items():
            if isinstance(library, Built):
                done = at < len(batch.outcomes)
                latency = batch.outcomes[at].latency if done else math.inf
                kept[batch.traces[at]] = (latency, library)
        ranked = sorted(kept, key=lambda trace: kept[trace][0])
        for trace in [t for t in ranked if math.isinf(kept[t][0])] + ranked[KEEP:]:
            if trace in kept:
                kept.pop(trace)[1].path.unlink(missing_ok=True)


def _turn(site: Site) -> AbstractContextManager[None]:
    """On this machine one process measures at a time; a board's agent serves one at a time."""
    return nullcontext() if site.remote else exclusive()
