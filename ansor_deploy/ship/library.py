"""Open a built library where it can run: on this machine, on a device, or under an emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..devices.registered import registered_for
from ..errors import DeviceError
from .manifest import read_manifest

if TYPE_CHECKING:
    from ..devices.bare import BareModel
    from ..devices.emulator import EmulatedModel
    from ..devices.remote_model import RemoteModel
    from ..runtime.model import Model
    from ..views import Report


@contextmanager
def opened(
    artifact: Path, devices: Sequence[str] | None, report: Report, threads: int = 0
) -> Iterator[Model | RemoteModel]:
    """A library, ready to be called and timed on the first of the devices that can be used.

    devices: None means those registered for its target; without any, it runs on this machine. () is
    this machine; DeviceError where it cannot run the library, with the name of a board that can.
    threads: how many a run takes on this machine; 0 for as many as it was built for.
    """
    if devices != ():
        target = read_manifest(artifact).target.machine
        devices = registered_for(target, report) if devices is None else devices
    if not devices:
        yield _load_here(artifact, threads, report)
        return
    from ..devices.board import open_devices
    from ..devices.remote_model import load as load_there

    with closing(next(open_devices(devices, target, report))) as site:
        yield load_there(site, artifact)


def _load_here(artifact: Path, threads: int, report: Report) -> Model:
    from ..runtime.model import load

    try:
        return load(artifact, threads)
    except DeviceError as error:
        if not (boards := registered_for(read_manifest(artifact).target.machine, report)):
            raise
        stay = "leave out what is for this machine alone, such as --beside or --threads"
        raise DeviceError(error.text, f"{boards[0]} can run it: {stay}") from error


def runs_in_process(library: Model | RemoteModel) -> bool:
    """Whether a library runs on this machine, and not on a device."""
    from ..runtime.model import Model

    return isinstance(library, Model)


@contextmanager
def callable_somewhere(
    artifact: Path, devices: Sequence[str] | None, report: Report
) -> Iterator[Model | BareModel | RemoteModel | EmulatedModel]:
    """A library, ready to be called on the first of the devices that can be used.

    devices: None means those registered for its target. Without any, it runs in a process of its
    own on this machine, or, if it is for another architecture, under an emulator.
    """
    from ..devices.bare import open_bare
    from ..devices.emulator import open_emulator
    from ..runtime.model import check_architecture

    manifest = read_manifest(artifact)
    target = manifest.target.machine
    devices = registered_for(target, report) if devices is None else devices
    with nullcontext() if devices else open_emulator(target) as emulator:
        if emulator is not None:
            yield emulator.load(artifact, manifest.to_json())
            return
    if devices:
        with opened(artifact, devices, report) as library:
            yield library
        return
    known = manifest.to_json()
    check_architecture(artifact, known)
    with open_bare() as bare:
        yield bare.load(artifact, known)
