"""Compare two registries: the best record of each task in the one and in the other."""

from __future__ import annotations

import tempfile
from pathlib import Path

from msgspec import Struct

from ..system.json_types import Count, Digest, Ms
from .exchange import import_file
from .listing import BestRecord
from .raw_pages import MAGIC
from .store import Registry

_ALL = 1 << 40

_Key = tuple[str, str, str]


class Differing(Struct, frozen=True):
    """A task whose best records differ. a, b: their ids; null where there is none."""

    workload: Digest
    title: str
    target: str
    fingerprint: Digest
    tvm: str
    a: Digest | None
    b: Digest | None
    a_ms: Ms | None
    b_ms: Ms | None


class Diff(Struct, frozen=True):
    """`registry diff --json`. same: tasks with the same best record.

    only_a, only_b: tasks that only one of them has. faster_a, faster_b: by the times in the
    records, which were not compared with each other. tasks: all that differ, the largest
    difference first.
    """

    same: Count
    only_a: Count
    only_b: Count
    faster_a: Count
    faster_b: Count
    tasks: list[Differing]


def difference(a: Path, b: Path) -> Diff:
    """The difference between two registries or exported bundles; both stay as they are.

    RegistryError where one of them is neither, is damaged or hostile.
    """
    mine, theirs = _best(a), _best(b)
    keys = sorted(mine.keys() | theirs.keys())
    pairs = [(mine.get(key), theirs.get(key)) for key in keys]
    rows = [_row(*pair) for pair in pairs if not _is_same(*pair)]
    both = [(row.a_ms, row.b_ms) for row in rows if row.a_ms is not None and row.b_ms is not None]
    return Diff(
        same=len(pairs) - len(rows),
        only_a=sum(row.b is None for row in rows),
        only_b=sum(row.a is None for row in rows),
        faster_a=sum(one < other for one, other in both),
        faster_b=sum(one > other for one, other in both),
        tasks=sorted(rows, key=_by_ratio),
    )


def _best(path: Path) -> dict[_Key, BestRecord]:
    """The best records of a registry, or of a bundle, by task, target and version of TVM."""
    with path.open("rb") as stream:
        is_registry = stream.read(len(MAGIC)) == MAGIC
    if is_registry:
        return _of_registry(path)
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        taken = Path(folder, "registry.db")
        import_file(taken, path)
        return _of_registry(taken)


def _of_registry(path: Path) -> dict[_Key, BestRecord]:
    with Registry.open(path, write=False) as registry:
        rows = registry.query(limit=_ALL)
    return {(row["workload"], row["fingerprint"], row["tvm"]): row for row in rows}


def _is_same(one: BestRecord | None, other: BestRecord | None) -> bool:
    return one is not None and other is not None and one["id"] == other["id"]


def _row(one: BestRecord | None, other: BestRecord | None) -> Differing:
    known = one or other
    assert known is not None  # noqa: S101 - one of them has it
    return Differing(
        workload=known["workload"],
        title=known["title"],
        target=known["target"],
        fingerprint=known["fingerprint"],
        tvm=known["tvm"],
        a=one and one["id"],
        b=other and other["id"],
        a_ms=one and one["latency_ms"],
        b_ms=other and other["latency_ms"],
    )


def _by_ratio(row: Differing) -> tuple[bool, float, str]:
    """A sort key: tasks of one registry alone first, then by the ratio of the two times."""
    if row.a_ms is None or row.b_ms is None:
        return False, -(row.a_ms or row.b_ms or 0.0), row.workload
    ratio = row.a_ms / row.b_ms
    return True, -max(ratio, 1 / ratio), row.workload
