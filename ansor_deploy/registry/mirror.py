"""In a process of its own: the bundles at a URL into a folder, for `layers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..system.atomic_file import write_whole
from .storage import SIGNATURE, Place


def fetch(payload: dict[str, Any]) -> None:
    """Make a folder's bundles those at a URL; what is whole there stays, if this is ended.

    payload: "url", "folder", and "signed", whether signatures that came later are looked for.
    RegistryError if the URL cannot be reached.
    """
    place, folder = Place(payload["url"]), Path(payload["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    names = place.names()
    for name in names:
        here, signed = folder / name, folder / (name + SIGNATURE)
        if here.exists() and (signed.exists() or not payload["signed"]):
            continue
        signature = place.signature(name)
        if signature is not None:  # first, so that the bundle is never there without it
            write_whole(signed, signature)
        if not here.exists() and (content := place.bundle(name)) is not None:
            write_whole(here, content)
    wanted = {*names, *(name + SIGNATURE for name in names)}
    for path in folder.iterdir():
        if path.name not in wanted:  # withdrawn, or of a fetch that was ended
            path.unlink()
