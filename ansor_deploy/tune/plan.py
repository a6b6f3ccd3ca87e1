"""The plan: what a build would do and cost, from its tasks and the registry."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ..errors import UsageError
from ..registry.record import forecast
from .limits import limits
from .search.neighbours import Neighbour, nearest
from .standing import records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..codegen.memory.figures import Memory
    from ..model.graph.places import Node
    from ..model.prepare import Prepared
    from ..model.tasks import Task
    from ..registry.layer import Tier
    from ..registry.record import Record, TaskKey
    from ..request import Request
    from ..runtime.interface import Interface
    from ..target import Target
    from .hits import Origins
    from .ledger import Ledger
    from .standing import Standing
    from .workspace import Workspace

# Assumed seconds of a trial on a target that was never tuned.
SECONDS_PER_TRIAL = 0.5

ASKED = "asked again"  # reason of a row that `--retune` names
# Operators that compute nothing.
_MOVES = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")

Status = Literal["hit", "near", "miss", "skip"]


COUNTED: dict[str, Status] = {"hits": "hit", "near": "near", "misses": "miss", "skipped": "skip"}


@dataclass(frozen=True)
class PlanRow:
    """One unique task: its standing in the registry and its share of the model's time.

    status: "hit": its search is over; "near": never measured, but it has neighbours; "miss": to be
    tuned; "skip": too small a share of the time. latency: seconds of one run; measured where a
    record exists, else forecast from the records of others. impact: weight x latency as a share of
    the model's sum, 0 to 1. trials: the most that it may get. reason: why its search is not over;
    "" for a hit. roofline: estimate of its time from the target's declared speed, seconds.
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
    """The plan of every unique task of one or several models.

    trials: all trials of the tuning. seconds: how long the tuning may take. stale: how many misses
    have records of another TVM that were not tried with this one. memory: each model's memory, as
    far as it is known without its kernels. others: operators of nodes whose kernels are no tasks,
    such as sorts; no figure here includes their time. devices: the devices that would measure.
    room: seconds of a run that could still be saved, above the lower bounds of the tasks that have
    a record and are tuned further; None where no bound is known. tiers: the layer of each record
    that came from one. interfaces: the interface of each model, in its first shape.
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
    room: float | None = None
    tiers: Mapping[TaskKey, Tier] = field(default_factory=dict)
    interfaces: tuple[Interface, ...] = ()

    def count(self, status: Status) -> int:
        """How many tasks have this status."""
        return sum(row.status == status for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks there are of each status, by the names of `COUNTED`."""
        return {name: self.count(status) for name, status in COUNTED.items()}

    @property
    def latency(self) -> float:
        """Seconds that all tasks take together: the sum of weight x latency."""
        return sum(row.task.weight * row.latency for row in self.rows)

    def forecast(self, found: Mapping[TaskKey, float]) -> float:
        """`latency` with what was measured since the plan was made. found: seconds of tasks."""
        known = {row.task.key: row.latency for row in self.rows if row.record} | dict(found)
        tasks = {row.task.key: (row.task.weight, row.roofline) for row in self.rows}
        each = forecast(tasks, known)
        return sum(weight * each[key] for key, (weight, _) in tasks.items())

    def under(self, records: Mapping[TaskKey, Record]) -> Plan:
        """The same plan with the latencies of these records."""
        known = {key: record.latency for key, record in records.items()}
        rows = (replace(row, latency=known.get(row.task.key, row.latency)) for row in self.rows)
        return replace(self, rows=tuple(rows))

    @property
    def measured(self) -> float:
        """The share of `latency` that was measured, 0 to 1."""
        return sum(row.impact for row in self.rows if row.record)

    @property
    def origins(self) -> Origins:
        """Where its tasks' schedules came from."""
        from .hits import origins

        return origins(self)

    @property
    def latencies(self) -> tuple[float, ...]:
        """Seconds that each model's tasks take together, in the models' order."""
        return tuple(
            sum(row.task.per_model[model] * row.latency for row in self.rows)
            for model in range(len(self.models))
        )


def plan_models(prepared: Sequence[Prepared], tasks: Sequence[Task], work: Workspace) -> Plan:
    """The plan of models that were read, with their memory and their nodes that are no tasks.

    tasks: the unique tasks of all models.
    """
    from ..codegen.executable import memory_of_tensors
    from ..registry.layers import tiers

    ledger = work.ledger
    names, target = [model.path.name for model in prepared], ledger.request.target
    made = make_plan(names, tasks, ledger, partial(_programs, ledger.request))
    memory = tuple(memory_of_tensors(model.imported, target) for model in prepared)
    others = tuple(node.op for model in prepared for node in _beside_tasks(model))
    taken = tuple(model.imported.interfaces[0] for model in prepared)
    made = replace(made, memory=memory, others=others, devices=ledger.request.devices)
    known = tiers(work.indexes, [row.record for row in made.rows if row.record])
    return replace(made, tiers=known, room=_room(made, ledger.request), interfaces=taken)


def _room(plan: Plan, request: Request) -> float | None:
    again = [row for row in plan.rows if row.record and row.trials] if plan.trials else []
    least = limits([row.task for row in again], request)
    above = (row.task.weight * (row.latency - least[row.task.key]) for row in again if least)
    return sum(max(0.0, one) for one in above) if least else None


def _beside_tasks(model: Prepared) -> list[Node]:
    """The nodes that compute something and are part of no task."""
    tasked = {node for task in model.tasks for place in task.places for node in place.nodes}
    nodes = [node for _, place in model.others for node in place.nodes]
    return [node for node in nodes if node.op not in _MOVES and node not in tasked]


def _programs(request: Request, task: Task, enough: int) -> float:
    """How many programs a task has; infinite where that is not counted.

    It is not counted without trials, for another search, or where a user's rules would have to run.
    enough: counting stops at this number.
    """
    from ..space.derivation import programs
    from ..space.rule import shipped_rules

    if request.rules or request.search != "ansor" or request.budget.trials == 0:
        return math.inf
    rules = shipped_rules(request.target.kind, request.precision)
    return programs(task.mod, request.target, rules, enough)


def make_plan(
    models: Sequence[str],
    tasks: Sequence[Task],
    ledger: Ledger,
    programs: Callable[[Task, int], float] = lambda task, enough: math.inf,
) -> Plan:
    """Compare unique tasks with the ledger: what is there, what is missing and what matters.

    programs: counts a task's programs up to a number; it is called for tasks that matter.

    A task is a hit if its search is over for the ledger's request, or if it has had its trials. If
    not, it is skipped where its share of the time is too small. It is near if it was never measured
    itself, but others of its family were, or the same task on a machine with other cores or caches.
    Otherwise it is a miss. UsageError where --retune names no task.
    """
    request, registry, target = ledger.request, ledger.registry, ledger.request.target
    standing = ledger.standing(task.key for task in tasks)
    again = _asked_again(tasks, request.retune)
    standing |= {key: replace(standing[key], reason=ASKED, spent=0) for key in again}
    records = records_of(standing)
    latency, impact = latencies(tasks, records, target), impacts(tasks, records, target)
    wanted = {k for k, share in impact.items() if share >= request.budget.min_impact} | again
    near = _neighbours([task for task in tasks if task.key in wanted], standing, ledger)

    def row(task: Task) -> PlanRow:
        key, known = task.key, standing[task.key]
        left = max(0, request.budget.per_task - known.spent)
        status, reason, trials = _status(known, left, key in near, key in wanted), known.reason, 0
        if status == "miss" or (status, request.reuse) == ("near", "exact"):
            most = programs(task, left + known.measured) - known.measured
            trials = int(min(left, max(1, most)))
        reason = "" if status == "hit" else reason
        figures = (latency[key], impact[key], trials, known.record)
        several = tuple(near.get(key, ()))
        return PlanRow(task, status, *figures, several, reason, task.roofline(target))

    rows = tuple(sorted(map(row, tasks), key=lambda row: (-row.impact, row.task.key)))
    missed = [row.task.key for row in rows if row.status in ("near", "miss")]
    outdated = sum(bool(registry.stale(key, ledger.tvm)) for key in missed)
    return Plan(tuple(models), target.name, rows, *_cost(rows, ledger), outdated)


def _status(known: Standing, left: int, near: bool, wanted: bool) -> Status:
    """The status of a task.

    left: how many trials it may still have. near: whether it has neighbours. wanted: whether it
    matters.
    """
    if known.record and not (known.reason and left):
        return "hit"
    return "near" if near else "miss" if wanted else "skip"


def _neighbours(
    tasks: Sequence[Task], standing: Mapping[TaskKey, Standing], ledger: Ledger
) -> dict[TaskKey, list[Neighbour]]:
    """The neighbours of the tasks that were never measured; tasks without any are left out."""
    known = [(task.key, task.workload, standing[task.key]) for task in tasks]
    asked = {key: text for key, text, at in known if not (at.measured or at.record)}
    return nearest(asked, ledger.registry, ledger.tvm, ledger.request.target)


def _cost(rows: Sequence[PlanRow], ledger: Ledger) -> tuple[int, float]:
    """The rows' trials within the request's budget, and the seconds that they may take."""
    budget, target = ledger.request.budget, ledger.request.target
    trials = sum(row.trials for row in rows)
    trials = trials if budget.trials is None else min(trials, budget.trials)
    each = ledger.registry.seconds_per_trial(target.fingerprint) or SECONDS_PER_TRIAL
    return trials, min(trials * each, math.inf if budget.seconds is None else budget.seconds)


def _asked_again(tasks: Sequence[Task], names: Sequence[str]) -> set[TaskKey]:
    """The keys of the tasks that `--retune` names, by name or by the beginning of a key."""
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
    """Seconds of one run of each task; `forecast` from those with a record for the others."""
    known = {task.key: (task.weight, task.roofline(target)) for task in tasks}
    return forecast(known, {key: records[key].latency for key in known if key in records})


def impacts(
    tasks: Sequence[Task], records: Mapping[TaskKey, Record], target: Target
) -> dict[TaskKey, float]:
    """Each task's share of the end-to-end time, 0 to 1.

    A task without a record counts for no more than its share of the rooflines. Otherwise, records
    of other tasks would make a skipped task matter, and the next build of the model would tune it.
    """
    share = _shares(tasks, latencies(tasks, records, target))
    untuned = _shares(tasks, latencies(tasks, {}, target))
    return {k: s if k in records else min(s, untuned[k]) for k, s in share.items()}


def _shares(tasks: Sequence[Task], seconds: Mapping[TaskKey, float]) -> dict[TaskKey, float]:
    total = sum(task.weight * seconds[task.key] for task in tasks) or 1.0
    return {task.key: task.weight * seconds[task.key] / total for task in tasks}
