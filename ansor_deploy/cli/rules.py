"""`ansor-deploy rules`: list the derivation rules, and explain what they do to a model."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import UsageError
from ..project import MARKER, Project
from ..registry.title import shape_text
from ..space.rule import rule_set
from ..space.rule_files import rules_digest
from ..system.environment import shipped
from ..system.json_types import Digest
from ..views.plain import PlainReport, QuietReport
from ..views.text import wrapped
from .declare import existing_file
from .helptext import Group, with_examples
from .options import input_shape_option, rule_set_options
from .output import Answer, answering, is_verbose, verbose_option
from .requests import chosen_target, rule_files
from .shapes import InputShapes, shapes_together

if TYPE_CHECKING:
    from ..space import rule as space
    from ..space.explanation import Explanation, SketchSummary, Verdict


class Rule(Struct, frozen=True):
    """A rule. origin: "shipped", "project", or "flag" for one given by --rules."""

    name: str
    kinds: Sequence[str]
    summary: str
    origin: str
    path: Path
    digest: Digest

    @classmethod
    def of(cls, rule: space.Rule, named: Sequence[Path]) -> Rule:
        """The entry of a rule. named: the files given by --rules."""
        own = "flag" if rule.path in named else "project"
        origin = "shipped" if rule.path.parent == shipped("rules") else own
        return cls(rule.name, rule.kinds, rule.summary, origin, rule.path, rule.digest)


class Rules(Struct, frozen=True):
    """The answer of `rules list --json`: rules in the order of asking. digest: that of them all."""

    rules: list[Rule]
    digest: Digest


@with_examples("rules list", "rules explain resnet18.onnx --task 3 --target rpi3")
@click.group("rules", cls=Group)
def command() -> None:
    """List derivation rules, and explain what they do to a model.

    Rules of --rules are asked first, then those of the project's rules/ folder, then the shipped
    ones. Of two rules with the same name, only the earlier one is used. docs/rules.md says how to
    write one.
    """


@with_examples("rules list", "rules list --target v100", "rules list --rules mine.py --json")
@command.command("list")
@rule_set_options
@answering
def list_command(target: str | None, rules: tuple[Path, ...]) -> Answer:
    """Print the rules for a target, in the order in which they are asked."""
    kind, files = chosen_target(target).kind, rule_files(rules)
    rows = [Rule.of(rule, rules) for rule in rule_set(files, kind)]
    lines = [line for number, row in enumerate(rows, start=1) for line in rule_lines(number, row)]
    return Answer(Rules(rows, rules_digest(files, kind)), lines)


@with_examples(
    "rules explain resnet18.onnx",
    "rules explain resnet18.onnx --task 3 --target rpi3",
    "rules explain resnet18.onnx --rules mine.py --json",
)
@command.command("explain")
@click.argument("model", type=existing_file)
@click.option(
    "--task", type=click.IntRange(min=1), metavar="K", help="Only the model's task number K."
)
@rule_set_options
@input_shape_option
@verbose_option("Show on stderr what your rules print.")
@answering
def explain_command(
    model: Path,
    task: int | None,
    target: str | None,
    rules: tuple[Path, ...],
    input_shapes: InputShapes,
) -> Answer:
    """Print a model's sketches, and what each rule said.

    For every unique task, it prints the structures that the search samples from. For each block,
    from the output backwards, it prints which rules applied, and why the others did not. Nothing is
    measured.
    """
    from ..model.prepare import prepare
    from ..space.explain import explain
    from ..space.explanation import Explain

    where, shapes = chosen_target(target), shapes_together(input_shapes)
    shown = PlainReport(verbose=True) if is_verbose() else QuietReport()
    asked = rule_set(rule_files(rules), where.kind, heard=shown.printed)
    tasks = prepare(model, where, shapes, shown.stage).tasks
    total = len(tasks)
    if task and task > total:
        what = f"{model} has no task {task}: its tasks are 1 to {total}"
        raise UsageError(what, "leave --task out to see them all")
    numbers = [task] if task else range(1, total + 1)
    explained = [explain(number, tasks[number - 1], where, asked) for number in numbers]
    lines = [line for task in explained for line in (*explanation_lines(task, total), "")][:-1]
    return Answer(Explain(str(model), where.name, [rule.name for rule in asked], explained), lines)


class New(Struct, frozen=True):
    """The answer of `rules new --json`: the files that were written."""

    files: list[str]


@with_examples("rules new serial-small")
@command.command("new")
@click.argument("name")
@answering
def new_command(name: str) -> Answer:
    """Write a working rule and its test, for you to change.

    NAME.py is written into the project's rules/ folder, and its test into tests/. Outside a
    project, this folder becomes one.
    """
    from ..space.new_rule import write_rule

    files = [str(path) for path in write_rule(name, Project.find().root or Path(), MARKER)]
    install = "" if find_spec("pytest") else "pip install pytest && "
    lines = [*(f"wrote {file}" for file in files), f"try it: {install}python -m pytest {files[1]}"]
    return Answer(New(files), lines)


def rule_lines(number: int, rule: Rule) -> list[str]:
    """A rule as lines of text."""
    title = f"{number:>2}  {rule.name} ({' '.join(rule.kinds)}), {rule.origin}: {rule.path}"
    return [title, *wrapped(rule.summary or "(no docstring)", "    ", "    ")]


def explanation_lines(task: Explanation, total: int) -> list[str]:
    """One task as text: what it is, its sketches, and every rule's answer at each block."""
    shapes = " ".join(map(shape_text, task.shapes))
    title = f"task {task.index} of {total}: {task.name} ({task.op}), x{task.weight}"
    lines = [*wrapped(title, "", "  "), *wrapped(shapes, "  ", "  ")]
    lines += [line for reason in task.apart for line in wrapped(reason, "  ends here: ", "    ")]
    lines += [line for fault in task.faults for line in wrapped(fault, "  warning: ", "    ")]
    programs = sum(sketch.programs for sketch in task.sketches)
    heading = f"  programs: {programs:,}; sketches, the default first:"
    lines.append(heading if task.sketches else "  no sketch")
    for number, sketch in enumerate(task.sketches, start=1):
        lines += wrapped(_sketch(sketch), f"  {number:>4}  ", " " * 8)
    lines += [line for misfit in task.misfits for line in wrapped(misfit, "     -  ", " " * 8)]
    for block in task.blocks:
        reduces = f", reduces {shape_text(block.reduced)}" if block.reduced else ""
        lines.append(f"  block {block.block} ({shape_text(block.spatial)}{reduces}):")
        lines += _answers(block.verdicts)
    return lines


def _sketch(sketch: SketchSummary) -> str:
    steps = ", ".join(f"{step.rule} at {step.block}" for step in sketch.steps)
    steps = steps or "as it stands"
    if sketch.error:
        return f"{steps}; its default program fails: {sketch.error}"
    return f"{steps}; free choices: {len(sketch.choices)}; programs: {sketch.programs:,}"


def _answers(answers: Sequence[Verdict]) -> list[str]:
    if not answers:
        return ["    (not asked: it was finished or gone before its turn)"]
    width = max(len(answer.rule) for answer in answers)
    texts = [(answer.text, f"    {answer.rule.ljust(width)}  ") for answer in answers]
    return [line for text, first in texts for line in wrapped(text, first, " " * len(first))]
