"""`ansor-deploy registry`: what has been tuned so far."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exchange import EXCHANGE
from .helptext import examples
from .lookups import LOOKUPS
from .output import in_columns, json_option, print_json
from .revalidate import revalidate_command
from .store import opened, registry_path
from .values import parse_tensor_shape

if TYPE_CHECKING:
    from ..registry.salvage import Salvage
    from ..registry.store import Registry


@click.group(
    "registry",
    epilog=examples(
        "registry query --op conv2d --target rpi3", "registry stats", "registry verify"
    ),
)
def command() -> None:
    """Look into the registry of tuned schedules, and exchange them."""


for each in (*LOOKUPS, revalidate_command, *EXCHANGE):
    command.add_command(each)


@command.command(
    "query",
    epilog=examples(
        "registry query",
        "registry query --op matmul --since 2026-01-31",
        "registry query --shape 1,56,56,64",
        "registry query --model resnet18 --json",
    ),
)
@opened
@click.option("--op", help="Only this operator, as conv2d.")
@click.option(
    "--shape",
    "shapes",
    type=parse_tensor_shape,
    multiple=True,
    metavar="1,56,56,64",
    help="Only tasks with a tensor of this shape. Repeatable.",
)
@click.option("--target", help="Only this target, by name or start of its fingerprint.")
@click.option("--model", help="Only tasks of this model, by name or start of its digest.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="2026-01-31",
    help="Only records made since this day.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    metavar="N",
    help="Most rows.  [default: 100]",
)
@json_option
def query_command(
    store: Registry,
    op: str | None,
    shapes: tuple[tuple[int, ...], ...],
    target: str | None,
    model: str | None,
    since: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the best record of each task, the newest first."""
    day = since.date().isoformat() if since else None
    rows = store.query(op, target, model, day, shapes, limit)
    if as_json:
        print_json({"records": rows})
    else:
        click.echo("\n".join(record_lines(rows)) if rows else "no records match")


@command.command("stats", epilog=examples("registry stats", "registry stats --registry team.db"))
@opened
@json_option
def stats_command(store: Registry, as_json: bool) -> None:
    """Count what the registry holds, by target and by model."""
    stats = store.stats()
    if as_json:
        print_json(stats)
    else:
        click.echo("\n".join([str(store.path), *stats_lines(stats)]))


@command.command(
    "verify", epilog=examples("registry verify", "registry verify --repair --registry old.db")
)
@registry_path
@click.option(
    "--repair",
    is_flag=True,
    help="Where it is damaged, put what is whole into a new file, and keep the old one beside it.",
)
@json_option
def verify_command(registry: Path, repair: bool, as_json: bool) -> None:
    """Read every page and every row, and say what is damaged (exit 8)."""
    from ..registry.faults import damaged
    from ..registry.salvage import salvage

    found = complaints(registry)
    if found and not repair:
        raise damaged(registry, "; ".join(found))
    saved = salvage(registry) if found else None
    if as_json:
        print_json({"ok": True, "repaired": asdict(saved) if saved else None})
    elif saved:
        click.echo("\n".join(salvage_lines(registry, found, saved)))
    else:
        click.echo(f"{registry} is whole")


@command.command("gc", epilog=examples("registry gc --dry-run", "registry gc"))
@partial(opened, write=True)
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@json_option
def gc_command(store: Registry, dry_run: bool, as_json: bool) -> None:
    """Drop what no build asks for.

    These are records that were beaten or are behind the best eight of their task, and all but the
    newest entry of each build. Measurements stay: searches learn from them.
    """
    dropped = store.collect(dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, **dropped})
    else:
        what = " and ".join(f"{count} {name}" for name, count in dropped.items())
        click.echo(f"would drop {what}" if dry_run else f"dropped {what}")


@command.command("vacuum", epilog=examples("registry vacuum"))
@partial(opened, write=True)
@json_option
def vacuum_command(store: Registry, as_json: bool) -> None:
    """Rewrite the file without the space of rows that were dropped."""
    before = store.path.stat().st_size
    store.vacuum()
    after = store.path.stat().st_size
    if as_json:
        print_json({"before": before, "after": after})
    else:
        click.echo(f"{store.path}: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after")


def complaints(path: Path) -> list[str]:
    """What is wrong with a registry's file; nothing where it is whole."""
    from ..registry.faults import DamagedError
    from ..registry.store import Registry

    try:
        with Registry.open(path, write=False) as store:
            return store.verify()
    except DamagedError as error:
        return [error.message]


def salvage_lines(path: Path, found: list[str], saved: Salvage) -> list[str]:
    """What was wrong, what was saved and what was lost."""
    table = [("table", "saved", "lost")]
    for name in dict.fromkeys((*saved.lost, *saved.kept)):
        lost = saved.lost.get(name, None)
        table.append((name, str(saved.kept.get(name, 0)), "?" if lost is None else str(lost)))
    return [*found, f"{path} is repaired; {saved.aside} is the damaged file", *in_columns(table)]


def record_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Best records as a table of at most 80 columns; `--json` has the rest."""
    from ..report.text import latency, shortened
    from .arrays import shape_text

    table = [("op", "shapes", "latency", "trials", "target", "made")]
    for row in rows:
        shapes = shortened(" ".join(map(shape_text, row["shapes"])), 26)
        speed, trials = latency(row["latency_ms"] / 1e3), str(row["trials"])
        names = shortened(row["op"], 10), shortened(row["target"], 10)
        table.append((names[0], shapes, speed, trials, names[1], row["created"][:10]))
    return in_columns(table)


def stats_lines(stats: dict[str, Any]) -> list[str]:
    """Counts, then a table by target and one by model, each where it has rows."""
    counts = [(name, str(value)) for name, value in stats.items() if not isinstance(value, list)]
    lines = in_columns(counts)
    for group, columns in _STATS.items():
        rows = [columns, *(tuple(_cell(row, name) for name in columns) for row in stats[group])]
        if len(rows) > 1:
            lines += ["", *in_columns(rows)]
    return [*lines, *_saved_lines(stats)]


# What of the groups the tables show, within 80 columns; `--json` has the rest.
_STATS = {
    "per_target": (
        *("target", "fingerprint", "tasks", "records", "measurements"),
        *("trials_saved", "seconds_saved"),
    ),
    "per_model": (
        *("model", "target", "layers", "tasks", "shared", "covered", "trials"),
        *("trials_saved", "seconds_saved"),
    ),
}


def _cell(row: dict[str, Any], name: str) -> str:
    from ..report.text import shortened

    value = row[name]
    if name.endswith("_saved"):
        return "" if value is None else f"{value:.0f}"
    return str(value)[:8] if name == "fingerprint" else shortened(str(value), 14)


def _saved_lines(stats: dict[str, Any]) -> list[str]:
    """The answer to what the registry was good for."""
    from ..report.text import duration

    seconds = [row["seconds_saved"] for row in stats["per_target"] if row["seconds_saved"]]
    saved = stats["trials_saved"]
    if not saved:
        return []
    time = f", about {duration(sum(seconds))}" if seconds else ""
    return [
        "",
        f"{saved} trials saved{time}: models share what was measured, and what others measured was",
        "not measured again. Builds that found every record are not counted.",
    ]
