"""A check, made before any work, that a command does not write over its own files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import UsageError

_NULL = Path(os.devnull)  # many outputs may go there


def check_apart(written: Iterable[Path], read: Iterable[Path], hint: str) -> None:
    """UsageError where a file would be written twice, or written over a file that is read."""
    places = set[Path]()
    for path in written:
        if (place := _place(path)) in places:
            raise UsageError(_TWICE, hint, path)
        if place != _NULL:
            places.add(place)
    for path in read:
        if _place(path) in places:
            raise UsageError(_TWICE, hint, path)


def _place(path: Path) -> Path:
    """Where a path leads; of links in a circle some place, which is refused when it is opened."""
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError there before Python 3.13


_TWICE = "the command uses it twice, and would write over it"
