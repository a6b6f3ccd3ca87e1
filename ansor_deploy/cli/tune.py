"""`ansor-deploy tune`: fill the registry, apart from any build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .helptext import examples
from .options import budget_options, json_option, model_file, session_options
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..pipeline import Session


@click.command(
    "tune",
    epilog=examples(
        "tune resnet18.onnx --time 1h",
        "tune resnet18.onnx bert.onnx --trials 2000",
        "tune resnet18.onnx --effort thorough --min-impact 1%",
    ),
)
@click.argument("models", type=model_file, nargs=-1, required=True)
@session_options
@budget_options
@json_option
def command(models: tuple[Path, ...], session: Session, as_json: bool) -> None:
    """Fill the registry for models, without building.

    Interrupt it at will: what was measured is kept, and the same command resumes.
    """
    from ..pipeline import tune
    from ..report.choose import report_on_stderr
    from ..report.text import tune_summary

    with stdout_kept_clean(), report_on_stderr(plain=as_json) as report:
        result = tune(list(models), session, report)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(tune_summary(result))
