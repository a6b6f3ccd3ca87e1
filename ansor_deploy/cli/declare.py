"""How options are declared: several as one, of words, of numbers, of files."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class _Named(click.Path):
    """A path that manifests and registries can name."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if self.exists:
            with suppress(OSError):  # which click has words for
                _check_is_there(Path(value))
        path = super().convert(value, param, ctx)
        try:
            str(path).encode()
        except UnicodeEncodeError:
            self.fail(f"the name {str(path)!a} is no UTF-8: rename it", param, ctx)
        return path


def _check_is_there(path: Path) -> None:
    """UsageError, with what lies there instead, where there is no file."""
    from .nearby import nearby

    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file", nearby(path))
    if not path.exists():
        raise UsageError(f"there is no file {path}", nearby(path))


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
