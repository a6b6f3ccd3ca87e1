"""Checks of this machine as one that builds; each has its finding and a remedy."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..codegen.linker import COMPILERS, cross_linker
from ..errors import AnsorError
from ..project import Project
from ..registry.store import Registry
from ..system import tvm_pairing
from ..system.environment import shipped, version
from ..system.fence import abi
from ..system.host import architecture
from ..system.words import count
from ..target import list_targets, load_target

Level = Literal["ok", "warn", "FAIL"]

GIB = 2**30


@dataclass(frozen=True)
class Check:
    """The result of one check. remedy: "" where all is well."""

    name: str
    level: Level
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Checks:
    """The answer of `verify --json` for a library alone, of `doctor --json` and `devices add`."""

    ok: bool
    checks: list[Check]

    @classmethod
    def of(cls, checks: list[Check]) -> Checks:
        """The answer that lists these checks."""
        return cls(all(check.level != "FAIL" for check in checks), checks)


def judged(name: str, good: bool, found: str, remedy: str, otherwise: Level = "FAIL") -> Check:
    """A check from its outcome. otherwise: its level if it failed; only then it has the remedy."""
    return Check(name, "ok", found) if good else Check(name, otherwise, found, remedy)


def diagnose(project: Project, registry: Path) -> Iterator[Check]:
    """All checks, in the order in which a build would run into the problems."""
    yield check_python()
    yield check_packages()
    yield check_tvm()
    yield check_compiler()
    yield from check_cross_linkers()
    yield check_sqlite()
    yield check_host(project)
    yield check_fence()
    yield check_registry(registry)
    yield check_records(registry)
    yield check_space("space for the registry", registry)
    yield check_space("space for outputs", Path.cwd())


def check_python() -> Check:
    """Report the Python version; one that is too old could not have come this far."""
    return Check("python", "ok", f"{platform.python_version()} at {sys.executable}")


def check_packages() -> Check:
    """Check that the packages that a build imports are installed, without importing them."""
    names = ("apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "onnxruntime")
    versions = {name: version(name) for name in names}
    missing = [name for name, found in versions.items() if not found]
    if missing:
        remedy = f"pip install {' '.join(missing)}"
        return Check("packages", "FAIL", f"missing: {', '.join(missing)}", remedy)
    return Check("packages", "ok", ", ".join(f"{name} {v}" for name, v in versions.items()))


def check_tvm() -> Check:
    """Check that TVM and its FFI work together."""
    reason = tvm_pairing.why_it_fails()
    found = f"{tvm_pairing.pair()}{f': {reason}' if reason else ' answers'}"
    return judged("tvm", not reason, found, tvm_pairing.PIN)


def check_compiler() -> Check:
    """Check that there is a C++ compiler, which TVM links libraries with."""
    chosen = os.environ.get("CXX", "")
    found = next(filter(None, map(shutil.which, [chosen] if chosen else COMPILERS)), None)
    if chosen and not found:
        return Check("linker", "FAIL", f"CXX={chosen} is not there", "correct or unset CXX")
    return judged("linker", bool(found), found or "no C++ compiler", "apt install g++")


def check_cross_linkers() -> list[Check]:
    """Check the linkers for shipped targets whose architecture is not this machine's."""
    folders = [shipped("targets")]
    targets = [load_target(name, folders) for name in list_targets(folders) if name != "host"]
    names = {architecture(target.triple) for target in targets if target.kind == "llvm"}
    return [check_cross_linker(name) for name in sorted(names - {architecture()})]


def check_cross_linker(machine: str) -> Check:
    """Check that there is a linker for another architecture; only builds for it need one."""
    name = f"linker for {machine}"
    try:
        return Check(name, "ok", " ".join(cross_linker(machine)))
    except AnsorError as error:
        return Check(name, "warn", "none", error.hint)


def check_sqlite() -> Check:
    """Check that SQLite is 3.37 or later, the first with the registry's STRICT tables."""
    good = sqlite3.sqlite_version_info >= (3, 37)
    found = sqlite3.sqlite_version + (", with a rollback journal" if good else "")
    return judged("sqlite", good, found, "use a Python with SQLite 3.37 or later")


def check_host(project: Project) -> Check:
    """Report what this machine was detected as."""
    try:
        host = load_target("host", project.target_path())
    except AnsorError as error:
        return Check("host", "warn", error.message, error.hint)
    cores = count(host.cores, "core")
    return Check("host", "ok", f"{host.cpu}, {cores}, {host.vector_bytes * 8}-bit vectors")


def check_fence() -> Check:
    """Report whether the kernel can fence candidates off from files and the network."""
    if not (known := abi()):
        return Check("fence", "ok", "the kernel has no Landlock: candidates are not fenced")
    return Check("fence", "ok", f"Landlock {known}, for files{' and TCP' * (known >= 4)}")


def check_registry(path: Path) -> Check:
    """Check that records can be read and added."""
    if path.exists():
        place, needed = path, os.R_OK | os.W_OK
    else:
        place, needed = nearest(path.parent), os.W_OK | os.X_OK
    # SQLite makes its journal beside the file, so the directory must be writable, too.
    if os.access(place, needed) and os.access(nearest(path.parent), os.W_OK):
        return Check("registry", "ok", str(path) if path.exists() else f"{path} (none yet)")
    if path.exists() and os.access(path, os.R_OK):
        return Check("registry", "warn", f"{path} is read-only", "tune with --registry elsewhere")
    return Check("registry", "FAIL", f"{path} cannot be used", "use --registry, or chmod u+rw it")


def check_records(path: Path) -> Check:
    """Check that tasks have records of this TVM version, as builds use no others."""
    tvm = version("apache-tvm")
    try:
        with Registry.open(path, write=False) as registry:
            outdated = registry.outdated(tvm)
    except AnsorError as error:
        return Check("records", "FAIL", error.message, error.hint)
    if not outdated:
        return Check("records", "ok", f"every task that has any has one of TVM {tvm}")
    found = f"{outdated} tasks have records of other versions of TVM only"
    remedy = "ansor-deploy registry revalidate MODEL, for each model that you build"
    return Check("records", "warn", found, remedy)


def check_space(name: str, path: Path) -> Check:
    """Check that there is space: libraries and records are small, candidates are not."""
    place = nearest(path)
    free = shutil.disk_usage(place).free
    found = f"{free / GIB:.1f} GiB free at {place}"
    level: Level = "warn" if free >= GIB / 10 else "FAIL"
    return judged(name, free >= GIB, found, "free at least 1 GiB", level)


def nearest(path: Path) -> Path:
    """The path itself, or the closest directory above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())
