"""Compile a library: the code for each of its targets, with its kernels and records.

All codes are linked into one file, with equal weights once. Whoever loads it runs the first code
that the processor supports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.model import Compiled, check_space, compile_model, export_codes
from ..registry.record import TaskKey
from ..space.rule import rule_set
from .describe import described
from .manifest import Code
from .memory_limits import check_limits
from .outputs.commit import staged, writing_to

if TYPE_CHECKING:
    from ..codegen.memory.weights import Weights
    from ..registry.record import Record
    from ..target import Target
    from .shipment import Shipment


@contextmanager
def compiled(shipment: Shipment) -> Iterator[tuple[Path, list[Code]]]:
    """The library under a temporary name, to be tried and committed; and the result of `write`."""
    library, tasks = shipment.outputs.library, shipment.model.tasks
    shipment.report.stage("compile", f"{len(shipment.records)} of {len(tasks)} tasks with a record")
    with writing_to(library.parent):
        check_space(shipment.model.imported, library.parent)
    codes = list[Code]()

    def export(path: Path) -> None:
        codes.extend(write(path, shipment, shipment.records))

    with staged(library, export) as path:
        yield path, codes


def write(path: Path, shipment: Shipment, records: Mapping[TaskKey, Record]) -> list[Code]:
    """Write the library; return the manifest's entry of each of its codes.

    records: those for the request's own target. AnsorError where it takes more memory than allowed.
    """
    built = list[Compiled]()
    for at, code in enumerate(shipment.codes):
        over = built[-1].weights if built else None
        built.append(_compiled(code, records if code is shipment else code.records, at, over))
        shipment.rewritten.update(built[-1].rewritings)
        shipment.scheduled.update(built[-1].schedules)
        code.unfit.update(_keyed(built[-1].unfit, code.target))
    memory = export_codes(built, path, [code.target for code in shipment.codes])
    for taken in memory:
        check_limits(taken, shipment.request.limits, shipment.model.path)
    return [described(*words) for words in zip(shipment.codes, built, memory, strict=True)]


def _keyed(unfit: Mapping[str, str], target: Target) -> dict[TaskKey, str]:
    return {TaskKey(workload, target.fingerprint): why for workload, why in unfit.items()}


def _compiled(
    shipment: Shipment, records: Mapping[TaskKey, Record], code: int, others: Weights | None
) -> Compiled:
    files, kind, heard = shipment.request.rules, shipment.target.kind, shipment.report.printed
    rules = rule_set(files, kind, shipment.precision, heard)
    shipment.rules.update((rule.path, rule.digest) for rule in rules if rule.process)
    chosen = {key: loan.schedule for key, loan in shipment.loans.items()} | {**records}
    model, progress = shipment.model, partial(shipment.report.step, "kernels")
    words = (chosen, shipment.target, rules, shipment.report.warn_once, progress)
    return compile_model(model.imported, model.by_function, *words, code, others)
