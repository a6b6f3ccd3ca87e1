"""`ansor-deploy registry forget`: records that are to go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import UsageError
from ..system.json_types import Count
from .helptext import Command, with_examples
from .options import opened
from .output import Answer, answering

if TYPE_CHECKING:
    from ..registry.store import Registry


class Forgotten(Struct, frozen=True):
    """`registry forget --json`: rows that were removed, or would be."""

    dry_run: bool
    records: Count
    measurements: Count
    searches: Count


@with_examples("registry forget 3f2a91", "registry forget --device board-7 --dry-run")
@click.command("forget", cls=Command)
@partial(opened, write=True)
@click.argument("key", required=False)
@click.option("--device", metavar="NAME", help="All that this device has measured.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@answering
def forget_command(store: Registry, key: str | None, device: str | None, dry_run: bool) -> Answer:
    """Remove records of a task, a record or a device.

    What was learnt of them goes, too.

    KEY is the beginning of a task's key or of a record's id, as `registry show` takes it; of a
    task also the ends of its searches, so that it is tuned anew. What a layer still offers comes
    back with the next build.
    """
    if (key is None) == (device is None):
        raise UsageError("what is to go?", "name a KEY, or a --device NAME")
    from ..registry.history import named

    what, it = ("device", device) if device is not None else named(store, str(key))
    found = store.forget(what, it, dry_run=dry_run)
    rows = ", ".join(f"{number} {name}" for name, number in found.items())
    line = f"{'would remove' if dry_run else 'removed'} {rows}"
    return Answer(Forgotten(dry_run, **found), [line])
