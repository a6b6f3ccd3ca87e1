"""Check whether a library fits a board's memory and disk, before it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError
from ..system.words import size_text

if TYPE_CHECKING:
    from .site import Site

NO_MEMORY = (
    "end other programs there, make the model or its inputs smaller (--input-shape), or take a "
    "board with more memory"
)
_STARTED, _START_SECONDS = "ansor_deploy.devices.library_calls:threads", 60.0


@dataclass(frozen=True)
class Room:
    """The free bytes of a board. memory: None where it does not report it."""

    memory: int | None
    disk: int

    def holds(self, memory: int) -> bool:
        """Whether so many bytes of memory are free, as far as known."""
        return self.memory is None or memory <= self.memory


def room_for(site: Site, size: int) -> Room | None:
    """The free bytes of a site; None where they are unknown.

    Where `size` bytes are not free, its process is restarted, which frees what it kept.
    """
    room = site.room()
    if room is not None and not room.holds(size):
        site.restart()
        site.call(_STARTED, {}, _START_SECONDS)  # afterwards the new process has its memory
        room = site.room()
    return room


def check_room(site: Site, library: Path, manifest: Mapping[str, Any]) -> None:
    """DeviceError where a library does not fit on a site."""
    size, needed = library.stat().st_size, memory_of_runs(library, manifest)
    if (room := room_for(site, needed)) is None:
        return
    if not room.holds(needed):
        raise DeviceError(
            f"{library}: its runs take {size_text(needed)} of memory, and {site.name} has "
            f"{size_text(room.memory or 0)} free; it was not sent",
            _less_memory(manifest),
        )
    if size > room.disk:
        raise DeviceError(
            f"{library}: it has {size_text(size)}, and the disk of {site.name} has "
            f"{size_text(room.disk)} free; it was not sent",
            "make room there: old runtimes lie in ~/.cache/ansor-deploy",
        )


def _less_memory(manifest: Mapping[str, Any]) -> str:
    """The hint for a library that takes too much: Winograd's weights are up to 4 times as large."""
    if any(task.get("rewriting") for task in manifest.get("tasks", ())):
        return f"build it with --precision strict, whose weights take less; or {NO_MEMORY}"
    return NO_MEMORY


def memory_of_runs(library: Path, manifest: Mapping[str, Any]) -> int:
    """Bytes that a process on a board takes for a library, besides the runtime.

    Weights are pages of the library's file, but they count, since a run reads all of them and must
    not wait for the disk. Inputs and outputs count twice: as files and as arrays.
    """
    from ..runtime.interface import interfaces
    from .library_calls import bytes_of

    planned = manifest.get("memory") or {"peak": library.stat().st_size}
    every = interfaces(dict(manifest))
    return int(planned["peak"]) + max(bytes_of([*one.inputs, *one.outputs]) for one in every)
