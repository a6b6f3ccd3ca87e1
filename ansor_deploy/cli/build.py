"""`ansor-deploy build`: the one command from a model to a library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .helptext import examples
from .messages import message_format_option
from .options import (
    budget_options,
    frozen_options,
    json_option,
    model_file,
    place_options,
    request_options,
    reuse_option,
)
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..request import Request


@click.command(
    "build",
    epilog=examples(
        "build resnet18.onnx",
        "build resnet18.onnx -o out/resnet18.so --time 10m",
        "build bert.onnx --input-shape ids=1,128 --effort thorough",
        "build resnet18.onnx --trials 0 --json",
        "build resnet34.onnx --reuse near --trials 0",
        "build resnet18.onnx --target rpi3",
        "build resnet18.onnx --device pi --time 1h",
        "build resnet18.onnx --lock records.lock",
        "build resnet18.onnx --lock records.lock --frozen",
        "build resnet18.onnx --lock r.lock --depfile resnet18.d --header",
    ),
)
@click.argument("model", type=model_file)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The library to write.  [default: the model's name with .so, in this directory]",
)
@frozen_options
@click.option(
    "--depfile",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what the library depends on, for make and Ninja.",
)
@click.option("--header", is_flag=True, help="Write a C header beside the library.")
@click.option("--touch", is_flag=True, help="Outputs become new, the header apart: for plain make.")
@request_options
@budget_options
@reuse_option
@place_options
@json_option
@message_format_option
def command(
    model: Path,
    output: Path | None,
    lock: Path | None,
    frozen: bool,
    depfile: Path | None,
    header: bool,
    touch: bool,
    request: Request,
    as_json: bool,
    message_format: str,
) -> None:
    """Tune, compile, verify and write a model's library.

    Only what is missing from the registry and matters is tuned, within the budget. Nothing is done
    where the library is up to date. Beside it lie its manifest and its provenance.
    """
    from ..pipeline import build
    from ..report.choose import report_on_stderr
    from ..system.environment import below_make

    request = replace(request, lock=lock, frozen=frozen, header=header, depfile=depfile)
    output = output or Path(f"{model.stem}.so")
    quiet = frozen or below_make()
    with (
        stdout_kept_clean(),
        report_on_stderr(as_json, message_format=message_format, quiet=quiet) as report,
    ):
        result = build(model, output, request, report)
    if touch:
        from ..artifact.outputs import touch as touch_outputs

        touch_outputs(result.artifact)
    if as_json:
        print_json(result.to_json())
    elif result.up_to_date and not quiet:
        click.echo(f"{result.artifact} is up to date")
