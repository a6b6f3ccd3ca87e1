"""Back up a whole registry, also while builds write to it, and put it back."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from ..errors import RegistryError, UsageError
from ..system.atomic_file import unfinished_name
from .faults import DamagedError, explained
from .store import Registry


def back_up(registry: Path, file: Path) -> Path:
    """Copy all of a registry, as it is at one moment, to a file, which is replaced if it exists.

    RegistryError where there is no registry, or a damaged one, which is not worth a backup.
    """
    if not registry.exists():
        raise RegistryError(f"there is no registry {registry}", "name it: --registry FILE")
    file.parent.mkdir(parents=True, exist_ok=True)
    made = unfinished_name(file)
    try:
        with (
            Registry.open(registry, write=False) as source,
            explained(file),
            closing(sqlite3.connect(made, isolation_level=None)) as copy,
        ):
            source.copy_into(copy)
        _check(made, registry)
        made.replace(file)
    finally:
        with suppress(OSError):  # as on a read-only file system, where it was never made
            made.unlink()
    return file


def put_back(registry: Path, file: Path, *, replace: bool) -> Path:
    """Replace a registry's content by a backup's, in one transaction; other users of it must wait.

    replace: do so even where the registry holds records, which are lost. RegistryError where the
    backup is damaged; UsageError where records would be lost without `replace`.
    """
    try:
        _check(file, file)
    except DamagedError as error:
        hint = (
            f"to save what is whole in it: ansor-deploy registry verify --repair --registry {file}"
        )
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
    """RegistryError where a file is not an intact registry. of: the file to name in the message."""
    with Registry.open(file, write=False) as copy:
        if found := copy.verify():
            what = f"{of} is damaged: {'; '.join(found[:3])}"
            raise RegistryError(what, "see `ansor-deploy registry verify --repair`")
