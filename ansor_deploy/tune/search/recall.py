"""What was decided for programs that another process has proposed, found again from traces."""

from collections.abc import Iterable

import numpy as np

from ...model.tasks import Task
from ...space.derivation import derive
from .context import SearchContext
from .experience import choices
from .genome import recover


def recall(task: Task, traces: Iterable[str], context: SearchContext) -> None:
    """Let the context know features and choices, as if it had proposed these programs."""
    sketches = derive(task.mod, context.target, context.rules).sketches
    for trace in traces:
        if (found := recover(sketches, trace)) is None:
            continue
        genome, program = found
        rows: np.ndarray | None
        (rows,) = context.extract([program.sch])
        context.remember(task, trace, rows, choices(sketches[genome.sketch], genome.decisions))
