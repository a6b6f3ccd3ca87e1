"""`ansor-deploy profile`: where a library's time goes."""

from __future__ import annotations

from pathlib import Path

import click

from ..target import built_for
from .helptext import Command, with_examples
from .options import existing_file, new_file
from .output import Answer, answering, is_verbose, verbose_option
from .run_options import seconds_option, threads_option


@with_examples(
    "profile resnet18.so",
    "profile resnet18.so --threads 1 --json",
    "profile resnet18.so --verbose",
    "profile resnet18.so --trace resnet18.trace.json",
)
@click.command("profile", cls=Command)
@click.argument("artifact", type=existing_file)
@threads_option
@seconds_option("How long to run it.")
@click.option(
    "--trace", type=new_file, help="Write a timeline here, for ui.perfetto.dev or chrome://tracing."
)
@verbose_option("Name the model's nodes that each kernel computes.")
@answering
def command(artifact: Path, threads: int, seconds: float, trace: Path | None) -> Answer:
    """Time each kernel of a library in its place in a run.

    Prints the kernels in the order of the network, each with its share of a run, its speed, and
    how near that is to the machine's limit: the roofline of its task over its time. Then the same
    by operator. What a run takes beside its kernels is the rest.
    """
    from ..artifact.files import read_manifest
    from ..devices.machine import rated
    from ..report.profile import lines, write_trace
    from ..runtime.model import takes_text
    from ..timing import profile

    found = profile(artifact, threads, seconds)
    target = rated(built_for(read_manifest(artifact)))
    if trace:
        write_trace([(takes_text(one), times) for one, times in found], trace)
    if len(found) == 1:
        return Answer(found[0][1].to_json(), lines(found[0][1], target, nodes=is_verbose()))
    text = [
        line
        for one, times in found
        for line in (takes_text(one), *lines(times, target, nodes=is_verbose()))
    ]
    variants = [{"inputs": one.input_shapes, **times.to_json()} for one, times in found]
    return Answer({"variants": variants}, text)
