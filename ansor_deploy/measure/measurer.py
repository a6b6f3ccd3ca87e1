"""Measures candidates: they are built here or on a farm, and run on this machine or on boards."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from ..devices.site import LocalSite, Site
from ..model.tasks import Task
from ..system.machine_lock import machine_lock
from ..system.scratch import Scratch
from ..target import Target
from .builder import Builder, Building
from .health import DRIFT, Health, drift
from .libraries import Libraries
from .outcome import Outcome
from .site_runner import SiteRunner
from .sites import Sites, Stopped

CHUNK = 8  # candidates between two times of the reference kernel


@dataclass(eq=False)
class Batch:
    """Candidates of one task that are being measured.

    building: the build of each. best: seconds; a candidate that is clearly slower runs only once.
    outcomes: those of the candidates that have run, in order. stopped: set when the batch is broken
    off. over: set when no further candidate is wanted. running: gives the outcomes, or raises the
    error that ended the batch.
    """

    task: Task
    traces: Sequence[str]
    building: Sequence[Building]
    best: float = math.inf
    outcomes: list[Outcome] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    running: Future[list[Outcome]] = field(init=False)

    def stop(self) -> None:
        """Start no further candidate, and break off the one that runs."""
        self.stopped.set()
        self.end()

    def end(self) -> None:
        """Start no further candidate: the batch ends with those that have run."""
        self.over.set()
        for building in self.building:
            building.future.cancel()

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to run."""
        return self.over.is_set() or len(self.outcomes) == len(self.traces)


class Measurer:
    """Builds and runs candidates of one target. A context manager.

    sites: where candidates run, one at a time on each; by default this machine. Their owner closes
    them. Builds overlap runs where every site is remote, and never on this machine.
    executor: builds instead of this machine (see `builder.Builder`). seed: the seed of the inputs.
    warn: called with warnings for the user. unfit: called with the name of a site that fails the
    reference kernel, and the reason; nothing runs there any more.
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
        self._warn = warn
        self._scratch = Scratch()
        self.builder = Builder(target, self._scratch.path, executor)
        self._libraries = Libraries(self.builder)
        self._health = Health(self.builder, target)
        self._own = [] if sites else [LocalSite(target.cores)]
        self.sites: list[Site] = [*sites, *self._own]
        oracle = lambda task, how: self._libraries.reference(task, how).result  # noqa: E731
        runner = lambda site: SiteRunner(site, target, seed, oracle)  # noqa: E731
        self._lent = Sites(self.sites, runner, warn, unfit)
        self._threads = ThreadPoolExecutor(len(self.sites), "ansor-deploy-site")
        self._under_way: set[Batch] = set()
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all builds and runs, and remove every file. May be called twice.

        Sites that were given stay open; a run on one of them is broken off.
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
        """How many batches may be under way: one for each site, and one that is being built."""
        return len(self.sites) + 1 if self._all_remote else 1

    @property
    def _all_remote(self) -> bool:
        return all(site.remote for site in self.sites)

    def measure(self, task: Task, traces: Sequence[str], best: float = math.inf) -> list[Outcome]:
        """The outcome of each trace, in order; a failure is an outcome and never an exception.

        best: seconds of the best known candidate; one that is clearly slower gets one repeat.
        AnsorError where this machine cannot build at all; MachineError where it fails during the
        batch; DeviceLost where no site is left.
        """
        return self.wait(self.submit(task, traces, best))

    def submit(self, task: Task, traces: Sequence[str], best: float = math.inf) -> Batch:
        """Start a batch, whose outcomes `wait` gives."""
        self._libraries.reference(task, "default")
        building = [self._libraries.build(task, trace) for trace in traces]
        return self._begin(self._measure, Batch(task, traces, building, best))

    def head_to_head(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """The outcomes of schedules that run in turns, so that their times can be compared."""
        return self.wait(self.submit_head_to_head(task, traces))

    def submit_head_to_head(self, task: Task, traces: Sequence[str]) -> Batch:
        """Start a comparison in turns, whose outcomes `wait` gives."""
        building = [self._libraries.kept(task, trace) for trace in traces]
        return self._begin(self._measure_in_turns, Batch(task, traces, building))

    def fastest(self, task: Task, within: float) -> list[str]:
        """Traces of the fastest candidates so far, within a share of the best, best first."""
        return self._libraries.fastest(task, within)

    def wait(self, batch: Batch, seconds: float | None = None) -> list[Outcome]:
        """The outcomes of a batch; raises as `measure`.

        seconds: after this time no further candidate starts; the outcomes are of those that ran.
        """
        try:
            if wait([batch.running], seconds).not_done:
                batch.end()
            return batch.running.result()
        except BaseException:  # such as an interrupt
            self._stop()
            raise

    def _begin(self, job: Callable[[Batch], list[Outcome]], batch: Batch) -> Batch:
        batch.running = self._threads.submit(job, batch)
        self._under_way.add(batch)
        batch.running.add_done_callback(lambda _: self._under_way.discard(batch))
        return batch

    def _stop(self) -> None:
        """Break off all batches under way, so that everything is ready for the next batch."""
        if not (under_way := list(self._under_way)):
            return
        for batch in under_way:
            batch.stop()
        self.builder.interrupt()
        for site in self.sites:
            site.interrupt()
        wait([batch.running for batch in under_way])

    # The methods below run in threads, one for each site

    def _measure(self, batch: Batch) -> list[Outcome]:
        if not self._all_remote:
            wait([one.future for one in batch.building])  # builds would disturb runs
        try:
            while not batch.is_done:
                with self._lent.lend(batch.stopped) as runner:
                    self._measure_on(runner, batch)
        finally:
            self._libraries.keep(batch.task, batch.traces, batch.building, batch.outcomes)
        return batch.outcomes

    def _measure_on(self, runner: SiteRunner, batch: Batch) -> None:
        """Measure the rest of a batch on one site, by chunks with the reference kernel between."""
        pulse = 0.0
        while not batch.is_done:
            start = len(batch.outcomes)
            chunk = range(start, min(start + CHUNK, len(batch.traces)))
            outcomes, pulse = self._steadily(runner, batch, chunk, pulse)
            batch.outcomes += outcomes
            self._lent.count_success(runner.site)

    def _steadily(
        self, runner: SiteRunner, batch: Batch, chunk: range, before: float
    ) -> tuple[list[Outcome], float]:
        """A chunk's outcomes, and the seconds of the reference kernel after it.

        Where the site's speed changed during the chunk, it is measured again, and the better of the
        two outcomes counts. before: seconds of the reference kernel before; 0 if not known yet.
        """
        with self._turn(runner.site, batch):
            pause = partial(_pause, batch.stopped)
            before = before or self._health.pulse(runner, pause)
            outcomes = list(_each(runner, batch, chunk))
            after = self._health.pulse(runner, pause)
            if (changed := drift(before, after)) > DRIFT and not batch.over.is_set():
                self.repeated += 1
                if self.repeated == 1:
                    self._warn(
                        f"{runner.site.name}: its speed changed by {changed:.0%} while measuring; "
                        "what it meets is measured again (is other work running there?)"
                    )
                again = list(_each(runner, batch, chunk))
                # Disturbances only make a run slower: the faster time is nearer to the truth.
                pairs = zip(outcomes, [*again, *outcomes[len(again) :]], strict=True)
                outcomes = [min(pair, key=lambda one: one.latency) for pair in pairs]
        return outcomes, after

    def _measure_in_turns(self, batch: Batch) -> list[Outcome]:
        built = [building.result for building in batch.building]
        while True:
            with self._lent.lend(batch.stopped) as runner, self._turn(runner.site, batch):
                return runner.head_to_head(batch.task, built, batch.traces)

    def _turn(self, site: Site, batch: Batch) -> AbstractContextManager[None]:
        """Wait for this machine's lock: one process measures at a time, as on a board's agent."""
        if site.remote:
            return nullcontext()
        return machine_lock(self._warn, partial(_pause, batch.stopped))


def _each(runner: SiteRunner, batch: Batch, chunk: range) -> Iterator[Outcome]:
    """Run each candidate as soon as it is built, so that a board need not wait for the rest."""
    best = min([batch.best, *(outcome.latency for outcome in batch.outcomes)])
    for at in chunk:
        if batch.over.is_set():
            return
        outcome = runner.run(batch.task, batch.building[at].result, batch.traces[at], best)
        if batch.stopped.is_set():  # the build or the run may have been killed for that
            raise Stopped
        best = min(best, outcome.latency)
        yield outcome


def _pause(stopped: threading.Event, seconds: float) -> None:
    if stopped.wait(seconds):
        raise Stopped
