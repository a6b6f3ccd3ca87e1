"""`ansor-deploy run`: a library's outputs on given inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from .arrays import read_inputs, shape_text, write_directory, write_npz
from .helptext import examples
from .options import artifact_file, device_option, json_option
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from .arrays import Arrays


@click.command(
    "run",
    epilog=examples(
        "run resnet18.so --input data=image.npy",
        "run resnet18.so --input data=image.npy -o out.npz",
        "run bert.so --input inputs.npz --output-dir outputs",
        "run resnet18.so --input data=image.npy --device pi",
    ),
)
@click.argument("artifact", type=artifact_file)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An input's array; or FILE.npz, with several. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the outputs to this .npz file.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each output to a .npy file here.",
)
@device_option
@json_option
def command(
    artifact: Path,
    inputs: tuple[str, ...],
    output: Path | None,
    output_dir: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Run a library on arrays from files.

    Without an output option, prints what the outputs look like.
    """
    from ..pipeline import opened
    from ..report.choose import report_on_stderr

    if output and output_dir:
        raise UsageError("--output and --output-dir exclude each other", "give one of them")
    with (
        stdout_kept_clean(),
        report_on_stderr(plain=as_json) as report,
        opened(artifact, device, report) as model,
    ):
        outputs = model(**read_inputs(inputs, model.inputs))
    paths = write(outputs, output, output_dir)
    summaries = [summary(name, array) for name, array in outputs.items()]
    if as_json:
        print_json({"outputs": summaries, "files": [str(path) for path in paths]})
    else:
        lines = [f"wrote {path}" for path in paths] or [summary_line(each) for each in summaries]
        click.echo("\n".join(lines))


def write(outputs: Arrays, output: Path | None, output_dir: Path | None) -> list[Path]:
    """The files written, if any were asked for."""
    if output:
        return write_npz(output, outputs)
    return write_directory(output_dir, outputs) if output_dir else []


def summary(name: str, array: Any) -> dict[str, Any]:
    """An output in figures."""
    figures: dict[str, Any] = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
    if array.size:
        figures |= {"min": array.min().item(), "max": array.max().item()}
        figures["mean"] = float(array.mean(dtype="float64"))
    return figures


def summary_line(figures: dict[str, Any]) -> str:
    """An output in words."""
    line = f"{figures['name']} {shape_text(figures['shape'])} {figures['dtype']}"
    if "mean" not in figures:
        return f"{line}: empty"
    low, high, mean = (format(figures[key], ".6g") for key in ("min", "max", "mean"))
    return f"{line}: min {low}, max {high}, mean {mean}"
