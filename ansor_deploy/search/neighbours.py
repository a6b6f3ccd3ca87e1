"""Neighbours of a task: measured programs that differ from it in their sizes alone.

A family is what remains of a program when every number is masked: the same operators, fused in
the same way, with the same dtypes and layouts. What was found for one size says much about the
next; `refit` carries it over. The canonical texts alone say how near two of a family are: nothing
is parsed, and no compiler is loaded.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..registry.record import TaskKey, Workload
from ..registry.store import Registry

NEAREST = 3  # neighbours that a task may have
TRACES = 3  # best schedules of each
# What another window (its size, stride or dilation) counts for, in doublings of an extent.
OTHER_WINDOW = 4.0
# Doublings from which on the guess of the rules is as good.
FARTHEST = 8.0

_LOOPS = re.compile(r"^ *for .* in (?:T\.grid|range)\((.*)\):$", re.MULTILINE)
_AXES = re.compile(r"(\w+(?:, \w+)*) = T\.axis\.remap\('(\w+)'")
_READS = re.compile(r"T\.reads\((.*)\)$", re.MULTILINE)
_NUMBER = re.compile(r"\b\d+\b")
_STRIDE = re.compile(r"\* (?:T\.int64\()?(\d+)")


@dataclass(frozen=True)
class Neighbour:
    """A workload of a task's family that was tuned for the same target.

    distance: sum of |log2| of the ratios of the anchor block's extents, and `OTHER_WINDOW` where
    strides or windows differ. The anchor block is the one with the most iterations.
    traces: of its best records, the best first.
    """

    workload: Workload
    distance: float
    traces: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Block:
    """Extents of a block's loops, and what it reads at once along them: windows and strides."""

    extents: tuple[int, ...]
    window: tuple[int, ...]


def nearest(
    wanted: Mapping[TaskKey, Workload], registry: Registry, tvm: str
) -> dict[TaskKey, list[Neighbour]]:
    """The nearest neighbours of each task that has any, nearest first.

    wanted: tasks of one target. tvm: version that made the neighbours' records; traces of others
    need not replay.
    """
    families = defaultdict(list)
    target = next((key.target for key in wanted), "")
    asked = sorted({workload.family for workload in wanted.values()})
    for workload in registry.relatives(asked, target, tvm):
        families[workload.family].append(workload)

    def neighbour(apart: float, other: Workload) -> Neighbour:
        best = registry.top(TaskKey(other.key, target), tvm, TRACES)
        return Neighbour(other, apart, tuple(record.trace for record in best))

    near = {key: _nearest(workload, families[workload.family]) for key, workload in wanted.items()}
    return {key: [neighbour(*one) for one in found] for key, found in near.items() if found}


def distance(one: Workload, other: Workload) -> float:
    """How far two workloads of a family lie apart; infinite for others."""
    here, there = _blocks(one.text), _blocks(other.text)
    if one.family != other.family or len(here) != len(there) or not here:
        return math.inf
    at = _anchor(here)
    ours, theirs = here[at], there[at]
    if len(ours.extents) != len(theirs.extents):
        return math.inf
    pairs = zip(ours.extents, theirs.extents, strict=True)
    doublings = sum(abs(math.log2(a / b)) for a, b in pairs)
    return doublings + (OTHER_WINDOW if ours.window != theirs.window else 0.0)


def anchor(text: str) -> Block:
    """The block with the most iterations of a canonical text; one without loops if it has none."""
    blocks = _blocks(text)
    return blocks[_anchor(blocks)] if blocks else Block((), ())


def _anchor(blocks: Sequence[Block]) -> int:
    return max(range(len(blocks)), key=lambda at: math.prod(blocks[at].extents))


def _nearest(workload: Workload, relatives: Sequence[Workload]) -> list[tuple[float, Workload]]:
    """The nearest of the relatives with their distances, nearest first."""
    apart = [(distance(workload, one), one) for one in relatives if one.key != workload.key]
    ranked = sorted(apart, key=lambda one: (one[0], one[1].key))[:NEAREST]
    return [one for one in ranked if one[0] <= FARTHEST]


@lru_cache(maxsize=4096)
def _blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a canonical text, in its order."""
    _, *parts = _LOOPS.split(text)
    return tuple(map(_block, parts[::2], parts[1::2]))


def _block(loops: str, body: str) -> Block:
    extents = tuple(max(1, int(number)) for number in _NUMBER.findall(loops))
    axes, reads = _AXES.search(body), _READS.search(body)
    if axes is None or reads is None:
        return Block(extents, ())
    names = zip(axes[1].split(", "), axes[2], extents, strict=False)
    reduced = [(name, extent) for name, kind, extent in names if kind == "R"]
    window = [extent for name, extent in reduced if re.search(rf"\+ {name}\b", reads[1])]
    return Block(extents, (*window, *map(int, _STRIDE.findall(reads[1]))))
