"""Evolution of one task's decisions (Ansor, section 5): the first, cheap one of two stages.

Thousands of genomes are bred, and ranked by the measurements of this task and of others with its
operator. `ansor` makes programs of the best ones.
"""

import random
from collections.abc import Sequence

import numpy as np

from ...model.tasks import Task
from ...space.sketch import Sketch
from .context import SearchContext
from .experience import choices, row
from .features import Choice
from .genome import Genome, templates
from .neighbours import anchor
from .surrogate import Surrogate
from .variation import crossover, mutate, resample


class Evolution:
    """Breeds the genomes of a task's sketches, and ranks them by measurements.

    The measurements are of this task and of other tasks with its operator.
    """

    def __init__(
        self, sketches: Sequence[Sketch], task: Task, context: SearchContext, rng: random.Random
    ) -> None:
        self._sketches, self._rng, self._options = sketches, rng, context.options
        self._templates, self._anchor = templates(sketches), anchor(task.workload.text)
        self._surrogate = Surrogate(context.experiences(task), self._options.enough)
        self._open = 1  # how many of the first sketches are in use
        self._measured: list[tuple[Genome, float]] = []
        self._excluded: set[Genome] = set()

    @property
    def ranks(self) -> bool:
        """Whether enough was measured to rank genomes."""
        return self._surrogate.trained

    def exclude(self, genome: Genome) -> None:
        """Do not breed this genome any more."""
        self._excluded.add(genome)

    def add(self, genome: Genome, latency: float) -> None:
        """Add a measurement, in seconds; infinite for a failure."""
        self._measured.append((genome, latency))
        self._surrogate.add(row(self.choices(genome), self._anchor), latency)

    def update(self) -> None:
        """Learn from the added measurements, and open the next sketch when it is due."""
        self._surrogate.update()
        while self._looks() >= self._options.look and self.open_next():
            pass

    def open_next(self) -> bool:
        """Use one sketch more, in the rules' order, the best first. Returns whether there was one.

        It is called when the last opened sketch has had its look, or gives nothing new.
        """
        more = self._open < len(self._templates)
        self._open += more
        return more

    def choices(self, genome: Genome) -> list[Choice]:
        """The choices of a genome, in the form that the registry keeps."""
        return choices(self._sketches[genome.sketch], genome.decisions)

    def scores(self, genomes: Sequence[Genome]) -> np.ndarray:
        """The logarithms of genomes' expected speeds, [genomes]; zeros before there is a model."""
        if not self.ranks:
            return np.zeros(len(genomes))
        return self._surrogate.predict([row(self.choices(g), self._anchor) for g in genomes])

    def fastest(self, sketch: int | None = None) -> list[Genome]:
        """The best genomes that were measured, of one sketch or of all."""
        ran = [one for one in self._measured if one[1] < np.inf]
        ranked = [genome for genome, _ in sorted(ran, key=lambda one: one[1])]
        wanted = [genome for genome in ranked if sketch in (None, genome.sketch)]
        return wanted[: self._options.parents]

    def neglected(self) -> int | None:
        """The sketch that was opened last, until it has had its look; None for the first sketch."""
        waits = self._open > 1 and self._looks() < self._options.look
        return self._open - 1 if waits else None

    def _looks(self) -> int:
        """How many programs of the last opened sketch were measured."""
        return sum(genome.sketch == self._open - 1 for genome, _ in self._measured)

    def breed(self, parents: Sequence[Genome], sketch: int | None = None) -> list[Genome]:
        """New genomes, the most promising first where that is known.

        sketch: the sketch of fresh genomes; by default any of those in use.
        """
        opened = self._templates[: self._open]
        questions = [one for one in opened if sketch in (None, one.sketch)]
        if not questions:
            return []
        pool = self._children(parents, questions)
        if not self.ranks:
            return pool
        for _ in range(self._options.breeding - 1):
            elite = self._ranked(pool)[: self._options.pool // 4]
            pool = list(dict.fromkeys([*elite, *self._children([*parents, *elite], questions)]))
        ranked = self._ranked(pool)
        # Every tenth is random: decisions that were never measured cannot be ranked.
        return _mixed(ranked, self._rng.sample(ranked, len(ranked) // 10))

    def _children(self, parents: Sequence[Genome], questions: Sequence[Genome]) -> list[Genome]:
        """Distinct new genomes: fresh answers to the questions, and children of the parents.

        The chance of a parent to be chosen grows with its expected speed.
        """
        size = self._options.pool
        fresh = int(size * self._options.fresh) if parents else size
        found = [self._fresh(questions) for _ in range(fresh)]
        if parents:
            fitness = np.exp(self.scores(parents))
            pairs = [self._rng.choices(parents, fitness, k=size - fresh) for _ in range(2)]
            found += map(self._child, *pairs)
        new = [genome for genome in dict.fromkeys(found) if genome not in self._excluded]
        self._rng.shuffle(new)
        return new

    def _fresh(self, questions: Sequence[Genome]) -> Genome:
        asked = self._rng.choice(questions)
        return Genome(asked.sketch, resample(asked.decisions, self._rng))

    def _child(self, mother: Genome, father: Genome) -> Genome:
        """A child: two parents of one sketch crossed over, or one parent mutated."""
        if self._rng.random() < self._options.crossed and mother.sketch == father.sketch:
            merged = crossover(mother.decisions, father.decisions, self._rng)
            if merged:
                return Genome(mother.sketch, merged, merged=True)
        return Genome(mother.sketch, mutate(mother.decisions, self._rng))

    def _ranked(self, genomes: Sequence[Genome]) -> list[Genome]:
        return [genomes[at] for at in np.argsort(-self.scores(genomes), kind="stable")]


def _mixed(ranked: Sequence[Genome], others: Sequence[Genome]) -> list[Genome]:
    """The ranked, with one of the others after every nine; each genome once."""
    mixed: list[Genome] = []
    for at, genome in enumerate(others):
        mixed += [*ranked[9 * at : 9 * at + 9], genome]
    return list(dict.fromkeys([*mixed, *ranked[9 * len(others) :]]))
