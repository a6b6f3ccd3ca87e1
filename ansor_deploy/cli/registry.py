"""`ansor-deploy registry`: the group of commands on tuned records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from ..registry.faults import DamagedError
from ..system.json_types import Bytes, Count
from ..system.words import count, size_text
from ..views.text import KEY, fitted, latency, shortened, unique_names
from .backup import backup_command, restore_command
from .browse import browse_command
from .declare import number_option
from .diff import diff_command
from .exchange import EXCHANGE
from .forget import forget_command
from .helptext import Group, with_examples
from .lookups import LOOKUPS
from .options import check_there, known_target_option, opened, registry_path
from .output import Answer, answering, in_columns
from .revalidate import revalidate_command
from .totals import stats_command, trends_command
from .values import days_ago, parse_age, parse_day, parse_size, parse_tensor_shape

if TYPE_CHECKING:
    from ..registry.listing import BestRecord
    from ..registry.restore import Restored
    from ..registry.salvage import Salvage
    from ..registry.store import Registry


_NAMED = 10  # the most rows listed as not brought back


class Dropped(Struct, frozen=True):
    """The answer of `registry gc --json`: rows that were dropped, or would be.

    tasks: how many were dropped whole, by --keep or --max. bytes: the file's size afterwards.
    """

    dry_run: bool
    records: Count
    builds: Count
    tasks: Count
    bytes: Bytes


class Vacuumed(Struct, frozen=True):
    """The answer of `registry vacuum --json`: sizes of the file in bytes."""

    before: Bytes
    after: Bytes


@with_examples("registry query --op conv2d --target rpi3", "registry stats", "registry verify")
@click.group("registry", cls=Group)
def command() -> None:
    """Look into the registry of tuned schedules, and exchange them."""


_KEPT = (backup_command, restore_command)
for each in (
    *LOOKUPS,
    stats_command,
    trends_command,
    diff_command,
    browse_command,
    revalidate_command,
    forget_command,
    *EXCHANGE,
    *_KEPT,
):
    command.add_command(each)


@with_examples(
    "registry query",
    "registry query --op matmul --since 2026-01-31",
    "registry query --shape 1,56,56,64",
    "registry query --model resnet18 --json",
)
@command.command("query")
@opened
@click.option("--op", help="Only this operator, such as conv2d.")
@click.option(
    "--shape",
    "shapes",
    type=parse_tensor_shape,
    multiple=True,
    metavar="1,56,56,64",
    help="Only tasks with a tensor of this shape. Repeatable.",
)
@known_target_option
@click.option("--model", help="Only tasks of this model: its name or the start of its digest.")
@click.option(
    "--since",
    type=parse_day,
    metavar="2026-01-31",
    help="Only records that were made since this day, or in so many days: 7d, 2w.",
)
@number_option("--limit", 100, "Show at most N rows.")
@answering
def query_command(store: Registry, since: str | None, **wanted: Any) -> Answer:
    """List the best record of each task, the newest first."""
    from ..registry.listing import Query

    rows = store.query(since=since, **wanted)
    names = unique_names(store.target_names())
    none = "no records match; what there is: ansor-deploy registry stats"
    lines = record_lines(rows, names) if rows else [none]
    return Answer(Query(records=rows), lines)


@with_examples("registry verify", "registry verify --repair --registry old.db")
@command.command("verify")
@registry_path
@click.option(
    "--repair",
    is_flag=True,
    help="If it is damaged, put what is whole into a new file, and keep the old one beside it.",
)
@answering
def verify_command(registry: Path, repair: bool) -> Answer:
    """Look for damage, and exit 8 if there is any.

    It reads every page and every row.
    """
    from ..project import Project
    from ..registry.restore import Whole, restore
    from ..registry.salvage import salvage

    check_there(registry)
    faults, is_damaged = complaints(registry)
    if not faults:
        return Answer(Whole(ok=True, repaired=None), [f"{registry} is whole"])
    if not repair:
        raise DamagedError(registry, "; ".join(faults))
    saved = salvage(registry) if is_damaged else None
    again = restore(registry, Project.find().target_path())
    answer = Whole(not again.lacking, saved, again.restored, again.lacking, again.models)
    lines = [*faults, *(salvage_lines(registry, saved) if saved else []), *restored_lines(again)]
    return Answer(answer, lines)


@with_examples("registry gc --dry-run", "registry gc", "registry gc --keep 30d --max 500MB")
@command.command("gc")
@partial(opened, write=True)
@click.option(
    "--keep",
    type=parse_age,
    metavar="30d",
    help="Forget tasks of which nothing was learnt, and that no build used, for so many days.",
)
@click.option(
    "--max",
    "most",
    type=parse_size,
    metavar="500MB",
    help="Forget the least recently used tasks until the file is no larger.",
)
@click.option("--dry-run", is_flag=True, help="Drop nothing; say what would be dropped.")
@answering
def gc_command(store: Registry, keep: int | None, most: int | None, dry_run: bool) -> Answer:
    """Drop what no build uses.

    These are records that another has beaten, records behind the best eight of their task, and all
    but the newest entry of each library. Measurements stay: searches learn from them.

    With --keep and --max, whole tasks are forgotten with their measurements. A build that was up to
    date does not count as a use.
    """
    dropped = store.collect(dry_run=dry_run)
    before = days_ago(keep) if keep else ""
    tasks = store.evict(before, most, dry_run=dry_run) if keep or most else 0
    size = store.path.stat().st_size
    what = " and ".join(f"{number} {name}" for name, number in dropped.items())
    whole = f", and all of {count(tasks, 'task')}" if keep or most else ""
    now = f"; {store.path} has {size_text(size)}" if most and not dry_run else ""
    line = f"{'would drop' if dry_run else 'dropped'} {what}{whole}{now}"
    return Answer(Dropped(dry_run, **dropped, tasks=tasks, bytes=size), [line])


@with_examples("registry vacuum")
@command.command("vacuum")
@partial(opened, write=True)
@answering
def vacuum_command(store: Registry) -> Answer:
    """Rewrite the file without the space of dropped rows."""
    before = store.path.stat().st_size
    store.vacuum()
    after = store.path.stat().st_size
    line = f"{store.path}: {size_text(before)} before, {size_text(after)} after"
    return Answer(Vacuumed(before, after), [line])


def complaints(path: Path) -> tuple[list[str], bool]:
    """What is wrong with a registry's file, and whether the file is damaged.

    If it is not, the complaints are about missing rows.
    """
    from ..registry.store import Registry

    try:
        with Registry.open(path, write=False) as store:
            damage = store.damage()
            return damage or store.orphans(), bool(damage)
    except DamagedError as error:
        return [error.what], True


def salvage_lines(path: Path, saved: Salvage) -> list[str]:
    """How many rows of each table were saved and lost."""
    table = [("table", "saved", "lost")]
    for name in dict.fromkeys((*saved.lost, *saved.kept)):
        lost = saved.lost.get(name)
        table.append((name, str(saved.kept.get(name, 0)), "?" if lost is None else str(lost)))
    return [f"{path} is repaired; {saved.aside} is the damaged file", *in_columns(table)]


def restored_lines(again: Restored) -> list[str]:
    """Which missing rows that others refer to were brought back, and which were not."""
    back = ", ".join(f"{name} {count}" for name, count in again.restored.items())
    lines = [f"brought back: {back}"] if back else []
    for lack in again.lacking[:_NAMED]:
        waiting = ", ".join(f"{name} {count}" for name, count in lack.waiting.items())
        lines.append(f"not brought back: {lack.table} {lack.key[:12]}; it is lacked by {waiting}")
    if len(again.lacking) > _NAMED:
        lines.append(f"and {len(again.lacking) - _NAMED} more, which --json names")
    if again.lacking:
        of = f" of {', '.join(again.models)}" if again.models else " of the model"
        lines.append(f"the next build{of} brings back what it uses; until then builds pass it over")
    return lines


def record_lines(rows: list[BestRecord], names: Mapping[str, str]) -> list[str]:
    """Best records as a table that fits a terminal; `--json` has the rest.

    names: of targets, by their fingerprints.
    """
    table = [("key", "task", "latency", "trials", "target", "made")]
    for row in rows:
        speed, trials = latency(row["latency_ms"] / 1e3), str(row["trials"])
        target, made = shortened(names[row["fingerprint"]], 14), row["created"][:10]
        table.append((row["workload"][:KEY], row["title"], speed, trials, target, made))
    return in_columns(fitted(table, 1))
