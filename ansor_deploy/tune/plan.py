"""What a build would do, and cost, before it is done: tasks against the registry."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UsageError
from ..registry.record import forecast
from .search.neighbours import Neighbour, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..codegen.memory import Memory
    from ..model.tasks import Task
    from ..registry.record import Record, TaskKey
    from ..target import Target
    from .ledger import Ledger

# What a trial is taken to cost on a target that was never tuned.
SECONDS_PER_TRIAL = 0.5

ASKED = "asked again"  # reason of a row that `--retune` names

Status = Literal["hit", "near", "miss", "skip"]


COUNTED: dict[str, Status] = {"hits": "hit", "near": "near", "misses": "miss", "skipped": "skip"}


@dataclass(frozen=True)
class PlanRow:
    """One unique task: its standing in the registry and its share of the model's time.

    status: "hit": its search is over; "near": unknown, but for its neighbours; "miss"; "skip".
    reason: why its search is not over; "" for a hit.
    latency: seconds of one run; measured where a record exists, else forecast from those.
    impact: weight x latency as a share of the model's sum, 0 to 1. trials: at most, of it.
    roofline: seconds.
    """

    task: Task
    status: Status
    latency: float
    impact: float
    trials: int
    record: Record | None = None
    neighbours: tuple[Neighbour, ...] = ()
    reason: str = ""
    roofline: float = 0.0


@dataclass(frozen=True)
class Plan:
    """Every unique task of one or several models. seconds: what the tuning may take.

    stale: how many misses have records of another TVM that were not tried with this one.
    memory: of each model, as far as it is known without its kernels. devices: that would measure.
    others: the operators of the model's nodes whose kernels are no task, such as recurrences; what
    they take is in no figure here.
    """

    models: tuple[str, ...]
    target: str
    rows: tuple[PlanRow, ...]
    trials: int
    seconds: float
    stale: int = 0
    memory: tuple[Memory, ...] = ()
    others: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def count(self, status: Status) -> int:
        """How many tasks have this status."""
        return sum(row.status == status for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks are hits, near, misses and skipped, by these names."""
        return {name: self.count(status) for name, status in COUNTED.items()}

    @property
    def latency(self) -> float:
        """Seconds that all tasks take alone: the sum of weight x latency."""
        return sum(row.task.weight * row.latency for row in self.rows)

    def forecast(self, found: Mapping[TaskKey, float]) -> float:
        """The same with what was measured since the plan was made. found: seconds of some tasks."""
        known = {row.task.key: row.latency for row in self.rows if row.record} | dict(found)
        tasks = {row.task.key: (row.task.weight, row.roofline) for row in self.rows}
        each = forecast(tasks, known)
        return sum(weight * each[key] for key, (weight, _) in tasks.items())

    @property
    def measured(self) -> float:
        """The share of `latency` that was measured, 0 to 1."""
        return sum(row.impact for row in self.rows if row.record)

    @property
    def latencies(self) -> tuple[float, ...]:
        """Seconds that each model's tasks take alone, in the models' order."""
        return tuple(
            sum(row.task.per_model[model] * row.latency for row in self.rows)
            for model in range(len(self.models))
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as one JSON object (latencies in milliseconds)."""
        return {
            "models": list(self.models),
            "target": self.target,
            "devices": list(self.devices),
            "tasks": [_row_json(row) for row in self.rows],
            **self.counts,
            "stale": self.stale,
            "trials": self.trials,
            "seconds": self.seconds,
            "latency_ms": self.latency * 1e3,
            "memory": [memory.figures() for memory in self.memory],
            "others": list(self.others),
        }


def make_plan(
    models: Sequence[str],
    tasks: Sequence[Task],
    ledger: Ledger,
    programs: Callable[[Task, int], float] = lambda task, enough: math.inf,
) -> Plan:
    """Hold unique tasks against the ledger: what is there, what is missing, what matters.

    programs: how many a task has, counted until there are enough; asked of those that matter.

    A task is a hit if it is finished for the ledger's request, or has had its trials; a miss if
    it matters and is not, or near if it was never measured and others of its family, or the same
    on a machine with other cores or caches, were; and
    skipped if its share of the time is too small. UsageError where --retune names no task.
    """
    request, registry = ledger.request, ledger.registry
    budget, target = request.budget, request.target
    keys = [task.key for task in tasks]
    again = _asked_again(tasks, request.retune)
    records, reasons = ledger.best(keys), ledger.unfinished(keys) | dict.fromkeys(again, ASKED)
    measured = registry.trials(keys)
    spent = ledger.trials(keys) | dict.fromkeys(again, 0)
    latency, impact = latencies(tasks, records, target), impacts(tasks, records, target)
    wanted = {key for key in keys if impact[key] >= budget.min_impact} | again
    unknown = {key for key in wanted if not measured[key] and key not in records}
    asked = {task.key: task.workload for task in tasks if task.key in unknown}
    near = nearest(asked, registry, ledger.tvm, target)
    rows = []
    for task in tasks:
        key, record, reason = task.key, records.get(task.key), reasons.get(task.key, "")
        status: Status = "near" if key in near else "miss" if key in wanted else "skip"
        left = max(0, budget.per_task - spent[key])
        if record and not (reason and left):
            status, reason = "hit", ""
        if status == "miss" or (status, request.reuse) == ("near", "exact"):
            trials = int(min(left, max(1, programs(task, left + measured[key]) - measured[key])))
        else:
            trials = 0
        neighbours = tuple(near.get(key, ()))
        times = latency[key], impact[key]
        row = PlanRow(task, status, *times, trials, record, neighbours, reason)
        rows.append(replace(row, roofline=task.roofline(target)))
    rows.sort(key=lambda row: (-row.impact, row.task.key))
    trials = sum(row.trials for row in rows)
    trials = trials if budget.trials is None else min(trials, budget.trials)
    each = registry.seconds_per_trial(target.fingerprint) or SECONDS_PER_TRIAL
    seconds = min(trials * each, budget.seconds if budget.seconds is not None else float("inf"))
    missed = [row.task.key for row in rows if row.status not in ("hit", "skip")]
    outdated = sum(bool(registry.stale(key, ledger.tvm)) for key in missed)
    return Plan(tuple(models), target.name, tuple(rows), trials, seconds, outdated)


def _asked_again(tasks: Sequence[Task], names: Sequence[str]) -> set[TaskKey]:
    """The keys of the tasks that `--retune` names: by name, or by the beginning of a key."""
    if "all" in names:
        return {task.key for task in tasks}
    found = set()
    for name in names:
        named = [t.key for t in tasks if t.name == name or t.key.workload.startswith(name)]
        if not named:
            raise UsageError(
                f"--retune: no task is called {name}, and no key begins so",
                "`ansor-deploy plan MODEL --json` lists the tasks with their keys",
            )
        found.update(named)
    return found


def latencies(
    tasks: Sequence[Task], records: Mapping[TaskKey, Record], target: Target
) -> dict[TaskKey, float]:
    """Seconds of one run of each task, by `forecast` of those that have a record."""
    known = {task.key: (task.weight, task.roofline(target)) for task in tasks}
    return forecast(known, {key: records[key].latency for key in known if key in records})


def impacts(
    tasks: Sequence[Task], records: Mapping[TaskKey, Record], target: Target
) -> dict[TaskKey, float]:
    """Each task's share of the end-to-end time, 0 to 1.

    A task without a record counts for no more than its share of the rooflines: else records of
    the others would make one matter that was skipped, and the next build of the model would tune.
    """
    share = _shares(tasks, latencies(tasks, records, target))
    untuned = _shares(tasks, latencies(tasks, {}, target))
    return {k: s if k in records else min(s, untuned[k]) for k, s in share.items()}


def _shares(tasks: Sequence[Task], seconds: Mapping[TaskKey, float]) -> dict[TaskKey, float]:
    total = sum(task.weight * seconds[task.key] for task in tasks) or 1.0
    return {task.key: task.weight * seconds[task.key] / total for task in tasks}


def _row_json(row: PlanRow) -> dict[str, Any]:
    return {
        "name": row.task.name,
        "title": row.task.title,
        "key": row.task.key.workload,
        "op": row.task.workload.op,
        "weight": row.task.weight,
        "status": row.status,
        "reason": row.reason,
        "latency_ms": row.latency * 1e3,
        "impact": row.impact,
        "trials": row.trials,
        "record": row.record.id if row.record else None,
        "neighbours": [
            {
                "key": one.workload.key,
                "name": one.workload.name,
                "shapes": [list(shape) for shape in one.workload.shapes],
                "distance": one.distance,
                "target": one.machine.fingerprint if one.machine else row.task.key.target,
            }
            for one in row.neighbours
        ],
    }
