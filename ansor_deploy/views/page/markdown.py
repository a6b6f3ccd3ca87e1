"""A report as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...system.printable import printable
from ..profile import by_operator, title
from ..text import KEY, latency, share
from .content import Facts
from .page import figures

MOST_KERNELS = 10
# Characters that could begin markup in text by a model's author: tags, links, mentions and others.
_MARKUP = re.compile(r"[\\`*\[\]<>&|!#@~]|:(?=//)")


def markdown(facts: Facts) -> str:
    """The whole text: figures, operators and the slowest kernels."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    yield f"## {_plain(facts.manifest.model.name)} on {_plain(facts.target.name)}"
    yield from ("", "| | | |", "|---|---:|---|")
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in figures(facts))
    if (profile := facts.profile) is None:
        return
    yield from ("", "| operator | time | share |", "|---|---:|---:|")
    for name, some in by_operator(profile):
        seconds = sum(one.seconds for one in some)
        yield f"| {_plain(name)} | {latency(seconds)} | {share(seconds / profile.seconds)} |"
    yield from ("", "| key | kernel | time | share |", "|---|---|---:|---:|")
    for one in sorted(profile.kernels, key=lambda one: -one.seconds)[:MOST_KERNELS]:
        key, part = (one.task or {}).get("key", "")[:KEY], share(one.seconds / profile.seconds)
        yield f"| {key} | {_plain(title(one))} | {latency(one.seconds)} | {part} |"


def _plain(text: str) -> str:
    """A text with its markup escaped."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", printable(text))
