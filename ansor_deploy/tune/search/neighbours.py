"""Neighbours of a task: measured programs that differ from it only in their sizes.

A family is what remains of a program when every number is masked: the same operators, fused in the
same way, with the same dtypes and layouts. A good schedule for one size is a good start for
another, and `refit` adapts it. The distance of two workloads of a family is read from their
canonical texts, without parsing them or loading a compiler. Programs tuned for a machine with the
same instructions and other cores or caches are neighbours too, above all the same program.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...registry.record import TaskKey, Workload
from ...registry.store import Registry
from ...target import Target

NEAREST = 3  # most neighbours of a task
TRACES = 3  # most schedules of a neighbour, its best
# Distance of another window (size, stride or dilation), in doublings of an extent.
OTHER_WINDOW = 4.0
# Distance of a machine with other cores or caches, in doublings of an extent.
OTHER_MACHINE = 1.0
# Beyond this distance, the rules' guess is as good as a neighbour.
FARTHEST = 8.0

_LOOPS = re.compile(r"^ *for .* in (?:T\.grid|range)\((.*)\):$", re.MULTILINE)
_AXES = re.compile(r"(\w+(?:, \w+)*) = T\.axis\.remap\('(\w+)'")
_READS = re.compile(r"T\.reads\((.*)\)$", re.MULTILINE)
_NUMBER = re.compile(r"\b\d+\b")
_STRIDE = re.compile(r"\* (?:T\.int64\()?(\d+)")


@dataclass(frozen=True)
class Neighbour:
    """A workload of a task's family that was tuned for the same target, or for one like it.

    distance: the sum of |log2| of the ratios of the anchor block's extents, plus `OTHER_WINDOW`
    where strides or windows differ, plus `OTHER_MACHINE` where the target differs. The anchor block
    is the one with the most iterations. traces: those of its best records, the best first. machine:
    the target that it was tuned for, if that is not the task's.
    """

    workload: Workload
    distance: float
    traces: tuple[str, ...] = field(repr=False)
    machine: Target | None = None


_Found = tuple[float, Workload, Target]  # a distance, a workload, and the machine it was tuned for


@dataclass(frozen=True)
class Block:
    """The extents of a block's loops, and the windows and strides of its reads."""

    extents: tuple[int, ...]
    window: tuple[int, ...]


def nearest(
    wanted: Mapping[TaskKey, Workload], registry: Registry, tvm: str, target: Target
) -> dict[TaskKey, list[Neighbour]]:
    """The nearest neighbours of each task that has any, nearest first.

    wanted: tasks of the target. tvm: the version that made the neighbours' records; traces of other
    versions might not replay.
    """
    asked = sorted({workload.family for workload in wanted.values()})
    candidates: dict[TaskKey, list[_Found]] = defaultdict(list)
    for machine in (target, *registry.like(target)):
        families = defaultdict(list)
        for relative in registry.relatives(asked, machine.fingerprint, tvm):
            families[relative.family].append(relative)
        for key, workload in wanted.items():
            others = [one for one in families[workload.family] if one.key != workload.key]
            candidates[key] += [_found(workload, one, machine, target) for one in others]
            if machine is not target and registry.top(_key(workload, machine), tvm, 1):
                candidates[key].append(_found(workload, workload, machine, target))

    def neighbour(apart: float, other: Workload, machine: Target) -> Neighbour:
        best = registry.top(_key(other, machine), tvm, TRACES)
        traces = tuple(record.trace for record in best)
        return Neighbour(other, apart, traces, None if machine is target else machine)

    near = {key: _nearest(several) for key, several in candidates.items()}
    return {key: [neighbour(*one) for one in several] for key, several in near.items() if several}


def _key(workload: Workload, machine: Target) -> TaskKey:
    return TaskKey(workload.key, machine.fingerprint)


def _found(workload: Workload, other: Workload, machine: Target, target: Target) -> _Found:
    apart = 0.0 if machine is target else OTHER_MACHINE
    return distance(workload, other) + apart, other, machine


def distance(one: Workload, other: Workload) -> float:
    """The distance of two workloads of a family, in doublings; infinite for others."""
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
    """The block of a canonical text with the most iterations; an empty one if it has no loops."""
    blocks = _blocks(text)
    return blocks[_anchor(blocks)] if blocks else Block((), ())


def _anchor(blocks: Sequence[Block]) -> int:
    return max(range(len(blocks)), key=lambda at: math.prod(blocks[at].extents))


def _nearest(found: Sequence[_Found]) -> list[_Found]:
    """The nearest of these, nearest first."""
    ranked = sorted(found, key=lambda one: (one[0], one[1].key, one[2].fingerprint))[:NEAREST]
    return [one for one in ranked if one[0] <= FARTHEST]


@lru_cache(maxsize=4096)
def _blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a canonical text, in order."""
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
