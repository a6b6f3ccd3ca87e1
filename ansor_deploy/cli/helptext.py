"""How a command's --help reads: what it does, examples, and its options in groups."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .declare import check_files

_Made = TypeVar("_Made", bound=click.Command)


# Options by what they are about, in the order of help; the others come last.
_GROUPS = {
    "Model and target": "target targets input_shapes context precision calibrate keep_float rules",
    "Tuning": "effort trials seconds goal goals chosen min_impact search seed retune farm folder",
    "Running": "preset run_seconds threads streams rate engines engine trace",
    "Devices": "devices device no_device",
    "Records": "registry reuse lock frozen",
    "Output": "output page verify rtol atol beside header depfile touch max_size max_memory",
}
_FEW = 8  # options need no groups

QUIET = f"{__package__}.quiet"  # key in a command's context: it is to be quiet


class _Help(click.Command):
    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples come first: most people want one of them."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)


class Command(_Help):
    """A command with its options in groups, where it has many; it can be quiet."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        quiet = click.option(
            *("-q", "--quiet"),
            is_flag=True,
            expose_value=False,
            callback=_note_quiet,
            help="Say nothing on stderr but warnings and errors.",
        )
        quiet(self)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless it would write over what it reads."""
        check_files(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group that the command has options of."""
        # What an argument is, the text says.
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        params = [(one.name or "", one.get_help_record(ctx)) for one in options]
        left = {name: record for name, record in params if record}
        groups = _GROUPS if len(left) > _FEW else {}
        for title, names in groups.items():
            if found := [left.pop(name) for name in names.split() if name in left]:
                _write(formatter, title, found)
        _write(formatter, "Other options" if groups else "Options", list(left.values()))


class Group(_Help, click.Group):
    """A group of such commands."""

    command_class = Command


def _note_quiet(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[QUIET] = True


def _write(formatter: click.HelpFormatter, title: str, records: list[tuple[str, str]]) -> None:
    with formatter.section(title):
        formatter.write_dl(records)


def with_examples(*lines: str) -> Callable[[_Made], _Made]:
    """Let a command's help have these examples."""

    def add(command: _Made) -> _Made:
        command.epilog = examples(*lines)
        return command

    return add


def examples(*lines: str) -> str:
    """The block of them in a command's help."""
    return verbatim("\n".join(["Examples:", *(f"  ansor-deploy {line}" for line in lines)]))


def verbatim(text: str) -> str:
    """The text with a backspace before each paragraph: click's sign not to wrap it again."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.split("\n\n"))
