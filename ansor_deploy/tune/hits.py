"""Hits: which tasks of a plan have a schedule already, where it came from, and what is lacking."""

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
    """Where tasks had their schedules from, before anything was tuned.

    exact: from a record of this registry; team, base: from a layer, the team's or what is shipped
    with the tool; near: from neighbours, to be served or to start from. share: of the time, of
    those that have a record.
    """

    exact: Count
    team: Count
    base: Count
    near: Count
    share: Share


def origins(plan: Plan) -> Origins:
    """Of the tasks of a plan."""
    tiers = [plan.tiers.get(row.task.key, "exact") for row in plan.rows if row.record]
    team, base = tiers.count("team"), tiers.count("base")
    return Origins(len(tiers) - team - base, team, base, plan.count("near"), plan.measured)


def lacking(plan: Plan, request: Request) -> list[PlanRow]:
    """The tasks that matter, without a record or a neighbour that may serve; longest first."""
    unknown = {"miss"} if request.reuse == "near" else {"miss", "near"}
    rows = [row for row in plan.rows if row.status in unknown and not row.record]
    return sorted(rows, key=lambda row: (-row.impact, row.task.key))


def check_hits(plan: Plan, request: Request) -> None:
    """MissingRecordError where every task has to have a record, and one that matters has none."""
    if request.require_hits and (rows := lacking(plan, request)):
        raise MissingRecordError(
            f"{', '.join(plan.models)}: {lacking_text(plan, rows)}: {named(rows)}",
            f"tune them: {request.remake}",
        )


def lacking_text(plan: Plan, rows: Sequence[PlanRow]) -> str:
    """How many tasks have no record, and what they are of the time."""
    have = "has" if len(rows) == 1 else "have"
    part = sum(row.impact for row in rows)
    tasks = f"{len(rows)} of {count(len(plan.rows), 'task')}"
    return f"{tasks}, {part:.1%} of the time, {have} no record"


def named(rows: Sequence[PlanRow]) -> str:
    """Tasks by their names and keys, each with its share of the time."""
    names = [
        f"{row.task.name} {row.task.key.workload[:12]} ({row.impact:.1%})" for row in rows[:_NAMED]
    ]
    more = [f"and {len(rows) - _NAMED} more, which `plan --json` lists"]
    return ", ".join([*names, *(more if len(rows) > _NAMED else [])])
