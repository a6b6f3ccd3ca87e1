"""TVM's MetaSchedule as a search: its rules, evolutionary search and cost model, our measuring.

The peer that our own engine is measured against. Its database is a private one in memory: what
it needs of the registry is committed to it at the start.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from .._tvm import meta_schedule as ms
from .._tvm import tvm
from ..measure.outcome import Outcome
from ..model.importer import tvm_target
from ..model.tasks import Task
from ..registry.record import Measurement
from ..target import Target
from . import trace as traces

# A quarter of the stock population for a batch of 16 instead of 64 candidates; each evaluated
# candidate costs 6 to 8 ms of C++.
POPULATION = 128
GENERATIONS = 3
BATCH = 16


class MetaScheduleSearch:
    """Evolutionary search over MetaSchedule's design space of one task."""

    def __init__(self, task: Task, target: Target, known: Sequence[Measurement], seed: int) -> None:
        self._task = task
        self._context = _context(task, target, seed)
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(task.mod)
        self._model = ms.cost_model.XGBModel(num_warmup_samples=BATCH)
        self._strategy = self._context.search_strategy
        self._candidates: dict[str, Any] = {}
        self._seen: set[str] = set()
        self._started = False
        # Programs of other searches may be packed already: its own layout rewriting, applied to
        # them again, would fail.
        own = [m for m in known if m.provenance.search == "metaschedule"]
        self._learn([(m.trace, m.seconds) for m in own])

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; empty when the space is exhausted."""
        if not self._started:
            self._start()
        candidates = self._strategy.generate_measure_candidates() or []
        proposed = {traces.dump(candidate.sch.trace): candidate for candidate in candidates}
        fresh = [trace for trace in proposed if trace not in self._seen][:count]
        self._candidates = {trace: proposed[trace] for trace in fresh}
        self._seen.update(self._candidates)
        return list(self._candidates)

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Commit the last proposals' outcomes to the database; retrain the cost model on them."""
        ours = [outcome for outcome in outcomes if outcome.trace in self._candidates]
        if ours:
            candidates = [self._candidates[outcome.trace] for outcome in ours]
            self._strategy.notify_runner_results(candidates, [_result(o) for o in ours])
        self._learn([(outcome.trace, outcome.seconds) for outcome in ours])

    def _start(self) -> None:
        self._strategy.pre_tuning(
            max_trials=1 << 20,
            num_trials_per_iter=BATCH,
            design_spaces=self._context.space_generator.generate_design_space(self._task.mod),
            database=self._database,
            cost_model=self._model,
        )
        self._started = True

    def _learn(self, measured: Sequence[tuple[str, tuple[float, ...]]]) -> None:
        candidates, results = [], []
        for text, seconds in measured:
            try:
                sch = traces.replay(self._task.mod, text)
            except (tvm.s_tir.ScheduleError, ValueError, RuntimeError):
                continue
            self._seen.add(text)
            run_secs = list(seconds) or [1e10]
            self._database.commit_tuning_record(
                ms.database.TuningRecord(sch.trace, self._workload, run_secs)
            )
            candidates.append(ms.MeasureCandidate(sch, _arguments(sch)))
            results.append(ms.runner.RunnerResult(run_secs, None))
        if candidates:
            self._model.update(self._context, candidates, results)


def _arguments(sch: Any) -> Any:
    return ms.arg_info.ArgInfo.from_entry_func(sch.mod, remove_preproc=True)


def _frames() -> list[inspect.FrameInfo]:
    """As `inspect.stack`, without reading the source around every frame."""
    found, frame = [], inspect.currentframe()
    while frame is not None:
        code = frame.f_code
        found.append(
            inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None)
        )
        frame = frame.f_back
    return found[1:]


def _load_intrinsics() -> None:
    """Import what every context imports: 497 programs, each parsed under a full `inspect.stack`.

    Reading the sources of all those frames costs 15 s; the parser only looks for their variables.
    """
    with patch.object(inspect, "stack", _frames):
        importlib.import_module("tvm.s_tir.tensor_intrin")


def _context(task: Task, target: Target, seed: int) -> Any:
    _load_intrinsics()
    return ms.TuneContext(
        mod=task.mod,
        target=tvm_target(target),
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION,
            init_min_unmeasured=BATCH * 2,
            genetic_num_iters=GENERATIONS,
        ),
        task_name=task.name,
        rand_state=seed + 1,
        num_threads=target.cores,
        logger=None,
    )


def _result(outcome: Outcome) -> Any:
    if outcome.error:
        return ms.runner.RunnerResult(None, f"{outcome.error}: {outcome.message}")
    return ms.runner.RunnerResult(list(outcome.seconds), None)
