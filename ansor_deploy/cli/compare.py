"""`ansor-deploy compare`: what a new build of a model changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..system.words import size_text
from ..views.text import AGAIN, KEY, change_cells, fitted, race_text
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .output import Answer, answering, in_columns
from .run_options import seconds_option, threads_option
from .values import parse_share

if TYPE_CHECKING:
    from ..ship.race.changes import Changes, MadeBy, TaskChange

SHOWN = 20  # tasks
RULE = "rule "
HEADER = ("key", "task", "before", "after", "change", "schedule")


@with_examples(
    "compare old.so new.so",
    "compare old.so new.so --fail-if-slower 3% -o changes.html",
    "compare old.so new.so --threads 1 --time 10s --json",
)
@click.command("compare", cls=Command)
@click.argument("before", type=existing_file)
@click.argument("after", type=existing_file)
@seconds_option("How long that may take in all: the turns, and the times of tasks.", "5s")
@threads_option
@click.option(
    "--fail-if-slower",
    "share",
    type=parse_share,
    metavar="3%",
    help="Exit 1 where AFTER is surely slower, and by more than this; 0 where that is not sure.",
)
@click.option("--output", "-o", type=new_file, help="Write it as an HTML page, too.")
@answering
def command(
    before: Path,
    after: Path,
    run_seconds: float,
    threads: int,
    share: float | None,
    output: Path | None,
) -> Answer:
    """Show what changed from one library of a model to the next.

    Both run in turns, if this machine can run them and they differ. Of the tasks those come first
    that are new or gone, or have another schedule, and among these those that take longer or
    shorter by most. Rules and versions that the two were made by are listed where they differ.
    """
    from ..ship.race.timing import compare

    found = compare(before, after, run_seconds, threads)
    if output:
        from ..views.page.comparison import comparison_page

        output.write_text(comparison_page(found, str(before), str(after)), encoding="utf-8")
    failed = share is not None and found.slower(share)
    return Answer(found.answer(failed=failed), list(lines(found)), int(failed))


def lines(found: Changes) -> Iterator[str]:
    """The changes as text: none of libraries that are the same, though one has records."""
    if found.same:
        yield found.untimed
        return
    shown = [task for task in found.tasks if task.what != "same" or task.delta_ms][:SHOWN]
    if shown:
        yield from in_columns(fitted([HEADER, *map(cells, shown)], 1))
    if more := len(found.tasks) - len(shown):
        yield f"and {more} more"
    for name, (old, new) in found.bytes.items():
        if old != new:
            yield f"{name}: {size_text(old)} before, {size_text(new)} now"
    for one in found.made_by:
        yield made_by_text(one)
    yield race_text(found.beside, AGAIN) if found.beside else found.untimed
    if found.explanation:
        yield found.explanation


def made_by_text(one: MadeBy) -> str:
    """What made a library and has changed, such as "rule tile.py: changed"."""
    if one.before is None or one.after is None:
        return f"{one.name}: {'new' if one.before is None else 'gone'}"
    changed = one.name.startswith(RULE)  # digests say a reader nothing
    return (
        f"{one.name}: changed" if changed else f"{one.name}: {one.before} before, {one.after} now"
    )


def cells(task: TaskChange) -> tuple[str, ...]:
    """A task as text, below `HEADER`."""
    return task.key[:KEY], task.title, *change_cells(task), task.what
