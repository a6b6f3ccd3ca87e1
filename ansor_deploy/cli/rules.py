"""`ansor-deploy rules`: which derivation rules there are, and what they say about a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .helptext import examples
from .options import input_shape_option, json_option, model_file, rules_option, target_option
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..space.rule import Rule
    from ..target import Target


@click.group(
    "rules", epilog=examples("rules list", "rules explain resnet18.onnx --task 3 --target rpi3")
)
def command() -> None:
    """List derivation rules, and explain what they do to a model.

    Rules given with --rules are asked first, then those of the project's rules/ folder, then the
    shipped ones; of two with one name the earlier counts. docs/rules.md says how to write one.
    """


@command.command(
    "list",
    epilog=examples("rules list", "rules list --target v100", "rules list --rules mine.py --json"),
)
@target_option
@rules_option
@json_option
def list_command(target: str | None, rules: tuple[Path, ...], as_json: bool) -> None:
    """Print the rules for a target, in the order in which they are asked."""
    from ..space.rule import rule_set_digest

    with stdout_kept_clean():
        _, found = target_and_rules(target, rules)
        rows = [described(rule, rules) for rule in found]
    if as_json:
        print_json({"rules": rows, "digest": rule_set_digest(found)})
        return
    from ..report.rules import wrapped

    for number, row in enumerate(rows, start=1):
        kinds = " ".join(row["kinds"])
        click.echo(f"{number:>2}  {row['name']} ({kinds}), {row['origin']}: {row['path']}")
        click.echo("\n".join(wrapped(row["summary"] or "(no docstring)", "    ", "    ")))


@command.command(
    "explain",
    epilog=examples(
        "rules explain resnet18.onnx",
        "rules explain resnet18.onnx --task 3 --target rpi3",
        "rules explain resnet18.onnx --rules mine.py --json",
    ),
)
@click.argument("model", type=model_file)
@click.option(
    "--task", type=click.IntRange(min=1), metavar="K", help="Only the model's task number K."
)
@target_option
@rules_option
@input_shape_option
@json_option
def explain_command(
    model: Path,
    task: int | None,
    target: str | None,
    rules: tuple[Path, ...],
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...],
    as_json: bool,
) -> None:
    """Print a model's sketches, and what each rule said about each block.

    For every unique task: the structures that the search samples from, and at each block, from
    the output backwards, which rules applied and why the others did not. Nothing is measured.
    """
    from ..pipeline import explain
    from ..report.plain import QuietReport
    from ..report.rules import explanation_lines

    with stdout_kept_clean():
        where, asked = target_and_rules(target, rules)
        total, found = explain(model, task, where, dict(input_shapes), asked, QuietReport())
    if as_json:
        answer = {"model": str(model), "target": where.name, "rules": [r.name for r in asked]}
        print_json({**answer, "tasks": [one.to_json() for one in found]})
    else:
        click.echo("\n\n".join("\n".join(explanation_lines(one, total)) for one in found))


def target_and_rules(target: str | None, files: tuple[Path, ...]) -> tuple[Target, list[Rule]]:
    """The target that is meant, and its rules in order."""
    from ..project import Project
    from ..space.rule import rule_set
    from ..target import load_target

    project = Project.find()
    found = load_target(target or project.target or "host", project.target_path())
    return found, rule_set([*files, *project.rule_files()], found.kind)


def described(rule: Rule, given: tuple[Path, ...]) -> dict[str, Any]:
    """A rule as `rules list --json` tells it."""
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
