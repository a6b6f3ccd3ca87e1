"""A plan as text: what becomes of the tasks, which matter most, and what tuning costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ..system.words import count, size_text
from .text import (
    TASK_HEADER,
    duration,
    fitted,
    latency,
    named,
    node_lines,
    origins_text,
    share,
    task_cells,
)

if TYPE_CHECKING:
    from ..target import Target
    from ..tune.plan import Plan, PlanRow

    Line = tuple[str, str]  # with its style, where there are colours

ROWS = 8  # tasks that are listed, so that a plan fits a screen
MODELS = 3  # models, at most, that get a line each on memory
HEADER = (*TASK_HEADER, "outcome", "trials")
# What can become of a task, in the order of the summary, with the style of each.
_NEAR = "one of other sizes, or for other cores and caches"
STYLES = {"known": "green", "near": "cyan", "again": "yellow", "new": "", "default": "dim"}


def lines(plan: Plan, most: int | None = ROWS) -> list[Line]:
    """The plan as lines that fit a terminal. most: the number of tasks to list; None for all."""
    rows = by_share(plan)
    on = f"{plan.target}{f' ({shown})' if (shown := ', '.join(plan.devices)) else ''}"
    title = f"{count(len(rows), 'task')} of {', '.join(plan.models)} on {on}"
    table = tasks(rows, most, measures=plan.trials > 0)
    parts = [[(title, "bold")], outcomes(plan), table, list(sums(plan, most))]
    return [line for part in parts if part for line in (*part, ("", ""))][:-1]


def by_share(plan: Plan) -> list[PlanRow]:
    """The rows of a plan, those that matter most first."""
    return sorted(plan.rows, key=lambda row: (-row.impact, row.task.name))


def outcome(row: PlanRow) -> str:
    """What becomes of a task, as a key of `STYLES`."""
    if row.status == "miss":
        return "again" if row.record else "new"
    return {"hit": "known", "skip": "default"}.get(row.status, row.status)


def outcomes(plan: Plan) -> list[Line]:
    """For each outcome: how many tasks have it, their share of the time, and what it means."""
    found = {name: [row for row in plan.rows if outcome(row) == name] for name in STYLES}
    said = _meaning if plan.trials else _unmeasured
    return [
        (f"{name:7}  {_figures(rows)}  {said(name, rows)}", STYLES[name])
        for name, rows in found.items()
        if rows
    ]


def _figures(rows: Sequence[PlanRow]) -> str:
    return f"{count(len(rows), 'task'):>9}  {share(_part(rows)):>6}"


def _part(rows: Sequence[PlanRow]) -> float:
    return sum(row.impact for row in rows)


def _meaning(name: str, rows: Sequence[PlanRow]) -> str:
    if name == "again":
        return f"tuned further: {_reasons(rows)}"
    if name == "near" and not any(row.trials for row in rows):
        return f"take the schedule of {_NEAR}"
    return {
        "known": "reused: searched as far as this budget asks",
        "near": f"tuned, starting from {_NEAR}",
        "new": "tuned from nothing",
        "default": "too small a share to tune: the default schedule",
    }[name]


def _unmeasured(name: str, rows: Sequence[PlanRow]) -> str:
    """As `_meaning`, for a plan that measures nothing."""
    if name == "again":
        return f"reused as it is, untuned: {_reasons(rows)}"
    if name in ("new", "near") and any(row.trials for row in rows):
        return "the default schedule, untuned"
    return _meaning(name, rows)


def _reasons(rows: Sequence[PlanRow]) -> str:
    why = Counter(row.reason for row in rows).most_common()
    return ", ".join(
        reason if number == len(rows) else f"{number} {reason}" for reason, number in why
    )


def tasks(rows: Sequence[PlanRow], most: int | None, *, measures: bool) -> list[Line]:
    """The table of tasks, and a line on those that are left out.

    most: how many to list; None for all. measures: whether any task is tuned.
    """
    if not rows:
        return []
    cells = fitted([HEADER, *(_cells(row, measures) for row in rows[:most])], 1)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = [
        "  ".join(
            cell.ljust(width) if at in (0, 1, 5) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    styles = ["bold", *(STYLES[outcome(row)] for row in rows)]
    shown = list(zip(table, styles, strict=False))
    rest = rows[len(cells) - 1 :]
    more = f"and {len(rest)} more with {share(_part(rest))} of the time: plan --verbose lists them"
    return [*shown, (more, "dim")] if rest else shown


def _cells(row: PlanRow, measures: bool) -> tuple[str, ...]:
    key, title, weight = row.task.key.workload, row.task.title, row.task.weight
    task = task_cells(key, title, weight, row.impact, row.latency, row.record)
    return (*task, outcome(row), str(row.trials if measures else 0))


def sums(plan: Plan, most: int | None) -> Iterator[Line]:
    """What the plan costs, and what is known about the models in advance."""
    yield f"hits     {origins_text(plan.origins, len(plan.rows))}", ""
    cost = f"at most {count(plan.trials, 'trial')}, about {duration(plan.seconds)}"
    yield f"cost     {cost if plan.trials else 'nothing to measure'}", "bold"
    yield f"a run    about {latency(plan.latency)}, {_basis(plan.measured)}", ""
    if plan.room is not None:
        found = f"at most {latency(plan.room)} of a run"
        yield f"room     {found} can be found in what is tuned further", ""
    if plan.others:
        yield f"besides  {_untimed(plan.others)}: no task, and in no time above", ""
    for line in memory(plan) if most is None or len(plan.models) <= MODELS else []:
        yield f"memory   {line}", ""
    for line in stale_lines(plan):
        yield line, ""


def _basis(measured: float) -> str:
    """The basis of a plan's time. measured: the share of the time that was measured."""
    if not measured:
        return "by the roofline: nothing was measured"
    forecast = "" if measured > 0.999 else f", {share(1 - measured)} of that by forecast"
    return f"which its tasks take alone{forecast}"


def _untimed(others: Sequence[str]) -> str:
    """The operators with their numbers, such as "2 TopK, 1 CumSum"."""
    return ", ".join(f"{number} {op}" for op, number in Counter(others).items())


def memory(plan: Plan) -> list[str]:
    """Each model's memory, as far as it is known without its kernels."""
    figures = (memory.figures() for memory in plan.memory)
    several = len(plan.models) > 1
    return [
        (f"{model}: " if several else "")
        + f"weights {size_text(one['weights'])}, tensors {size_text(one['workspace'])}, "
        f"in a run at least {size_text(one['peak'])}"
        for model, one in zip(plan.models, figures, strict=False)
    ]


def stale_lines(plan: Plan) -> list[str]:
    """How many tasks have records of another TVM, and the command that tries these records."""
    if not plan.stale:
        return []
    have = "task to tune has" if plan.stale == 1 else "tasks to tune have"
    return [
        f"{plan.stale} {have} records of another TVM; to try them before tuning:",
        f"  ansor-deploy registry revalidate {' '.join(plan.models)}",
    ]


def details(plan: Plan) -> list[str]:
    """The models' inputs and outputs; why tasks are tuned again, their neighbours and nodes."""
    taken = zip(plan.models, plan.interfaces, strict=False)  # an unread plan has none
    models = [(f"{name} takes {one.takes}", f"  gives {one.gives}") for name, one in taken]
    return [*chain(*models), *(line for row in by_share(plan) for line in _detail(row))]


def _detail(row: PlanRow) -> Iterator[str]:
    again = outcome(row) == "again"
    if not (again or row.neighbours or row.task.places):
        return
    yield named(row.task) + (f" is tuned again: {row.reason}" if again else "")
    for neighbour in row.neighbours[:1]:
        yield f"  is near {neighbour.workload.title}, at {neighbour.distance:.1f}"
        if neighbour.machine:
            yield f"  of a machine with {_cores(neighbour.machine)}"
    for place in row.task.places:
        yield from node_lines(((node.op, node.name) for node in place.nodes), 2)


def _cores(machine: Target) -> str:
    """The cores and caches of a machine, by which it differs from others of its instructions."""
    sizes = (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes)
    caches = ", ".join(f"{size >> 10}" for size in sizes)
    return f"{count(machine.cores, 'core')} and caches of {caches} KiB"
