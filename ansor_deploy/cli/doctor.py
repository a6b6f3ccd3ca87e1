"""`ansor-deploy doctor`: can this machine build?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .helptext import examples
from .options import json_option, registry_option
from .output import print_json

if TYPE_CHECKING:
    from ..doctor.host import Check


@click.command(
    "doctor",
    epilog=examples(
        "doctor",
        "doctor --registry team.db --json",
    ),
)
@registry_option
@json_option
@click.pass_context
def command(ctx: click.Context, registry: Path | None, as_json: bool) -> None:
    """Check that this machine can build.

    Each line is ok, warn or FAIL, with a remedy; exits 1 on a FAIL.
    """
    from ..doctor.host import diagnose
    from ..project import Project

    project = Project.find()
    if not print_checks(diagnose(project, project.registry_path(registry)), as_json):
        ctx.exit(1)


def print_checks(checks: Iterable[Check], as_json: bool) -> bool:
    """Print each check as it is made, or all as JSON; whether none failed."""
    made = []
    for check in checks:
        made.append(check)
        if not as_json:
            click.echo(f"{check.level:4}  {check.name}: {check.found}")
        if not as_json and check.remedy:
            click.echo(f"      remedy: {check.remedy}")
    ok = not failed(made)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in made]})
    return ok


def failed(checks: Iterable[Check]) -> bool:
    """Whether one of them did."""
    return any(check.level == "FAIL" for check in checks)
