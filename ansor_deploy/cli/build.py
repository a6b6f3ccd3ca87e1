"""`ansor-deploy build`: the one command from a model to a library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .helptext import examples
from .options import (
    budget_options,
    json_option,
    model_file,
    place_options,
    reuse_option,
    session_options,
)
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..pipeline import Session


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
    ),
)
@click.argument("model", type=model_file)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The library to write.  [default: the model's name with .so, in this directory]",
)
@click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the records that were used in this file, for version control.",
)
@click.option(
    "--frozen",
    is_flag=True,
    help="Use the lock's records only; measure nothing; exit 5 if it lacks one.",
)
@session_options
@budget_options
@reuse_option
@place_options
@json_option
def command(
    model: Path,
    output: Path | None,
    lock: Path | None,
    frozen: bool,
    session: Session,
    as_json: bool,
) -> None:
    """Tune, compile, verify and write a model's library.

    Only what is missing from the registry and matters is tuned, within the budget. Nothing is done
    where the library is up to date. Beside it lies its manifest.
    """
    from ..pipeline import build
    from ..report.choose import report_on_stderr

    if frozen and lock is None:
        raise UsageError("--frozen needs a lock to build from", "name it: --lock FILE")
    session = replace(session, lock=lock, frozen=frozen)
    with stdout_kept_clean(), report_on_stderr(plain=as_json) as report:
        result = build(model, output or Path(f"{model.stem}.so"), session, report)
    if as_json:
        print_json(result.to_json())
    elif result.up_to_date:
        click.echo(f"{result.artifact} is up to date")
