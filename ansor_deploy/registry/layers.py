"""Layers: records of others that a build may use, below the user's own registry.

    shipped seed  <  team  <  the user's registry

A layer is only read. It is the file of a bundle, or a folder of bundles as `registry push` makes
one, local or at a URL. Its content comes through the firewall into an *index*, a registry in the
user's cache that remembers which bundles it has taken in. From there a build copies the records
that it asks for and that the user's registry lacks. For an unchanged layer only the names of its
bundles are read. A layer that cannot be used gives a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AnsorError, RegistryError
from ..system.atomic_file import write_whole
from ..system.digest import canonical_json, sha256
from ..system.environment import cache_folder
from .connect import SCHEMA_VERSION
from .faults import DamagedError
from .index import LAYOUT, let_in, state, update
from .layer import Layer, Tier
from .limits import BUNDLE_BYTES
from .lookups import FEW
from .record import Record, SearchEnd, TaskKey
from .store import Registry

if TYPE_CHECKING:
    from ..target import Target
    from .exchange import Trusted

    Warn = Callable[[str], None]

FRESH_SECONDS = 600.0  # a URL that was asked is not asked again within this time
KNOCKING = 2.0  # a server that is up and near accepts a connection within so many seconds
PATIENCE = 30.0  # seconds for a URL to answer, and to send what is new

_LOOKED_AT = 256  # the most records of a key and a version of TVM that are read


def indexes(layers: Iterable[Layer], warn: Warn) -> tuple[Path, ...]:
    """The updated index of each layer that can be used; warns of the others."""
    found = (_index_or_warning(layer, warn) for layer in layers)
    return tuple(index for index in found if index)


def bring_in(
    paths: Iterable[Path], keys: Iterable[TaskKey], registry: Registry, warn: Warn
) -> None:
    """Add what the indexes have for the keys, and the registry lacks, to the registry.

    These are the best few records that no other has beaten, in the index or in the registry, and
    the ends of searches; only for keys with a workload that the registry knows.
    """
    have = {
        key: (
            {name: lost for _, name, lost in registry.ranking(key)},
            {replace(end, rules="") for end in registry.ends(key)},
        )
        for key in sorted(registry.known(keys))
    }
    for path in paths:
        try:
            with Registry.open(path) as index:
                let_in(index, {key: _beaten(known) for key, (known, _) in have.items()}, warn)
                offers = [_offered(index, key, *known) for key, known in have.items()]
        except DamagedError as error:
            _drop(path)
            warn(f"{error.message}; the next build makes it again")
            continue
        if new := [one for one in offers if any(one)]:
            with registry.writing():  # all at once, as each end of a transaction waits for the disk
                for records, ends in new:
                    registry.add_batch([], records)
                    registry.add_searches(ends)


def _beaten(known: Mapping[str, bool]) -> list[str]:
    return [name for name, lost in known.items() if lost]


def like(
    paths: Iterable[Path], target: Target, keys: Sequence[TaskKey], warn: Warn
) -> list[Target]:
    """The targets in the indexes that differ from this one in cores and caches alone.

    Only targets with a record of one of the keys' workloads. A damaged index gives none.
    """
    found: dict[str, Target] = {}
    for path in paths if keys else ():
        with suppress(DamagedError), Registry.open(path) as index:
            for one in index.like(target):
                theirs = [TaskKey(key.workload, one.fingerprint) for key in keys]
                let_in(index, dict.fromkeys(theirs, ()), warn)
                if any(map(index.ranking, theirs)):
                    found[one.fingerprint] = one
    return [found[name] for name in sorted(found)]


def tiers(paths: Iterable[Path], records: Iterable[Record]) -> dict[TaskKey, Tier]:
    """The lowest layer that each record's schedule came from; nothing for schedules found here.

    A record that was found here keeps its id in a layer to which it was pushed, and so is known.
    """
    found: dict[TaskKey, Tier] = {}
    for path in paths:
        with suppress(DamagedError), Registry.open(path, write=False) as index:
            for one in records:
                theirs = index.top(one.key, one.provenance.tvm, _LOOKED_AT)
                known = any(one.id == other.id for other in theirs) and not one.claimed
                if not known and any(one.trace == other.trace for other in theirs):
                    found.setdefault(one.key, _tier(path))
    return found


def _tier(index: Path) -> Tier:
    return "base" if index.name.startswith("base-") else "team"


def _offered(
    index: Registry, key: TaskKey, known: dict[str, bool], ends: set[SearchEnd]
) -> tuple[list[Record], list[SearchEnd]]:
    """The records and ends of searches that an index has for a key beyond the known ones.

    known: ids, and whether each was beaten here: then the index's next best may be better.
    """
    unbeaten: dict[str, list[str]] = {}
    for tvm, name, lost in index.ranking(key):
        if not (lost or known.get(name)):
            unbeaten.setdefault(tvm, []).append(name)
    records = [
        record
        for tvm, names in unbeaten.items()
        if (lacking := set(names[:FEW]) - known.keys())
        for record in index.top(key, tvm, _LOOKED_AT)
        if record.id in lacking
    ]
    return records, [end for end in index.ends(key) if replace(end, rules="") not in ends]


def _index_or_warning(layer: Layer, warn: Warn) -> Path | None:
    try:
        return _index(layer, warn)
    except (AnsorError, OSError) as error:
        reason = error.message if isinstance(error, AnsorError) else error.strerror
        warn(f"no records of {layer.where} are used: {reason}")
        return None


def _index(layer: Layer, warn: Warn) -> Path:
    """A layer's index, updated. RegistryError or OSError if the layer cannot be read."""
    trusted: Trusted | None = None
    if layer.trust:
        from .signing import load_trusted

        trusted = load_trusted(layer.trust)
    identity = [layer.where, sorted(key.hex() for key in trusted or ()), SCHEMA_VERSION, LAYOUT]
    copy = cache_folder("layers") / f"{layer.tier}-{sha256(canonical_json(identity))[:16]}"
    source = _mirrored(layer, copy, warn) if "://" in layer.where else Path(layer.where)
    index, bundles = copy.with_suffix(".db"), _bundles(source)
    try:
        update(index, bundles, trusted, warn)
    except DamagedError:  # the index can be made again
        _drop(index)
        update(index, bundles, trusted, warn)
    return index


def _bundles(source: Path) -> dict[str, Path]:
    """The bundles of a layer by the digests in their names; a single file by its `state`."""

    def readable(path: Path) -> bool:  # a regular file, and not too large
        return path.is_file() and path.stat().st_size <= BUNDLE_BYTES

    if source.is_dir():
        paths = sorted(source.glob("*.jsonl"))
        return {path.stem: path for path in paths if readable(path)}
    if not readable(source):
        raise RegistryError("there is no bundle, and no folder of bundles", "Check the path.")
    return {state(source): source}


def _mirrored(layer: Layer, folder: Path, warn: Warn) -> Path:
    """A folder with the bundles at a layer's URL; the old ones where it does not answer in time.

    They are fetched by another process, which can be ended at the deadline.
    """
    asked, failed = folder.with_suffix(".asked"), folder.with_suffix(".failed")
    if _is_fresh(asked):  # its time of change is when the URL last answered
        return folder
    if not _is_fresh(failed):
        reason = _fetched(layer, folder, warn)
        if not reason:
            asked.touch()
            failed.unlink(missing_ok=True)
            return folder
        write_whole(failed, reason.encode())
    reason = failed.read_text(encoding="utf-8")
    if not asked.exists():
        raise RegistryError(reason, "Check the address, or pull from there.")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(asked.stat().st_mtime))
    warn(f"the records of {layer.where} are those of {when}: {reason}")
    return folder


def _is_fresh(mark: Path) -> bool:
    """Whether a mark is less than `FRESH_SECONDS` old; one from the future is not fresh."""
    with suppress(OSError):
        return 0 <= time.time() - mark.stat().st_mtime < FRESH_SECONDS
    return False


def _fetched(layer: Layer, folder: Path, warn: Warn) -> str:
    """Fetch what a layer's URL has within the deadline; the reason where that fails, else ""."""
    if nobody := _nobody_there(layer.where):
        return nobody
    from ..system.worker import Worker, WorkerFailure
    from . import remote

    payload = {"url": layer.where, "folder": str(folder), "signed": layer.trust is not None}
    worker = Worker(preload=remote.__name__)
    try:
        for name, right in worker.call(f"{remote.__name__}:mirror", payload, PATIENCE).items():
            warn(remote.misnamed(f"{layer.where}/{name}", right))
    except WorkerFailure as failure:
        if failure.kind == "timeout":
            return f"it has not sent everything after {PATIENCE:g} s"
        return failure.message.removeprefix(f"{RegistryError.__name__}: ")
    finally:
        worker.close()
    return ""


def _nobody_there(url: str) -> str:
    """Why a web server does not even accept a connection; "" if it may be there.

    The process that fetches takes longer to start than all else that an unchanged build does.
    """
    import socket
    from threading import Thread
    from urllib.parse import urlsplit

    said: list[str] = []

    def knock() -> None:
        address = urlsplit(url)
        try:
            port = address.port or {"http": 80, "https": 443}[address.scheme]
            socket.create_connection((address.hostname, port), KNOCKING).close()
        except (KeyError, ValueError):  # not a web server, or an odd port: left to fsspec
            return
        except OSError as error:
            said.append(f"{url} cannot be used: {error.strerror or error}")

    thread = Thread(target=knock, daemon=True)  # a name server may not answer
    thread.start()
    thread.join(KNOCKING)
    return "".join(said)


def _drop(index: Path) -> None:
    """Remove an index and its journal, which SQLite would roll back into the next index there."""
    for path in (index, index.with_name(f"{index.name}-journal")):
        path.unlink(missing_ok=True)
