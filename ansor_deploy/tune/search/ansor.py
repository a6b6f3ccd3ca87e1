"""Our own search: sketches from the rules, evolved under a learned cost model (Ansor, section 5).

Thousands of genomes are bred cheaply (`evolution`). A few for each trial become programs. They are
ranked by the cost model and by a draft of their speeds (`draft`), both from their features, and by
their decisions. The best are measured, and a few at random, so that the models do not only learn
about programs that they already prefer.

Sketches are used in the order of the rules, which expect the first to be the best. The next sketch
is opened when the last one has had its look, or gives nothing new. It gets a share of each batch
until it has had its look as well: its first programs are slow, and would not be chosen beside
others. The first of these shares are the default programs of all sketches.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from ..._tvm import structural_hash
from ...measure.outcome import UNMEASURED, Outcome
from ...model.tasks import Task
from ...registry.record import Measurement
from ...space.derivation import derive, newly_ended
from ...space.question import Guess, Random
from ...space.trace import dump
from .context import SearchContext
from .draft import draft
from .evolution import Evolution
from .features import decode, decode_choices
from .genome import Genome, Made, build, program, recover
from .refit import refit

# A task with at most this many measurements was not searched: its default schedule, and one of a
# neighbour.
UNSEARCHED = 2
# Weight of the cost model's predictions; those of the trees over decisions have 1. Measured on
# random programs as the weight that ranks best.
COST_MODEL = 0.5
SLOWEST = 0.02  # share of the best speed: lower predictions of the cost model count as this


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program that may be measured. made: its `tvm.s_tir.schedule.Trace`.

    features: float32 [stores, 164]; None where TVM extracts none.
    """

    genome: Genome
    made: Any = field(repr=False)
    features: np.ndarray | None = field(repr=False)

    @cached_property
    def trace(self) -> str:
        """The trace as text, on demand: writing it takes longer than ranking, and few need it."""
        return dump(self.made)


class AnsorSearch:
    """The search of one task. known: earlier measurements of the task, of this run or another.

    A later run continues where the last one ended. A task that was not searched before starts with
    its neighbours' schedules, made to fit. The same seed proposes the same programs, given the same
    measurements and neighbours.
    """

    def __init__(self, task: Task, known: Sequence[Measurement], context: SearchContext) -> None:
        self._task, self._context, self._options = task, context, context.options
        derivation = derive(task.mod, context.target, context.rules)
        for fault in derivation.faults:
            context.warn(f"task {task.name}: {fault}")
        self._sketches = derivation.sketches
        self._rng = random.Random(f"{context.seed} {task.key.workload} {len(known)}")  # noqa: S311
        self._evolution = Evolution(self._sketches, task, context, self._rng)
        # Traces that must not be proposed again, with their candidates until they are measured.
        self._known: dict[str, Candidate | None] = dict.fromkeys(one.trace for one in known)
        self._programs: set[int] = set()  # structural hashes of all candidates so far
        # Candidates that were not measured: a later model may prefer them.
        self._population: list[Candidate] = []
        self._recover(sorted(known, key=lambda one: one.latency)[: self._options.recovered])
        unsearched = len(known) <= UNSEARCHED
        self._seeds = self._refitted() if unsearched else []
        self._guesses = self._defaults() if unsearched else []

    def propose(self, count: int) -> list[str]:
        """Up to `count` traces not proposed before; empty when the space is exhausted."""
        seeds, self._seeds = self._seeds, []
        parents = [*self._evolution.fastest(), *(seed.genome for seed in seeds)]
        chosen: list[Candidate] = []
        if self._evolution.ranks:
            self._population = [*seeds, *self._population]
        else:  # no model compares the neighbours' schedules with others yet: they come first
            chosen, self._seeds = seeds[:count], seeds[count:]
        looks = self._look(int((count - len(chosen)) * self._options.looking))
        chosen += [*self._evolve(parents, count - len(chosen) - len(looks)), *looks]
        left = count - len(chosen)
        chosen, self._guesses = [*chosen, *self._guesses[:left]], self._guesses[left:]
        while len(chosen) < count and self._evolution.open_next():
            chosen += self._evolve(parents, count - len(chosen))
        for one in chosen:
            self._known[one.trace] = one
            made = self._evolution.choices(one.genome)
            self._context.remember(self._task, one.trace, one.features, made)
        for sentence in newly_ended(self._context.rules):
            self._context.warn(sentence)
        return [one.trace for one in chosen]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from the outcomes of proposals; others, and unmeasured ones, are ignored."""
        for outcome in outcomes:
            candidate = self._known.get(outcome.trace)
            if candidate is None or outcome.error == UNMEASURED:
                continue
            self._known[outcome.trace] = None
            self._evolution.add(candidate.genome, outcome.latency)
            if candidate.features is not None:
                workload, trace = self._task.key.workload, outcome.trace
                self._context.model.add(workload, trace, outcome.latency, candidate.features)
        self._evolution.update()
        self._context.model.update()

    def _recover(self, measured: Sequence[Measurement]) -> None:
        """Take up earlier runs' programs, except those that no sketch leads to any more."""
        for one in measured:
            kept = one.features or b""
            made = recover(self._sketches, one.trace, decode_choices(kept))
            for genome, sch in self._new([made]):
                features = decode(kept)
                if features is None:
                    (features,) = self._context.extract([sch])
                self._known[one.trace] = Candidate(genome, sch.trace, features)
        self.observe([Outcome(one.trace, one.seconds, one.error) for one in measured])

    def _refitted(self) -> list[Candidate]:
        """The neighbours' schedules as candidates of this task, each neighbour's best first."""
        context = self._context
        neighbours = context.neighbours(self._task)
        found = [refit(self._sketches, one, context.target, context.rules) for one in neighbours]
        ranked = (one for rank in zip_longest(*found) for one in rank)
        return self._unmeasured(self._candidates(ranked))

    def _defaults(self) -> list[Candidate]:
        """The default programs of the sketches, with the rules' guesses."""
        made = (program(self._sketches, at, Guess()) for at in range(len(self._sketches)))
        return self._unmeasured(self._candidates(made))

    def _evolve(self, parents: Sequence[Genome], count: int) -> list[Candidate]:
        """Breed genomes, make programs, rank and pick: up to `count` candidates."""
        if count < 1:
            return []
        learnt, options = self._context.model.trained, self._options
        generations = options.generations if learnt else 1
        wanted = max(1, count * options.programs // generations)
        population = self._ranked(self._population)
        for _ in range(generations):
            promising = [one.genome for one in population[: len(population) // 4]]
            genomes = self._evolution.breed([*parents, *promising])
            population = self._ranked([*population, *self._made(genomes, wanted)])
        return self._pick(population, count, round(count * options.epsilon) if learnt else 0)

    def _pick(self, ranked: Sequence[Candidate], count: int, lucky: int) -> list[Candidate]:
        """The best of the ranked, and `lucky` at random; the others wait for the next batch."""
        chosen = self._unmeasured(ranked, count - lucky)
        rest = [one for one in ranked if one not in chosen]
        chosen += self._unmeasured(self._rng.sample(rest, len(rest)), count - len(chosen))
        left = [one for one in rest if one not in chosen]
        self._population = left[: self._options.population]
        return chosen

    def _look(self, count: int) -> list[Candidate]:
        """First the sketches' default programs, then programs of the sketch that was opened last.

        The latter are bred and ranked among themselves, since they would not be chosen beside those
        of other sketches.
        """
        guesses, self._guesses = self._guesses[:count], self._guesses[count:]
        if guesses:
            return guesses
        sketch = self._evolution.neglected() if self._evolution.ranks else None
        if sketch is None:
            return []
        genomes = self._evolution.breed(self._evolution.fastest(sketch), sketch)
        ranked = self._ranked(self._made(genomes, count * self._options.programs))
        found = self._unmeasured(ranked, count)
        if len(found) < count:
            self._evolution.open_next()
        return found

    def _ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates, the most promising first.

        The cost model, the draft and the trees over decisions all predict the logarithm of a speed,
        with different errors: their sum has a smaller one. A candidate without features gets the
        others' mean.
        """
        lowered = [one.features for one in candidates if one.features is not None]
        learnt = np.log(np.maximum(self._context.model.predict(lowered), SLOWEST))
        predicted = COST_MODEL * learnt
        predicted += self._options.drafted * draft(lowered, self._context.target)
        mean, each = predicted.mean() if lowered else 0.0, iter(predicted)
        known = [mean if one.features is None else next(each) for one in candidates]
        decided = self._evolution.scores([one.genome for one in candidates])
        scores = np.array(known) + decided
        return [candidates[at] for at in np.argsort(-scores, kind="stable")]

    def _unmeasured(
        self, candidates: Iterable[Candidate], count: int | None = None
    ) -> list[Candidate]:
        """The first `count` candidates that were not measured or proposed yet."""
        return list(islice((one for one in candidates if one.trace not in self._known), count))

    def _made(self, genomes: Sequence[Genome], wanted: int) -> list[Candidate]:
        """Candidates of the first `wanted` genomes that can be built and give new programs."""
        return self._candidates(map(self._build, genomes[: 2 * wanted]), wanted)

    def _build(self, genome: Genome) -> Made | None:
        self._evolution.exclude(genome)
        return build(self._sketches, genome, Random(self._rng))

    def _candidates(
        self, programs: Iterable[Made | None], most: int | None = None
    ) -> list[Candidate]:
        """Candidates of the first `most` programs that are new."""
        new = list(islice(self._new(programs), most))
        features = self._context.extract([sch for _, sch in new])
        return [
            Candidate(genome, sch.trace, rows)
            for (genome, sch), rows in zip(new, features, strict=True)
        ]

    def _new(self, programs: Iterable[Made | None]) -> Iterator[tuple[Genome, Any]]:
        """Genomes and schedules of the programs that are new; from now on they are known."""
        for genome, made in filter(None, programs):
            self._evolution.exclude(genome)
            code = structural_hash(made.sch.mod)
            if code not in self._programs:
                self._programs.add(code)
                yield genome, made.sch
