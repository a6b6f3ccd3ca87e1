"""Does a library fit into a board's memory, and on its disk? That is asked before it is sent."""

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
    """What a board has left for us, in bytes. memory: None where it does not say."""

    memory: int | None
    disk: int

    def holds(self, memory: int) -> bool:
        """Whether so many bytes of memory are free, as far as is known."""
        return self.memory is None or memory <= self.memory


def room_for(site: Site, size: int) -> Room | None:
    """What a site has left; None where nobody knows.

    Where so many bytes are not free, what its process keeps of former runs is, too.
    """
    room = site.room()
    if room is not None and not room.holds(size):
        site.restart()
        site.call(_STARTED, {}, _START_SECONDS)  # the new process has taken what it needs
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
    """What to do where a library takes too much: Winograd's weights are up to 4 times as large."""
    if any(task.get("rewriting") for task in manifest.get("tasks", ())):
        return f"build it with --precision strict, whose weights take less; or {NO_MEMORY}"
    return NO_MEMORY


def memory_of_runs(library: Path, manifest: Mapping[str, Any]) -> int:
    """Bytes that a process on a board takes for a library beside the runtime.

    Its weights are pages of its file; but a run reads them all, and none must wait for the disk.
    Inputs come as a file and are arrays then, outputs the other way round.
    """
    from ..runtime.interface import interfaces
    from .library_calls import bytes_of

    planned = manifest.get("memory") or {"peak": library.stat().st_size}
    every = interfaces(dict(manifest))
    return int(planned["peak"]) + max(bytes_of([*one.inputs, *one.outputs]) for one in every)
