"""`ansor-deploy history`: a model's builds over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import convert

from ..errors import UsageError
from ..ship.manifest import Race
from ..system.words import count, size_text
from ..views.text import gain_texts, latency, shortened
from .declare import number_option
from .helptext import Command, with_examples
from .options import opened
from .output import Answer, answering, in_columns

if TYPE_CHECKING:
    from ..registry.store import Registry

HEADER = ("built", "target", "model", "trials", "tuned", "untuned", "shipped", "size", "beside")


@with_examples("history resnet18.onnx", "history resnet18 --limit 5 --json")
@click.command("history", cls=Command)
@click.argument("model")
@opened
@number_option("--limit", 20, "Most builds, the newest.")
@answering
def command(store: Registry, model: str, limit: int) -> Answer:
    """Show the builds of a model, the newest first.

    MODEL is its file or the file's name, or the beginning of the digest of one of its versions.
    What is shown is what each build measured: on the machine and on the day that it was made.
    """
    rows = store.builds_of(Path(model).name, limit)
    if not rows:
        hint = "see what it knows: ansor-deploy registry stats"
        raise UsageError(f"the registry has no build of {model}", hint)
    text = in_columns([HEADER, *map(cells, rows)])
    return Answer({"builds": list(map(as_json, rows))}, [*text, count(len(rows), "build")])


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A build without its manifest, of which what is shown stays."""
    said = row["manifest"]
    figures = {"beside": (said.get("speed") or {}).get("beside"), "memory": said.get("memory")}
    known = {name: value for name, value in row.items() if name not in ("id", "manifest")}
    return {**known, **figures}


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A build as text, below `HEADER`."""
    found = as_json(row)
    beside, memory = found["beside"], found["memory"]
    times = (found["tuned_ms"], found["untuned_ms"])
    tuned, untuned = (latency(ms / 1e3) if ms is not None else "" for ms in times)
    return (
        found["created"][:16].replace("T", " "),
        shortened(found["target_name"] or found["target"][:8], 12),
        found["model"][:6],
        str(found["trials"]),
        tuned,
        untuned,
        found["shipped"],
        size_text(memory["library"]) if memory else "",
        _beside(convert(beside, Race)) if beside else "",
    )


def _beside(race: Race) -> str:
    """What a build's race beside an engine has found, without the engine's version."""
    return f"{gain_texts(race)[0]} ({race.peer.rpartition(' ')[0]})"
