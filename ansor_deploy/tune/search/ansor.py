"""Our own search: sketches from the rules, evolved under a learned cost model (Ansor, section 5).

Thousands of genomes are bred cheaply (`evolution`); a few for each trial become programs, which
the cost model ranks by their features, and a draft of their speeds (`draft`) until it was trained.
The best of them are measured, and a few at random, so that the models learn of more than they
already believe.

Sketches are drawn on in their order, in which the rules expect most of the first: the next is
opened once the last had its look, or has nothing new. It then gets its share of each batch until
it had its look as well: its first programs, which are slow, would not be chosen beside others. The
first of these shares are the default programs of all sketches.
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

# Measurements of a task that nobody has searched: its default schedule, and one of a neighbour.
UNSEARCHED = 2
# Of the cost model's predictions, beside those of the trees over decisions: measured on random
# programs, as the share that ranks best.
COST_MODEL = 0.5
SLOWEST = 0.02  # of the best speed: what the cost model predicts below is as slow


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program that may be measured. made: a `tvm.s_tir.schedule.Trace`; features: [stores, 164].

    The features are None where TVM extracts none.
    """

    genome: Genome
    made: Any = field(repr=False)
    features: np.ndarray | None = field(repr=False)

    @cached_property
    def trace(self) -> str:
        """Its text. Writing it takes longer than ranking the program: only a few need it."""
        return dump(self.made)


class AnsorSearch:
    """The search of one task. known: what was measured of it before, in this run or another.

    A later run goes on where the last one ended. A task that was not searched before starts with
    its neighbours' schedules, made to fit. The same seed proposes the same programs, given the
    same measurements and neighbours.
    """

    def __init__(self, task: Task, known: Sequence[Measurement], context: SearchContext) -> None:
        self._task, self._context, self._options = task, context, context.options
        derivation = derive(task.mod, context.target, context.rules)
        for fault in derivation.faults:
            context.warn(f"task {task.name}: {fault}")
        self._sketches = derivation.sketches
        self._rng = random.Random(f"{context.seed} {task.key.workload} {len(known)}")  # noqa: S311
        self._evolution = Evolution(self._sketches, task, context, self._rng)
        # Traces that are not to be proposed any more; their candidates until they are measured.
        self._known: dict[str, Candidate | None] = dict.fromkeys(one.trace for one in known)
        self._programs: set[int] = set()  # structural hashes of all candidates there ever were
        self._population: list[Candidate] = []  # not measured yet: a later model may want them
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
        else:  # nothing compares the neighbours' schedules with others: they come first
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
        """Learn what the last proposals came to; what was not proposed here teaches nothing."""
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
        """Take up earlier runs' programs: not another search's, nor of rules that have changed."""
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
        """The neighbours' schedules as candidates of this task, the best of each first."""
        context = self._context
        neighbours = context.neighbours(self._task)
        found = [refit(self._sketches, one, context.target, context.rules) for one in neighbours]
        ranked = (one for rank in zip_longest(*found) for one in rank)
        return self._unmeasured(self._candidates(ranked))

    def _defaults(self) -> list[Candidate]:
        """The default programs of the sketches: what their rules think the best of its kind."""
        made = (program(self._sketches, at, Guess()) for at in range(len(self._sketches)))
        return self._unmeasured(self._candidates(made))

    def _evolve(self, parents: Sequence[Genome], count: int) -> list[Candidate]:
        """Breed, rank, make, rank, pick: up to `count` candidates."""
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
        """The first of the ranked and some at random; the others wait for the next batch."""
        chosen = self._unmeasured(ranked, count - lucky)
        rest = [one for one in ranked if one not in chosen]
        chosen += self._unmeasured(self._rng.sample(rest, len(rest)), count - len(chosen))
        left = [one for one in rest if one not in chosen]
        self._population = left[: self._options.population]
        return chosen

    def _look(self, count: int) -> list[Candidate]:
        """First the sketches' default programs, then more of the one that was opened last.

        These are bred and ranked among themselves: beside the others' they would not be chosen.
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
        """The most promising first, by the cost model and by their decisions.

        With the draft, all three predict the logarithm of a speed, and err differently: their sum
        errs less. Of what has no features is expected what is of the others in the mean.
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
        """The first `count` that nobody has measured."""
        return list(islice((one for one in candidates if one.trace not in self._known), count))

    def _made(self, genomes: Sequence[Genome], wanted: int) -> list[Candidate]:
        """Candidates of the first genomes that can be built and give new programs."""
        return self._candidates(map(self._build, genomes[: 2 * wanted]), wanted)

    def _build(self, genome: Genome) -> Made | None:
        self._evolution.exclude(genome)
        return build(self._sketches, genome, Random(self._rng))

    def _candidates(
        self, programs: Iterable[Made | None], most: int | None = None
    ) -> list[Candidate]:
        """Candidates of the first programs that are new."""
        new = list(islice(self._new(programs), most))
        features = self._context.extract([sch for _, sch in new])
        return [
            Candidate(genome, sch.trace, rows)
            for (genome, sch), rows in zip(new, features, strict=True)
        ]

    def _new(self, programs: Iterable[Made | None]) -> Iterator[tuple[Genome, Any]]:
        """Genomes and schedules of the programs that were none yet; from now on they are."""
        for genome, made in filter(None, programs):
            self._evolution.exclude(genome)
            code = structural_hash(made.sch.mod)
            if code not in self._programs:
                self._programs.add(code)
                yield genome, made.sch
