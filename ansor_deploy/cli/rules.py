"""`ansor-deploy rules`: which derivation rules there are, and what they say about a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..report.plain import QuietReport
from ..report.rules import explanation_lines
from ..report.text import wrapped
from .helptext import with_examples
from .options import (
    chosen_target,
    existing_file,
    input_shape_option,
    rule_files,
    rules_option,
    target_option,
)
from .output import Answer, answering
from .values import InputShapes

if TYPE_CHECKING:
    from ..space.rule import Rule


@with_examples("rules list", "rules explain resnet18.onnx --task 3 --target rpi3")
@click.group("rules")
def command() -> None:
    """List derivation rules, and explain what they do to a model.

    Rules given with --rules are asked first, then those of the project's rules/ folder, then the
    shipped ones; of two with one name the earlier counts. docs/rules.md says how to write one.
    """


@with_examples("rules list", "rules list --target v100", "rules list --rules mine.py --json")
@command.command("list")
@target_option
@rules_option
@answering
def list_command(target: str | None, rules: tuple[Path, ...]) -> Answer:
    """Print the rules for a target, in the order in which they are asked."""
    from ..space.rule import rule_set, rules_digest

    kind, files = chosen_target(target).kind, rule_files(rules)
    rows = [described(rule, rules) for rule in rule_set(files, kind)]
    lines = [line for number, row in enumerate(rows, start=1) for line in rule_lines(number, row)]
    return Answer({"rules": rows, "digest": rules_digest(files, kind)}, lines)


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
@target_option
@rules_option
@input_shape_option
@answering
def explain_command(
    model: Path,
    task: int | None,
    target: str | None,
    rules: tuple[Path, ...],
    input_shapes: InputShapes,
) -> Answer:
    """Print a model's sketches, and what each rule said about each block.

    For every unique task: the structures that the search samples from, and at each block, from
    the output backwards, which rules applied and why the others did not. Nothing is measured.
    """
    from ..pipeline import explain
    from ..space.rule import rule_set

    where = chosen_target(target)
    asked = rule_set(rule_files(rules), where.kind)
    total, found = explain(model, task, where, dict(input_shapes), asked, QuietReport())
    value = {"model": str(model), "target": where.name, "rules": [rule.name for rule in asked]}
    texts = ("\n".join(explanation_lines(one, total)) for one in found)
    return Answer({**value, "tasks": [one.to_json() for one in found]}, ["\n\n".join(texts)])


def described(rule: Rule, given: tuple[Path, ...]) -> dict[str, Any]:
    """A rule, as a row of `rules list --json`. given: the files of --rules."""
    from ..project import shipped

    own = "flag" if rule.path in given else "project"
    return {
        "name": rule.name,
        "kinds": list(rule.kinds),
        "summary": rule.summary,
        "origin": "shipped" if rule.path.parent == shipped("rules") else own,
        "path": str(rule.path),
        "digest": rule.digest,
    }


def rule_lines(number: int, row: dict[str, Any]) -> list[str]:
    """A rule's row as text."""
    kinds = " ".join(row["kinds"])
    title = f"{number:>2}  {row['name']} ({kinds}), {row['origin']}: {row['path']}"
    return [title, *wrapped(row["summary"] or "(no docstring)", "    ", "    ")]
