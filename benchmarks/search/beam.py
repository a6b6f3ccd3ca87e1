"""Beam search over incomplete programs, which the Ansor paper's figure 7 sets beside its search.

Programs grow step by step along the sketches, every open question answered at random; after each
step the cost model, which learns from complete programs alone, keeps the most promising. There is
no evolution: what was pruned early is never seen, however good it would have become.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ansor_deploy._tvm import structural_hash, tvm
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.tasks import Task
from ansor_deploy.search.context import SearchContext
from ansor_deploy.space.annotate import annotate
from ansor_deploy.space.code_size import check_size
from ansor_deploy.space.question import Random
from ansor_deploy.space.sketch import Step, derive
from ansor_deploy.space.state import State
from ansor_deploy.space.trace import dump

WIDTH = 24  # incomplete programs kept after each step
BRANCHES = 4  # that each of them grows
BEAMS = 8  # one after another, until there are as many new programs as were asked for


@dataclass(frozen=True, eq=False)
class Partial:
    """A program after so many steps of a sketch's path."""

    state: State
    path: tuple[Step, ...] = ()


class BeamSearch:
    """The search of one task, as `ansor_deploy.search.Search` has it."""

    def __init__(self, task: Task, context: SearchContext) -> None:
        self._task, self._context = task, context
        self._paths = [one.path for one in derive(task.mod, context.target, context.rules).sketches]
        self._rng = random.Random(f"{context.seed} {task.key.workload}")
        self._features: dict[str, np.ndarray | None] = {}  # of all programs ever proposed

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; fewer, or none, where beams find no more."""
        found: dict[str, np.ndarray | None] = {}
        for _ in range(BEAMS):
            for partial, features in self._ranked(filter(None, map(self._finished, self._beam()))):
                trace = dump(partial.state.sch.trace)
                if len(found) < count and trace not in self._features:
                    found[trace] = features
            if len(found) == count:
                break
        self._features |= found
        return list(found)

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Teach the cost model what was proposed here."""
        for one in outcomes:
            features = self._features.get(one.trace)
            if features is not None:
                key = self._task.key.workload
                self._context.model.add(key, one.trace, one.latency, features)
        self._context.model.update()

    def _beam(self) -> list[Partial]:
        """Programs at the ends of their paths, as many as the beam is wide."""
        empty = tvm.s_tir.Schedule(self._task.mod, debug_mask="none")
        beam = [Partial(State(empty, Random(self._rng)))]
        while growing := [one for one in beam if one.path not in self._paths]:
            branches = max(1, BRANCHES * WIDTH // len(growing))
            grown = [self._grown(one) for one in growing for _ in range(branches)]
            whole = [one for one in beam if one.path in self._paths]
            distinct = {structural_hash(p.state.sch.mod): p for p in [*whole, *grown] if p}
            beam = [one for one, _ in self._ranked(distinct.values())][:WIDTH]
        return beam

    def _grown(self, partial: Partial) -> Partial | None:
        """One step further along any of the sketches that begin so; None where it does not fit."""
        done = len(partial.path)
        nexts = {path[done] for path in self._paths if path[:done] == partial.path}
        step = self._rng.choice(sorted(nexts, key=str))
        state = partial.state.copy()
        state.node = step.block
        try:
            grown = step.rule.apply(state, step.block, self._context.target)[step.branch]
        except (RuntimeError, ValueError):
            return None
        return Partial(grown, (*partial.path, step))

    def _finished(self, partial: Partial) -> Partial | None:
        """A complete program; None where it is too much code, or what is left does not fit."""
        try:
            annotate(partial.state, self._context.target)
            check_size(partial.state.sch, self._context.target)
        except (RuntimeError, ValueError):
            return None
        return partial

    def _ranked(self, partials: Iterable[Partial]) -> list[tuple[Partial, np.ndarray | None]]:
        """With their features, the most promising first; at random while nothing is known."""
        some = list(partials)
        self._rng.shuffle(some)
        features = self._context.extract([one.state.sch for one in some])
        lowered = iter(self._context.model.predict([rows for rows in features if rows is not None]))
        scores = np.array([-np.inf if rows is None else next(lowered) for rows in features])
        return [(some[at], features[at]) for at in np.argsort(-scores, kind="stable")]
