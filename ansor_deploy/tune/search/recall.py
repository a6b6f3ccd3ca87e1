"""Recovers the decisions of programs that another process has proposed, from their traces."""

from collections.abc import Iterable

import numpy as np

from ...model.tasks import Task
from ...space.derivation import derive
from .context import SearchContext
from .experience import choices
from .genome import recover


def recall(task: Task, traces: Iterable[str], context: SearchContext) -> None:
    """Give the context the features and choices of programs, as if it had proposed them."""
    sketches = derive(task.mod, context.target, context.rules).sketches
    for trace in traces:
        if (found := recover(sketches, trace)) is None:
            continue
        genome, program = found
        rows: np.ndarray | None
        (rows,) = context.extract([program.sch])
        context.remember(task, trace, rows, choices(sketches[genome.sketch], genome.decisions))
