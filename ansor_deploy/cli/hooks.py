"""`ansor-deploy hooks`: where the files for other build systems lie."""

import os

import click

from ..ship.integrations import hook_folder, runtime_folder
from .helptext import Command, with_examples

KINDS = ("make", "cmake", "bazel", "c", "runtime")


@with_examples("hooks make", "hooks cmake", "hooks runtime")
@click.command("hooks", cls=Command)
@click.argument("kind", type=click.Choice(KINDS))
def command(kind: str) -> None:
    """Print the folder with the files for a build system, or for C.

    make: the folder of ansor_deploy.mk. cmake: the one for find_package. bazel: a repository of
    rules. c: the C API's header and source, and a pkg-config file. runtime: the folder of the
    packages tvm and tvm_ffi, with whose libraries a C program is linked.
    """
    folder = runtime_folder() if kind == "runtime" else hook_folder(kind)
    click.echo(os.fsencode(folder))  # the path's own bytes, for programs
