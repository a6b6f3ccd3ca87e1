"""A registry as a whole: copied while builds write to it, and put back."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import RegistryError, UsageError
from .faults import DamagedError, explained
from .store import Registry


def back_up(registry: Path, file: Path) -> Path:
    """Copy all of a registry, as it is at one moment, to a file in whose place there may be one.

    RegistryError where there is none, or it is damaged: a copy of that would be no backup.
    """
    if not registry.exists():
        raise RegistryError(f"there is no registry {registry}", "name it: --registry FILE")
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with (
            Registry.open(registry, write=False) as source,
            explained(made),
            closing(sqlite3.connect(made, isolation_level=None)) as copy,
        ):
            source.copy_into(copy)
        _check(made, registry)
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)
    return file


def put_back(registry: Path, file: Path, *, replace: bool) -> Path:
    """Make a registry what a backup holds, in one transaction: who uses it waits, or is waited for.

    replace: even where the registry holds records, which are lost. RegistryError where the backup
    is damaged; UsageError where that would lose records that nobody gave away.
    """
    try:
        _check(file, file)
    except DamagedError as error:
        hint = f"what is whole of a backup: ansor-deploy registry verify --repair --registry {file}"
        raise RegistryError(error.text, hint) from error
    with Registry.open(registry) as target, Registry.open(file, write=False) as source:
        (held,) = target.rows("SELECT count(*) AS records FROM records")
        if held["records"] and not replace:
            raise UsageError(
                f"the registry {registry} holds {held['records']} records, which would be lost",
                "keep them: registry backup; to lose them: --replace; to add the backup's to "
                "them: registry merge",
            )
        target.become(source)
    return registry


def _check(file: Path, of: Path) -> None:
    """RegistryError where a file is no whole registry. of: the one to name."""
    with Registry.open(file, write=False) as copy:
        if found := copy.verify():
            what = f"{of} is damaged: {'; '.join(found[:3])}"
            raise RegistryError(what, "see `ansor-deploy registry verify --repair`")
