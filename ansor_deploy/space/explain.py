"""Why a task has its sketches: every rule's answer at every block, without measuring anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._tvm import tvm
from ..system.machine_fault import raise_if_fault
from ..target import Target
from .block_view import BlockView, blocks
from .derivation import RuleAnswer, derive
from .explanation import BlockSummary, Choice, Explanation, SketchSummary, Step, Verdict
from .question import Decision, Guess
from .rule import Rule
from .sketch import Sketch
from .tiles import Tiles

if TYPE_CHECKING:
    from ..model.tasks import Task


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
