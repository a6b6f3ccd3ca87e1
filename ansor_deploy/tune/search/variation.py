"""Variation (Ansor, section 5.1): decisions drawn anew, changed in one place, or of two parents.

A mutated child differs from its parent in one decision, sometimes in more. Which one is drawn by
how many bits a decision holds: tile sizes, with hundreds of factorisations, are changed most
often, as in Ansor, and a sketch that only makes a few small choices is explored just as evenly.

Crossover is by nodes: a child takes each node's decisions from one parent. A node is a block of
the program: its decisions depend on one another far more than on those of other blocks, so they
are inherited together. In a program of one block each decision is a node. Where nodes do depend on
one another, the child's program asks other questions than its parents' did, and is given up.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

from ...space.question import Decision
from ...space.tiles import Tiles

# Chance of one more change in the same child.
ANOTHER = 0.3
# Chance that the next option is taken, where options stand in order, and not any other.
NEAR = 0.5


def resample(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """Other answers to the same questions, uniformly."""
    return tuple(Decision(d.question, rng.randrange(d.question.size)) for d in decisions)


def mutate(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """One decision changed, with chance `ANOTHER` a further one; equal where none is free."""
    changed = list(decisions)
    bits = [math.log2(decision.question.size) for decision in changed]
    if not any(bits):
        return tuple(changed)
    while True:
        (at,) = rng.choices(range(len(changed)), bits)
        changed[at] = _changed(changed[at], rng)
        if rng.random() >= ANOTHER:
            return tuple(changed)


def _changed(decision: Decision, rng: random.Random) -> Decision:
    """A tile with a prime factor moved; else the option beside it, or any other."""
    question, index = decision.question, decision.index
    near = question.near(index)
    if near and (isinstance(question.options, Tiles) or rng.random() < NEAR):
        return Decision(question, rng.choice(near))
    return Decision(question, (index + rng.randrange(1, question.size)) % question.size)


def crossover(
    mother: Sequence[Decision], father: Sequence[Decision], rng: random.Random
) -> tuple[Decision, ...] | None:
    """The decisions of a child of two programs of one sketch; None where they cannot be merged.

    That is where the parents were asked different questions, or decided but one.
    """
    if [one.question for one in mother] != [one.question for one in father]:
        return None
    nodes: list[Any] = [one.question.node for one in mother]
    if len(set(nodes)) < 2:
        nodes = list(range(len(nodes)))
    if len(distinct := list(dict.fromkeys(nodes))) < 2:
        return None
    from_mother = set(rng.sample(distinct, rng.randrange(1, len(distinct))))
    return tuple(
        ours if node in from_mother else theirs
        for node, ours, theirs in zip(nodes, mother, father, strict=True)
    )
