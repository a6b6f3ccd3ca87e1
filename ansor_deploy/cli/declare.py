"""Helpers that declare options: several as one, a choice of words, numbers, files."""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from itertools import islice
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import click

from ..errors import UsageError
from ..system.apart import check_apart

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

_NO_UTF_8 = re.compile("[\ud800-\udfff]")  # what Python reads such bytes of a name as
_KINDS = (".onnx", ".so")  # the files that most commands take, for hints
_MOST_SHOWN = 6  # the most names in a hint
_MOST_READ = 10_000  # names that are read of a folder, at most


class _Named(click.Path):
    """A path that is UTF-8, so that TVM can open it, and manifests and registries can hold it."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not os.fspath(value):  # as of a script's variable that is not set
            self.fail("the name is empty", param, ctx)
        _check_place(Path(value), read=self.exists)
        path: Any = super().convert(value, param, ctx)
        if odd := [one for one in map(str, (path, path.absolute())) if _NO_UTF_8.search(one)]:
            self.fail(f"the name {odd[0]!a} is no UTF-8: rename it", param, ctx)
        return path


def _check_place(path: Path, *, read: bool) -> None:
    """UsageError where a file to be read is missing or a folder, or where no file can be.

    A missing permission is passed over: click has a message for it.
    """
    try:
        if S_ISDIR(path.stat().st_mode) and read:
            raise UsageError(f"{path} is a folder: name a file", _nearby(path))
    except FileNotFoundError:
        if read:
            raise UsageError(*_missing(path)) from None
    except PermissionError:
        pass
    except OSError as error:  # the path leads through a file, or a name is too long
        reason = (error.strerror or "").lower()
        raise UsageError(f"{path} can be no file: {reason}", "give another name") from None


def _missing(path: Path) -> tuple[str, str]:
    """The message for a path without a file, and a hint."""
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which is not there", "correct the link"
    return f"there is no file {path}", _nearby(path)


def _nearby(path: Path) -> str:
    """A hint for a path without a file: the name probably meant, or which files are there."""
    import difflib  # slow to import, and only errors need it

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
    """The names of a folder's files with these endings; none where it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(one.name for one in islice(entries, _MOST_READ) if one.name.endswith(kinds))
    return []


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


existing_file = _Named(exists=True, dir_okay=False, readable=True, path_type=Path)
new_file = _Named(dir_okay=False, path_type=Path)


def check_files(ctx: click.Context, **known: Path) -> None:
    """UsageError where a command would write two outputs to one file, or over one of its inputs.

    known: values of parameters that were decided after the command line was parsed.
    """
    given = {**ctx.params, **known}
    files: dict[Any, list[Path]] = {existing_file: [], new_file: []}
    for param in ctx.command.params:
        if param.type in files and (value := given.get(param.name or "")):
            files[param.type] += value if isinstance(value, tuple) else [value]
    read = files[existing_file]
    if any(path.suffix == ".so" for path in read):
        from ..ship.manifest import output_paths

        read = [one for path in read for one in output_paths(path, header=True)]
    check_apart(files[new_file], read, "give each file a name of its own")


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which help lists them."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def choice_option(name: str, words: Iterable[str], default: str, what: str) -> Decorator:
    """An option whose value is one of several words. what: its help."""
    choice, text = click.Choice(list(words)), f"{what}  [default: {default}]"
    return click.option(name, type=choice, default=default, help=text)


def number_option(name: str, default: int, what: str) -> Decorator:
    """An option for an integer of at least 1, or 0 where that is the default. what: its help."""
    number, words = click.IntRange(min=min(default, 1)), f"{what}  [default: {default}]"
    return click.option(name, type=number, default=default, metavar="N", help=words)
