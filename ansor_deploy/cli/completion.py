"""`ansor-deploy completion`: the script for a shell's completion of words."""

import click
from msgspec import Struct

from ..project import Project
from ..target import list_targets
from . import COMPLETING
from .helptext import Command, with_examples
from .output import Answer, answering

SHELLS = ("bash", "zsh", "fish")


class Completion(Struct, frozen=True):
    """The answer of `completion --json`."""

    shell: str
    script: str


@with_examples(
    "completion bash >> ~/.bash_completion",
    "completion fish > ~/.config/fish/completions/ansor-deploy.fish",
)
@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@answering
def command(shell: str) -> Answer:
    """Print a script that lets a shell complete words.

    It completes commands, options, files and the names of targets. Write it to where your shell
    looks for such scripts, or let the shell's start-up file evaluate it.
    """
    from click import shell_completion as shells  # only this command needs it

    known = {"bash": shells.BashComplete, "zsh": shells.ZshComplete, "fish": shells.FishComplete}
    root = click.get_current_context().find_root().command
    script = known[shell](root, {}, "ansor-deploy", COMPLETING).source()
    return Answer(Completion(shell, script), script.splitlines())


def target_names(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    """The names of targets that begin with what was typed."""
    return [name for name in list_targets(Project.find().target_path()) if name.startswith(begun)]
