"""Compiling a library: the code for each of its targets, with their kernels and their records.

They are linked into one file, with equal weights once, and who loads it runs the first that the
processor can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.model import Compiled, check_space, compile_model, export_codes
from ..space.rule import rule_set
from .describe import described
from .manifest import Code
from .memory_limits import check_limits
from .outputs.commit import staged

if TYPE_CHECKING:
    from ..codegen.memory.weights import Weights
    from ..registry.record import Record, TaskKey
    from .shipment import Shipment


@contextmanager
def compiled(made: Shipment) -> Iterator[tuple[Path, list[Code]]]:
    """The library under a temporary name, to be tried and committed; and as `write`."""
    library, tasks = made.outputs.library, made.model.tasks
    made.report.stage("compile", f"{len(made.records)} of {len(tasks)} tasks with a record")
    check_space(made.model.imported, library.parent)
    codes = list[Code]()
    with staged(library, lambda path: codes.extend(write(path, made, made.records))) as path:
        yield path, codes


def write(path: Path, made: Shipment, records: Mapping[TaskKey, Record]) -> list[Code]:
    """Write the library: what its manifest says of each of its codes.

    records: of the request's own target. AnsorError where it takes more memory than it may.
    """
    built = list[Compiled]()
    for at, one in enumerate(made.codes):
        over = built[-1].weights if built else None
        built.append(_compiled(one, records if one is made else one.records, at, over))
        made.rewritten.update(built[-1].rewritings)
    memory = export_codes(built, path, [one.target for one in made.codes])
    for taken in memory:
        check_limits(taken, made.request.limits, made.model.path)
    return [described(*words) for words in zip(made.codes, built, memory, strict=True)]


def _compiled(
    one: Shipment, records: Mapping[TaskKey, Record], code: int, others: Weights | None
) -> Compiled:
    rules = rule_set(one.request.rules, one.target.kind, one.precision)
    chosen = {key: loan.schedule for key, loan in one.loans.items()} | {**records}
    words = (chosen, one.target, rules, one.warn, partial(one.report.step, "kernels"))
    return compile_model(one.model.imported, one.model.by_function, *words, code, others)
