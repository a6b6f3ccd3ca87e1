"""Open a built library where it can run: on this machine, on a device, or under an emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..devices.registered import registered_for
from ..errors import DeviceError
from ..system.host import architecture
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
    asked = devices is not None
    if devices != ():
        target = read_manifest(artifact).target.machine
        devices = registered_for(target, report) if devices is None else devices
    if not devices:
        yield _load_here(artifact, threads, report if asked else None)
        return
    from ..devices.board import open_devices
    from ..devices.remote_model import load as load_there

    with closing(next(open_devices(devices, target, report))) as site:
        yield load_there(site, artifact)


def _load_here(artifact: Path, threads: int, report: Report | None) -> Model:
    """The library on this machine. report: None where it is known that no board can be used."""
    from ..runtime.model import load

    try:
        return load(artifact, threads)
    except DeviceError as error:
        target = read_manifest(artifact).target.machine
        if boards := registered_for(target, report) if report else ():
            stay = "leave out what keeps it here, such as --beside, --threads or --no-device"
            raise DeviceError(error.text, f"{boards[0]} can run it: {stay}") from error
        if architecture(target.triple) != architecture():
            fetch = f"fetch TVM's runtime with ansor-deploy package {artifact}"
            here = f"run and verify emulate it here: install qemu-user, and {fetch}"
            raise DeviceError(error.text, f"{error.hint}; {here}") from error
        raise


def runs_in_process(library: Model | RemoteModel) -> bool:
    """Whether a library runs on this machine, and not on a device."""
    from ..runtime.model import Model

    return isinstance(library, Model)


@contextmanager
def opened_or_emulated(
    artifact: Path, devices: Sequence[str] | None, report: Report
) -> Iterator[Model | RemoteModel | EmulatedModel]:
    """A library, ready to be called, as `opened`; another architecture's also under an emulator.

    The emulator runs it where there is no device.
    """
    from ..devices.emulator import open_emulator

    manifest = read_manifest(artifact)
    target = manifest.target.machine
    found = registered_for(target, report) if devices is None else devices
    if found:
        with opened(artifact, found, report) as library:
            yield library
        return
    with open_emulator(target) as emulator:
        if emulator is not None:
            yield emulator.load(artifact, manifest.to_json())
            return
    yield _load_here(artifact, 0, None if devices is None else report)


@contextmanager
def callable_somewhere(
    artifact: Path, devices: Sequence[str] | None, report: Report
) -> Iterator[Model | BareModel | RemoteModel | EmulatedModel]:
    """As `opened_or_emulated`, but in a process of its own where this machine runs it."""
    from ..devices.bare import open_bare

    manifest = read_manifest(artifact)
    target = manifest.target.machine
    if architecture(target.triple) == architecture():
        devices = registered_for(target, report) if devices is None else devices
        if not devices:
            with open_bare() as bare:
                yield bare.load(artifact, manifest.to_json())
            return
    with opened_or_emulated(artifact, devices, report) as library:
        yield library
