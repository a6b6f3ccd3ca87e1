"""`ansor-deploy registry backup, restore`: copy a whole registry to a file, and back."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from ..system.json_types import Bytes
from ..system.words import size_text
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import registry_path
from .output import Answer, answering


class Copied(Struct, frozen=True):
    """The answer of `registry backup --json` and `restore --json`. file: the one written."""

    file: str
    bytes: Bytes


@with_examples("registry backup nightly.db", "registry backup nightly.db --registry team.db")
@click.command("backup", cls=Command)
@click.argument("file", type=new_file)
@registry_path
@answering
def backup_command(file: Path, registry: Path) -> Answer:
    """Copy the whole registry to FILE.

    The copy has the records, measurements with their features, searches and the history of builds,
    as they are at one moment; builds may go on meanwhile. An existing FILE is replaced when the
    copy is complete.
    """
    from ..registry.backup import back_up

    return _copied(back_up(registry, file))


@with_examples("registry restore nightly.db", "registry restore nightly.db --replace")
@click.command("restore", cls=Command)
@click.argument("file", type=existing_file)
@registry_path
@click.option(
    "--replace", is_flag=True, help="Do so even if the registry holds records, which are then lost."
)
@answering
def restore_command(file: Path, registry: Path, replace: bool) -> Answer:
    """Replace the registry by a backup.

    The backup is verified first. If anything fails, the registry stays as it was. To add a backup's
    records to a registry instead, use `registry merge`.
    """
    from ..registry.backup import put_back

    return _copied(put_back(registry, file, replace=replace))


def _copied(file: Path) -> Answer:
    copied = Copied(str(file), file.stat().st_size)
    return Answer(copied, [f"wrote {file}: {size_text(copied.bytes)}"])
