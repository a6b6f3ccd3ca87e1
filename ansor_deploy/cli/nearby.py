"""A hint for a path at which no file is: what lies there instead."""

import difflib
import os
from contextlib import suppress
from itertools import islice
from pathlib import Path

_KINDS = (".onnx", ".so")  # what most commands take
_MOST_SHOWN = 6
_MOST_READ = 10_000  # names of a folder


def nearby(path: Path) -> str:
    """The name that is meant, probably, and the files of its kind."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if folder != path:
        alike = _names(folder, (path.suffix,))
        if close := difflib.get_close_matches(path.name, alike, n=1):
            return f"did you mean {folder / close[0]}?"
    known = _names(folder, (path.suffix,) if path.suffix and folder != path else _KINDS)
    where = "this folder" if folder == Path() else str(folder)
    return f"{where} has {_listed(known)}" if known else "check the path"


def _names(folder: Path, kinds: tuple[str, ...]) -> list[str]:
    """The names of files of some kinds in a folder; none where it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(one.name for one in islice(entries, _MOST_READ) if one.name.endswith(kinds))
    return []


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
