"""Measured programs of a task, described by names that mean the same for tasks of other sizes.

A register tile, an order of loops or a producer's place is good or bad for reasons that hold for
other sizes too. Every program is therefore described by its decisions and by the sizes of its
anchor block, so that a search can learn from all tasks of an operator before it has measured
anything of its own.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ...registry.record import TaskKey, Workload
from ...registry.store import Registry
from ...space.question import Decision
from ...space.sketch import SKIP, Sketch
from .features import Choice, decode_choices
from .neighbours import Block, anchor

_RULE = "rule "  # prefix of the choice of a rule
RELATIVES = 64  # most workloads of the same operator that a search learns from

Row = dict[str, float]  # numbers of one program, by name


@dataclass(frozen=True)
class Experience:
    """Measured programs of one workload. latencies: seconds, infinite for failures."""

    rows: list[Row] = field(repr=False)
    latencies: list[float] = field(repr=False)

    @property
    def best(self) -> float:
        """The smallest latency; infinite where there is none."""
        return min(self.latencies, default=math.inf)


def choices(sketch: Sketch, decisions: Iterable[Decision]) -> list[Choice]:
    """The rules that led to a program, and the decisions that they got."""
    path = [(f"{_RULE}{step.rule.name}/{step.branch}", True) for step in sketch.path]
    return [*path, *((one.question.about, one.option) for one in decisions)]


def rules(made: Iterable[Choice]) -> tuple[str, ...]:
    """The names of the rules among a program's choices, each once; the same as `Sketch.rules`."""
    kinds = (kind for kind, _ in made if kind.startswith(_RULE))
    names = (kind.removeprefix(_RULE).rpartition("/")[0] for kind in kinds)
    return tuple(dict.fromkeys(name for name in names if name != SKIP))


def row(made: Iterable[Choice], block: Block) -> Row:
    """The numbers that describe a program; sizes are logarithms to the base 2.

    block: the workload's anchor block. A choice among tuples is one of sizes along that block's
    axes: then how often each size fits into its axis is a number as well.
    """
    numbers: Row = {f"extent {at}": _log(extent) for at, extent in enumerate(block.extents)}
    numbers |= {f"window {at}": _log(size) for at, size in enumerate(block.window)}
    asked: Counter[str] = Counter()
    for kind, meaning in made:
        name = f"{kind} {asked[kind]}"
        asked[kind] += 1
        numbers.update(_numbers(name, meaning))
        if kind == "tile" and _are_sizes(meaning):
            _add_insides(numbers, name, meaning)
        if kind != "tile" and _are_sizes(meaning) and len(meaning) <= len(block.extents):
            numbers.update(_times(name, meaning, block.extents))
    return numbers


def experiences(registry: Registry, target: str) -> Callable[[Workload], list[Experience]]:
    """A function from a workload to the measurements of others with its operator.

    target: a fingerprint.
    """

    @cache
    def read(key: TaskKey, text: str, trials: int) -> Experience:
        """The measurements of a key. trials: part of the cache's key, so that new ones are read."""
        found, block = Experience([], []), anchor(text)
        for measurement in registry.measurements(key.target, key):
            if made := decode_choices(measurement.features or b""):
                found.rows.append(row(made, block))
                found.latencies.append(measurement.latency)
        return found

    def relatives(workload: Workload) -> list[Experience]:
        alike = registry.alike(workload, target, RELATIVES)
        texts = {TaskKey(other.key, target): other.text for other in alike}
        trials = registry.trials(texts)
        found = [read(key, text, trials[key]) for key, text in texts.items()]
        return [one for one in found if len(one.rows) > 1]

    return relatives


def _numbers(name: str, meaning: Any) -> Iterator[tuple[str, float]]:
    """The numbers of one choice. A text becomes a name of its own; other objects give no number."""
    if isinstance(meaning, str):
        yield f"{name} {meaning}", 1.0
    elif isinstance(meaning, bool):
        yield name, float(meaning)
    elif isinstance(meaning, int):
        yield name, _log(meaning)
    elif _are_sizes(meaning):
        yield from ((f"{name} {at}", _log(size)) for at, size in enumerate(meaning))


def _add_insides(found: Row, name: str, factors: Sequence[int]) -> None:
    """Add the size inside each level of a tile, and inside that level of all tiles together."""
    for at in range(1, len(factors)):
        inside = _log(math.prod(factors[at:]))
        whole = f"tiles {len(factors)} inside {at}"
        found[f"{name} inside {at}"] = inside
        found[whole] = found.get(whole, 0.0) + inside


def _times(name: str, sizes: Sequence[Any], extents: Sequence[int]) -> Iterator[tuple[str, float]]:
    """How often each size fits into its axis, the product of all sizes, and how often that fits."""
    inner = [_log(size) for size in sizes]
    outer = [_log(extent) - size for extent, size in zip(extents, inner, strict=False)]
    yield from ((f"{name} times {at}", times) for at, times in enumerate(outer))
    yield f"{name} size", sum(inner)
    yield f"{name} count", sum(outer)


def _are_sizes(meaning: Any) -> bool:
    """Whether a choice is a sequence of integers; JSON turns tuples into lists."""
    return isinstance(meaning, (list, tuple)) and all(isinstance(size, int) for size in meaning)


def _log(number: int) -> float:
    return math.log2(max(number, 0.5))
