"""A built library, where it can be called: on this machine, on a device, or under an emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact.files import read_manifest
from ..target import built_for
from .registered import registered_for

if TYPE_CHECKING:
    from ..report import Report
    from ..runtime.model import Model
    from .bare import BareModel
    from .emulator import EmulatedModel
    from .model import RemoteModel


@contextmanager
def opened(
    artifact: Path, devices: Sequence[str] | None, report: Report, threads: int = 0
) -> Iterator[Model | RemoteModel]:
    """A library, ready to be called and timed on the first of the devices that can be used.

    Without a device it is on this machine, where a run takes so many threads, or, at 0, as many as
    it was built for. None: the devices registered for its target.
    """
    if devices is None:
        devices = registered_for(built_for(read_manifest(artifact)), report)
    if not devices:
        from ..runtime.model import load

        yield load(artifact, threads)
        return
    from .board import open_devices
    from .model import load as load_there

    target = built_for(read_manifest(artifact))
    with closing(next(open_devices(devices, target, report))) as site:
        yield load_there(site, artifact)


@contextmanager
def callable_somewhere(
    artifact: Path, devices: Sequence[str] | None, report: Report
) -> Iterator[Model | BareModel | RemoteModel | EmulatedModel]:
    """A library, ready to be called on the first of the devices that can be used.

    Without a device it is in a process of its own on this machine, or, of another architecture,
    under an emulator. None: the devices registered for its target.
    """
    from ..runtime.model import check_architecture
    from .bare import open_bare
    from .emulator import open_emulator

    manifest = read_manifest(artifact)
    target = built_for(manifest)
    devices = registered_for(target, report) if devices is None else devices
    with nullcontext() if devices else open_emulator(target) as emulator:
        if emulator is not None:
            yield emulator.load(artifact, manifest)
            return
    if devices:
        with opened(artifact, devices, report) as library:
            yield library
        return
    check_architecture(artifact, manifest)
    with open_bare() as bare:
        yield bare.load(artifact, manifest)
