"""Decisions of a sketch drawn anew, or changed in one place (Ansor, section 5.1).

A child differs from its parent in one decision, sometimes in more. Which one is drawn by how
many bits a decision holds: tile sizes, with hundreds of factorisations, are changed most often,
as in Ansor, and a sketch that only makes a few small choices is explored just as evenly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from ..space.question import Decision
from ..space.tiles import Tiles

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
