"""What follows the options in a command's --help."""

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=click.Command)


def with_examples(*lines: str) -> Callable[[Command], Command]:
    """Let a command's help end with these examples."""

    def add(command: Command) -> Command:
        command.epilog = examples(*lines)
        return command

    return add


def examples(*lines: str) -> str:
    """The block that every command's help ends with."""
    return verbatim("\n".join(["Examples:", *(f"  ansor-deploy {line}" for line in lines)]))


def verbatim(text: str) -> str:
    """The text with a backspace before each paragraph: click's sign not to wrap it again."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.split("\n\n"))
