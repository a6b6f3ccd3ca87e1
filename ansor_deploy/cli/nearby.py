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
    """The name that is meant, probably, and the files of its kind; "" where there are none."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    kinds = _KINDS if folder == path or not path.suffix else (path.suffix,)
    known = _names(folder, kinds)
    close = [] if folder == path else difflib.get_close_matches(path.name, known, n=1)
    if close:
        return f"did you mean {folder / close[0]}?"
    where = "this folder" if folder == Path() else str(folder)
    return f"{where} has {_listed(known) or 'no file *' + ' or *'.join(kinds)}"


def _names(folder: Path, kinds: tuple[str, ...]) -> list[str]:
    """The names of files of some kinds in a folder; none where it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(one.name for one in islice(entries, _MOST_READ) if one.name.endswith(kinds))
    return []


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
