"""The end of a task's search: its best few against each other and against what stood before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ._tvm import VERSION
from .measure.verdict import winner
from .registry.record import Record

if TYPE_CHECKING:
    from .measure.measurer import Measurer
    from .model.tasks import Task
    from .registry.record import Provenance
    from .registry.store import Registry

CLOSE = 0.1  # share within which a single timing may be wrong about who is faster
KNOWN = 256  # records of a task that the winner is noted to have beaten


def settle(
    task: Task,
    before: Record | None,
    default: str,
    measurer: Measurer,
    registry: Registry,
    where: Provenance,
) -> Record | None:
    """The record that a build is to use: of the winner, or the one that stands in a tie.

    A single timing is a lucky one: of many candidates, the best is the one whose luck was best.
    Therefore the fastest few run in turns with the incumbent, which is the best record of before
    this run, else the default schedule, and with the latter anyway. default: its trace. where: it
    is measured, and what found it if nothing that is known did. None where nothing that runs is
    known.
    """
    incumbent = before.trace if before else default
    traces = list(dict.fromkeys([incumbent, *measurer.finalists(task, CLOSE), default]))
    outcomes = measurer.contest(task, traces, default)
    won = outcomes[winner([outcome.seconds for outcome in outcomes])]
    known = registry.top(task.key, VERSION, KNOWN)
    if won.error or not won.proof:
        return known[0] if known else None
    if before and won.trace == before.trace:
        record = before
    else:
        found = next((one.provenance for one in known if one.trace == won.trace), None)
        found = found or replace(where, search="default")
        now = replace(found, tool=where.tool, device=won.device, created=where.created)
        record = Record(task.key, won.trace, won.seconds, won.proof, now)
    losers = [one.id for one in known if one.id != record.id]
    registry.add_contest(record, losers, where.created)
    return record
