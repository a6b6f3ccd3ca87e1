"""Bring back missing rows that others refer to, from wherever there is a copy of them.

A row's key is a digest of its content, so a copy is known to be right. Copies of targets are in the
manifests of their builds and among the targets that the project and this tool declare; copies of
targets and workloads are in the indexes of layers.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ..errors import AnsorError
from ..system.digest import canonical_json
from ..system.environment import cache_folder, shipped
from ..system.json_types import Count
from ..target import Target, list_targets, load_target
from .firewall import check_target, target_fields
from .foreign import foreign_file
from .salvage import Salvage
from .schema import MODELS, TARGETS, UNREADABLE, WORKLOADS, Row, Table
from .store import Registry
from .upkeep import Lack

_RESTORED = (TARGETS, WORKLOADS, MODELS)
# Rows that are meaningless without what they refer to, or belong to processes that ended long ago.
_POINTLESS = (
    "DELETE FROM beaten WHERE loser NOT IN (SELECT id FROM records)",
    "DELETE FROM beaten WHERE winner NOT IN (SELECT id FROM records)",
    "DELETE FROM leases WHERE holder NOT IN (SELECT token FROM holders)",
)
_MODELS_OF = """
    SELECT DISTINCT m.name FROM model_tasks AS t JOIN models AS m ON m.digest = t.model
    WHERE t.workload = ? ORDER BY m.name
"""


@dataclass(frozen=True)
class Restored:
    """Rows brought back, by table, and those that were not, with the rows that refer to them.

    models: names of models with a workload that was not brought back; building these restores it.
    """

    restored: dict[str, int]
    lacking: tuple[Lack, ...]
    models: tuple[str, ...]


class Whole(Struct, frozen=True):
    """`registry verify --json`. restored, lacking, models: where --repair had something to do."""

    ok: bool
    repaired: Salvage | None
    restored: dict[str, Count] | UnsetType = UNSET
    lacking: Sequence[Lack] | UnsetType = UNSET
    models: Sequence[str] | UnsetType = UNSET


def restore(path: Path, folders: Sequence[Path] = ()) -> Restored:
    """Add the missing rows to a registry, as far as there are copies of them.

    folders: those of declared targets; the shipped one by default.
    """
    folders = folders or [shipped("targets")]
    with Registry.open(path) as registry:
        wanted = {table.name: set[str]() for table in _RESTORED}
        for lack in registry.lacking():
            wanted.setdefault(lack.table, set()).add(lack.key)
        count: Counter[str] = Counter()
        with registry.writing() as run:
            for table, row in _copies(registry, wanted, folders):
                if row[0] in wanted[table.name]:
                    wanted[table.name].discard(str(row[0]))
                    run.execute(table.insert, row)
                    count[table.name] += 1
            for sql in _POINTLESS:
                run.execute(sql)
        left = registry.lacking()
        lost = [lack.key for lack in left if lack.table == WORKLOADS.name]
        models = {row["name"] for key in lost for row in registry.rows(_MODELS_OF, (key,))}
    return Restored(dict(count), tuple(left), tuple(sorted(models)))


def _copies(
    registry: Registry, wanted: Mapping[str, set[str]], folders: Sequence[Path]
) -> Iterator[tuple[Table, Row]]:
    """Copies of rows, the best source first, as long as rows are wanted."""
    names = registry.rows("SELECT model, name FROM builds WHERE name <> '' ORDER BY id DESC")
    yield from ((MODELS, (row["model"], row["name"])) for row in names)
    yield from ((MODELS, (key, key[:12])) for key in sorted(wanted[MODELS.name]))
    if wanted[TARGETS.name]:
        yield from ((TARGETS, row) for row in _declared(registry, folders))
    with suppress(AnsorError):  # without a home folder there is no cache
        for index in sorted(cache_folder("layers").glob("*.db")):
            if wanted[TARGETS.name] or wanted[WORKLOADS.name]:
                with suppress(AnsorError):
                    yield from _rows_of(index)


def _declared(registry: Registry, folders: Sequence[Path]) -> Iterator[Row]:
    """The targets of the registry's own builds, then those that the folders declare."""
    for build in registry.rows("SELECT manifest FROM builds ORDER BY id DESC"):
        with suppress(*UNREADABLE):
            yield _target_row(json.loads(build["manifest"])["target"])
    for name in list_targets(folders):
        with suppress(AnsorError):
            yield TARGETS.row(load_target(name, folders))


def _rows_of(index: Path) -> Iterator[tuple[Table, Row]]:
    with foreign_file(index, own=True) as file:
        targets, workloads = (
            file.rows(table.name, f"SELECT * FROM {table.name}")  # noqa: S608
            for table in (TARGETS, WORKLOADS)
        )
    for row in targets:
        with suppress(*UNREADABLE):
            yield TARGETS, _target_row(json.loads(row["json"]))
    for row in workloads:
        with suppress(*UNREADABLE):
            yield WORKLOADS, WORKLOADS.row(WORKLOADS.read(row))


def _target_row(data: dict[str, Any]) -> Row:
    """The row of a target's JSON object; one of UNREADABLE if it is invalid.

    A frozen build's manifest lacks the figures that estimates need. Such a target is stored without
    them, like one that others send, until a build adds name and figures.
    """
    known = check_target(target_fields(data))
    if not (data.get("name") and data.get("peak_gflops") and data.get("memory_gbs")):
        return known.fingerprint, known.name, canonical_json(target_fields(data))
    return TARGETS.row(Target.from_json({k: v for k, v in data.items() if k != "fingerprint"}))
