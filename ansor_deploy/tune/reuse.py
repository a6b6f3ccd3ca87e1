"""A task without a search: a neighbour's schedule, made to fit, serves it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..measure.outcome import INFRASTRUCTURE
from ..plan import SERVED
from ..registry.record import Record, SearchEnd
from ..search.context import SearchKit
from ..search.refit import refit
from ..space.default import default_schedule
from ..space.rule import rule_set, rule_set_digest
from ..space.sketch import derive
from ..space.trace import dump
from .ledger import measurement, provenance
from .winner import winner

if TYPE_CHECKING:
    from ..measure.measurer import Measurer
    from ..measure.outcome import Outcome
    from ..plan import PlanRow
    from ..registry.record import Provenance
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Session


def serve(
    row: PlanRow, session: Session, registry: Registry, measurer: Measurer, report: Report
) -> bool:
    """Give a task its nearest neighbour's best schedule; False where it has no record after that.

    It is checked against the default schedule and run in turns with it: unless it is surely
    faster, the default schedule becomes the record.
    """
    task, kit = row.task, _kit(session, report)
    traces = {dump(default_schedule(task.mod, kit.target, kit.rules).trace): "default"}
    if (near := _refitted(row, kit)) is not None:
        traces.setdefault(near, "near")
    default, *_ = traces
    outcomes = measurer.contest(task, list(traces), default)
    rules = rule_set_digest(kit.rules)
    made = [provenance(traces[o.trace], o.device, kit.seed, rules) for o in outcomes]
    measurements = [
        measurement(task.key, o, where, kit.features(task, o.trace))
        for o, where in zip(outcomes, made, strict=True)
        if o.error != INFRASTRUCTURE
    ]
    at = winner([outcome.seconds for outcome in outcomes])
    records = _records(row, outcomes[at], made[at])
    registry.add_batch(measurements, records)
    if records:
        registry.add_searches([_end(records[0])])
    return bool(records)


def _kit(session: Session, report: Report) -> SearchKit:
    rules = rule_set(session.rules, session.target.kind)
    return SearchKit(session.target, rules, session.seed, warn=report.warn)


def _refitted(row: PlanRow, kit: SearchKit) -> str | None:
    """Trace of the first neighbour's schedule that fits; None where none does."""
    sketches = derive(row.task.mod, kit.target, kit.rules).sketches
    fitting = (
        candidate
        for neighbour in row.neighbours
        for _, candidate in refit(sketches, neighbour, kit.target, kit.rules)
    )
    found = next(fitting, None)
    return dump(found.sch.trace) if found else None


def _records(row: PlanRow, won: Outcome, where: Provenance) -> list[Record]:
    if won.error or not won.proof:
        return []
    return [Record(row.task.key, won.trace, won.seconds, won.proof, where)]


def _end(record: Record) -> SearchEnd:
    """That nothing was searched: enough for a build that asks for no more."""
    created = record.provenance.created
    return SearchEnd(record.key, VERSION, "near", 1, "near", SERVED, created)
