"""`ansor-deploy registry forget`: remove records of a task, a device or others."""

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
    """The answer of `registry forget --json`: rows that were removed, or would be."""

    dry_run: bool
    records: Count
    measurements: Count
    searches: Count


@with_examples(
    "registry forget 3f2a91",
    "registry forget --device board-7 --dry-run",
    "registry forget --claims",
)
@click.command("forget", cls=Command)
@partial(opened, write=True)
@click.argument("key", required=False)
@click.option("--device", metavar="NAME", help="Remove all that this device has measured.")
@click.option(
    "--claims", is_flag=True, help="Remove all that others claim and that was not measured here."
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; say what would be removed.")
@answering
def forget_command(
    store: Registry, key: str | None, device: str | None, claims: bool, dry_run: bool
) -> Answer:
    """Remove records: of a task, of a device, or of others.

    What was learnt from them is removed, too.

    KEY is the beginning of a task's key or of a record's id, as for `registry show`. For a task,
    the ends of its searches are removed as well, so that it is tuned again. What a layer still
    offers comes back with the next build. Use --claims after a key is no longer trusted: what was
    measured here stays, and the next build brings what the other keys have signed.
    """
    if [key is None, device is None, not claims].count(False) != 1:
        raise UsageError(
            "it is not said what to remove",
            "give a KEY, or --device NAME, or --claims, and only one",
        )
    from ..registry.history import named

    if claims or device is not None:
        what, it = ("claims", "") if claims else ("device", str(device))
    else:
        what, it = named(store, str(key))
    found = store.forget(what, it, dry_run=dry_run)
    rows = ", ".join(f"{number} {name}" for name, number in found.items())
    line = f"{'would remove' if dry_run else 'removed'} {rows}"
    return Answer(Forgotten(dry_run, **found), [line])
