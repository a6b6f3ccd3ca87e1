"""The layout of a command's --help: what it does, examples, and its options in groups."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .declare import check_files

_Made = TypeVar("_Made", bound=click.Command)


# Options by topic, in the order of help; options that are not listed come last.
_GROUPS = {
    "Model and target": "target targets input_shapes context precision calibrate keep_float rules",
    "Tuning": "effort trials seconds goal goals chosen min_impact search seed retune farm folder",
    "Running": "preset run_seconds threads streams rate times engines engine trace",
    "Devices": "devices device no_device",
    "Records": "registry reuse lock frozen",
    "Output": "output page verify rtol atol reduce beside header depfile touch max_size max_memory",
}
_FEW = 8  # so many options, or fewer, are not grouped

QUIET = f"{__package__}.quiet"  # key in a command's context: set by --quiet


class _Help(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name this command in an error of an option without its value, as click does not."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help with its examples before the options, as most people look for those."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)


class Command(_Help):
    """A command that has --quiet, and shows its options in groups where it has many."""

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
        """Run the command; UsageError where it would overwrite what it reads."""
        check_files(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of which the command has options."""
        # Arguments are left out: the command's text explains them.
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        params = [(one.name or "", one.get_help_record(ctx)) for one in options]
        left = {name: record for name, record in params if record}
        groups = _GROUPS if len(left) > _FEW else {}
        for title, names in groups.items():
            if found := [left.pop(name) for name in names.split() if name in left]:
                _write(formatter, title, found)
        _write(formatter, "Other options" if groups else "Options", list(left.values()))


class Group(_Help, click.Group):
    """A group of commands of the kind `Command`."""

    command_class = Command


def _note_quiet(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[QUIET] = True


def _write(formatter: click.HelpFormatter, title: str, records: list[tuple[str, str]]) -> None:
    with formatter.section(title):
        formatter.write_dl(records)


def with_examples(*lines: str) -> Callable[[_Made], _Made]:
    """Add a block of examples to a command's help."""

    def add(command: _Made) -> _Made:
        command.epilog = examples(*lines)
        return command

    return add


def examples(*lines: str) -> str:
    """The block of examples in a command's help."""
    return verbatim("\n".join(["Examples:", *(f"  ansor-deploy {line}" for line in lines)]))


def verbatim(text: str) -> str:
    """The text with a backspace before each paragraph, which keeps click from wrapping it."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.split("\n\n"))
