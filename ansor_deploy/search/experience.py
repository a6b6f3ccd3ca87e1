"""What programs of a task came to, in words that mean the same for tasks of other sizes.

A register tile, an order of loops, a producer's place are good or bad for reasons that do not
stop at one size. Every program is therefore told by what was decided for it and by the sizes of
its anchor block, so that a search can learn from all tasks of an operator before it has measured
anything of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..registry.keys import TaskKey
from .features import decode_choices
from .neighbours import Block, anchor

if TYPE_CHECKING:
    from ..registry.record import Workload
    from ..registry.store import Registry
    from ..space.sketch import Sketch
    from ..space.state import Decision

RELATIVES = 64  # workloads of the same operator that a search learns from

Choice = tuple[str, Any]  # what was asked, and what the answer means: JSON either way
Row = dict[str, float]  # numbers of one program, by name


@dataclass(frozen=True)
class Experience:
    """Programs of one workload. latencies: seconds, infinite for failures."""

    rows: Sequence[Row] = field(repr=False)
    latencies: Sequence[float] = field(repr=False)


def choices(sketch: Sketch, decisions: Iterable[Decision]) -> list[Choice]:
    """The rules that led to a program, and the answers that they got."""
    rules = [(f"rule {step.rule.name}/{step.branch}", True) for step in sketch.path]
    return [*rules, *((decision.kind, decision.meaning) for decision in decisions)]


def row(made: Iterable[Choice], block: Block) -> Row:
    """A program's numbers; those of sizes are logarithms to the base 2.

    block: the workload's anchor. A choice among tuples is one of sizes along that block's axes:
    how often each fits into its axis is told as well.
    """
    found = {f"extent {at}": _log(extent) for at, extent in enumerate(block.extents)}
    found |= {f"window {at}": _log(size) for at, size in enumerate(block.window)}
    asked: Counter[str] = Counter()
    for kind, meaning in made:
        name = f"{kind} {asked[kind]}"
        asked[kind] += 1
        found.update(_numbers(name, meaning))
        if kind != "tile" and _are_sizes(meaning) and len(meaning) <= len(block.extents):
            found.update(_times(name, meaning, block.extents))
    return found


def experiences(registry: Registry, target: str) -> Callable[[Workload], list[Experience]]:
    """Tells of a workload what was measured of others of its operator. target: a fingerprint."""
    read: dict[tuple[TaskKey, int], Experience] = {}  # anew where more was measured since

    def relatives(workload: Workload) -> list[Experience]:
        alike = registry.alike(workload, target, RELATIVES)
        keys = [TaskKey(workload.key, target) for workload in alike]
        trials = registry.trials(keys)
        for key, other in zip(keys, alike, strict=True):
            if (key, trials[key]) not in read:
                read[key, trials[key]] = _experience(key, other.text, registry)
        found = [read[key, trials[key]] for key in keys]
        return [one for one in found if len(one.rows) > 1]

    return relatives


def _experience(key: TaskKey, text: str, registry: Registry) -> Experience:
    block = anchor(text)
    measured = [
        (made, measurement.latency)
        for measurement in registry.measurements(key.target, key)
        if measurement.features and (made := decode_choices(measurement.features))
    ]
    return Experience([row(made, block) for made, _ in measured], [time for _, time in measured])


def _numbers(name: str, meaning: Any) -> Iterator[tuple[str, float]]:
    """A text is a name of its own; what is neither that nor numbers says nothing."""
    if isinstance(meaning, str):
        yield f"{name} {meaning}", 1.0
    elif isinstance(meaning, bool):
        yield name, float(meaning)
    elif isinstance(meaning, int):
        yield name, _log(meaning)
    elif _are_sizes(meaning):
        yield from ((f"{name} {at}", _log(size)) for at, size in enumerate(meaning))


def _times(name: str, sizes: Sequence[Any], extents: Sequence[int]) -> Iterator[tuple[str, float]]:
    """How often each size fits into its axis; all of them together, and how often."""
    inner = [_log(size) for size in sizes]
    outer = [_log(extent) - size for extent, size in zip(extents, inner, strict=False)]
    yield from ((f"{name} times {at}", times) for at, times in enumerate(outer))
    yield f"{name} size", sum(inner)
    yield f"{name} count", sum(outer)


def _are_sizes(meaning: Any) -> bool:
    """Whether it is several numbers: JSON makes a list of a tuple."""
    return isinstance(meaning, (list, tuple)) and all(isinstance(size, int) for size in meaning)


def _log(number: int) -> float:
    return math.log2(max(number, 0.5))
