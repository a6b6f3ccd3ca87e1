"""Why a task has the sketches that it has: every rule's verdict at every block, unmeasured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._tvm import tvm
from ..target import Target
from . import blocks as b
from .rule import Rule
from .sketch import Derivation, Sketch, derive
from .state import Decision, Guess

if TYPE_CHECKING:
    from ..model.tasks import Task


@dataclass(frozen=True)
class SketchTold:
    """A sketch: its steps as (block, rule), and the choices its default program makes.

    error: why there is no default program; "" if there is one.
    """

    steps: tuple[tuple[str, str], ...]
    choices: tuple[Decision, ...]
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in `rules explain --json`."""
        return {
            "steps": [{"block": block, "rule": rule} for block, rule in self.steps],
            "choices": [
                {"kind": c.kind, "block": c.node, "of": c.size, "default": c.value}
                for c in self.choices
            ],
            "error": self.error,
        }


@dataclass(frozen=True)
class BlockTold:
    """A block of a task's program, and what each rule said of it, as (rule, text).

    spatial, reduced: extents of its axes. said: empty if a rule finished the block, or took it
    away, before its turn.
    """

    name: str
    spatial: tuple[int, ...]
    reduced: tuple[int, ...]
    said: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """As in `rules explain --json`."""
        return {
            "block": self.name,
            "spatial": list(self.spatial),
            "reduced": list(self.reduced),
            "verdicts": [{"rule": rule, "text": text} for rule, text in self.said],
        }


@dataclass(frozen=True)
class Explanation:
    """What the rules made of one task.

    index: its number among the model's tasks, from 1. blocks: the output first. misfits: sketches
    that could not be completed. faults: rules left out because they broke their contract.
    """

    index: int
    task: Task = field(repr=False)
    sketches: tuple[SketchTold, ...]
    blocks: tuple[BlockTold, ...]
    misfits: tuple[str, ...]
    faults: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As in `rules explain --json`."""
        workload = self.task.workload
        return {
            "index": self.index,
            "name": self.task.name,
            "op": workload.op,
            "weight": self.task.weight,
            "shapes": [list(shape) for shape in workload.shapes],
            "dtypes": list(workload.dtypes),
            "sketches": [sketch.to_json() for sketch in self.sketches],
            "blocks": [block.to_json() for block in self.blocks],
            "misfits": list(self.misfits),
            "faults": list(self.faults),
        }


def explain(index: int, task: Task, target: Target, rules: Sequence[Rule]) -> Explanation:
    """Derive a task's sketches and tell how."""
    derivation = derive(task.mod, target, rules)
    sketches = tuple(_told(sketch) for sketch in derivation.sketches)
    blocks = tuple(_by_block(task.mod, derivation))
    misfits = tuple(said.text for said in derivation.verdicts if not said.block)
    return Explanation(index, task, sketches, blocks, misfits, tuple(derivation.faults))


def _told(sketch: Sketch) -> SketchTold:
    steps = tuple((step.block, step.rule.name) for step in sketch.path if step.rule.name != "skip")
    try:
        return SketchTold(steps, sketch.program(Guess()).decisions)
    except Exception as error:  # noqa: BLE001 - a user's rule or TVM may raise anything here
        return SketchTold(steps, (), f"{type(error).__name__}: {error}".splitlines()[0])


def _by_block(mod: tvm.IRModule, derivation: Derivation) -> list[BlockTold]:
    """The blocks in the order in which they are visited."""
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    return [_block_told(sch.get(block), derivation) for block in reversed(b.blocks(sch))]


def _block_told(node: Any, derivation: Derivation) -> BlockTold:
    name = str(node.name_hint)
    said = tuple((v.rule, v.text) for v in derivation.verdicts if v.block == name)
    spatial = tuple(int(a.dom.extent) for a in node.iter_vars if a.iter_type == b.SPATIAL)
    reduced = tuple(int(a.dom.extent) for a in node.iter_vars if a.iter_type == b.REDUCE)
    return BlockTold(name, spatial, reduced, said)
