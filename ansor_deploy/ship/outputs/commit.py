"""Write the outputs of a build: each whole or not at all, the manifest last.

The manifest is the commit mark: it has the digests of the library and the header, so that after a
crash between two moves the files are known not to be the manifest's. An output that would not
change is not touched, so that it keeps its time of change.

An unchanged build calls `previous` alone, and does not need what other functions import.
"""

from __future__ import annotations

import errno
import filecmp
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import AnsorError
from ...system.atomic_file import held
from ...system.interrupt import in_any_case
from ...system.known_digest import known_sha256
from ...system.machine_fault import raise_if_fault
from ...system.ownership import keeper
from ..manifest import (
    Draft,
    Manifest,
    Output,
    header_path,
    json_bytes,
    manifest_path,
    output_paths,
    provenance_path,
    read_manifest,
)
from .c_header import header as header_text
from .depfile import note_inputs
from .provenance import statement

if TYPE_CHECKING:
    from ..shipment import Shipment


_REMEDIES = {
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.EACCES: "check its permissions",
    errno.EROFS: "mount it for writing",
}


def check_writable(output: Path, *others: Path) -> None:
    """AnsorError if outputs could not be written there; it is asked before the work."""
    for path in (output, *others):
        check_folder(path.parent, _prefix(path))
    hint = "give the library's file name: -o out/model.so"
    for path in output_paths(output, header=False):
        if path.is_dir():
            raise AnsorError(f"{path} is a folder", hint)
        if owner := keeper(path):
            what = f"{path} is {owner}'s, and nobody else may replace it in this folder"
            raise AnsorError(what, "give another place with -o/--output")
    if output in (manifest_path(output), header_path(output)):
        raise AnsorError(f"{output} is the name of a file that belongs to a library", hint)


def check_folder(folder: Path, prefix: str = ".") -> None:
    """Make a folder; AnsorError if no file can be made there.

    prefix: how the name of a file begins that is made to try it.
    """
    import tempfile

    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.NamedTemporaryFile(dir=folder, prefix=prefix).close()


@contextmanager
def staged(output: Path, export: Callable[[Path], None]) -> Iterator[Path]:
    """The library that `export` writes, in a folder beside the output, which is removed afterwards.

    Folders that killed builds of this output have left there are removed as well.
    """
    import secrets
    import shutil

    folder = output.parent / f"{_prefix(output)}{secrets.token_hex(4)}"
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    with in_any_case(remove), ExitStack() as lock:  # also while it is made
        # Held, so that no other build removes the folder before it is locked.
        with writing_to(output.parent), held(output.parent):
            _sweep(output)
            folder.mkdir(0o700)
            lock.enter_context(held(folder))
        library = folder / output.name
        with writing_to(output.parent):
            export(library)
        yield library


def committed(shipment: Shipment, path: Path, draft: Draft) -> Manifest:
    """Put all outputs in place: the depfile before the manifest, which comes last."""
    outputs = shipment.outputs
    depend = partial(note_inputs, shipment.model.path, outputs, draft, shipment.request)
    manifest = commit(path, outputs.library, draft, header=outputs.header, before=depend)
    shipment.report.memory(manifest.memory)
    shipment.report.wrote(output_paths(outputs.library, header=outputs.header))
    return manifest


def commit(
    library: Path,
    output: Path,
    draft: Draft,
    *,
    header: bool,
    before: Callable[[], None] = lambda: None,
) -> Manifest:
    """Move a staged library in place, and write the files that belong to it; return its manifest.

    header: whether a C header belongs to it. before: called before the manifest is moved; if it
    fails, the manifest is not moved.
    """
    with writing_to(output.parent):
        described = None
        if header:
            text = header_text(output.name, draft.interfaces, draft.batch)
            header_path(library).write_bytes(text.encode())
            described = _describe(header_path(library))
        whole = Manifest.of(draft, _describe(library), described)
        content = json_bytes(whole.to_json())
        provenance_path(library).write_bytes(statement(whole, content))
        manifest_path(library).write_bytes(content)
        _make_executable(library)
        *parts, last = output_paths(library, header=header)
        # Held, so that all outputs are those of one build if two builds end at once.
        with held(output.parent), _all_or_none(output_paths(output, header=header), library.parent):
            for file in parts:
                _move(file, output.parent)
            before()
            _move(last, output.parent)
    return whole


@contextmanager
def _all_or_none(places: list[Path], aside: Path) -> Iterator[None]:
    """Restore files where the block fails. aside: a folder for the old files.

    A library without its manifest, or with another's, cannot be used.
    """
    was = {place: _kept(place, aside / f"before.{place.name}") for place in places}
    try:
        yield
    except BaseException:
        for place, kept in was.items():
            if kept is not None:
                kept.replace(place)
            elif place.is_file():
                place.unlink()
        raise


def _kept(place: Path, copy: Path) -> Path | None:
    """A hard link of a file, or a copy where links are impossible; None if there is no file."""
    if not place.is_file():
        return None
    try:
        os.link(place, copy)
    except OSError:
        import shutil

        shutil.copy2(place, copy)
    return copy


def previous(output: Path) -> Manifest | None:
    """The manifest of an output if it and all that belongs to it are intact, bit for bit."""
    with suppress(AnsorError, OSError):
        manifest = read_manifest(output)
        header = manifest.header and _describe(header_path(output))
        described = Manifest.of(manifest, _describe(output), header)
        stated = statement(manifest, manifest_path(output).read_bytes())
        if described == manifest and stated == provenance_path(output).read_bytes():
            return manifest
    return None


def touch(output: Path) -> None:
    """Set the times of change to now, for tools that compare times instead of contents.

    The header keeps its time, so that files that include it are not compiled again.
    """
    for path in output_paths(output, header=False):
        os.utime(path)


def _move(file: Path, folder: Path) -> None:
    """Move a file into a folder, unless an equal one is there."""
    place = folder / file.name
    if place.is_file() and filecmp.cmp(file, place, shallow=False):
        return
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
    file.replace(place)


def _describe(file: Path) -> Output:
    return Output(file.name, known_sha256(file), file.stat().st_size)


def _prefix(output: Path) -> str:
    return f".{output.name}."


def _sweep(output: Path) -> None:
    """Remove folders of earlier builds of this output that no process holds."""
    from glob import escape

    from ...system.scratch import remove_unheld

    for folder in output.parent.glob(escape(_prefix(output)) + "[a-z0-9_]" * 8):
        with suppress(OSError):
            remove_unheld(folder)


def _make_executable(file: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    file.chmod(0o777 & ~mask)


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn a failure to write into an AnsorError that names the folder."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(folder)
        raise_if_fault(error)
        remedy = _REMEDIES.get(error.errno or 0, "check that it is there, and a folder")
        hint = f"{remedy}, or give another place with -o/--output"
        raise AnsorError(f"cannot write to {folder}: {error.strerror or error}", hint) from error
