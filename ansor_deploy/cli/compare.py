"""`ansor-deploy compare`: what changed from one build of a model to the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import DeviceError
from ..system.atomic_file import write_whole
from ..system.words import size_text
from ..views.text import KEY, again, change_cells, fitted, race_text
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .output import Answer, answering, in_columns, report
from .run_options import seconds_option, threads_option
from .values import parse_share

if TYPE_CHECKING:
    from ..ship.race.changes import Changes, MadeBy, TaskChange

SHOWN = 20  # the most tasks in the table
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
@seconds_option("The time limit for the comparison and the times of tasks together.", "5s")
@threads_option
@click.option(
    "--fail-if-slower",
    "share",
    type=parse_share,
    metavar="3%",
    help="Exit 1 if AFTER is surely slower, by more than this; 0 if that is not sure; 4 if they do "
    "not run here.",
)
@click.option("--output", "-o", type=new_file, help="Also write the changes as an HTML page.")
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

    If the libraries differ and this machine can run them, they run in turns. Tasks that are new,
    are gone or have another schedule are listed first, those whose time changed most before the
    others. Rules and versions that made the libraries are listed if they differ.
    """
    from ..ship.race.timing import compare

    changes = compare(before, after, run_seconds, threads)
    if output:
        from ..views.page.comparison import comparison_page

        write_whole(output, comparison_page(changes, str(before), str(after)).encode())
    failed, code = share is not None and changes.slower(share), 0
    if share is not None and not changes.timed:
        code = DeviceError.exit_code
        with report() as events:
            events.warn("--fail-if-slower cannot be decided: the libraries do not run here")
    answer = changes.answer(failed=failed)
    return Answer(answer, list(lines(changes, run_seconds)), code or int(failed))


def lines(changes: Changes, seconds: float) -> Iterator[str]:
    """The changes as text; a single line where the libraries are the same.

    seconds: the time limit of the comparison.
    """
    if changes.same:
        yield changes.untimed
        return
    shown = [task for task in changes.tasks if task.what != "same" or task.delta_ms][:SHOWN]
    if shown:
        yield from in_columns(fitted([HEADER, *map(cells, shown)], 1))
    if more := len(changes.tasks) - len(shown):
        yield f"and {more} more"
    for name, (old, new) in changes.bytes.items():
        if old != new:
            yield f"{name}: {size_text(old)} before, {size_text(new)} now"
    for part in changes.made_by:
        yield made_by_text(part)
    yield race_text(changes.beside, again(seconds)) if changes.beside else changes.untimed
    if changes.explanation:
        yield changes.explanation


def made_by_text(part: MadeBy) -> str:
    """A rule or version that made a library and differs, such as "rule tile.py: changed"."""
    if part.before is None or part.after is None:
        return f"{part.name}: {'new' if part.before is None else 'gone'}"
    changed = part.name.startswith(RULE)  # a rule's digests would mean nothing to a reader
    return (
        f"{part.name}: changed"
        if changed
        else f"{part.name}: {part.before} before, {part.after} now"
    )


def cells(task: TaskChange) -> tuple[str, ...]:
    """A task's row in the table below `HEADER`."""
    return task.key[:KEY], task.title, *change_cells(task), task.what
