"""A report as one HTML file: nothing is loaded from anywhere, and no script runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from ..codegen.memory import size_text
from ..report.text import latency
from . import sections
from .facts import Facts
from .style import STYLE

SECTIONS: dict[str, tuple[str, Callable[[Facts], Iterator[str]]]] = {
    "time": ("Where the time goes", sections.where_time_goes),
    "roofline": ("Roofline", sections.roofline_plot),
    "tuning": ("Tuning", sections.tuning_curves),
    "reuse": ("What was reused", sections.what_was_reused),
    "memory": ("Memory and size", sections.memory),
    "verification": ("Verification", sections.verification),
    "provenance": ("Provenance", sections.provenance),
}


def page(facts: Facts) -> str:
    """The whole file."""
    name = escape(f"{facts.manifest['model']['name']} on {facts.target.name}")
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{STYLE}</style></head><body>"
    )
    links = "".join(f'<li><a href="#{key}">{text}</a></li>' for key, (text, _) in SECTIONS.items())
    return "\n".join(
        [
            head,
            f"<header><h1>{name}</h1>",
            f'<p class="soft">{escape(str(facts.artifact))}</p></header><main>',
            *_verdict(facts),
            f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
            *_body(facts),
            "</main></body></html>\n",
        ]
    )


def _body(facts: Facts) -> Iterator[str]:
    for key, (text, write) in SECTIONS.items():
        yield f'<section aria-labelledby="{key}"><h2 id="{key}">{text}</h2>'
        yield from write(facts)
        yield "</section>"


def _verdict(facts: Facts) -> Iterator[str]:
    """What a reader wants to know first."""
    yield '<dl class="figures">'
    for name, value, more in figures(facts):
        small = f"<small>{escape(more)}</small>" if more else ""
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"
    yield "</dl>"


def figures(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Name, value and remark of each figure that a report begins with."""
    manifest = facts.manifest
    speed, verify = manifest["speed"] or {}, manifest["verify"]
    if speed:
        yield "a run", latency(speed["latency_ms"] / 1e3), f"{manifest['shipped']} is shipped"
    if speed.get("interval"):
        low, high = speed["interval"]
        gain = f"{1 / speed['ratio']:.2f}x"
        yield "beside untuned", gain, f"{low:.2f} to {high:.2f} of its time, 99%"
    if beside := speed.get("beside"):
        low, high = beside["interval"] or (beside["ratio"], beside["ratio"])
        gain, spread = f"{1 / beside['ratio']:.2f}x", f"{low:.2f} to {high:.2f} of its time, 99%"
        yield f"beside {beside['peer']}", gain, spread
    if verify:
        yield "largest error", f"{verify['max_rel_err']:.1g}", f"beside {verify['oracle']}"
    if memory := manifest.get("memory"):
        yield "library", size_text(memory["library"]), f"a run takes {size_text(memory['peak'])}"
