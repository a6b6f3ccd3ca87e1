"""What follows the options in a command's --help."""

from __future__ import annotations


def verbatim(text: str) -> str:
    """The text with a backspace before each paragraph: click's sign not to wrap it again."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.split("\n\n"))


def examples(*lines: str) -> str:
    """The block that every command's help ends with."""
    return verbatim("\n".join(["Examples:", *(f"  ansor-deploy {line}" for line in lines)]))
