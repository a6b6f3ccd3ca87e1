"""The options of a build that quantises its model first."""

from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError
from ..request import Calibration
from .declare import Command, choice_option, together

INT8 = "int8"
_NEEDS = (
    "--precision int8 needs --calibrate: samples of the model's inputs, of which the ranges of its "
    "tensors are taken"
)
_HOW = (
    "save some hundred samples of what the model will see, as arrays named after its inputs, with "
    "numpy.savez('samples.npz', NAME=array), and give --calibrate samples.npz"
)


def quantised(precision: str, calibrate: Path | None, keep_float: Sequence[str]) -> dict[str, Any]:
    """The fields `precision` and `calibration` of a request. UsageError where options conflict."""
    if precision == INT8 and calibrate is None:
        raise UsageError(_NEEDS, _HOW)
    if precision != INT8 and (calibrate or keep_float):
        option = "--calibrate" if calibrate else "--keep-float"
        hint = "add --precision int8, or leave it out"
        raise UsageError(f"{option} is for a model that is quantised", hint)
    made = Calibration(calibrate, tuple(keep_float)) if calibrate else None
    return {"precision": "default" if precision == INT8 else precision, "calibration": made}


def with_calibration(command: Command) -> Command:
    """Turn the three options into a request's precision and calibration.

    With int8, `precision` becomes "default".
    """

    @wraps(command)
    def call(
        precision: str, calibrate: Path | None, keep_float: Sequence[str], **words: Any
    ) -> Any:
        return command(**quantised(precision, calibrate, keep_float), **words)

    return call


quantising_options = together(
    choice_option(
        "--precision",
        ("default", "strict", INT8),
        "default",
        "strict: use no algorithm that rounds in other places, such as Winograd's. int8: quantise "
        "the model first.",
    ),
    click.option(
        "--calibrate",
        type=click.Path(exists=True, readable=True, path_type=Path),
        metavar="SAMPLES",
        help="Samples of the inputs, from which quantising takes the scales: an .npz file with an "
        "array for each input, or a folder with a file for each sample.",
    ),
    click.option(
        "--keep-float",
        multiple=True,
        metavar="LAYER",
        help="Do not quantise this node of the model, or all that match a pattern such as 'head*'. "
        "Repeatable.",
    ),
    with_calibration,
)
