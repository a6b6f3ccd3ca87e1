"""`ansor-deploy history`: a model's builds over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, convert

from ..errors import UsageError
from ..ship.manifest import Memory, Race
from ..system.json_types import Count, Digest, Ms, Time
from ..system.words import count, size_text
from ..views.text import KEY, gain_texts, latency, shortened, unique_names
from .declare import number_option
from .helptext import Command, with_examples
from .options import opened
from .output import Answer, answering, in_columns

if TYPE_CHECKING:
    from ..registry.store import Registry

HEADER = ("built", "target", "model", "trials", "tuned", "untuned", "shipped", "size", "beside")


class PastBuild(Struct, frozen=True):
    """A build in the registry's history. asked: the options of its command."""

    artifact: str
    model: Digest
    name: str
    target: Digest
    target_name: str | None
    created: Time
    tool: str
    tvm: str
    asked: dict[str, Any]
    hits: Count
    near: Count
    misses: Count
    skipped: Count
    trials: Count
    tuned_ms: Ms | None
    untuned_ms: Ms | None
    shipped: str
    verification: dict[str, Any]
    digests: dict[str, Digest]
    beside: Race | None
    memory: Memory | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> PastBuild:
        """The build of a row: of its manifest, only the fields shown are kept."""
        said = row["manifest"]
        beside, memory = (said.get("speed") or {}).get("beside"), said.get("memory")
        known = {name: row[name] for name in cls.__struct_fields__ if name in row}
        return cls(
            **known,
            beside=convert(beside, Race) if beside else None,
            memory=convert(memory, Memory) if memory else None,
        )


class History(Struct, frozen=True):
    """The answer of `history --json`."""

    builds: list[PastBuild]


@with_examples("history resnet18.onnx", "history resnet18 --limit 5 --json")
@click.command("history", cls=Command)
@click.argument("model")
@opened
@number_option("--limit", 20, "Show at most N builds, the newest.")
@answering
def command(store: Registry, model: str, limit: int) -> Answer:
    """Show the builds of a model, the newest first.

    MODEL is a file, a file's name, or the beginning of a version's digest. The times are those that
    each build measured, on its machine and on its day.
    """
    rows = store.builds_of(Path(model).name, limit)
    if not rows:
        hint = "see what it knows: ansor-deploy registry stats"
        raise UsageError(f"the registry has no build of {model}", hint)
    builds = list(map(PastBuild.of, rows))
    names = unique_names(store.target_names())
    text = in_columns([HEADER, *(cells(one, names) for one in builds)])
    return Answer(History(builds), [*text, count(len(builds), "build")])


def cells(build: PastBuild, names: Mapping[str, str]) -> tuple[str, ...]:
    """A build's row in the table below `HEADER`. names: of targets, by their fingerprints."""
    times = (build.tuned_ms, build.untuned_ms)
    tuned, untuned = (latency(ms / 1e3) if ms is not None else "" for ms in times)
    return (
        build.created[:16].replace("T", " "),
        shortened(names.get(build.target, build.target[:KEY]), 14),
        build.model[:KEY],
        str(build.trials),
        tuned,
        untuned,
        build.shipped,
        size_text(build.memory.library) if build.memory else "",
        _beside(build.beside) if build.beside else "",
    )


def _beside(race: Race) -> str:
    """The result of a build's race beside an engine, named without its version."""
    return f"{gain_texts(race)[0]} ({race.peer.rpartition(' ')[0]})"
