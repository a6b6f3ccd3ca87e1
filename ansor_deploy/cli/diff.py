"""`ansor-deploy registry diff`: where two registries differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..system.words import count
from ..views.text import KEY, fitted, latency, shortened, unique_names
from .declare import existing_file, number_option
from .helptext import Command, with_examples
from .output import Answer, answering, in_columns

if TYPE_CHECKING:
    from ..registry.difference import Diff


@with_examples("registry diff old.db new.db", "registry diff registry.db team.jsonl --json")
@click.command("diff", cls=Command)
@click.argument("a", type=existing_file)
@click.argument("b", type=existing_file)
@number_option("--limit", 20, "Show at most N tasks, those that differ most.")
@answering
def diff_command(a: Path, b: Path, limit: int) -> Answer:
    """Show where the best records of A and B differ.

    A and B are registries' files or exported bundles. The times are those in the records; times
    from different machines or days may not be comparable.
    """
    from ..registry.difference import difference

    found = difference(a, b)
    return Answer(found, diff_lines(found, limit))


def diff_lines(found: Diff, most: int) -> list[str]:
    """A table of the tasks that differ, at most `most` of them, and how many there are."""
    sums = (
        f"{count(found.same, 'task')} with the same best record; only in A {found.only_a}, only in "
        f"B {found.only_b}; faster in A {found.faster_a}, in B {found.faster_b}"
    )
    names = unique_names({row.fingerprint: row.target for row in found.tasks})
    table = [("key", "task", "target", "A", "B")]
    for row in found.tasks[:most]:
        a, b = ("none" if ms is None else latency(ms / 1e3) for ms in (row.a_ms, row.b_ms))
        table.append((row.workload[:KEY], row.title, shortened(names[row.fingerprint], 14), a, b))
    more = len(found.tasks) - len(table) + 1
    rest = [f"and {more} more, which --json lists"] if more else []
    return [*(in_columns(fitted(table, 1)) if found.tasks else []), *rest, sums]
