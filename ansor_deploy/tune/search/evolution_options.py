"""The constants of the evolution, which an ablation sets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionOptions:
    """How the programs of a task are evolved. Shares are between 0 and 1.

    enough: measured programs from which on decisions are ranked. pool: genomes bred at a time.
    breeding: rounds of it before programs are made. fresh: share of a pool that has no parents.
    crossed: share of children that have two. parents: best measured that have children.
    programs: made for each that is measured. generations: in which they are made; the second
    are the children of the first. population: unmeasured programs kept for the next batch.
    epsilon: share of a batch that is picked at random. look: programs of each sketch that are
    measured before the next is opened; looking: share of a batch for the one opened last.
    recovered: programs of earlier runs that are taken up again, some 10 ms each. drafted: weight of
    the draft of a program's speed, beside the trees over decisions.
    """

    enough: int = 16
    pool: int = 384
    breeding: int = 3
    fresh: float = 0.25
    crossed: float = 0.2
    parents: int = 32
    programs: int = 4
    generations: int = 2
    population: int = 256
    epsilon: float = 0.05
    look: int = 16
    looking: float = 0.25
    recovered: int = 64
    drafted: float = 0.5
