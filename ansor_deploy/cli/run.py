"""`ansor-deploy run`: compute a library's outputs for given inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from ..errors import UsageError
from ..registry.title import shape_text
from ..system.json_types import Shape
from .arrays import input_option, read_inputs, write_arrays
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import device_option
from .output import Answer, answering, report


class OutputSummary(Struct, frozen=True):
    """A summary of an output. min, max, mean: null for an output without elements."""

    name: str
    shape: Shape
    dtype: str
    min: float | None
    max: float | None
    mean: float | None

    @classmethod
    def of(cls, name: str, array: Any) -> OutputSummary:
        """The summary of an array."""
        known = name, array.shape, str(array.dtype)
        if not array.size:
            return cls(*known, None, None, None)
        mean = float(array.mean(dtype="float64"))
        return cls(*known, array.min().item(), array.max().item(), mean)

    @property
    def line(self) -> str:
        """The summary as text."""
        line = f"{self.name} {shape_text(self.shape)} {self.dtype}"
        if self.mean is None:
            return f"{line}: empty"
        return f"{line}: min {self.min:.6g}, max {self.max:.6g}, mean {self.mean:.6g}"


class Run(Struct, frozen=True):
    """The answer of `run --json`. files: the paths that were written."""

    outputs: list[OutputSummary]
    files: list[str]


@with_examples(
    "run resnet18.so --input data=image.npy",
    "run resnet18.so --input data=image.npy -o out.npz",
    "run bert.so --input inputs.npz --output-dir outputs",
    "run resnet18.so --input data=image.npy --device pi",
)
@click.command("run", cls=Command)
@click.argument("artifact", type=existing_file)
@input_option
@click.option("-o", "--output", type=new_file, help="Write the outputs to this .npz file.")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each output to a .npy file in this folder.",
)
@device_option
@answering
def command(
    artifact: Path,
    inputs: tuple[str, ...],
    output: Path | None,
    output_dir: Path | None,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Run a library on arrays from files.

    Without an output option, it prints a summary of each output. Where there is no device, QEMU
    runs code for another architecture, if it is installed.
    """
    from ..ship.library import opened_or_emulated

    if output and output_dir:
        raise UsageError("--output and --output-dir exclude each other", "give one of them")
    with report() as events, opened_or_emulated(artifact, devices, events) as model:
        outputs = model(**read_inputs(inputs, model.interfaces))
    paths = [str(path) for path in write_arrays(outputs, output, output_dir)]
    summaries = [OutputSummary.of(name, array) for name, array in outputs.items()]
    lines = [f"wrote {path}" for path in paths] or [summary.line for summary in summaries]
    return Answer(Run(summaries, paths), lines)
