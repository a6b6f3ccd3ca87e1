"""`ansor-deploy init`: let a folder's builds make libraries of models."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import UsageError
from ..project import Project
from ..views.choose import report_on_stderr
from .declare import existing_file
from .helptext import Command, with_examples
from .options import input_shape_option, registry_option, target_option
from .output import Answer, answering, in_columns, is_quiet, say
from .requests import make_request, tuning_command
from .shapes import InputShapes, shape_text, shapes_together

if TYPE_CHECKING:
    from ..request import Request
    from ..ship.integrations.build_systems import BuildSystem, Model

SYSTEMS = ("make", "cmake", "ninja", "bazel")


class Addition(Struct, frozen=True):
    """Lines to be added by hand to a file that exists."""

    file: str
    lines: list[str]


class Started(Struct, frozen=True):
    """The answer of `init --json`. written: new files.

    next: the command that builds, and runs the program if there is a new one; null in a folder
    that had a build. later: the command that tunes.
    """

    written: list[str]
    add: list[Addition]
    next: str | None
    later: str

    @property
    def lines(self) -> Iterator[str]:
        """The answer as text."""
        if not self.written:
            yield "nothing to write: all is there"
        for one in self.add:
            yield f"add to {one.file}:"
            yield from (f"  {line}" for line in one.lines)
        if is_quiet():
            return
        if self.next:
            yield f"next: {self.next}"
        yield f"later, for faster schedules: {self.later}"


@with_examples(
    "init", "init models/resnet18.onnx --build cmake", "init resnet18.onnx --target rpi3 --yes"
)
@click.command("init", cls=Command)
@click.argument("models", type=existing_file, nargs=-1)
@click.option(
    "--build",
    "named",
    type=click.Choice(SYSTEMS),
    help="The build system.  [default: the folder's, else make]",
)
@target_option
@registry_option
@input_shape_option
@click.option("--yes", is_flag=True, help="Write the files without asking.")
@answering
def command(
    models: tuple[Path, ...],
    named: str | None,
    target: str | None,
    registry: Path | None,
    input_shapes: InputShapes,
    yes: bool,
) -> Answer:
    """Let this folder's builds make libraries of models.

    Writes a file that the build includes, and a lock with the schedules that are known. In a folder
    without a build, it also writes a build file and a small C program that runs the first model.
    MODELS are by default the ONNX files of this folder. Existing files are left as they are: the
    lines to add to them are printed.
    """
    from ..ship.integrations.build_systems import LOCK, system_of
    from ..ship.integrations.scaffold import check_folder, check_names

    wanted = _wanted(models, target, input_shapes)
    lock, paths = Path(LOCK), [model.path for model in wanted]
    request = make_request(
        target=target,
        registry=registry,
        input_shapes=input_shapes,
        lock=lock,
        remake=tuning_command(models=paths, target=target, input_shapes=input_shapes, lock=lock),
    )
    check_names(wanted)
    system = system_of(Path(), named)
    check_folder(Path.cwd(), system)
    if system.name == "bazel" and len(shapes_together(input_shapes)) > 1:
        hint = "give one: ansor_model() has one shape of each input"
        raise UsageError("--input-shape: several shapes of an input are not for Bazel", hint)
    made = _start(wanted, system, request, yes=yes)
    return Answer(made, made.lines)


def _wanted(models: Sequence[Path], target: str | None, input_shapes: InputShapes) -> list[Model]:
    """The models that are given, else those of this folder. UsageError if there are none."""
    from ..ship.integrations.build_systems import Model

    paths = list(models) or sorted(Path().glob("*.onnx"))
    if not paths:
        raise UsageError(
            "there is no ONNX file in this folder", "ansor-deploy init path/to/model.onnx"
        )
    name = target or Project.find().target or "host"
    shapes = tuple(shape_text(name, shape) for name, shape in input_shapes)
    return [Model(path, name, shapes) for path in paths]


def _start(models: list[Model], system: BuildSystem, request: Request, *, yes: bool) -> Started:
    """Write the files that the folder lacks; returns these, and what is left to do."""
    from ..devices.machine import runs_here
    from ..ship.integrations.scaffold import parts

    is_new = not system.shows_in(Path())
    program = "later" if is_new and runs_here(request.target) else ""
    lacking = [part for part in parts(Path(), system, models, program) if not part.is_there]
    rows = [(f"{part.path}", part.what) for part in lacking]
    if request.lock is not None and not request.lock.exists():
        rows.append((f"{request.lock}", "the schedules that are known by now"))
    if rows:
        _ask(rows, yes=yes)
        models, program = _read(models, request, program)
    wanted = list(parts(Path(), system, models, program))
    for part in wanted:
        if not part.is_there:
            part.make()
    return Started(
        [path for path, _ in rows],
        [Addition(str(p.path), p.lacking.splitlines()) for p in wanted if p.lacking],
        (system.run if program else system.build) if is_new else None,
        system.tune.format(model=models[0]) or request.remake,
    )


def _ask(rows: list[tuple[str, str]], *, yes: bool) -> None:
    """Ask whether to write the files; exit with 1 on a no. UsageError without a terminal."""
    say("to be written:", err=True)
    for line in in_columns(rows):
        say(f"  {line}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        same = shlex.join(["ansor-deploy", *click.get_current_context().find_root().obj, "--yes"])
        raise UsageError("nothing is written: there is nobody to ask", same)
    if not click.confirm("write these?", default=True, err=True):
        click.get_current_context().exit(1)


def _read(models: list[Model], request: Request, program: str) -> tuple[list[Model], str]:
    """The models with the files of their external weights, and the text of the program.

    Writes the lock.
    """
    from ..pipeline import write_known
    from ..ship.describe import interface
    from ..ship.integrations import starter

    with report_on_stderr() as events:
        prepared = write_known([model.path for model in models], request, events)
    shape = interface(prepared[0].imported.interfaces[0])
    text = starter.program(models[0].name, shape) if program else ""
    pairs = zip(models, prepared, strict=True)
    return [replace(model, external=one.external) for model, one in pairs], text
