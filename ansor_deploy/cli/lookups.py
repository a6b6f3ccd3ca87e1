"""`ansor-deploy registry show, best`: look up one task, or one model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import UsageError
from ..registry.title import shape_text
from ..system.environment import version
from ..system.json_types import Digest
from ..system.words import count
from ..views.text import (
    TASK_HEADER,
    called,
    fitted,
    latency,
    share,
    shortened,
    task_cells,
    unique_names,
)
from .declare import number_option
from .helptext import Command, with_examples
from .options import known_target_option, opened
from .output import Answer, answering, in_columns

if TYPE_CHECKING:
    from ..registry.coverage import Best, Coverage
    from ..registry.history import ContestRow, History, SearchRow, TaskRow, TrialRow
    from ..registry.store import Registry

Cells = list[tuple[str, ...]]  # a table: the names of its columns, then its rows
Names = Mapping[str, str]  # names of targets, by their fingerprints

_KEY = 12  # hex digits of a key in tables
_CHOOSE = "choose one with --target, by its name or the digits behind it"


class Script(Struct, frozen=True):
    """The answer of `registry show --script --json`: a record's program as TVMScript."""

    record: Digest
    script: str


@with_examples(
    "registry show 3fa9c0", "registry show 3fa9c0 --target rpi3", "registry show 3fa9c0 --script"
)
@click.command("show", cls=Command)
@click.argument("key")
@opened
@known_target_option
@number_option("--limit", 20, "Show at most N records, the best, and N measurements, the newest.")
@click.option("--script", is_flag=True, help="Print the best record's program as TVMScript.")
@answering
def show_command(store: Registry, key: str, target: str, limit: int, script: bool) -> Answer:
    """Show all that is known of a task, or of a record.

    KEY is the beginning of the task's key or of the record's id. Measurements are sorted by time
    and shown with their errors.
    """
    from ..registry.history import history  # imported here: help does not need its SQL

    known = history(store, key, target, limit)
    names = unique_names(store.target_names())
    return _script(store, known, names) if script else Answer(known, history_lines(known, names))


@with_examples("registry best resnet18.onnx", "registry best resnet18 --target rpi3 --json")
@click.command("best", cls=Command)
@click.argument("model")
@opened
@known_target_option
@answering
def best_command(store: Registry, model: str, target: str) -> Answer:
    """Show what a build of MODEL could reuse.

    It lists the best record of each task. MODEL is a file, or the name or the beginning of the
    digest of a model that was built or tuned before. A latency with ~ is an estimate: the task has
    no record.
    """
    from ..registry.coverage import coverage

    covered = coverage(store, _digest(model), target)
    names = unique_names(store.target_names())
    parts = [("", *coverage_lines(covered, part, names)) for part in covered["targets"]]
    return Answer(covered, [line for part in parts for line in part][1:])


LOOKUPS = (show_command, best_command)


def history_lines(known: History, names: Names) -> list[str]:
    """A task's history as tables, about 80 columns wide at most."""
    lines = _workload_lines(known["workload"])
    for row in known["models"]:
        model = called(row["model"], row["digest"])
        lines.append(f"x{row['weight']} in {model} on {names[row['fingerprint']]}")
    shown = len(known["measurements"])
    newest = f", the newest {shown}" if shown < known["trials"] else ""
    measured = f"{count(known['trials'], 'measurement')}, {known['failures']} failed{newest}"
    parts = (
        ("records, the best first", _record_cells(known, names)),
        ("rules of the best", _rule_cells(known, names)),
        (measured, _measurement_cells(known["measurements"], names)),
        ("comparisons", _contest_cells(known["contests"])),
        ("searches that have ended", _search_cells(known["searches"], names)),
    )
    for title, cells in parts:
        if len(cells) > 1:
            lines += ["", f"{title}:", *in_columns(cells)]
    return lines


def coverage_lines(covered: Best, part: Coverage, names: Names) -> list[str]:
    """A model's tasks on one target, the slowest first."""
    table: Cells = [(*TASK_HEADER, "record", "made")]
    for row in part["tasks"]:
        named, record, seconds = (row["workload"], row["title"]), row["record"], row["latency_ms"]
        task = task_cells(*named, row["weight"], row["share"], seconds / 1e3, record)
        table.append((*task, (record or "none")[:_KEY], (row["created"] or "")[:10]))
    tasks = f"{part['covered']} of {count(len(part['tasks']), 'task')} have a record"
    time = f"{share(part['share'])} of the time"
    alone = f"tasks alone add up to about {latency(part['latency_ms'] / 1e3)}"
    model = called(covered["model"], covered["digest"])
    sums = f"{model} on {names[part['fingerprint']]}: {tasks}, with {time}; {alone}"
    return [*in_columns(fitted(table, 1)), sums]


def _script(store: Registry, known: History, names: Names) -> Answer:
    from ..registry.history import program_of
    from ..space.canonical_text import parse
    from ..space.trace import replay

    record, text = program_of(store, _wanted(known, names))
    script = replay(parse(text), record.trace).mod.script()
    return Answer(Script(record.id, script), script.split("\n"))


def _wanted(known: History, names: Names) -> str:
    """The id of the record that was asked for, else of the best one made with the installed TVM.

    UsageError where no record or more than one target fits.
    """
    if known["record"]:
        return str(known["record"])
    tvm = version("apache-tvm")
    best = [row for row in known["records"] if row["place"] == 1 and row["tvm"] == tvm]
    if not best:
        hint = "name one of its records by its id; a record of another version may not replay"
        raise UsageError(f"the task has no record made with TVM {tvm}", hint)
    if len(best) > 1:
        tuned = ", ".join(names[row["fingerprint"]] for row in best)
        raise UsageError(f"the task was tuned for {tuned}", _CHOOSE)
    return str(best[0]["id"])


def _workload_lines(workload: TaskRow) -> list[str]:
    shapes = " ".join(map(shape_text, workload["shapes"]))
    return [
        f"{workload['title']} ({workload['key'][:_KEY]})",
        f"{workload['name']} {shapes} ({', '.join(dict.fromkeys(workload['dtypes']))})",
        f"{workload['flops'] / 1e6:.4g} MFLOP, {workload['bytes'] / 1e6:.4g} MB",
    ]


def _record_cells(known: History, names: Names) -> Cells:
    beaten = {contest["loser"]: contest["winner"] for contest in known["contests"]}  # by the last
    table: Cells = [("record", "target", "latency", "search", "device", "made", "standing")]
    for row in known["records"]:
        first = "best" if row["place"] == 1 else ""
        said = f"beaten by {beaten[row['id']][:_KEY]}" if row["lost"] else first
        by = "claimed" if row["claimed"] else ""
        asked = "asked for" if row["id"] == known["record"] else ""
        several = f"{latency(row['typical_ms'] / 1e3)} on {row['hosts']} hosts"
        fleet = several if row["hosts"] > 1 else ""
        standing = ", ".join(filter(None, (said, by, fleet, asked)))
        search, device = (shortened(row["provenance"][one], 10) for one in ("search", "device"))
        target = shortened(names[row["fingerprint"]], 14)
        made, speed = row["created"][:10], latency(row["latency_ms"] / 1e3)
        table.append((row["id"][:_KEY], target, speed, search, device, made, standing))
    return table


def _rule_cells(known: History, names: Names) -> Cells:
    """The rules behind the best record of each target and TVM, and behind the one asked for."""
    table: Cells = [("record", "target", "derived by")]
    for row in known["records"]:
        by = row["provenance"].get("derived_by", [])
        if by and (row["place"] == 1 or row["id"] == known["record"]):
            table.append((row["id"][:_KEY], names[row["fingerprint"]], ", ".join(by)))
    return table


def _measurement_cells(rows: list[TrialRow], names: Names) -> Cells:
    table: Cells = [("made", "target", "latency", "search", "device", "error")]
    for row in rows:
        error = f"{row['error']}: {row['message']}" if row["error"] else ""
        speed = "none" if row["latency_ms"] is None else latency(row["latency_ms"] / 1e3)
        search, device = (shortened(row[one], 10) for one in ("search", "device"))
        target = shortened(names[row["fingerprint"]], 14)
        words = shortened(" ".join(error.split()), 30)
        table.append((_moment(row["created"]), target, speed, search, device, words))
    return table


def _contest_cells(rows: list[ContestRow]) -> Cells:
    table = [(_moment(row["created"]), row["winner"][:_KEY], row["loser"][:_KEY]) for row in rows]
    return [("made", "winner", "loser"), *table]


def _search_cells(rows: list[SearchRow], names: Names) -> Cells:
    table: Cells = [("made", "target", "search", "trials", "ended by")]
    for row in rows:
        ended = (row["search"], str(row["trials"]), row["reason"])
        table.append((_moment(row["created"]), names[row["fingerprint"]], *ended))
    return table


def _moment(created: str) -> str:
    return created[:19].replace("T", " ")


def _digest(model: str) -> str:
    """The digest of a model's file if the file exists; else the word itself."""
    path = Path(model)
    if not path.is_file():
        return model
    from ..model.onnx.file import load

    return load(path).digest
