"""What a new build of a model changed, as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..build.changes import Changes, TaskChange
from ..codegen.memory import size_text
from ..report.text import KEY, beside_text, change_cells, count, latency
from .page import Figure, document, headline, section
from .sections import Row, table


def comparison_page(found: Changes, before: str, after: str) -> str:
    """The whole file. before, after: the libraries' paths."""
    return document("What a build changed", f"{before} → {after}", _body(found))


def _body(found: Changes) -> Iterator[str]:
    yield from headline(_figures(found))
    said = beside_text(found.beside) if found.beside else found.untimed
    yield f"<p>{escape(said)}</p>"
    changed = [task for task in found.tasks if task.what != "same"]
    same = [task for task in found.tasks if task.what == "same"]
    for key, heading, tasks in (
        ("changed", "Tasks that changed", changed),
        ("same", "Tasks with the same schedule", same),
    ):
        yield from section(key, heading, _tasks(tasks))
    yield from section("size", "Memory and size", _sizes(found))


def _figures(found: Changes) -> Iterator[Figure]:
    if beside := found.beside:
        yield "before", latency(beside.theirs_ms / 1e3), "a run"
        yield "after", latency(beside.ours_ms / 1e3), "a run"
        low, high = beside.interval or (beside.ratio, beside.ratio)
        spread = f"{low:.2f} to {high:.2f} of the time, 99%"
        yield "change", f"{beside.ratio - 1:+.1%}", spread
    changed = sum(task.what != "same" for task in found.tasks)
    yield "changed", count(changed, "task"), f"of {len(found.tasks)}"


def _tasks(tasks: list[TaskChange]) -> Iterator[str]:
    if not tasks:
        yield "<p>There are none.</p>"
        return
    heads = ("key", "task", "schedule", "#before", "#after", "#change")
    yield from table(count(len(tasks), "task"), heads, map(_cells, tasks))


def _cells(task: TaskChange) -> Row:
    name = f"<code>{task.key[:KEY]}</code>"
    return name, escape(task.title), task.what, *change_cells(task)


def _sizes(found: Changes) -> Iterator[str]:
    rows = [(escape(name), *map(size_text, pair)) for name, pair in found.bytes.items()]
    yield from table("In bytes", ("of what", "#before", "#after"), rows)
