"""Node-based crossover (Ansor, section 5.1): a child takes each node's decisions from one parent.

A node is a block of the program: its decisions depend on one another far more than on those of
other blocks, so they are inherited together. Where they do depend across blocks, the child's
program asks other questions than its parents' did, and the child is given up.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..space.question import Decision


def crossover(
    mother: Sequence[Decision], father: Sequence[Decision], rng: random.Random
) -> tuple[Decision, ...] | None:
    """The decisions of a child of two programs of one sketch; None where they cannot be merged.

    That is where the parents were asked different questions, or have but one node.
    """
    if [one.question for one in mother] != [one.question for one in father]:
        return None
    nodes = list(dict.fromkeys(one.question.node for one in mother))
    if len(nodes) < 2:
        return None
    from_mother = set(rng.sample(nodes, rng.randrange(1, len(nodes))))
    return tuple(
        ours if ours.question.node in from_mother else theirs
        for ours, theirs in zip(mother, father, strict=True)
    )
