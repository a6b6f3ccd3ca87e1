"""How options are declared: several as one, of words, of numbers, of files."""

import os
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

_KINDS = (".onnx", ".so")  # of files that most commands take
_MOST_SHOWN = 6
_MOST_READ = 10_000  # names of a folder


class _Named(click.Path):
    """A path that manifests and registries can name."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        _check_place(Path(value), read=self.exists)
        path = super().convert(value, param, ctx)
        try:
            str(path).encode()
        except UnicodeEncodeError:
            self.fail(f"the name {str(path)!a} is no UTF-8: rename it", param, ctx)
        return path


def _check_place(path: Path, *, read: bool) -> None:
    """UsageError where a file is to be read and there is none, or where no file can be.

    What is not permitted, click has words for.
    """
    try:
        if S_ISDIR(path.stat().st_mode) and read:
            raise UsageError(f"{path} is a folder: name a file", _nearby(path))
    except FileNotFoundError:
        if read:
            raise UsageError(*_missing(path)) from None
    except PermissionError:
        pass
    except OSError as error:  # below another file, or with too long a name
        reason = (error.strerror or "").lower()
        raise UsageError(f"{path} can be no file: {reason}", "give another name") from None


def _missing(path: Path) -> tuple[str, str]:
    """What is said of a path at which no file is, and a hint."""
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which is not there", "make the link anew"
    return f"there is no file {path}", _nearby(path)


def _nearby(path: Path) -> str:
    """A hint for a path at which no file is: the name that is meant, probably, or what is there."""
    import difflib  # which only an error needs

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


existing_file = _Named(exists=True, dir_okay=False, readable=True, path_type=Path)
new_file = _Named(dir_okay=False, path_type=Path)


def check_files(ctx: click.Context, **known: Path) -> None:
    """UsageError where the files that a command writes are not apart, and from those that it reads.

    known: parameters that have become known since.
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
    """An option for one of several words. what: its help."""
    choice, text = click.Choice(list(words)), f"{what}  [default: {default}]"
    return click.option(name, type=choice, default=default, help=text)


def number_option(name: str, default: int, what: str) -> Decorator:
    """An option for a whole number, which may be its default or more than 0. what: its help."""
    number, words = click.IntRange(min=min(default, 1)), f"{what}  [default: {default}]"
    return click.option(name, type=number, default=default, metavar="N", help=words)
