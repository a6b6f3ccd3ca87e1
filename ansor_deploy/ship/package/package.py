"""Package a library with everything it needs to run where this tool is not installed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from zipfile import ZipFile

from ...devices.c_runtime import C_API, PROGRAM, c_runtime
from ...devices.wheels import fetch_runtime, pinned, runtime_libraries, wheels_folder
from ...errors import AnsorError, UsageError
from ...system.digest import file_sha256
from ...system.host import architecture
from ..manifest import Manifest, header_path, manifest_path, provenance_path, read_manifest
from ..outputs.commit import check_folder, writing_to
from .archive import pack, stem
from .elf import needed_glibc
from .proof import try_program
from .python_runtime import PACKAGE, write_python_runtime
from .readme import readme
from .wheel import write_model_wheel, write_wheel

if TYPE_CHECKING:
    from ...views import Report

Kind = Literal["c", "python", "pip"]
SUMS = "SHA256SUMS"
# What a package has beside a library, whose name may be changed after it was built.
_TAKEN = {"README", SUMS, PROGRAM, "include", "lib", PACKAGE}


@dataclass(frozen=True)
class Package:
    """An archive that was written. kind: what runs the library. files: sizes in bytes, by name.

    arch: the architecture that it is for. glibc: the oldest C library that it runs with. needs: for
    a wheel, the other wheel that must be installed with it.
    """

    path: Path
    kind: Kind
    arch: str
    glibc: tuple[int, int]
    files: dict[str, int]
    needs: Path | None = None


def wheels(library: Path, folder: Path, report: Report) -> Package:
    """Write the wheel of a built library, and the wheel of its runtime, into a folder.

    Errors: as in `package`.
    """
    manifest = _whole_manifest(library)
    arch = architecture(manifest.target.triple)
    pinned(arch, "3.11")
    check_folder(folder)
    with writing_to(folder):
        found = _fetched(arch, report)
        runtime = write_wheel(folder, arch, found)
        report.stage("pack", library.name)
        made = write_model_wheel(folder, library, manifest)
        with ZipFile(made) as archive, tempfile.TemporaryDirectory() as temporary:
            files = {entry.filename: entry.file_size for entry in archive.infolist()}
            with ZipFile(runtime) as other:
                other.extractall(temporary)
            glibc = max(map(needed_glibc, [library, *Path(temporary).rglob("*.so")]))
        return Package(made, "pip", arch, glibc, files, runtime)


def package(library: Path, output: Path, kind: Kind, report: Report) -> Package:
    """Write a package of a built library, for programs in C or in Python.

    Its files lie in a folder with the package's name. Its program is tried where possible:
    VerificationError where its outputs are wrong. AnsorError where the library is not the one of
    its manifest, or the package cannot be made; DeviceError where there is no TVM for its machine.
    """
    name, manifest = stem(output), _whole_manifest(library)
    if library.name in _TAKEN:
        raise UsageError(
            "a package has a file or folder of its own with this name",
            f"rename it and its manifest: mv {library.name} {library.name}.so",
            library,
        )
    arch = architecture(manifest.target.triple)
    pinned(arch, "3.11")  # refuses architectures for which TVM's runtime is not published
    check_folder(output.parent)
    temporary = tempfile.TemporaryDirectory(prefix="ansor-deploy-")
    with writing_to(output.parent), temporary as root:
        folder = Path(root, name)
        folder.mkdir()
        _add_outputs(library, manifest, folder, kind)
        _add_runtime(folder, arch, kind, report)
        if kind == "c":
            try_program(folder, library, manifest, report)
        glibc = max(map(needed_glibc, _programs(folder)))
        text = readme(library.name, kind, glibc, manifest)
        (folder / "README").write_text(text, encoding="utf-8")
        _add_sums(folder)
        report.stage("pack", output.name)
        pack(Path(root), output)
        return Package(output, kind, arch, glibc, _sizes(folder))


def _whole_manifest(library: Path) -> Manifest:
    """The manifest of a library; AnsorError where the library is not the one it was written for."""
    manifest = read_manifest(library)
    if file_sha256(library) != manifest.artifact.sha256:
        raise AnsorError(
            f"it is not the library of {manifest_path(library).name}: its SHA-256 is another",
            f"build it again: ansor-deploy build MODEL -o {library}",
            library,
        )
    return manifest


def _add_outputs(library: Path, manifest: Manifest, folder: Path, kind: str) -> None:
    (folder / library.name).symlink_to(library.resolve())
    shutil.copyfile(manifest_path(library), folder / manifest_path(library).name)
    if provenance_path(library).is_file():
        shutil.copyfile(provenance_path(library), folder / provenance_path(library).name)
    if kind == "c":
        include = folder / "include"
        include.mkdir()
        headers = [C_API / "ansor_deploy.h", *([header_path(library)] if manifest.header else [])]
        for header in headers:
            shutil.copyfile(header, include / header.name)


def _add_runtime(folder: Path, arch: str, kind: str, report: Report) -> None:
    found = _fetched(arch, report)
    if kind == "c":
        c_runtime(arch, folder, found)
    else:
        write_python_runtime(folder, arch, found)


def _fetched(arch: str, report: Report) -> Path:
    """The folder with TVM's wheels for an architecture, which are fetched if they are not there."""
    found = wheels_folder()
    if arch != architecture():
        with tempfile.TemporaryDirectory() as nowhere:
            if not runtime_libraries(arch, found, Path(nowhere)):
                report.stage("fetch", f"TVM's runtime for {arch}, into {found}")
                fetch_runtime(arch, found)
    report.stage("compile", f"the C API for {arch}")
    return found


def _programs(folder: Path) -> Iterable[Path]:
    """The ELF files: only these require a version of the C library."""
    return [*folder.rglob("*.so"), *(path for path in (folder / PROGRAM,) if path.exists())]


def _add_sums(folder: Path) -> None:
    """Write the file that `sha256sum -c` reads."""
    lines = [f"{file_sha256(folder / name)}  {name}\n" for name in _sizes(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _sizes(folder: Path) -> dict[str, int]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_size for path in paths}
