"""`ansor-deploy run`: a library's outputs on given inputs."""

from pathlib import Path
from typing import Any

import click

from ..errors import UsageError
from ..registry.title import shape_text
from .arrays import read_inputs, write_arrays
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import device_option
from .output import Answer, answering, quiet_option, report


@with_examples(
    "run resnet18.so --input data=image.npy",
    "run resnet18.so --input data=image.npy -o out.npz",
    "run bert.so --input inputs.npz --output-dir outputs",
    "run resnet18.so --input data=image.npy --device pi",
)
@click.command("run", cls=Command)
@click.argument("artifact", type=existing_file)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An input's array; or FILE.npz, with several. Repeatable.",
)
@click.option("-o", "--output", type=new_file, help="Write the outputs to this .npz file.")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each output to a .npy file here.",
)
@device_option
@quiet_option
@answering
def command(
    artifact: Path,
    inputs: tuple[str, ...],
    output: Path | None,
    output_dir: Path | None,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Run a library on arrays from files.

    Without an output option, prints what the outputs look like.
    """
    from ..ship.library import opened

    if output and output_dir:
        raise UsageError("--output and --output-dir exclude each other", "give one of them")
    with report() as events, opened(artifact, devices, events) as model:
        outputs = model(**read_inputs(inputs, model.interfaces))
    paths = [str(path) for path in write_arrays(outputs, output, output_dir)]
    summaries = [summary(name, array) for name, array in outputs.items()]
    lines = [f"wrote {path}" for path in paths] or [summary_line(each) for each in summaries]
    return Answer({"outputs": summaries, "files": paths}, lines)


def summary(name: str, array: Any) -> dict[str, Any]:
    """An output in figures."""
    figures: dict[str, Any] = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
    if array.size:
        figures |= {"min": array.min().item(), "max": array.max().item()}
        figures["mean"] = float(array.mean(dtype="float64"))
    return figures


def summary_line(figures: dict[str, Any]) -> str:
    """An output's figures as one line of text."""
    line = f"{figures['name']} {shape_text(figures['shape'])} {figures['dtype']}"
    if "mean" not in figures:
        return f"{line}: empty"
    low, high, mean = (format(figures[key], ".6g") for key in ("min", "max", "mean"))
    return f"{line}: min {low}, max {high}, mean {mean}"
