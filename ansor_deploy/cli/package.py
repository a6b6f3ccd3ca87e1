"""`ansor-deploy package`: a library with everything that it needs to run, as one archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct

from ..errors import UsageError
from ..system.digest import file_sha256
from ..system.json_types import Bytes, Digest
from ..system.words import size_text
from .declare import existing_file
from .helptext import Command, with_examples
from .output import Answer, answering, report

if TYPE_CHECKING:
    from ..ship.package import package as packages


class Written(Struct, frozen=True):
    """A file of a package."""

    file: str
    bytes: Bytes


class Package(Written, frozen=True, rename={"for_": "for"}):
    """The answer of `package --json`.

    glibc: the oldest version that it runs with. needs: the second wheel, which a wheel depends on.
    """

    sha256: Digest
    for_: Literal["c", "python", "pip"]
    arch: str
    glibc: str
    files: list[Written]
    needs: str | None


_SPOKEN = {"c": "C programs", "python": "Python", "pip": "pip"}


@with_examples(
    "package out/model.so -o model.tar.zst",
    "package out/model.so -o model.tar.gz --for python",
    "package out/model.so -o dist --for pip",
)
@click.command("package", cls=Command)
@click.argument("artifact", type=existing_file)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The archive, .tar.gz or .tar.zst.  [default: the library's name with .tar.gz]  For pip, "
    "the folder of the wheels.  [default: the library's]",
)
@click.option(
    "--for",
    "kind",
    type=click.Choice(tuple(_SPOKEN)),
    default="c",
    help="What runs the library: a program in C, or Python with NumPy; pip writes wheels.  "
    "[default: c]",
)
@answering
def command(artifact: Path, output: Path | None, kind: packages.Kind) -> Answer:
    """Pack a library for machines without this tool.

    The archive has the library, its manifest, TVM's runtime for its architecture, and checksums.
    Its README says how to run the library. For C, it also has a program that runs the library on
    files, and the header and libraries for programs of your own. For Python, it has the package
    ansor_deploy_runtime. Packing needs a C compiler for the architecture. TVM's wheels for another
    architecture are downloaded once.

    For pip, two wheels are written: that of the library, a package of the library's name with the
    function `load()`, and ansor-deploy-runtime, which all of them need and share.
    """
    from ..ship.package.package import package, wheels

    if output and output.is_dir() != (kind == "pip") and output.exists():
        what = "a folder" if kind == "pip" else "a file, such as model.tar.gz"
        raise UsageError(f"--for {kind} writes {what}, and {output} is none", "name it with -o")
    with report() as events:
        if kind == "pip":
            packed = wheels(artifact, output or artifact.parent, events)
        else:
            packed = package(artifact, output or artifact.with_suffix(".tar.gz"), kind, events)
    return _answer(packed)


def _answer(packed: packages.Package) -> Answer:
    size, glibc = packed.path.stat().st_size, "{}.{}".format(*packed.glibc)
    files = [Written(name, length) for name, length in packed.files.items()]
    where = packed.kind, packed.arch, glibc
    needs = str(packed.needs) if packed.needs else None
    value = Package(str(packed.path), size, file_sha256(packed.path), *where, files, needs)
    line = (
        f"wrote {packed.path}: {size_text(size)}, for {_SPOKEN[packed.kind]} on {packed.arch}, "
        f"glibc {glibc}"
    )
    install = [f"wrote {needs}, which it needs: pip install {packed.path} {needs}"] if needs else []
    return Answer(value, [line, *install])
