"""Why a task has the sketches that it has: every rule's answer at every block, unmeasured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._tvm import tvm
from ..system.json_types import Count
from ..system.machine_fault import raise_if_fault
from ..target import Target
from .block_view import BlockView, blocks
from .derivation import RuleAnswer, derive
from .question import Decision, Guess
from .rule import Rule
from .sketch import Sketch
from .tiles import Tiles

if TYPE_CHECKING:
    from ..model.tasks import Task


@dataclass(frozen=True)
class Step:
    """What a rule did to a block."""

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

    programs: about how many it has. choices: those of the default program.
    """

    steps: list[Step]
    programs: Count
    choices: list[Choice]
    error: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a rule said of a block."""

    rule: str
    text: str


@dataclass(frozen=True)
class BlockSummary:
    """A block of a task's program. spatial, reduced: extents of its axes.

    verdicts: empty if a rule finished the block, or took it away, before its turn.
    """

    block: str
    spatial: list[int]
    reduced: list[int]
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Explanation:
    """What the rules made of one task.

    index: its number among the model's tasks, from 1. blocks: the output first. misfits: sketches
    that could not be completed. faults: rules left out because they broke their contract.
    apart: why what reads its results is not fused with it, where fusion decided that by cost.
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


def explain(index: int, task: Task, target: Target, rules: Sequence[Rule]) -> Explanation:
    """A task's sketches, and every rule's answers on the way to them."""
    derivation, workload = derive(task.mod, target, rules), task.workload
    sch = tvm.s_tir.Schedule(task.mod, debug_mask="none")
    views = [BlockView(sch, block) for block in reversed(blocks(sch))]
    return Explanation(
        index,
        task.name,
        workload.op,
        task.weight,
        [list(shape) for shape in workload.shapes],
        list(workload.dtypes),
        [_sketch(sketch) for sketch in derivation.sketches],
        [_block(view, derivation.answers) for view in views],
        [answer.text for answer in derivation.answers if not answer.block],
        derivation.faults,
        list(task.apart),
    )


def _sketch(sketch: Sketch) -> SketchSummary:
    steps = [Step(block, rule) for block, rule in sketch.steps]
    try:
        choices = [_choice(one) for one in sketch.program(Guess()).decisions]
        return SketchSummary(steps, sketch.size, choices)
    except Exception as error:  # noqa: BLE001 - a user's rule or TVM may raise anything here
        raise_if_fault(error)
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return SketchSummary(steps, sketch.size, [], reason)


def _block(view: BlockView, answers: Sequence[RuleAnswer]) -> BlockSummary:
    name = view.name
    said = [Verdict(answer.rule, answer.text) for answer in answers if answer.block == name]
    return BlockSummary(name, view.spatial, view.reduced, said)


def _choice(decision: Decision) -> Choice:
    question, options = decision.question, decision.question.options
    of, default = question.size, decision.index
    if isinstance(options, Tiles):
        of, default = options.extent, decision.option
    return Choice(question.about, question.node, of, default)
