"""The end of a task's search: its best few against each other and against what stood before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..registry.record import Record
from .winner import winner

if TYPE_CHECKING:
    from ..measure.measurer import Batch, Measurer
    from ..model.tasks import Task
    from ..registry.record import Provenance
    from ..registry.store import Registry

CLOSE = 0.1  # share within which a single timing may be wrong about who is faster
KNOWN = 256  # records of a task that the winner is noted to have beaten


@dataclass(frozen=True)
class Final:
    """A contest under way. before: the best record of before this run."""

    task: Task
    before: Record | None
    batch: Batch


def begin_final(task: Task, before: Record | None, default: str, measurer: Measurer) -> Final:
    """Let the fastest few run in turns with the incumbent, and with the default schedule anyway.

    A single timing is a lucky one: of many candidates, the best is the one whose luck was best.
    The incumbent is the best record of before this run, else the default schedule. default: the
    latter's trace.
    """
    incumbent = before.trace if before else default
    traces = list(dict.fromkeys([incumbent, *measurer.fastest(task, CLOSE), default]))
    return Final(task, before, measurer.submit_head_to_head(task, traces, default))


def end_final(
    final: Final, measurer: Measurer, registry: Registry, where: Provenance
) -> Record | None:
    """The record that a build is to use: of the winner, or the one that stands in a tie.

    where: it was measured, and what found it if nothing that is known did. None where nothing
    that runs is known.
    """
    task, before = final.task, final.before
    outcomes = measurer.wait(final.batch)
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
