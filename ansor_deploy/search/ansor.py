"""Our own search: sketches from the rules, evolved under a learned cost model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from ..measure.outcome import UNMEASURED
from ..space.sketch import derive
from .evolution import Evolution, Measured, Member
from .experience import choices
from .features import decode
from .genome import recover
from .refit import refit

if TYPE_CHECKING:
    import numpy as np

    from ..measure.outcome import Outcome
    from ..model.tasks import Task
    from ..registry.record import Measurement
    from .context import SearchContext

# Measurements of a task that nobody has searched: its default schedule, and one of a neighbour.
UNSEARCHED = 2
# Programs of earlier runs that are taken up again, the fastest first; each takes some 10 ms.
RECOVERED = 64


class AnsorSearch:
    """The search of one task. known: what was measured of it before, in this run or another.

    A task that was not searched before starts with its neighbours' schedules, made to fit. The
    same seed proposes the same programs, given the same measurements and neighbours.
    """

    def __init__(self, task: Task, known: Sequence[Measurement], context: SearchContext) -> None:
        self._task, self._context = task, context
        derivation = derive(task.mod, context.target, context.rules)
        self._sketches = derivation.sketches
        for fault in derivation.faults:
            context.warn(f"{task.name}: {fault}")
        # A later run goes on where this one was, instead of repeating it.
        rng = random.Random(f"{context.seed} {task.key.workload} {len(known)}")  # noqa: S311
        text, others = task.workload.text, context.known(task)
        self._evolution = Evolution(
            self._sketches, context.extract, context.model, rng, text, others
        )
        self._measured: list[Measured] = []
        self._pending: dict[str, Member] = {}
        for measurement in known:
            self._evolution.know(measurement.trace)
        for measurement in sorted(known, key=lambda one: one.latency)[:RECOVERED]:
            self._recover(measurement)
        self._seeds = self._refitted() if len(known) <= UNSEARCHED else []
        if others:  # they rank the seeds beside all others
            self._evolution.consider(self._seeds)
            self._seeds = []
        context.model.update()

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; empty when the space is exhausted."""
        members, self._seeds = self._seeds[:count], self._seeds[count:]
        members += self._evolution.propose(count - len(members), self._measured)
        for member in members:
            self._evolution.know(member.trace)
            self._pending[member.trace] = member
            made = choices(self._sketches[member.genome.sketch], member.genome.decisions)
            self._context.remember(self._task, member.trace, member.features, made)
        return [member.trace for member in members]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn what the last proposals came to; what was not proposed here teaches nothing."""
        for outcome in outcomes:
            member = self._pending.pop(outcome.trace, None)
            if member is None or outcome.error == UNMEASURED:
                continue
            self._measured.append(Measured(member.genome, outcome.latency))
            if member.features is not None:
                self._learn(outcome.trace, outcome.latency, member.features)
        self._context.model.update()

    def _refitted(self) -> list[Member]:
        """The neighbours' schedules as programs of this task, the best of each first."""
        context = self._context
        neighbours = context.neighbours(self._task)
        found = [
            list(refit(self._sketches, one, context.target, context.rules)) for one in neighbours
        ]
        ranked = (made for rank in zip_longest(*found) for made in rank if made)
        return self._evolution.adopt((genome, candidate.sch) for genome, candidate in ranked)

    def _recover(self, measurement: Measurement) -> None:
        found = recover(self._sketches, measurement.trace)
        if found is None:  # another search's, or of rules that have changed since
            return
        genome, candidate = found
        self._evolution.know(measurement.trace, genome, candidate.sch)
        self._measured.append(Measured(genome, measurement.latency))
        features = decode(measurement.features) if measurement.features else None
        if features is None:
            (features,) = self._context.extract([candidate.sch])
        if features is not None:
            self._learn(measurement.trace, measurement.latency, features)

    def _learn(self, trace: str, latency: float, features: np.ndarray) -> None:
        self._context.model.add(self._task.key.workload, trace, latency, features)
