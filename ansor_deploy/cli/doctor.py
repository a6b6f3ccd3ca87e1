"""`ansor-deploy doctor`: can this machine build?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from ..project import Project
from ..system.printable import message
from .helptext import Command, with_examples
from .options import registry_path
from .output import json_option, print_json, say

if TYPE_CHECKING:
    from ..doctor.host import Check


@with_examples("doctor", "doctor --registry team.db --json")
@click.command("doctor", cls=Command)
@registry_path
@json_option
def command(registry: Path, as_json: bool) -> int:
    """Check that this machine can build.

    Each line is ok, warn or FAIL, with a remedy. Exits 1 if a check fails.
    """
    from ..doctor.host import diagnose

    return int(failed(print_checks(diagnose(Project.find(), registry), as_json)))


def print_checks(checks: Iterable[Check], as_json: bool) -> list[Check]:
    """Print each check as soon as it is made, or all of them as JSON at the end."""
    from ..doctor.host import Checks

    printed = []
    for check in checks:
        printed.append(check)
        if not as_json:
            for line in check_lines(check):
                say(line)
    if as_json:
        print_json(Checks.of(printed))
    return printed


def check_lines(check: Check) -> list[str]:
    """A check as text, with its remedy if it has one; on a terminal, wrapped at words."""
    lines = message(f"{check.level:4}  {check.name}: {check.found}").split("\n")
    if sys.stdout.isatty():
        lines = [part for line in lines for part in folded(line)]
    remedy = message(f"      remedy: {check.remedy}").split("\n") if check.remedy else []
    return [*lines, *remedy]


def folded(line: str) -> list[str]:
    """The line, wrapped to the terminal's width; words that are longer stay whole."""
    width = get_terminal_size().columns
    if len(line) <= width:
        return [line]
    indent = " " * 6  # aligns with the text of the first line
    fill = partial(wrap, break_long_words=False, break_on_hyphens=False)
    return fill(line, width, subsequent_indent=indent)


def failed(checks: Iterable[Check]) -> bool:
    """Whether a check failed."""
    return any(check.level == "FAIL" for check in checks)
