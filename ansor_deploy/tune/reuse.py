"""A task without a search: a neighbour's schedule, made to fit, serves it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..measure.outcome import INFRASTRUCTURE
from ..registry.record import Record, SearchEnd
from ..search.context import SearchContext
from ..search.refit import refit
from ..space.default import default_schedule
from ..space.rule import rule_set, rule_set_digest
from ..space.sketch import derive
from ..space.trace import dump
from .ledger import measurement, provenance
from .plan import SERVED
from .winner import winner

if TYPE_CHECKING:
    from ..measure.measurer import Measurer
    from ..measure.outcome import Outcome
    from ..registry.record import Provenance
    from ..registry.store import Registry
    from ..report import Report
    from ..request import Request
    from .plan import PlanRow


def serve(
    row: PlanRow, request: Request, registry: Registry, measurer: Measurer, report: Report
) -> bool:
    """Give a task its nearest neighbour's best schedule; False where it has no record after that.

    It is checked against the default schedule and run in turns with it: unless it is surely
    faster, the default schedule becomes the record.
    """
    task, context = row.task, _context(request, report)
    traces = {dump(default_schedule(task.mod, context.target, context.rules).trace): "default"}
    if (near := _refitted(row, context)) is not None:
        traces.setdefault(near, "near")
    default, *_ = traces
    outcomes = measurer.head_to_head(task, list(traces), default)
    rules = rule_set_digest(context.rules)
    made = [provenance(traces[o.trace], o.device, context.seed, rules) for o in outcomes]
    measurements = [
        measurement(task.key, o, where, context.features(task, o.trace))
        for o, where in zip(outcomes, made, strict=True)
        if o.error != INFRASTRUCTURE
    ]
    at = winner([outcome.seconds for outcome in outcomes])
    records = _records(row, outcomes[at], made[at])
    registry.add_batch(measurements, records)
    if records:
        registry.add_searches([_end(records[0])])
    return bool(records)


def _context(request: Request, report: Report) -> SearchContext:
    rules = rule_set(request.rules, request.target.kind)
    return SearchContext(request.target, rules, request.seed, warn=report.warn)


def _refitted(row: PlanRow, context: SearchContext) -> str | None:
    """Trace of the first neighbour's schedule that fits; None where none does."""
    sketches = derive(row.task.mod, context.target, context.rules).sketches
    fitting = (
        candidate
        for neighbour in row.neighbours
        for _, candidate in refit(sketches, neighbour, context.target, context.rules)
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
