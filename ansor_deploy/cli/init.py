"""`ansor-deploy init`: make a folder a project."""

import sys
from pathlib import Path

import click

from ..errors import UsageError
from .helptext import Command, with_examples
from .options import chosen_target, existing_file
from .output import say


@with_examples("init", "init models/resnet18.onnx --target rpi3", "init --yes")
@click.command("init", cls=Command)
@click.argument("models", type=existing_file, nargs=-1)
@click.option("--target", default="host", help="What to build for.  [default: host]")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(models: tuple[Path, ...], target: str, yes: bool) -> None:
    """Let this folder's builds make libraries of models.

    Writes an ansor-deploy.toml, a models.mk for the Makefile to include, and a line of .gitignore,
    after it has shown them. What is there already is left as it is.
    """
    from ..integrations.scaffold import MAKEFILE, additions

    chosen_target(target)
    lacking = list(additions(Path(), target, models))
    if not lacking:
        say("nothing to do: all is there")
        return
    for one in lacking:
        body = [f"  {line}" for line in one.text.splitlines()]
        for line in (f"{one.verb} {one.path}:", *body, ""):
            say(line)
    if not yes:
        _ask()
    for one in lacking:
        one.make()
    if any(one.path.name == MAKEFILE for one in lacking):
        say(f"next: `include {MAKEFILE}` in the Makefile, then make tune")


def _ask() -> None:
    """UsageError where nobody can answer; exits 1 on a no."""
    if not sys.stdin.isatty():
        raise UsageError("nothing is written: there is nobody to ask", "ansor-deploy init --yes")
    if not click.confirm("write this?", default=True):
        click.get_current_context().exit(1)
