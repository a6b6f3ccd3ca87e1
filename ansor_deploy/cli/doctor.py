"""`ansor-deploy doctor`: can this machine build?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

    Each line is ok, warn or FAIL, with a remedy; exits 1 on a FAIL.
    """
    from ..doctor.host import diagnose

    return int(failed(print_checks(diagnose(Project.find(), registry), as_json)))


def print_checks(checks: Iterable[Check], as_json: bool) -> list[Check]:
    """Print each check as it is made, or all as JSON."""
    made = []
    for check in checks:
        made.append(check)
        if not as_json:
            for line in check_lines(check):
                say(line)
    if as_json:
        print_json(checks_json(made))
    return made


def check_lines(check: Check) -> list[str]:
    """A check as text, with its remedy if it has one."""
    remedy = f"\n      remedy: {check.remedy}" if check.remedy else ""
    return message(f"{check.level:4}  {check.name}: {check.found}{remedy}").split("\n")


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """All checks as one JSON object."""
    return {"ok": not failed(checks), "checks": [asdict(check) for check in checks]}


def failed(checks: Iterable[Check]) -> bool:
    """Whether a check failed."""
    return any(check.level == "FAIL" for check in checks)
