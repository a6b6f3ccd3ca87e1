"""Decisions of a sketch drawn anew, or changed in one place (Ansor, section 5.1).

A child differs from its parent in one decision, sometimes in more. Which one is drawn by how
many bits a decision holds: tile sizes, with hundreds of factorisations, are changed most often,
as in Ansor, and a sketch that only makes a few small choices is explored just as evenly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from ..space.state import Decision, divisors, factorisations

# Kinds whose options stand in order, so that the next one differs least.
ORDERED = ("register", "unroll", "parallel")
# Chance of one more change in the same child.
ANOTHER = 0.3


def resample(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """Other answers to the same questions, uniformly."""
    return tuple(_any(decision, rng) for decision in decisions)


def mutate(decisions: Sequence[Decision], rng: random.Random) -> tuple[Decision, ...]:
    """One decision changed, with chance `ANOTHER` a further one; equal where none is free."""
    changed = list(decisions)
    bits = [_bits(decision) for decision in changed]
    if not any(bits):
        return tuple(changed)
    while True:
        (at,) = rng.choices(range(len(changed)), bits)
        changed[at] = _step(changed[at], rng)
        if rng.random() >= ANOTHER:
            return tuple(changed)


def options(decision: Decision) -> int:
    """How many values the decision could have had."""
    if isinstance(decision.value, tuple):
        return len(factorisations(decision.size, len(decision.value), decision.limit))
    return decision.size


def _bits(decision: Decision) -> float:
    return math.log2(max(1, options(decision)))


def _any(decision: Decision, rng: random.Random) -> Decision:
    if isinstance(decision.value, int):
        return replace(decision, value=rng.randrange(decision.size))
    ways = factorisations(decision.size, len(decision.value), decision.limit)
    return replace(decision, value=rng.choice(ways)) if ways else decision


def _step(decision: Decision, rng: random.Random) -> Decision:
    if isinstance(decision.value, tuple):
        return replace(decision, value=_move_factor(decision, decision.value, rng))
    return replace(decision, value=_other(decision, decision.value, rng))


def _move_factor(
    decision: Decision, factors: tuple[int, ...], rng: random.Random
) -> tuple[int, ...]:
    """A prime factor taken from one level to another; the last level keeps its limit."""
    last = len(factors) - 1
    moves = [
        (source, to, prime)
        for source, factor in enumerate(factors)
        for prime in _primes(factor)
        for to in range(len(factors))
        if to != source and not (to == last and factors[to] * prime > decision.limit)
    ]
    if not moves:
        return factors
    source, to, prime = rng.choice(moves)
    moved = list(factors)
    moved[source] //= prime
    moved[to] *= prime
    return tuple(moved)


def _other(decision: Decision, index: int, rng: random.Random) -> int:
    """The option beside it, where they stand in order, or any other."""
    if decision.kind in ORDERED and rng.random() < 0.5:
        beside = [i for i in (index - 1, index + 1) if 0 <= i < decision.size]
        return rng.choice(beside)
    return (index + rng.randrange(1, decision.size)) % decision.size


def _primes(number: int) -> list[int]:
    """Its distinct prime factors."""
    found: list[int] = []
    for divisor in divisors(number)[1:]:
        if all(divisor % prime for prime in found):
            found.append(divisor)
    return found
