"""Depfiles: the files that a build read, in the form that make and Ninja understand.

    out/model.so: model.onnx records.lock targets/board.toml
    model.onnx:
    records.lock:
    targets/board.toml:

Each input also has an empty rule of its own, as `gcc -MP` writes it: a missing input makes the
output out of date, and is no error.
"""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from ...errors import AnsorError
from ...request import Outputs, Request
from ...system.atomic_file import write_whole
from ...system.machine_fault import raise_if_fault
from ..manifest import Draft

_COMMAND = re.compile(r"[\x00-\x08\x0a-\x1f;]")  # after these, make would run the text as a command


def note_inputs(model: Path, outputs: Outputs, manifest: Draft, request: Request) -> None:
    """Write the depfile of a build, if one is requested."""
    inputs = input_files(model, manifest, request.files)
    write_depfile(outputs.depfile, outputs.library, inputs)


def input_files(model: Path, manifest: Draft, asked: Iterable[Path]) -> list[Path]:
    """All files that decide what a build of this model makes, without the registry.

    The registry changes with every use, and a build itself checks what matters of it. Two files
    stand for the versions of the tool and of TVM. asked: files that the request names
    (`Request.files`).
    """
    external = [model.parent / one.file for one in manifest.model.external]
    found = [find_spec(package) for package in ("ansor_deploy", "tvm")]
    versions = [Path(spec.origin) for spec in found if spec and spec.origin]
    return list(dict.fromkeys([model, *external, *asked, *versions]))


def write_depfile(path: Path | None, output: Path, inputs: Iterable[Path]) -> None:
    """Write what an output depends on, if there is a path; an equal file is not touched.

    AnsorError for a name that make would take for a command: a model names its own data files.
    """
    if path is None:
        return
    names = [escaped(file) for file in inputs]
    rules = [f"{escaped(output)}: {' '.join(names)}", *(f"{name}:" for name in names)]
    content = "".join(f"{rule}\n" for rule in rules).encode(errors="surrogateescape")
    try:
        if not (path.is_file() and path.read_bytes() == content):
            write_whole(path, content)
    except OSError as error:
        raise_if_fault(error)
        what = f"the depfile cannot be written: {error.strerror}"
        raise AnsorError(what, "give another place with --depfile", path) from error


def escaped(path: Path) -> str:
    """A path escaped for make and Ninja in a depfile; AnsorError where that is impossible."""
    if _COMMAND.search(str(path)):
        what = "its name cannot stand in a depfile: make would take a part of it for a command"
        raise AnsorError(what, "rename it, or build without --depfile", path)
    spaced = re.sub(r"(\\*)([ \t#:])", lambda found: f"{found[1] * 2}\\{found[2]}", str(path))
    return spaced.replace("$", "$$")
