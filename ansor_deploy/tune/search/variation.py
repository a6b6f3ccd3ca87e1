"""Variation of decisions (Ansor, section 5.1): resampling, mutation and crossover.

A mutated child differs from its parent in one decision, sometimes in more. The chance of a decision
to be changed is proportional to its bits of information. Tile sizes, with hundreds of
factorisations, change most often, as in Ansor, and a sketch with only a few small choices is
explored just as evenly.

Crossover is by nodes: a child takes each node's decisions from one parent. A node is a block of the
program: its decisions depend on one another far more than on those of other blocks, so they are
inherited together. In a program of one block each decision is a node. Where nodes do depend on one
another, the child's program asks other questions than its parents' did, and is dropped.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

from ...space.question import Decision
from ...space.tiles import Tiles

# Chance of one more change in the same child.
ANOTHER = 0.3
# Chance that an ordered choice moves to a neighbouring option, and not to any other.
NEAR = 0.5


def resample(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """New answers to the same questions, drawn uniformly."""
    return tuple(Decision(d.question, rng.randrange(d.question.size)) for d in decisions)


def mutate(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """The decisions with one changed, and with chance `ANOTHER` a further one.

    They stay equal where every question has only one option.
    """
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
    """The decision changed: in a tile one prime factor moves; else another option is taken."""
    question, index = decision.question, decision.index
    near = question.near(index)
    if near and (isinstance(question.options, Tiles) or rng.random() < NEAR):
        return Decision(question, rng.choice(near))
    return Decision(question, (index + rng.randrange(1, question.size)) % question.size)


def crossover(
    mother: Sequence[Decision], father: Sequence[Decision], rng: random.Random
) -> tuple[Decision, ...] | None:
    """The decisions of a child of two programs of one sketch; None where they cannot be merged.

    They cannot where the parents got different questions, or have only one node.
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
