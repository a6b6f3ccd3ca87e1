"""`ansor-deploy package`: a library with all that it takes to run, as one archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .output import Answer, answering, quiet_option, report

if TYPE_CHECKING:
    from ..ship.package.package import Package

_SPOKEN = {"c": "C programs", "python": "Python"}


@with_examples(
    "package out/model.so -o model.tar.zst",
    "package out/model.so -o model.tar.gz --for python",
)
@click.command("package", cls=Command)
@click.argument("artifact", type=existing_file)
@click.option(
    "-o",
    "--output",
    type=new_file,
    help="The archive, .tar.gz or .tar.zst.  [default: the library's name with .tar.gz]",
)
@click.option(
    "--for",
    "kind",
    type=click.Choice(tuple(_SPOKEN)),
    default="c",
    help="What runs the library: a program in C, or Python with NumPy.  [default: c]",
)
@quiet_option
@answering
def command(artifact: Path, output: Path | None, kind: str) -> Answer:
    """Pack a library for machines without this tool.

    The archive has the library, its manifest, TVM's runtime for its architecture, what loads it,
    and checksums. For C: a program that runs it on files, and header and libraries for one's own.
    For Python: the package ansor_deploy_runtime. Its README says how to run it. It is compiled by
    the C compiler for the architecture; TVM's wheels for another one are downloaded once.
    """
    from ..ship.package.package import package

    with report() as events:
        made = package(artifact, output or artifact.with_suffix(".tar.gz"), kind, events)
    return Answer(made.to_json(), [_line(made)])


def _line(made: Package) -> str:
    size = f"{made.path.stat().st_size / 1e6:.1f} MB"
    glibc = "{}.{}".format(*made.glibc)
    return f"wrote {made.path}: {size}, for {_SPOKEN[made.kind]} on {made.arch}, glibc {glibc}"
