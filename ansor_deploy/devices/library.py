"""A built library, where it can be called: on this machine, on a device, or under an emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact.files import read_manifest
from ..target import built_for

if TYPE_CHECKING:
    from ..report import Report
    from ..runtime.model import Model
    from .emulator import EmulatedModel
    from .model import RemoteModel


@contextmanager
def opened(artifact: Path, device: str, report: Report) -> Iterator[Model | RemoteModel]:
    """A library, ready to be called and timed on a device, or on this machine without one."""
    if not device:
        from ..runtime.model import load

        yield load(artifact)
        return
    from .board import open_device
    from .model import load as load_there

    with closing(open_device(device, built_for(read_manifest(artifact)), report)) as site:
        yield load_there(site, artifact)


@contextmanager
def callable_somewhere(
    artifact: Path, device: str, report: Report
) -> Iterator[Model | RemoteModel | EmulatedModel]:
    """What `opened` gives; without a device, one of another architecture under an emulator."""
    from .emulator import open_emulator

    manifest = read_manifest(artifact)
    with nullcontext() if device else open_emulator(built_for(manifest)) as emulator:
        if emulator is not None:
            yield emulator.load(artifact, manifest)
            return
        with opened(artifact, device, report) as library:
            yield library
