"""Writes to a registry while the machine fails at any one call.

Run under the preloaded tests/assets/failing_disk.c or failing_memory.c. For each n, a write is
tried on a fresh copy of a file, with a failure at the n-th call. Then the machine works again. The
user must have seen no error or one of the tool's; the file must be intact, and hold the state
before or after the write; without an error, the state after it. Then the write is repeated, and
must succeed. Prints {scenario: {"calls": in the write without a failure, "tried": failures, "seen":
errors}}.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansor_deploy.errors import AnsorError, RegistryError
from ansor_deploy.registry.exchange import export_file, import_file, merge_file
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import bring_in, indexes
from ansor_deploy.registry.leases import Holder
from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.restore import restore
from ansor_deploy.registry.salvage import salvage
from ansor_deploy.registry.schema import TABLES
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.machine_fault import fault_of
from helpers import foreign
from helpers.registry_samples import TARGET, TVM, build, fill, key, measurement, record, workload

FAULTS = ctypes.CDLL(None)
MODEL, NOW = "ab" * 32, "2026-01-31T12:00:00Z"
HOLDER = Holder("ab", "host", "", "", 1, 1)
NEW = [record(key(n), 1e-4, f"new {n} {'x' * 3000}") for n in range(20)]

Write = Callable[[Path], Any]  # takes a registry's path; raises an AnsorError where it fails
State = dict[str, Any]


def filled(path: Path) -> None:
    """A registry with all kinds of rows."""
    with Registry.open(path) as registry:
        fill(registry, 60)
        one, two, *_ = registry.top(key(), TVM, 9)
        registry.add_contest(two, [one.id], NOW)
        registry.add_model(MODEL, "resnet", [(key(n), 1) for n in range(20)])
        registry.add_build(build(path, MODEL, NOW, manifest={"target": TARGET.to_json()}))
        registry.add_build(build(path, MODEL, NOW, manifest={"target": TARGET.to_json()}))
        registry.lease([key(19)], HOLDER)


def nothing(path: Path) -> None:
    """No file at all."""


def with_others(path: Path) -> None:
    """A registry, and beside it another one and a bundle."""
    filled(path)
    other = foreign.registry(path.with_name("other.db"), 64, 128, ended=True)
    export_file(other, path.with_name("team.jsonl"))


def with_index(path: Path) -> None:
    """As `with_others`, with the bundle's index, and its workload in the registry."""
    with_others(path)
    with Registry.open(path) as registry:
        registry.add_workloads(foreign.bundle(64).workloads.values())
    layer_index(path)


def lacking(path: Path) -> None:
    """A registry that has lost its target, of which a build has a copy."""
    filled(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DELETE FROM targets")


def damaged(path: Path) -> None:
    """A registry whose beginning is lost."""
    filled(path)
    path.write_bytes(bytes(100) + path.read_bytes()[100:])


def on_open(write: Callable[[Registry], Any]) -> Write:
    """A write to an open registry."""

    def run(path: Path) -> None:
        with Registry.open(path) as registry:
            write(registry)

    return run


def repair(path: Path) -> None:
    """The steps of `verify --repair`."""
    try:
        with Registry.open(path, write=False) as registry:
            registry.verify()
    except AnsorError:
        salvage(path)
    restore(path)


def layer_index(path: Path) -> Path:
    """The index of a bundle; a build's warning counts as an error here."""
    (index,) = indexes([Layer(str(path.with_name("team.jsonl")))], fail)
    return index


def from_layer(path: Path) -> None:
    """Copy from an index what a registry lacks."""
    index = layer_index(path)
    with Registry.open(path) as registry:
        bring_in([index], [foreign.record(64).key], registry, fail)


def fail(warning: str) -> None:
    raise RegistryError(warning)


def add_end(registry: Registry) -> None:
    registry.add_searches([SearchEnd(key(), TVM, "ansor", 10, "limit", 10, NOW, "f" * 64)])


@dataclass(frozen=True)
class Scenario:
    """A write, its initial state, and whether it is one transaction on one file."""

    before: Callable[[Path], None]
    write: Write
    atomic: bool = True


SCENARIOS = {
    "creation": Scenario(nothing, on_open(lambda registry: registry.stats())),
    "target": Scenario(filled, on_open(lambda r: r.add_target(replace(TARGET, cores=2)))),
    "workloads": Scenario(filled, on_open(lambda r: r.add_workloads([workload(99)]))),
    "batch": Scenario(filled, on_open(lambda r: r.add_batch([measurement(key())] * 20, NEW))),
    "contest": Scenario(filled, on_open(lambda r: r.add_contest(NEW[0], [loser()], NOW))),
    "search end": Scenario(filled, on_open(add_end)),
    "model": Scenario(filled, on_open(lambda r: r.add_model("cd" * 32, "net", [(key(), 2)]))),
    "build": Scenario(filled, on_open(lambda r: r.add_build(build(r.path, MODEL, NOW)))),
    "tuning": Scenario(
        filled, on_open(lambda r: r.add_tuning(TARGET.fingerprint, "ansor", 9, 1.0, NOW))
    ),
    "lease": Scenario(filled, on_open(lambda r: r.lease([key(0), key(1)], HOLDER))),
    "release": Scenario(filled, on_open(lambda r: r.release(HOLDER))),
    "gc": Scenario(filled, on_open(lambda r: r.collect(dry_run=False))),
    "vacuum": Scenario(filled, on_open(lambda r: r.vacuum())),
    "merge": Scenario(with_others, lambda p: merge_file(p, p.with_name("other.db"))),
    "import": Scenario(with_others, lambda p: import_file(p, p.with_name("team.jsonl"))),
    "export": Scenario(filled, lambda p: export_file(p, p.with_name("out.jsonl"))),
    "layer index": Scenario(with_others, layer_index, atomic=False),
    "from a layer": Scenario(with_index, from_layer, atomic=False),
    "restore": Scenario(lacking, restore),
    "repair": Scenario(damaged, repair, atomic=False),
}


def loser() -> str:
    return record(key(), 1e-3, "trace 0").id


def state(path: Path) -> State:
    """The content of the registry and of files beside it, which must be intact."""
    found: State = {}
    with Registry.open(path) as registry:
        assert registry.damage() == []
        for name in (*(table.name for table in TABLES), "leases"):
            found[name] = sorted(map(repr, registry.rows(f"SELECT * FROM {name}")))  # noqa: S608
    for index in path.parent.glob("cache/**/*.db"):
        with Registry.open(index, write=False) as registry:
            assert registry.verify() == []
            found["index"] = sorted(row["id"] for row in registry.rows("SELECT id FROM records"))
    written = path.with_name("out.jsonl")
    found["out"] = written.read_bytes() if written.exists() else b""
    return found


class Trial:
    """A scenario, tried repeatedly in one folder. fails, calls: of the preloaded library."""

    def __init__(self, scenario: Scenario, folder: Path, machine: str) -> None:
        self.scenario, self.folder = scenario, folder / "registry.db.run"
        self.path, self.base = self.folder / "registry.db", folder / "base"
        self._fails = getattr(FAULTS, f"{machine}_fails")
        self._calls = getattr(FAULTS, f"{machine}_calls")
        self.base.mkdir()
        self.folder.mkdir()
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        scenario.before(self.path)
        shutil.copytree(self.folder, self.base, dirs_exist_ok=True)
        self.before = {} if scenario.before is damaged else state(self.path)
        self.restart()
        self.write()  # loads modules that are imported late
        self.restart()
        self._fails(ctypes.c_long(0), 0, 0)
        self.write()
        self.calls = int(self._calls())
        self.after = state(self.path)

    def restart(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.base, self.folder)

    def write(self) -> Exception | None:
        """The error that the user would see, which is handled where errors are printed."""
        try:
            self.scenario.write(self.path)
        except (AnsorError, OSError) as error:
            return fault_of(error) or error
        return None

    def fail(self, at: int, *fault: int) -> bool:
        """Write with a failure at a call; whether the user saw an error."""
        self.restart()
        self._fails(ctypes.c_long(at), *fault)
        error = self.write()
        self._fails(ctypes.c_long(0), 0, 0)
        self._check((at, *fault), error)
        return error is not None

    def _check(self, fault: tuple[int, ...], error: Exception | None) -> None:
        assert error is None or getattr(error, "exit_code", 70) in (8, 9), (fault, repr(error))
        if self.scenario.atomic:
            found = state(self.path)
            assert found == self.after or (error and found == self.before), (fault, error)
            if found == self.after:
                return
        assert self.write() is None, fault
        assert state(self.path) == self.after, (fault, error)


# Kinds of failures: an error, and whether all later calls fail, too.
KINDS = {
    "disk": [(errno.EIO, 0), (errno.EIO, 1), (errno.ENOSPC, 0), (errno.ENOSPC, 1), (-1, 1)],
    "memory": [(0,), (1,)],
}


def places(name: str, calls: int, most: int) -> range:
    """Calls to let fail: all, or `most` evenly spaced ones, which start elsewhere by scenario."""
    step = max(1, calls // most)
    return range(1 + zlib.crc32(name.encode()) % step, calls + 1, step)


def main(machine: str, most: int, folder: Path, names: list[str]) -> None:
    found = {}
    for name in names or SCENARIOS:
        trial = Trial(SCENARIOS[name], Path(tempfile.mkdtemp(dir=folder)), machine)
        at = places(name, trial.calls, most)
        seen = [trial.fail(n, *kind) for kind in KINDS[machine] for n in at]
        found[name] = {"calls": trial.calls, "tried": len(seen), "seen": sum(seen)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).absolute(), sys.argv[4:])
