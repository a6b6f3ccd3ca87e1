"""The command line: each click command has a file that parses, calls the engine, and prints.

Commands are imported when they are named, and import the engine only when they run, so that help,
the target list and registry queries answer at once.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..system.regular_file import read_regular
from .errors import leave
from .helptext import examples, verbatim

COMMANDS = {  # name and line of help; listing them imports no command
    "build": "Tune, compile, verify and write a model's library.",
    "plan": "Show what a build would reuse, tune or skip.",
    "tune": "Fill the registry for models, without building.",
    "run": "Run a library on arrays from files.",
    "bench": "Time a library on this machine or on a device.",
    "profile": "Time each kernel of a library in its place in a run.",
    "report": "Write a page on what a build achieved.",
    "compare": "Show what changed from one library of a model to the next.",
    "history": "Show the builds of a model, the newest first.",
    "verify": "Check a library's numbers, or that its files are whole.",
    "package": "Pack a library for machines without this tool.",
    "lock": "Take from a lock what one model needs.",
    "registry": "Look into the registry of tuned schedules, and exchange them.",
    "targets": "List and show targets.",
    "devices": "Add, trust and check the boards to measure on.",
    "rules": "List derivation rules, and explain what they do to a model.",
    "hooks": "Print the folder with the files for a build system, or for C.",
    "init": "Let this folder's builds make libraries of models.",
    "doctor": "Check that this machine can build.",
    "completion": "Print a script that lets a shell complete words.",
}
COMPLETING = "_ANSOR_DEPLOY_COMPLETE"  # set by a shell that asks for words; named by click


class CommandLine(click.Group):
    """A group that imports a command's file when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of work, not of the alphabet."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """Import the file of that name and return its `command`."""
        if name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(name, possibilities=list(COMMANDS), ctx=ctx)
        command: click.Command = import_module(f"{__name__}.{name}").command
        return command

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        """Run one command and leave with its exit code: the edge where errors are caught."""
        words = list(_spelled_out(sys.argv[1:] if args is None else args))
        standalone = settings.pop("standalone_mode", True)
        settings = {"prog_name": "ansor-deploy", **settings, "standalone_mode": False}
        settings["obj"] = words  # as given: hints repeat them
        run = partial(super().main, words, *rest, **settings)
        return leave(run, words) if standalone and COMPLETING not in os.environ else run()


def _spelled_out(words: Iterable[str]) -> Iterator[str]:
    """The words, with `@FILE` replaced by the file's lines.

    It is for command lines that are longer than the system allows.
    """
    for word in words:
        try:
            lines = read_regular(Path(word[1:]), _MOST_WORDS) if word.startswith("@") else None
        except (OSError, ValueError):  # no such file or no valid path: a plain word
            lines = None
        yield from [word] if lines is None else os.fsdecode(lines).splitlines()


_MOST_WORDS = 16 << 20  # the largest such file, in bytes

EXIT_CODES = """\
Exit codes:
  0 done, 1 failed, 2 usage, 3 bad model, 4 device, 5 record missing,
  6 outputs differ, 7 budget ended before the goal, 8 registry damaged,
  9 the machine failed (no space, no memory, a killed process),
  70 a bug (a log is written), 129 hung up, 130 interrupted,
  141 the reader of stdout has left, 143 terminated"""


@click.command(
    "ansor-deploy",
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "build resnet18.onnx",
        "plan resnet18.onnx --target rpi3",
        "run resnet18.so --input data=image.npy -o out.npz",
    )
    + f"\n\n{verbatim(EXIT_CODES)}",
)
@click.version_option(__version__, message="ansor-deploy %(version)s")
def main() -> None:
    """From an ONNX model to a tuned, verified, deployable library.

    Every tuned schedule is kept in a registry, so that the next build reuses it. An argument @FILE
    stands for the lines of that file.
    """
