"""`ansor-deploy report`: what a build achieved, as a page."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import structs

from ..errors import UsageError
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import registry_path
from .output import Answer, answering
from .run_options import seconds_option

FORMATS = ("html", "md", "json")


@with_examples(
    "report resnet18.so",
    "report resnet18.so -o resnet18.html --time 10s",
    "report resnet18.so -o resnet18.md",
)
@click.command("report", cls=Command)
@click.argument("artifact", type=existing_file)
@click.option(
    "--output",
    "-o",
    type=new_file,
    help="The file to write: .html, .md or .json.  [default: the library's name with .report.html]",
)
@seconds_option("How long to run the library for its profile.")
@registry_path
@answering
def command(artifact: Path, output: Path | None, run_seconds: float, registry: Path) -> Answer:
    """Write a page on what a build achieved.

    The page also shows where the time goes. An HTML page is one file that loads nothing. The tuning
    curves and what was reused come from the registry. The profile is taken now, if this machine can
    run the library.
    """
    from ..views.page.content import Report
    from ..views.page.write import write_report

    path, facts = write_report(artifact, registry, run_seconds, output, form_of(output))
    return Answer(Report(report=path, **structs.asdict(facts.answer)), [f"wrote {path}"])


def form_of(output: Path | None) -> str:
    """The format of a report, from the ending of its file's name; HTML without an ending.

    UsageError for an unknown ending.
    """
    named = output.suffix.lstrip(".") if output else ""
    if named and named not in FORMATS:
        hint = f"end its name in .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}"
        raise UsageError(f"{output}: a report is no .{named} file", hint)
    return named or FORMATS[0]
