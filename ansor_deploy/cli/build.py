"""`ansor-deploy build`: the one command from a model to a library."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import BudgetError
from ..request import ENGINES, Outputs, Request, make_objective
from ..runtime.manifest_json import manifest_path
from ..system.environment import below_make
from ..views import Report
from ..views.text import latency, origins_text
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import building_options, limit_options, require_hits_option, reuse_option
from .output import Answer, answering, is_quiet, message_format_option, report, verbose_option
from .tolerances import tolerance_options
from .values import parse_latency

if TYPE_CHECKING:
    from ..ship.build_result import BuildResult

PROFILE_SECONDS = 2.0  # how long a library runs to be profiled for its report


@with_examples(
    "build resnet18.onnx",
    "build resnet18.onnx -o out/resnet18.so --time 10m",
    "build resnet18.onnx --report resnet18.html",
    "build bert.onnx --input-shape ids=1,128 --effort thorough",
    "build resnet18.onnx --trials 0 --json",
    "build resnet34.onnx --reuse near --trials 0",
    "build resnet18.onnx --target rpi3",
    "build resnet18.onnx --target intel-cpu-avx512,intel-cpu-avx2",
    "build resnet18.onnx --device pi --time 1h",
    "build resnet18.onnx --goal 5ms --time 1h",
    "build resnet18.onnx --for throughput",
    "build resnet18.onnx --retune all --time 1h",
    "build resnet18.onnx --precision int8 --calibrate samples.npz",
    "build resnet18.onnx --max-size 50MB --max-memory 64MB",
    "build resnet18.onnx --lock records.lock",
    "build resnet18.onnx --lock records.lock --frozen",
    "build resnet18.onnx --require-hits --read-only",
    "build resnet18.onnx --target rpi3 --no-verify",
    "build resnet18.onnx --lock r.lock --depfile resnet18.d --header",
)
@click.command("build", cls=Command)
@click.argument("model", type=existing_file)
@click.option(
    "-o",
    "--output",
    type=new_file,
    help="The library to write.  [default: the model's name with .so, in this folder]",
)
@tolerance_options
@building_options
@reuse_option
@limit_options
@click.option(
    "--frozen/--no-frozen",
    default=None,
    help="Use only the lock's records and measure nothing; exit 5 if the lock lacks one.  "
    "[default: frozen if CI is set and --lock is given]",
)
@require_hits_option
@click.option("--read-only", is_flag=True, help="Write nothing to the registry, and tune nothing.")
@click.option(
    "--no-verify",
    "verify",
    flag_value=False,
    default=True,
    help="Do not compare the outputs with ONNX Runtime's; the manifest says so.",
)
@click.option(
    "--reduce",
    type=new_file,
    metavar="PART.onnx",
    help="If the outputs differ, write a small part of the model that is wrong by itself, and its "
    "inputs in PART.onnx.npz.",
)
@click.option(
    "--beside",
    type=click.Choice([*ENGINES, "none"]),
    default=ENGINES[0],
    callback=lambda ctx, option, name: "" if name == "none" or below_make() else name,
    help="The engine to compare the library's time with, if it runs on this machine.  [default: "
    f"{ENGINES[0]}; none if make runs the build]",
)
@click.option(
    "--for",
    "preset",
    type=click.Choice(["latency", "throughput"]),
    callback=lambda ctx, option, name: name or "",
    help="Measure which number of threads, and of processes side by side, is best for this, and "
    "keep it.  [default: one thread for each core]",
)
@click.option(
    "--goal",
    type=parse_latency,
    metavar="5ms",
    help="Tune until a run takes at most this time. If it never does, write the library and "
    "exit 7.",
)
@click.option(
    "--depfile", type=new_file, help="Write the library's dependencies here, for make and Ninja."
)
@click.option("--header", is_flag=True, help="Write a C header beside the library.")
@click.option(
    "--touch", is_flag=True, help="Give all outputs but the header new times, for plain make."
)
@click.option(
    "--report",
    "page",
    type=new_file,
    help="Also write a report: an .html, .md or .json file.",
)
@verbose_option("Show how long steps take, the whole plan, and what rules print.")
@answering
@message_format_option
def command(
    model: Path,
    output: Path | None,
    depfile: Path | None,
    header: bool,
    touch: bool,
    goal: float | None,
    page: Path | None,
    request: Request,
) -> Answer:
    """Tune, compile, verify and write a model's library.

    Only tasks that have no record and that matter are tuned, within the budget. If the library is
    up to date, nothing is done. A manifest and a provenance are written beside it.

    With --target A,B the library has code for both. A process that loads it runs the first code
    that its processor can run. Only the code for this machine is tuned and timed.

    If the code runs on this machine, it is timed beside ONNX Runtime. If the target's code cannot
    be run anywhere, the same import of the model, built for this machine, is verified instead.

    With --precision int8, ONNX Runtime's quantiser first makes NAME.int8.onnx beside the library,
    and the library is built from that.
    """
    from ..pipeline import build, gained
    from ..ship.outputs.commit import touch as make_new

    form = page and _form_of(page)
    # Under a build system that asks for a depfile, say as little as under make.
    quiet = below_make() or depfile is not None or is_quiet()
    outputs = Outputs(output or Path(f"{model.stem}.so"), header, depfile, page)
    if goal is not None:
        request = replace(request, objective=make_objective("goal", [goal]))
    with report(quiet=quiet) as events:
        result = build(model, outputs, request, events)
        if request.calibration and not request.frozen and request.beside:
            result = gained(model, result, request, events, Report())
        if (labels := result.manifest.labels) and not result.up_to_date:
            where = f"'labels' in {manifest_path(result.artifact)} says which"
            events.warn(f"{', '.join(labels)}: numbers stand for maps or text; {where}")
        if not result.verified:
            events.warn(f"{result.artifact} is not verified: asked for by --no-verify")
        if missed := goal is not None and missed_goal(result, goal):
            events.warn(missed)
        if page and form and not (result.up_to_date and page.exists()):
            events.wrote([described(result, page, form, request)])
        if not (page or result.up_to_date):
            events.suggest(shlex.join(["ansor-deploy", "report", str(result.artifact)]))
    if touch:
        make_new(result.artifact)
    lines = up_to_date_lines(result) if result.up_to_date and not quiet else []
    return Answer(result.answer, lines, BudgetError.exit_code if missed else 0)


def up_to_date_lines(result: BuildResult) -> list[str]:
    """The lines about a library that is up to date: its path, and where its records came from."""
    tuned = result.tuned
    known = [f"hits     {origins_text(tuned.origins, tuned.tasks)}"] if tuned.origins else []
    return [f"{result.artifact} is up to date", *known]


def _form_of(page: Path) -> str:
    from .report import form_of  # imported here: an unchanged build does not need its options

    return form_of(page)


def described(result: BuildResult, page: Path, form: str, request: Request) -> Path:
    """Write a build's report in one of the `FORMATS`; return its path."""
    from ..views.page.write import write_report

    return write_report(result.artifact, request.registry, PROFILE_SECONDS, page, form)[0]


def missed_goal(result: BuildResult, goal: float) -> str:
    """Why a library does not meet its goal, or "" if it does.

    goal: the most seconds that a run may take.
    """
    if not (speed := result.manifest.speed):
        return f"whether {result.artifact} meets its goal is not known: it was not run"
    if (taken := max(speed.shapes_ms) / 1e3) > goal:
        return f"{result.artifact} takes {latency(taken)} a run, its goal is {latency(goal)}"
    return ""
