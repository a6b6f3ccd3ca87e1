"""Checks of a library's files: that they are complete, and that a machine can run the library."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec

from ..devices import probe
from ..devices.facts import Facts, facts_of, numbers, run_probe
from ..devices.inventory import Inventory
from ..errors import DeviceError
from ..ship.manifest import (
    Manifest,
    Output,
    header_path,
    manifest_path,
    provenance_path,
    read_manifest,
)
from ..ship.outputs.provenance import statement
from ..ship.package.elf import needed_glibc
from ..system.digest import file_sha256
from ..system.environment import version
from ..system.host import architecture, no_runtime
from ..system.printable import printable
from ..system.untrusted import Refused
from ..target import Target
from .device import check_architecture, check_features, check_word_size
from .host import Check, judged

_REBUILD = "build it again, or copy it again with all that lies beside it"


def check_whole(artifact: Path) -> Iterator[Check]:
    """Check that each output is the one that was built.

    AnsorError where there is no manifest.
    """
    manifest = read_manifest(artifact)
    yield _same("library", artifact, manifest.artifact)
    if manifest.header:
        yield _same("header", header_path(artifact), manifest.header)
    yield _consistent(artifact, manifest)


def check_valid(artifact: Path, device: str) -> Iterator[Check]:
    """Check that a machine can run the library, or one of its codes if it has several.

    device: its name in the user's inventory; "" for this machine.

    Raises:
        UsageError: there is no such device.
        DeviceError: the device cannot be asked.
    """
    manifest = read_manifest(artifact)
    target = manifest.target.machine
    facts = _device_facts(device) if device else msgspec.convert(probe.facts(), Facts)
    checks = [_check_architecture(facts.machine, target), check_word_size(str(facts.bits))]
    if checks[0].level == "ok":  # an architecture's features say nothing about another one
        checks.append(_check_features(facts.flags, manifest))
    for check in (*checks, check_glibc(artifact, *facts.libc), check_runtime(manifest.tvm)):
        yield replace(check, found=printable(check.found), remedy=printable(check.remedy))


def _check_architecture(machine: str, target: Target) -> Check:
    """Check the architecture. The remedy is another machine, as the library exists already."""
    check = check_architecture(machine, target)
    if check.level == "ok" or no_runtime(machine):
        return check
    there = f"copy it and its manifest to one of {architecture(target.triple)}"
    return replace(check, remedy=f"{there}; of one that was added, --device NAME asks")


def _check_features(flags: list[str], manifest: Manifest) -> Check:
    """Check the first code that the machine can run, or else the last code."""
    targets = [one.target.machine for one in manifest.codes or (manifest,)]
    checks = [check_features(flags, target) for target in targets]
    return next((one for one in checks if one.level == "ok"), checks[-1])


def check_glibc(artifact: Path, name: str, version: str) -> Check:
    """Check that a machine's C library has the symbol versions that the library needs."""
    needed = needed_glibc(artifact)
    asked = f"needs glibc {'.'.join(map(str, needed))}" if any(needed) else "needs no version"
    found = f"{asked}, found {name} {version}".rstrip()
    good = name == "glibc" and numbers(version) >= needed
    return judged("libc", good, found, "upgrade the system, or build on one that is as old")


def check_runtime(built_with: str) -> Check:
    """Check that the runtime here, which devices get too, is of the version built with."""
    found = version("apache-tvm") or "none"
    both = f"built with TVM {built_with}, found {found}"
    remedy = f"build it again, or install that version: pip install apache-tvm=={built_with}"
    return judged("runtime", numbers(found) == numbers(built_with), both, remedy)


def _same(name: str, path: Path, part: Output) -> Check:
    if not path.is_file():
        return Check(name, "warn", f"{path} is not there", _REBUILD)
    if file_sha256(path) != part.sha256:
        return Check(name, "FAIL", f"{path} is not what its manifest says", _REBUILD)
    return Check(name, "ok", f"{path}, SHA-256 {part.sha256[:12]}")


def _consistent(artifact: Path, manifest: Manifest) -> Check:
    """Check that the provenance describes this library and its manifest."""
    path = provenance_path(artifact)
    if not path.is_file():
        return Check("provenance", "warn", f"{path} is not there", _REBUILD)
    content = manifest_path(artifact).read_bytes()
    if path.read_bytes() != statement(manifest, content):
        found = f"{path} is not about this library and its manifest"
        return Check("provenance", "FAIL", found, _REBUILD)
    inputs = json.loads(path.read_bytes())["predicate"]["buildDefinition"]["resolvedDependencies"]
    return Check("provenance", "ok", f"{path}, {len(inputs)} inputs")


def _device_facts(name: str) -> Facts:
    from ..devices.ssh import connect

    inventory = Inventory.find()
    with closing(connect(inventory.get(name), inventory)) as connection:
        ran = run_probe(connection)
    try:
        return facts_of(ran)
    except Refused as error:
        hint = f"check it: ansor-deploy devices doctor {name}"
        raise DeviceError(f"{name} reports impossible facts about itself", hint) from error
