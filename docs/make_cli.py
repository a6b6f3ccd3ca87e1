"""Write docs/cli.md from the help of every command, or with --check say whether it is stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ansor_deploy.cli import main as root

PAGE = Path(__file__).with_name("cli.md")
WIDTH = 88
PREFACE = """\
# Commands

What `--help` prints, command by command. Written by `docs/make_cli.py`: change the command's
docstring and run `python docs/make_cli.py`.

Errors and progress go to stderr, results to stdout; `--json` prints one JSON object there.
"""


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Every command below and with this one: its full name and its help."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from commands(found, child, context)


def page() -> str:
    """The whole page."""
    parts = [PREFACE]
    for name, text in commands(root, "ansor-deploy"):
        body = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {name}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


def run(arguments: list[str]) -> int:
    """Write the page, or check it; the exit status."""
    wanted = page()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PAGE.name} is not what --help says: run python docs/make_cli.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
