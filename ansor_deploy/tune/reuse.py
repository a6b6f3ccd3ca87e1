"""A task without a search: a neighbour's schedule, made to fit, serves it at once."""

from ..measure.measurer import Measurer
from ..space.sketch import derive
from ..space.trace import dump
from .final import winner
from .plan import PlanRow
from .search.context import SearchContext
from .search.refit import refit
from .workspace import Workspace


def serve(row: PlanRow, work: Workspace, measurer: Measurer) -> bool:
    """Give a task its nearest neighbour's best schedule; False where it has no record after that.

    It is checked against the default schedule and run in turns with it: unless it is surely
    faster, the default schedule becomes the record.
    """
    task, ledger = row.task, work.ledger
    context = SearchContext(work.request.target, work.rules, work.request.seed)
    default = work.default_trace(task)
    found_by = {default: "default"}
    if (near := _refitted(row, work)) is not None:
        found_by.setdefault(near, "near")
    outcomes = measurer.head_to_head(task, list(found_by), default)
    won = outcomes[winner([outcome.seconds for outcome in outcomes])]
    records = ledger.add(
        task.key,
        outcomes,
        lambda one: ledger.provenance(found_by[one.trace], one.device),
        lambda one: context.features(task, one.trace),
        lambda one: one is won,
    )
    for record in records:
        ledger.add_served(record)
    return bool(records)


def _refitted(row: PlanRow, work: Workspace) -> str | None:
    """Trace of the first neighbour's schedule that fits; None where none does."""
    target, rules = work.request.target, work.rules
    sketches = derive(row.task.mod, target, rules).sketches
    fitting = (
        candidate
        for neighbour in row.neighbours
        for _, candidate in refit(sketches, neighbour, target, rules)
    )
    found = next(fitting, None)
    return dump(found.sch.trace) if found else None
