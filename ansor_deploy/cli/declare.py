"""How options are declared: several as one, of words, of numbers, of files."""

from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import click

from ..errors import UsageError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


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
            raise UsageError(f"there is no file {path}", _nearby(path)) from None
    except PermissionError:
        pass
    except OSError as error:  # below another file, or with too long a name
        reason = (error.strerror or "").lower()
        raise UsageError(f"{path} can be no file: {reason}", "give another name") from None


def _nearby(path: Path) -> str:
    from .nearby import nearby  # imports difflib

    return nearby(path)


existing_file = _Named(exists=True, dir_okay=False, readable=True, path_type=Path)
new_file = _Named(dir_okay=False, path_type=Path)


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
