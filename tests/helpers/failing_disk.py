"""What a registry does on a disk that fails; run under the preloaded tests/assets/failing_disk.c.

For the n-th call to the disk, and every n, a scenario is run on a fresh copy of a file. Then the
disk is well again, and the file must be as before or as after each step, and never between.
Prints {"calls": in the scenario without a failure, "failed": runs in which the user saw an error}.
"""

from __future__ import annotations

import ctypes
import errno
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ansor_deploy.errors import AnsorError
from ansor_deploy.registry.store import Registry
from helpers.registry_samples import TARGET, key, measurement, record, workload

DISK = ctypes.CDLL(None)
SIZE, BATCHES = 12, 3


def commits(path: Path) -> set[str]:
    """Three batches: those that were acknowledged."""
    acknowledged = set()
    with Registry.open(path) as registry:
        for batch in range(BATCHES):
            with suppress(AnsorError):
                registry.add_batch([measurement(key())] * SIZE, records(batch))
                acknowledged.add(f"batch {batch}")
    return acknowledged


def records(batch: int) -> list:
    return [record(key(), 1e-3 * (n + 1), f"{batch}/{n} {'x' * 300}") for n in range(SIZE)]


def creation(path: Path) -> set[str]:
    """A new registry."""
    with Registry.open(path) as registry:
        registry.add_target(TARGET)
    return {"target"}


def migration(path: Path) -> set[str]:
    """A registry of schema 1 becomes one of today."""
    Registry.open(path).close()
    return set()


def vacuum(path: Path) -> set[str]:
    """The file is rewritten."""
    with Registry.open(path) as registry:
        registry.vacuum()
    return set()


def state(path: Path) -> set[str]:
    """What is in the file, which must be whole: batches entire, old rows still there."""
    with Registry.open(path) as registry:
        assert registry.verify() == []
        stats = registry.stats()
        found = {record.trace for record in registry.top(key(), "0.27.0", 999)}
    present = {f"batch {b}" for b in range(BATCHES) if {r.trace for r in records(b)} <= found}
    assert len(found) == SIZE * len(present)
    others = {name: stats[name] for name in ("workloads", "models", "builds")}
    if present:
        assert stats["measurements"] == stats["records"]
    else:
        others |= {name: stats[name] for name in ("measurements", "records")}
    held = {f"{count} {name}" for name, count in others.items() if count}
    return present | ({"target"} if stats["per_target"] else set()) | held


SCENARIOS = {"commits": commits, "creation": creation, "migration": migration, "vacuum": vacuum}


def prepared(name: str, folder: Path) -> Path:
    """The file that a scenario begins with; none where it makes one."""
    path = folder / "registry.db"
    if name == "migration":
        shutil.copy(Path(__file__).parents[1] / "assets" / "registry-schema-1.db", path)
    elif name != "creation":
        with Registry.open(path) as registry:
            registry.add_target(TARGET)
            registry.add_workloads([workload()])
    return path


def attempt(scenario: Callable[[Path], set[str]], path: Path) -> tuple[set[str], bool]:
    """What was acknowledged, and whether all went well."""
    try:
        done = scenario(path)
    except AnsorError:  # any other error is a traceback to the user, and ends this program
        return set(), False
    return done, True


def main(name: str, stride: int, folder: Path) -> None:
    base, scenario = folder / "base", SCENARIOS[name]
    base.mkdir()
    prepared(name, base)
    before = state(Path(shutil.copytree(base, folder / "before")) / "registry.db")
    calls, _ = run(scenario, base, before, (0, 0, 0))
    failed = 0
    for error in (errno.EIO, errno.ENOSPC):
        for forever in (0, 1):
            for at in range(1, calls + 1, stride):
                failed += not run(scenario, base, before, (at, error, forever))[1]
    print(json.dumps({"calls": calls, "failed": failed}))


def run(
    scenario: Callable[[Path], set[str]], base: Path, before: set[str], fault: tuple[int, int, int]
) -> tuple[int, bool]:
    """Calls to the disk, and whether the user saw no error."""
    folder = Path(shutil.copytree(base, base.with_name("run")))
    path = folder / "registry.db"
    DISK.disk_fails(*fault)
    done, well = attempt(scenario, path)
    calls = DISK.disk_calls()
    DISK.disk_fails(0, 0, 0)
    after = state(path)
    assert done | before <= after, (fault, done, before, after)
    shutil.rmtree(folder)
    return calls, well and (scenario is not commits or len(done) == BATCHES)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
