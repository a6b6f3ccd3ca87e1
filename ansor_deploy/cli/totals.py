"""`ansor-deploy registry stats, trends`: what the registry holds, and what it has saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..system.words import count
from ..views.text import KEY, duration, fitted, shortened, unique_names
from .declare import number_option
from .helptext import Command, with_examples
from .options import opened
from .output import Answer, answering, in_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..registry.listing import ModelTotals, Stats, TargetTotals
    from ..registry.store import Registry
    from ..registry.trends import Week

# Columns of the tables of targets, models and weeks; `--json` has the other figures.
_TARGET = ("target", "fingerprint", "processor", "tasks", "records", "measured", "saved", "time")
_MODEL = ("model", "digest", "target", "tasks", "shared", "covered", "trials", "saved", "time")
_WEEK = ("week", "builds", "tasks", "known", "trials", "tuning", "saved", "time saved")


@with_examples("registry stats", "registry stats --registry team.db")
@click.command("stats", cls=Command)
@opened
@answering
def stats_command(store: Registry) -> Answer:
    """Count what the registry holds, by target and by model."""
    stats, names = store.stats(), unique_names(store.target_names())
    return Answer(stats, [str(store.path), *stats_lines(stats, names)])


@with_examples("registry trends", "registry trends --limit 4 --json")
@click.command("trends", cls=Command)
@opened
@number_option("--limit", 26, "Show at most N weeks, the newest.")
@answering
def trends_command(store: Registry, limit: int) -> Answer:
    """Show week by week what was built, measured and saved.

    A model saves the trials of its tasks that were made before, for another model or by others.
    They count in the week in which the model came. A week is named by its Monday. Weeks in which
    nothing was done are left out.
    """
    from ..registry.trends import trends

    found = trends(store, limit)
    lines = in_columns([_WEEK, *map(_week_cells, found["weeks"])])
    return Answer(found, lines if found["weeks"] else ["nothing was built or tuned with it"])


def stats_lines(stats: Stats, names: Mapping[str, str]) -> list[str]:
    """Counts, then a table by target and one by model, each if it has rows.

    names: of targets, by their fingerprints.
    """
    counts = [(name, str(value)) for name, value in stats.items() if not isinstance(value, list)]
    targets = [_target_cells(row) for row in stats["per_target"]]
    models = [_model_cells(row, names[row["fingerprint"]]) for row in stats["per_model"]]
    tables = [*_table(_TARGET, targets), *_table(_MODEL, models)]
    return [*in_columns(counts), *tables, *_host_lines(stats, names), *_saved_lines(stats)]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return ["", *in_columns(fitted([head, *rows], 0))] if rows else []


def _target_cells(row: TargetTotals) -> tuple[str, ...]:
    names = shortened(row["target"], 14), row["fingerprint"][:KEY]
    processor = f"{shortened(row['cpu'], 14)} x{row['cores']}"
    held = (str(row["tasks"]), str(row["records"]), str(row["measurements"]))
    return (*names, processor, *held, *_saved(row))


def _model_cells(row: ModelTotals, target: str) -> tuple[str, ...]:
    names = row["model"], row["digest"][:KEY], shortened(target, 14)
    counts = (str(row[name]) for name in ("tasks", "shared", "covered", "trials"))
    return (*names, *counts, *_saved(row))


def _week_cells(row: Week) -> tuple[str, ...]:
    counts = (str(row[name]) for name in ("builds", "tasks", "known", "trials"))
    return (row["week"], *counts, duration(row["seconds"]), *_saved(row))


def _saved(row: Mapping[str, Any]) -> tuple[str, str]:
    """The number of trials saved, and the time that they would have taken if that is known."""
    trials, seconds = row["trials_saved"], row["seconds_saved"]
    return f"{trials or 0:.0f}", duration(seconds) if seconds else ""


def _host_lines(stats: Stats, names: Mapping[str, str]) -> list[str]:
    """The hosts whose times disagree with those of all others."""
    return [
        f"{one['host']} disagrees with all other hosts of {names[one['fingerprint']]}: "
        f"{one['ratio']:.2f}x their time, in {one['off']} of "
        f"{count(one['schedules'], 'schedule')}; to remove its records: registry forget "
        f"--device {one['host']}"
        for one in stats["disagreeing"]
    ]


def _saved_lines(stats: Stats) -> list[str]:
    """The lines that say how many trials, and how much time, the registry has saved."""
    seconds = [row["seconds_saved"] for row in stats["per_target"] if row["seconds_saved"]]
    saved = round(stats["trials_saved"])
    if not saved:
        return []
    time = f", about {duration(sum(seconds))}" if seconds else ""
    return [
        "",
        f"{count(saved, 'trial')} saved{time}: models share what was measured, and what others",
        "measured was not measured again. Builds that found every record are not counted.",
    ]
