"""Evolution of one task's programs (Ansor, section 5), in two stages.

Thousands of decisions are bred cheaply, ranked by what was measured of this task; a few for each
trial become programs, whose features the cost model ranks. The best of them are measured, and
a few at random, so that the model is told of more than it already believes. A sketch whose first
programs were unlucky has bred none of its own kind and would never be seen again; therefore each
gets its share until it has had its look.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._tvm import structural_hash
from ..space.sketch import Sketch
from ..space.state import Random
from ..space.trace import dump
from .cost_model import CostModel
from .crossover import crossover
from .experience import Experience, Row, choices, row
from .features import Extractor
from .genome import Genome, build, templates
from .mutate import mutate, resample
from .neighbours import anchor
from .surrogate import Surrogate, worth_asking

POOL = 384  # genomes bred at a time
BREEDING = 3  # rounds of breeding before programs are made
PROGRAMS = 4  # programs made for each that is measured
GENERATIONS = 2  # in which they are made: the second are the children of the first
FRESH = 0.25  # share of a pool that has no parents
CROSSED = 0.2  # share of children with two parents
SPARE = 256  # programs kept, unmeasured, from one batch to the next
PARENTS = 32  # best measured that have children
EPSILON = 0.05  # share of a batch that is picked at random
LOOK = 24  # programs of each sketch that are measured before it may be given up
LOOKING = 0.25  # share of a batch that a sketch gets which has had fewer


@dataclass(frozen=True)
class Measured:
    """A genome and its latency, seconds; infinite for a failure."""

    genome: Genome
    latency: float


@dataclass(frozen=True, eq=False)
class Member:
    """A genome's program: how it was made, features (None if unknown), score (high is good)."""

    genome: Genome
    made: Any = field(repr=False)  # `tvm.s_tir.schedule.Trace`
    features: np.ndarray | None = field(repr=False)
    score: float = 0.0

    @cached_property
    def trace(self) -> str:
        """As text. It takes longer than to rank the program: only what is measured needs it."""
        return dump(self.made)


class Evolution:
    """Breeds programs of some sketches. Nothing that it is told is known comes out of it.

    text: the workload's. others: what was measured of other tasks of its operator.
    """

    def __init__(
        self,
        sketches: Sequence[Sketch],
        extract: Extractor,
        model: CostModel,
        rng: random.Random,
        text: str = "",
        others: Sequence[Experience] = (),
    ) -> None:
        self._sketches, self._extract, self._model, self._rng = sketches, extract, model, rng
        self._anchor, self._others = anchor(text), others
        self._templates = templates(sketches)
        self._genomes: set[Genome] = set()
        self._programs: set[int] = set()
        self._traces: set[str] = set()
        self._adopted: list[Genome] = []
        self._spare: list[Member] = []  # made and not measured yet: a later model may want them

    def know(self, trace: str, genome: Genome | None = None, sch: Any = None) -> None:
        """This program is not to be proposed any more."""
        self._traces.add(trace)
        if genome is not None:
            self._genomes.add(genome)
        if sch is not None:
            self._programs.add(structural_hash(sch.mod))

    def adopt(self, strangers: Iterable[tuple[Genome, Any]]) -> list[Member]:
        """Genomes and their schedules that were not bred here, as far as they are new.

        They have children in the next batch, before anything is known of them.
        """
        new = [made for made in strangers if self._is_new(*made)]
        self._adopted = [genome for genome, _ in new]
        return self._unknown(self._members(new), len(new))[0]

    def consider(self, members: Sequence[Member]) -> None:
        """Propose them where they are as promising as any."""
        self._spare = [*members, *self._spare]

    def propose(self, count: int, measured: Sequence[Measured]) -> list[Member]:
        """Up to `count` new programs, the most promising first; empty when there are no more."""
        if not self._templates or count < 1:
            return []
        learnt = self._model.trained
        surrogate = self._surrogate(measured)
        parents, self._adopted = [*_best(measured), *self._adopted], []
        looked = self._look(int(count * LOOKING), measured, surrogate) if surrogate else []
        count -= len(looked)
        wanted = max(1, count * PROGRAMS // GENERATIONS) if learnt else count
        members = self._spare
        for _ in range(GENERATIONS if learnt else 1):
            members = self._scored(members, surrogate)
            pool = self._bred([*parents, *_promising(members)], surrogate, self._templates)
            members += self._made(pool, wanted)
        members = self._scored(members, surrogate)
        greedy = count - round(count * EPSILON) if learnt else count
        ranked = sorted(members, key=lambda member: -member.score)
        chosen, rest = self._unknown(ranked, greedy)
        shuffled = self._rng.sample(rest, len(rest))
        lucky, _ = self._unknown(shuffled, count - len(chosen))
        self._spare = [member for member in rest if member not in lucky][:SPARE]
        return [*chosen, *lucky, *looked]

    def _look(self, count: int, measured: Sequence[Measured], surrogate: Surrogate) -> list[Member]:
        """The most promising of the sketch that was measured least; none once all had their look.

        Bred and ranked among themselves: beside the others' they would not be chosen.
        """
        sketch, seen = _least_measured(self._templates, measured)
        if seen >= LOOK or seen == len(measured):
            return []
        own = [one for one in measured if one.genome.sketch == sketch]
        templates = [one for one in self._templates if one.sketch == sketch]
        pool = self._bred(_best(own), surrogate, templates)
        members = self._scored(self._made(pool, count * PROGRAMS), surrogate)
        return self._unknown(sorted(members, key=lambda member: -member.score), count)[0]

    def _unknown(
        self, members: Sequence[Member], count: int
    ) -> tuple[list[Member], Sequence[Member]]:
        """The first `count` that nobody has measured, and those that come after them."""
        chosen: list[Member] = []
        for at, member in enumerate(members):
            if len(chosen) == count:
                return chosen, members[at:]
            if member.trace not in self._traces:
                chosen.append(member)
        return chosen, []

    def _bred(
        self, parents: Sequence[Genome], surrogate: Surrogate | None, templates: Sequence[Genome]
    ) -> list[Genome]:
        """New genomes, the best first where there is a surrogate to tell."""
        pool = self._brood(parents, templates)
        if surrogate is None:
            return pool
        for _ in range(BREEDING - 1):
            elite = self._ranked(pool, surrogate)[: POOL // 4]
            pool = list(dict.fromkeys([*elite, *self._brood([*parents, *elite], templates)]))
        ranked = self._ranked(pool, surrogate)
        # Every tenth as it comes: what it has never seen, it cannot rank.
        return _mixed(ranked, self._rng.sample(ranked, len(ranked) // 10))

    def _brood(self, parents: Sequence[Genome], templates: Sequence[Genome]) -> list[Genome]:
        """Distinct genomes that are not known: of the templates fresh ones, of parents children."""
        fresh = int(POOL * FRESH) if parents else POOL
        found = [self._fresh(templates) for _ in range(fresh)]
        found += [self._child(parents) for _ in range(POOL - fresh)]
        found = [genome for genome in dict.fromkeys(found) if genome not in self._genomes]
        self._rng.shuffle(found)
        return found

    def _fresh(self, templates: Sequence[Genome]) -> Genome:
        template = self._rng.choice(templates)
        return Genome(template.sketch, resample(template.decisions, self._rng))

    def _child(self, parents: Sequence[Genome]) -> Genome:
        """Of two parents of one sketch, or of one, changed. Earlier parents have more."""
        mother = parents[int(len(parents) * self._rng.random() ** 2)]
        if self._rng.random() < CROSSED:
            father = self._rng.choice(parents)
            same = father.sketch == mother.sketch
            merged = same and crossover(mother.decisions, father.decisions, self._rng)
            if merged:
                return Genome(mother.sketch, merged, merged=True)
        return Genome(mother.sketch, mutate(mother.decisions, self._rng))

    def _made(self, pool: Sequence[Genome], wanted: int) -> list[Member]:
        """Programs of the first genomes that can be built."""
        made: list[tuple[Genome, Any]] = []
        for genome in pool[: 2 * wanted]:
            if len(made) == wanted:
                break
            made += self._program(genome)
        return self._members(made)

    def _members(self, made: Sequence[tuple[Genome, Any]]) -> list[Member]:
        features = self._extract([sch for _, sch in made])
        return [
            Member(genome, sch.trace, rows)
            for (genome, sch), rows in zip(made, features, strict=True)
        ]

    def _program(self, genome: Genome) -> Iterable[tuple[Genome, Any]]:
        """The genome's schedule, unless it fails or is of a program that is known."""
        candidate = build(self._sketches, genome, Random(self._rng))
        self._genomes.add(genome)
        if candidate is None:
            return ()
        actual = Genome(genome.sketch, candidate.decisions)
        return ((actual, candidate.sch),) if self._is_new(actual, candidate.sch) else ()

    def _is_new(self, genome: Genome, sch: Any) -> bool:
        """Whether nothing known has this program; from now on it is known."""
        self._genomes.add(genome)
        program = structural_hash(sch.mod)
        if program in self._programs:
            return False
        self._programs.add(program)
        return True

    def _surrogate(self, measured: Sequence[Measured]) -> Surrogate | None:
        rows = self._rows([one.genome for one in measured])
        own = Experience(rows, [one.latency for one in measured])
        return Surrogate(own, self._others) if worth_asking([own, *self._others]) else None

    def _rows(self, genomes: Sequence[Genome]) -> list[Row]:
        made = (choices(self._sketches[one.sketch], one.decisions) for one in genomes)
        return [row(one, self._anchor) for one in made]

    def _ranked(self, pool: Sequence[Genome], surrogate: Surrogate) -> list[Genome]:
        order = np.argsort(-surrogate.predict(self._rows(pool)), kind="stable")
        return [pool[at] for at in order]

    def _scored(self, members: Sequence[Member], surrogate: Surrogate | None) -> list[Member]:
        """By the cost model and the surrogate, which err differently: the sum errs less.

        The worst is what the cost model cannot be asked of.
        """
        known = iter(self._model.predict([m.features for m in members if m.features is not None]))
        scores = np.array([-np.inf if m.features is None else next(known) for m in members])
        if surrogate is not None:
            scores = scores + surrogate.predict(self._rows([m.genome for m in members]))
        return [replace(m, score=float(s)) for m, s in zip(members, scores, strict=True)]


def _least_measured(templates: Sequence[Genome], measured: Sequence[Measured]) -> tuple[int, int]:
    """A sketch, and how many of its programs were measured."""
    tally = {template.sketch: 0 for template in templates}
    for one in measured:
        tally[one.genome.sketch] = tally.get(one.genome.sketch, 0) + 1
    return min(tally.items(), key=lambda item: item[1])


def _best(measured: Sequence[Measured]) -> list[Genome]:
    """The fastest, which have children."""
    alive = [one for one in measured if one.latency < np.inf]
    return [one.genome for one in sorted(alive, key=lambda one: one.latency)[:PARENTS]]


def _promising(members: Sequence[Member]) -> list[Genome]:
    ranked = sorted(members, key=lambda member: -member.score)
    return [member.genome for member in ranked[: len(ranked) // 4]]


def _mixed(ranked: Sequence[Genome], others: Sequence[Genome]) -> list[Genome]:
    """After every nine of the ranked one of the others, each once."""
    mixed: list[Genome] = []
    for at, genome in enumerate(others):
        mixed += [*ranked[9 * at : 9 * at + 9], genome]
    return list(dict.fromkeys([*mixed, *ranked[9 * len(others) :]]))
