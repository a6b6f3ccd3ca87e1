"""Evolution of one task's decisions (Ansor, section 5): the cheap first of two stages.

Thousands of genomes are bred and ranked by what was measured of this task, and of others of its
operator; `ansor` makes programs of the best of them.
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
    """Breeds the genomes of a task's sketches, and ranks them by what was measured.

    Those that were measured, here or of the operator's other tasks, say what makes a genome good.
    """

    def __init__(
        self, sketches: Sequence[Sketch], task: Task, context: SearchContext, rng: random.Random
    ) -> None:
        self._sketches, self._rng, self._options = sketches, rng, context.options
        self._templates, self._anchor = templates(sketches), anchor(task.workload.text)
        self._surrogate = Surrogate(context.experiences(task), self._options.enough)
        self._open = 1  # the first so many sketches are drawn on
        self._measured: list[tuple[Genome, float]] = []
        self._excluded: set[Genome] = set()

    @property
    def ranks(self) -> bool:
        """Whether enough was measured to rank genomes."""
        return self._surrogate.trained

    def exclude(self, genome: Genome) -> None:
        """The genome is not to be bred any more."""
        self._excluded.add(genome)

    def add(self, genome: Genome, latency: float) -> None:
        """One measurement, in seconds; infinite for a failure."""
        self._measured.append((genome, latency))
        self._surrogate.add(row(self.choices(genome), self._anchor), latency)

    def update(self) -> None:
        """Learn from what was added."""
        self._surrogate.update()
        while self._looks() >= self._options.look and self.open_next():
            pass

    def open_next(self) -> bool:
        """Draw on one sketch more; whether there is one. The rules' first are the best in the mean.

        That is done once the last one opened had its look, and where it gives nothing new.
        """
        more = self._open < len(self._templates)
        self._open += more
        return more

    def choices(self, genome: Genome) -> list[Choice]:
        """What the genome decides, as it is kept in the registry."""
        return choices(self._sketches[genome.sketch], genome.decisions)

    def scores(self, genomes: Sequence[Genome]) -> np.ndarray:
        """[genomes]: the logarithms of their expected speeds; all zero while nothing ranks them."""
        if not self.ranks:
            return np.zeros(len(genomes))
        return self._surrogate.predict([row(self.choices(g), self._anchor) for g in genomes])

    def fastest(self, sketch: int | None = None) -> list[Genome]:
        """The best that were measured, of one sketch or of all."""
        ran = [one for one in self._measured if one[1] < np.inf]
        ranked = [genome for genome, _ in sorted(ran, key=lambda one: one[1])]
        wanted = [genome for genome in ranked if sketch in (None, genome.sketch)]
        return wanted[: self._options.parents]

    def neglected(self) -> int | None:
        """The sketch that was opened last, until it had its look; None for the first of all."""
        waits = self._open > 1 and self._looks() < self._options.look
        return self._open - 1 if waits else None

    def _looks(self) -> int:
        """How many programs were measured of the sketch that was opened last."""
        return sum(genome.sketch == self._open - 1 for genome, _ in self._measured)

    def breed(self, parents: Sequence[Genome], sketch: int | None = None) -> list[Genome]:
        """New genomes, the most promising first where that is known.

        sketch: the one that fresh genomes are of; by default any of those that are drawn on.
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
        # Every tenth as it comes: what was never seen cannot be ranked.
        return _mixed(ranked, self._rng.sample(ranked, len(ranked) // 10))

    def _children(self, parents: Sequence[Genome], questions: Sequence[Genome]) -> list[Genome]:
        """Distinct new genomes: fresh answers to the questions, and children of the parents.

        A parent is chosen as often as it is fast, or expected to be.
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
        """A child of two parents of one sketch, or of one, changed."""
        if self._rng.random() < self._options.crossed and mother.sketch == father.sketch:
            merged = crossover(mother.decisions, father.decisions, self._rng)
            if merged:
                return Genome(mother.sketch, merged, merged=True)
        return Genome(mother.sketch, mutate(mother.decisions, self._rng))

    def _ranked(self, genomes: Sequence[Genome]) -> list[Genome]:
        return [genomes[at] for at in np.argsort(-self.scores(genomes), kind="stable")]


def _mixed(ranked: Sequence[Genome], others: Sequence[Genome]) -> list[Genome]:
    """One of the others after every nine of the ranked; each genome once."""
    mixed: list[Genome] = []
    for at, genome in enumerate(others):
        mixed += [*ranked[9 * at : 9 * at + 9], genome]
    return list(dict.fromkeys([*mixed, *ranked[9 * len(others) :]]))
