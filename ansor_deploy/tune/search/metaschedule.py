"""TVM's MetaSchedule as a search: its rules, evolutionary search and cost model, our measuring.

It serves as the baseline of our own search. Its database is private and in memory: the measurements
that it needs are copied there from the registry at the start.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

from ..._tvm import load_backend, parsing, tvm_target
from ..._tvm import meta_schedule as ms
from ...measure.outcome import Outcome
from ...model.tasks import Task
from ...registry.record import Measurement
from ...space import trace as traces
from ...target import Target

# MetaSchedule's own defaults. A round evolves 64 candidates. They are proposed in our smaller
# batches, and the search learns from them once the last one was measured.
POPULATION = 512
GENERATIONS = 4
UNMEASURED = 50
ROUND = 64

_INTRINSICS = "tvm.s_tir.tensor_intrin"
_OF_KIND = {"llvm": ("x86", "arm_cpu", "riscv_cpu"), "cuda": ("cuda",)}


class MetaScheduleSearch:
    """Evolutionary search over MetaSchedule's design space of one task."""

    def __init__(self, task: Task, target: Target, known: Sequence[Measurement], seed: int) -> None:
        self._task = task
        self._context = _context(task, target, seed)
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(task.mod)
        self._model = ms.cost_model.XGBModel(num_tuning_cores=1)  # more threads only wait
        self._strategy = self._context.search_strategy
        self._queue: list[tuple[str, Any]] = []
        self._candidates: dict[str, Any] = {}
        self._outcomes: list[Outcome] = []
        self._seen: set[str] = set()
        # Other searches' programs may be packed already: MetaSchedule's own layout rewriting would
        # fail on them.
        self._learn([m for m in known if m.provenance.search == "metaschedule"])
        self._strategy.pre_tuning(
            max_trials=1 << 20,
            num_trials_per_iter=ROUND,
            design_spaces=self._context.space_generator.generate_design_space(task.mod),
            database=self._database,
            cost_model=self._model,
        )

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; empty when the space is exhausted."""
        if not self._queue:
            self._end_round()
            self._queue = self._next_round()
        batch, self._queue = self._queue[:count], self._queue[count:]
        self._candidates.update(batch)
        return [trace for trace, _ in batch]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Collect outcomes; after a round's last, add them to the database and the cost model."""
        self._outcomes += [outcome for outcome in outcomes if outcome.trace in self._candidates]
        if not self._queue:
            self._end_round()

    def _next_round(self) -> list[tuple[str, Any]]:
        candidates = self._strategy.generate_measure_candidates() or []
        proposed = {traces.dump(candidate.sch.trace): candidate for candidate in candidates}
        fresh = [(trace, found) for trace, found in proposed.items() if trace not in self._seen]
        self._seen.update(trace for trace, _ in fresh)
        return fresh

    def _end_round(self) -> None:
        ours, self._outcomes = self._outcomes, []
        if ours:
            candidates = [self._candidates[outcome.trace] for outcome in ours]
            self._strategy.notify_runner_results(candidates, [_result(o) for o in ours])
        self._learn(ours)
        self._candidates = {}

    def _learn(self, measured: Sequence[Measurement | Outcome]) -> None:
        candidates, results = [], []
        for one in measured:
            try:
                sch = traces.replay(self._task.mod, one.trace)
            except (RuntimeError, ValueError):
                continue
            self._seen.add(one.trace)
            run_secs = list(one.seconds) or [1e10]
            self._database.commit_tuning_record(
                ms.database.TuningRecord(sch.trace, self._workload, run_secs)
            )
            arguments = ms.arg_info.ArgInfo.from_entry_func(sch.mod, remove_preproc=True)
            candidates.append(ms.MeasureCandidate(sch, arguments))
            results.append(ms.runner.RunnerResult(run_secs, None))
        if candidates:
            self._model.update(self._context, candidates, results)


def load_intrinsics(kind: str) -> None:
    """Import the intrinsics of one kind of target, before a context imports those of all kinds.

    Most of the 497 programs that it would parse are for GPUs.
    """
    if _INTRINSICS not in sys.modules and (package := find_spec(_INTRINSICS)):
        sys.modules[_INTRINSICS] = module_from_spec(package)
    with parsing():
        if kind == "cuda":
            load_backend(kind)  # the intrinsics use it
        for name in _OF_KIND[kind]:
            import_module(f"{_INTRINSICS}.{name}")


def _context(task: Task, target: Target, seed: int) -> Any:
    load_intrinsics(target.kind)
    return ms.TuneContext(
        mod=task.mod,
        target=tvm_target(target),
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION,
            init_min_unmeasured=UNMEASURED,
            genetic_num_iters=GENERATIONS,
        ),
        task_name=task.name,
        rand_state=seed + 1,
        num_threads=target.cores,
    )


def _result(outcome: Outcome) -> Any:
    message = f"{outcome.error}: {outcome.message}" if outcome.error else None
    return ms.runner.RunnerResult(list(outcome.seconds) or None, message)
