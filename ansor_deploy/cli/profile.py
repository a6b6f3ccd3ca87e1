"""`ansor-deploy profile`: where a library's time goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from ..errors import UsageError
from ..target import built_for
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import device_option
from .output import Answer, answering, is_verbose, report, verbose_option
from .run_options import seconds_option, threads_option
from .shapes import Extent, InputShapes, parse_shape, shape_text

if TYPE_CHECKING:
    from ..measure.roof import Roof
    from ..runtime.profile import Profile
    from ..ship.race.node_groups import Group


@with_examples(
    "profile resnet18.so",
    "profile resnet18.so --threads 1 --json",
    "profile resnet18.so --verbose",
    "profile resnet18.so --beside onnxruntime",
    "profile resnet18.so --device pi",
    "profile resnet18.so --trace resnet18.trace.json",
    "profile bert.so --input-shape ids=1,48",
)
@click.command("profile", cls=Command)
@click.argument("artifact", type=existing_file)
@click.argument("model", type=existing_file, required=False)
@click.option(
    "--input-shape",
    "input_shapes",
    type=parse_shape,
    multiple=True,
    metavar="NAME=1,3,224,224",
    help="The shape of an input in the runs, of those that the library takes. Repeatable.  "
    "[default: each shape of the library, and the largest of a range]",
)
@threads_option
@seconds_option("How long to run the library.")
@click.option(
    "--trace", type=new_file, help="Write a timeline for ui.perfetto.dev or chrome://tracing."
)
@click.option(
    "--beside",
    "engine",
    type=click.Choice(["onnxruntime"]),
    help="Also list the times of this engine, for groups of nodes that both compute.",
)
@device_option
@verbose_option("Name the model's nodes that each kernel computes.")
@answering
def command(
    artifact: Path,
    model: Path | None,
    input_shapes: InputShapes,
    threads: int,
    run_seconds: float,
    trace: Path | None,
    engine: str | None,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Time each kernel of a library in its place in a run.

    Prints the kernels in the order of the network, each with its share of a run, its speed, and how
    near it is to its limit. The limit is the least time that the arithmetic of the run's threads
    takes, or the caches that can hold its tensors, whichever is longer. Then come the same figures
    by operator. The rest is the time of a run outside its kernels.

    Kernels that add up products of bytes are compared with the fastest such product that the
    library's instructions allow on this machine, which is measured.

    A library for a range of lengths, or of images, is profiled at its largest size. With
    --input-shape it is profiled at another one, where the work of a kernel is not known, and so
    neither its speed nor its limit.

    With --beside, ONNX Runtime profiles MODEL, from which the library was built, with as many
    threads. The times are listed for the smallest groups of nodes that neither engine computes
    together with others. ONNX Runtime's times are with its profiler on. MODEL may be left out if it
    is in this folder or beside the library.
    """
    from ..devices.machine import rated
    from ..measure.roof import roof_of
    from ..ship.library import opened, runs_in_process
    from ..ship.race.profile_answer import ProfileVariant, ProfileVariants
    from ..ship.race.timing import profile, profile_beside
    from ..views.profile import write_trace

    shapes = {name: _sizes(name, shape) for name, shape in input_shapes}
    here = bool(engine or threads or model)
    if devices and here:
        raise UsageError("--beside and --threads work on this machine only", "leave out --device")
    where = () if here else devices
    with report() as events, opened(artifact, where, events, threads) as library:
        profiles = profile(library, run_seconds, shapes)
        raced = profile_beside(library, model, profiles, threads, run_seconds) if engine else []
        target, here = built_for(library.manifest), runs_in_process(library)
        target = rated(target) if here else target
        roof = roof_of(target, threads, [times for _, times in profiles], here=here)
    if trace:
        write_trace([(shape.takes, times) for shape, times in profiles], trace)
    if len(profiles) == 1:
        return _answer(profiles[0][1], raced, roof)
    variants, text = [], []
    for at, (shape, times) in enumerate(profiles):
        answer = _answer(times, raced[at : at + 1], roof)
        figures = structs.asdict(answer.value)
        variants.append(ProfileVariant(**figures, inputs=shape.input_shapes))
        text += [shape.takes, *answer.lines]
    return Answer(ProfileVariants(variants), text)


def _sizes(name: str, shape: Sequence[Extent]) -> list[int]:
    """The sizes of a shape without a range or a value; UsageError for another one."""
    if not all(isinstance(size, int) for size in shape):
        what = f"--input-shape {shape_text(name, shape)}: a run has one size along each axis"
        raise UsageError(what, "give the sizes of one run, such as ids=1,48")
    return [size for size in shape if isinstance(size, int)]


def _answer(times: Profile, beside: Sequence[tuple[str, list[Group]]], roof: Roof) -> Answer:
    """The answer for one of a library's shapes. beside: another engine's groups, if asked for."""
    from ..ship.race.profile_answer import ProfileBeside, answer
    from ..views.profile import beside_lines, lines

    value = answer(times, roof)
    text = lines(times, roof, nodes=is_verbose())
    for name, groups in beside:
        value = structs.replace(value, beside=ProfileBeside(name, groups))
        text += ["", *beside_lines(name, groups)]
    return Answer(value, text)
