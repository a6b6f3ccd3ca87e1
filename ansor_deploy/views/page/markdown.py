"""A report as Markdown, for a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..profile import by_operator, title
from ..text import KEY, latency, share
from .content import Facts
from .page import figures

MOST_KERNELS = 10


def markdown(facts: Facts) -> str:
    """The whole text: figures, operators and the kernels that take longest."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    yield f"## {facts.manifest.model.name} on {facts.target.name}"
    yield from ("", "| | | |", "|---|---:|---|")
    yield from (f"| {name} | {value} | {more} |" for name, value, more in figures(facts))
    if (profile := facts.profile) is None:
        return
    yield from ("", "| operator | time | share |", "|---|---:|---:|")
    for name, some in by_operator(profile):
        seconds = sum(one.seconds for one in some)
        yield f"| {name} | {latency(seconds)} | {share(seconds / profile.seconds)} |"
    yield from ("", "| key | kernel | time | share |", "|---|---|---:|---:|")
    for one in sorted(profile.kernels, key=lambda one: -one.seconds)[:MOST_KERNELS]:
        key, part = (one.task or {}).get("key", "")[:KEY], share(one.seconds / profile.seconds)
        name = escape(title(one)).replace("|", "\\|")
        yield f"| {key} | {name} | {latency(one.seconds)} | {part} |"
