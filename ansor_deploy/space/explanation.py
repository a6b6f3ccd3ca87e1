"""The types of an explanation of a task's sketches, with every rule's answer at every block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..system.json_types import Count


@dataclass(frozen=True)
class Step:
    """A step of a sketch: a rule, and the block that it was applied to."""

    block: str
    rule: str


@dataclass(frozen=True)
class Choice:
    """A choice of a program. kind: what it is about.

    of: how many options, or a tile's extent. default: the index of an option, or a tile's factors.
    """

    kind: str
    block: str
    of: Any
    default: Any


@dataclass(frozen=True)
class SketchSummary:
    """A sketch. error: why there is no default program; "" if there is one.

    programs: about how many programs it has. choices: the choices of the default program.
    """

    steps: list[Step]
    programs: Count
    choices: list[Choice]
    error: str = ""


@dataclass(frozen=True)
class Verdict:
    """A rule's answer about a block."""

    rule: str
    text: str


@dataclass(frozen=True)
class BlockSummary:
    """A block of a task's program. spatial, reduced: extents of its axes.

    verdicts: empty if a rule finished or inlined the block before its turn.
    """

    block: str
    spatial: list[int]
    reduced: list[int]
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Explanation:
    """The sketches that the rules derive for one task, and why.

    index: its number among the model's tasks, from 1. blocks: the output first. misfits: sketches
    that could not be completed. faults: rules left out because they broke their contract.
    apart: why readers of the task's results are not fused with it, where fusion decided by cost.
    """

    index: Count
    name: str
    op: str
    weight: Count
    shapes: list[list[Count]]
    dtypes: list[str]
    sketches: list[SketchSummary]
    blocks: list[BlockSummary]
    misfits: list[str]
    faults: list[str]
    apart: list[str]


@dataclass(frozen=True)
class Explain:
    """`rules explain --json`."""

    model: str
    target: str
    rules: list[str]
    tasks: list[Explanation]
