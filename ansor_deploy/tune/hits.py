"""Hits: which tasks of a plan have a schedule already, where from, and which have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ..errors import MissingRecordError
from ..system.json_types import Count, Share
from ..system.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..request import Request
    from .plan import Plan, PlanRow

_NAMED = 10  # tasks that an error lists


class Origins(Struct, frozen=True):
    """How many tasks had schedules before anything was tuned, by where these came from.

    exact: a record of this registry. team: the team's layer. base: the layer shipped with the tool.
    near: neighbours, which serve the task or start its search. share: the part of the time, 0 to 1,
    of the tasks with a record.
    """

    exact: Count
    team: Count
    base: Count
    near: Count
    share: Share


def origins(plan: Plan) -> Origins:
    """The origins of a plan's schedules."""
    tiers = [plan.tiers.get(row.task.key, "exact") for row in plan.rows if row.record]
    team, base = tiers.count("team"), tiers.count("base")
    return Origins(len(tiers) - team - base, team, base, plan.count("near"), plan.measured)


def lacking(plan: Plan, request: Request) -> list[PlanRow]:
    """The tasks that matter and have no record and no neighbour to serve them; longest first."""
    unknown = {"miss"} if request.reuse == "near" else {"miss", "near"}
    rows = [row for row in plan.rows if row.status in unknown and not row.record]
    return sorted(rows, key=lambda row: (-row.impact, row.task.key))


def check_hits(plan: Plan, request: Request) -> None:
    """MissingRecordError where the request needs all records, and a task that matters has none."""
    if request.require_hits and (rows := lacking(plan, request)):
        raise MissingRecordError(
            f"{', '.join(plan.models)}: {lacking_text(plan, rows)}: {named(rows)}",
            f"tune them: {request.remake}",
        )


def lacking_text(plan: Plan, rows: Sequence[PlanRow]) -> str:
    """How many tasks have no record, and their share of the time, as text."""
    have = "has" if len(rows) == 1 else "have"
    part = sum(row.impact for row in rows)
    tasks = f"{len(rows)} of {count(len(plan.rows), 'task')}"
    return f"{tasks}, {part:.1%} of the time, {have} no record"


def named(rows: Sequence[PlanRow]) -> str:
    """The tasks' names and keys, each with its share of the time, as text."""
    names = [
        f"{row.task.name} {row.task.key.workload[:12]} ({row.impact:.1%})" for row in rows[:_NAMED]
    ]
    more = [f"and {len(rows) - _NAMED} more, which `plan --json` lists"]
    return ", ".join([*names, *(more if len(rows) > _NAMED else [])])
