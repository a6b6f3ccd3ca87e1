"""`--message-format`: warnings and errors as text, or as lines of JSON."""

from __future__ import annotations

from collections.abc import Sequence

import click

_OPTION = "--message-format"

message_format_option = click.option(
    _OPTION,
    type=click.Choice(("human", "json")),
    default="human",
    help="Warnings and errors as text, or as lines of JSON on stderr.  [default: human]",
)


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for lines of JSON, even one that says what cannot be."""
    last = ""
    for before, word in zip(["", *words], words, strict=False):
        if before == _OPTION:
            last = word
        elif word.startswith(f"{_OPTION}="):
            last = word.partition("=")[2]
    return last == "json"
