"""A report as one HTML file, which loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape

from ...system.words import size_text
from ..quantising import gain_figure
from ..text import gain_texts, latency, preset_texts
from . import sections
from .content import Facts
from .quantised import quantisation
from .style import STYLE

QUANTISATION = "quantisation"  # the section that only quantised models have
SECTIONS: dict[str, tuple[str, Callable[[Facts], Iterator[str]]]] = {
    "verdict": ("Was it worth it?", sections.verdict),
    "time": ("Where the time goes", sections.where_time_goes),
    "roofline": ("Roofline", sections.roofline_plot),
    "tuning": ("Tuning", sections.tuning_curves),
    "reuse": ("What was reused", sections.what_was_reused),
    "memory": ("Memory and size", sections.memory),
    QUANTISATION: ("Quantisation", quantisation),
    "verification": ("Verification", sections.verification),
    "provenance": ("Provenance", sections.provenance),
}

Figure = tuple[str, str, str]  # a name, a value and a remark


def page(facts: Facts) -> str:
    """The HTML of the report."""
    name = f"{facts.manifest.model.name} on {facts.target.name}"
    return document(name, str(facts.artifact), _body(facts))


def document(name: str, below: str, body: Iterable[str]) -> str:
    """An HTML file. name: its heading. below: the line below it. body: lines of HTML."""
    title = escape(name)
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f'<header><h1>{title}</h1><p class="soft">{escape(below)}</p></header><main>',
        *body,
        "</main></body></html>\n",
    ]
    return "\n".join(lines)


def headline(figures: Iterable[Figure]) -> Iterator[str]:
    """The most important figures, in large type."""
    yield '<dl class="figures">'
    for name, value, more in figures:
        small = f"<small>{escape(more)}</small>" if more else ""
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"
    yield "</dl>"


def section(key: str, heading: str, lines: Iterable[str]) -> Iterator[str]:
    """A section of a page, with a heading that can be linked to."""
    yield f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(heading)}</h2>'
    yield from lines
    yield "</section>"


def _body(facts: Facts) -> Iterator[str]:
    yield from headline(figures(facts))
    shown = {key: one for key, one in SECTIONS.items() if key != QUANTISATION or facts.quantised}
    links = "".join(f'<li><a href="#{key}">{text}</a></li>' for key, (text, _) in shown.items())
    yield f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    for key, (text, write) in shown.items():
        yield from section(key, text, write(facts))


def figures(facts: Facts) -> Iterator[Figure]:
    """The figures at the top of a report."""
    manifest = facts.manifest
    verify, memory = manifest.verify, manifest.memory
    if speed := manifest.speed:
        each = " / ".join(latency(ms / 1e3) for ms in speed.shapes_ms)
        yield "a run", each, f"{manifest.shipped} is shipped"
        if speed.interval and (race := speed.race):
            yield "beside untuned", *gain_texts(race)
        if beside := speed.beside:
            yield f"beside {beside.peer}", *gain_texts(beside)
    if preset := manifest.preset:
        yield f"for {preset.name}", *preset_texts(preset)
    if facts.quantised and (gain := facts.quantised.gain):
        yield "beside the float model", *gain_figure(gain)
    if verify:
        yield "largest error", f"{verify.max_rel_err:.1g}", f"beside {verify.oracle}"
    yield "library", size_text(memory.library), f"a run takes {size_text(memory.peak)}"
