"""Write docs/cli.md and the manual pages in docs/man from the help of every command.

With --check, say which of them are stale. There is a manual page for each command that
`ansor-deploy --help` names: `man ansor-deploy-registry` has the commands below it, too. The wheel
installs them to share/man/man1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill

import click

from ansor_deploy import __version__
from ansor_deploy.cli import main as root

PAGE = Path(__file__).with_name("cli.md")
FOLDER = Path(__file__).with_name("man")
WIDTH = 88
PREFACE = """\
# Commands

What `--help` prints, command by command. Written by `docs/make_cli.py`: change the command's
docstring and run `python docs/make_cli.py`.

Errors and progress go to stderr, results to stdout; `--json` prints one JSON object there. The
same as manual pages, which the wheel brings along: `man ansor-deploy`, `man ansor-deploy-build`.
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


# Characters that typesetting would make others of.
PLAIN = str.maketrans(
    {"\\": r"\e", "-": r"\-", "`": r"\(ga", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti"}
)


class Manual(click.HelpFormatter):
    """What click would write as help, in the macros of man(7).

    heading: the macro of a section's head.
    """

    def __init__(self, heading: str = ".SH") -> None:
        super().__init__()
        self._heading = heading

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """How the command is called."""
        self.head("Synopsis")
        self.write(f"\\fB{roff(prog)}\\fR\n{roff(args)}\n")
        self.head("Description")

    def write_text(self, text: str) -> None:
        """Paragraphs; one that stands as it is begins with a backspace, and its head."""
        for number, paragraph in enumerate(text.split("\n\n")):
            if paragraph.startswith("\b"):
                head, *lines = paragraph.splitlines()[1:]
                self.head(head.rstrip(":"))
                self.write("\n".join([".nf", *map(roff, lines), ".fi\n"]))
            else:
                self.write(".PP\n" * bool(number) + filled(paragraph))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Terms, each with what it means."""
        for term, meaning in rows:
            self.write(f".TP\n\\fB{roff(term)}\\fR\n{filled(meaning)}")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """A group of options, or the commands below this one."""
        self.head(name)
        yield

    def head(self, name: str) -> None:
        """The head of a section."""
        self.write(f'{self._heading} "{roff(name.upper() if self._heading == ".SH" else name)}"\n')


def roff(text: str) -> str:
    """The text as it stands, in man(7)."""
    return re.sub(r"^([.'])", r"\\&\1", text.translate(PLAIN), flags=re.MULTILINE)


def filled(text: str) -> str:
    """A paragraph, on short lines of source."""
    return roff(fill(text, 60, break_long_words=False, break_on_hyphens=False)) + "\n"


def below(context: click.Context) -> Iterator[click.Context]:
    """The commands of a group, each in a context of its own."""
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            found = context.command.get_command(context, name)
            if found is not None and not found.hidden:
                yield click.Context(found, info_name=name, parent=context, **found.context_settings)


def manual_page(context: click.Context) -> str:
    """The manual page of a command; a group's tells of the commands below it, too."""
    name, made = name_of(context), Manual()
    what = context.command.get_short_help_str(200).rstrip(".")
    made.write(f'.TH {roff(name.upper())} 1 "" "ansor\\-deploy {__version__}"\n')
    made.write(f".SH NAME\n{roff(name)} \\- {roff(what)}\n")
    context.command.format_help(context, made)
    parts = [made.getvalue()]
    for child in below(context) if context.parent else ():
        part = Manual(".SS")
        child.command.format_help(child, part)
        parts.append(f'.SH "{roff(child.command_path)}"\n{part.getvalue()}')
    others = [context.parent] if context.parent else below(context)
    names = ",\n".join(f"\\fB{roff(name_of(other))}\\fR(1)" for other in others)
    return "".join([*parts, f'.SH "SEE ALSO"\n{names}\n'])


def name_of(context: click.Context) -> str:
    """What man calls a command."""
    return context.command_path.replace(" ", "-")


def pages() -> dict[Path, str]:
    """What is written, by file."""
    top = click.Context(root, info_name="ansor-deploy", **root.context_settings)
    manual = {FOLDER / f"{name_of(one)}.1": manual_page(one) for one in (top, *below(top))}
    return {PAGE: page(), **manual}


def run(arguments: list[str]) -> int:
    """Write the pages, or check them; the exit status."""
    wanted = pages()
    there = {path: path.read_text("utf-8") for path in (PAGE, *FOLDER.glob("*")) if path.exists()}
    stale = [path for path in {**there, **wanted} if there.get(path) != wanted.get(path)]
    if "--check" in arguments:
        for path in stale:
            what = f"{path.name} is not what --help says: run python docs/make_cli.py"
            print(what, file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path in stale:
        if path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
