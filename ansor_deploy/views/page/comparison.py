"""The page on what a new build of a model changed, as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ...ship.race.changes import Changes, TaskChange
from ...system.words import count, size_text
from ..text import KEY, change_cells, gain_texts, latency, race_text
from .page import Figure, document, headline, section
from .sections import Row, table


def comparison_page(found: Changes, before: str, after: str) -> str:
    """The HTML of the page. before, after: the libraries' paths."""
    return document("What a build changed", f"{before} → {after}", _body(found))


def _body(found: Changes) -> Iterator[str]:
    yield from headline(_figures(found))
    said = race_text(found.beside) if found.beside else found.untimed
    for text in filter(None, (said, found.explanation)):
        yield f"<p>{escape(text)}</p>"
    changed = [task for task in found.tasks if task.what != "same"]
    same = [task for task in found.tasks if task.what == "same"]
    for key, heading, tasks in (
        ("changed", "Tasks that changed", changed),
        ("same", "Tasks with the same schedule", same),
    ):
        yield from section(key, heading, _tasks(tasks))
    if found.made_by:
        yield from section("made", "What made them", _made_by(found))
    yield from section("size", "Memory and size", _sizes(found))


def _figures(found: Changes) -> Iterator[Figure]:
    if beside := found.beside:
        yield "before", latency(beside.theirs_ms / 1e3), "a run"
        yield "after", latency(beside.ours_ms / 1e3), "a run"
        yield "change", *gain_texts(beside)
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


def _made_by(found: Changes) -> Iterator[str]:
    heads = ("what", "before", "after")
    cells = ((one.name, (one.before or "")[:12], (one.after or "")[:12]) for one in found.made_by)
    rows = [tuple(map(escape, row)) for row in cells]
    yield from table("Rules by their digests", heads, rows)


def _sizes(found: Changes) -> Iterator[str]:
    rows = [(escape(name), *map(size_text, pair)) for name, pair in found.bytes.items()]
    yield from table("In bytes", ("of what", "#before", "#after"), rows)
