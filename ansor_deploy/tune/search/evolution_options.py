"""The constants of the evolution, which an ablation sets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionOptions:
    """How the programs of a task are evolved. Shares are between 0 and 1.

    enough: measured programs that are needed to rank decisions. pool: genomes bred at a time.
    breeding: rounds of breeding before programs are made. fresh: share of a pool without parents.
    crossed: share of children with two parents. parents: how many of the best measured programs
    have children. programs: programs made for each one that is measured. generations: in how many
    steps they are made; the second step's are children of the first step's. population: unmeasured
    programs kept for the next batch. epsilon: share of a batch that is picked at random. look:
    programs of a sketch that are measured before the next is opened. looking: share of a batch for
    the sketch opened last. recovered: programs of earlier runs that are taken up again, at some 10
    ms each. drafted: weight of the draft of a program's speed; the trees over decisions have 1.
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
