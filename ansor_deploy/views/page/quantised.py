"""The section on quantisation: the errors, the layers that cause most of them, and the gain."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from ...system.words import size_text
from ..quantising import costliest, gain_text
from ..text import share
from .sections import plain, table

if TYPE_CHECKING:
    from .content import Facts

MOST_LAYERS = 15


def quantisation(facts: Facts) -> Iterator[str]:
    """What the samples show; empty for a model that no build has quantised."""
    if (found := facts.quantised) is None:
        return
    if found.gain:
        text = gain_text(found.gain)
        yield f"<p>{escape(text[0].upper() + text[1:])}.</p>"
    yield from plain(
        [
            ("quantised by", f"{found.quantiser}, {found.samples} samples"),
            ("of the model", f"{found.model.file} (SHA-256 {found.model.sha256[:16]})"),
            (
                "its file",
                f"{size_text(found.quantised.bytes)}, before {size_text(found.float_bytes)}",
            ),
            ("layers left as they were", ", ".join(found.kept) or "none was named"),
        ]
    )
    rows = [
        (
            escape(one.output),
            "" if one.rms is None else f"{one.rms:.2%}",
            "" if one.max_abs_err is None else f"{one.max_abs_err:.3g}",
            "" if one.same_top is None else f"{one.same_top:.1%}",
        )
        for one in found.outputs
    ]
    heads = ("output", "#root mean square", "#largest", "#same largest element")
    yield from table(f"Off the float model on {found.compared} samples", heads, rows)
    costly = costliest(found)[:MOST_LAYERS]
    said = "By how much the squared error falls where a layer alone stays as it was"
    cells = [(escape(one.name), escape(one.op), share(one.share)) for one in costly]
    if cells:
        yield from table(said, ("layer", "operator", "#share"), cells)
