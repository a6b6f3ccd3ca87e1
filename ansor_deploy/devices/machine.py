"""The machine that runs a build's code: this one, devices, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..system.environment import shipped
from ..system.host import architecture, detect_host, least_flags, processor_flags
from ..system.words import count
from ..target import HOST, list_targets, load_target

if TYPE_CHECKING:
    from ..target import Target
    from ..views import Report
    from .bare import Bare, BareModel
    from .facts import GpuFacts
    from .remote_model import RemoteModel
    from .site import Site


@dataclass(frozen=True)
class Machine:
    """Where code of a target runs. name: "host", or a device's. sites: none for this machine.

    Of several devices, the first one runs the whole model. bare: this machine's process for that.
    """

    name: str
    sites: Sequence[Site] = ()
    bare: Bare | None = None

    def start(self) -> None:
        """Start the process for libraries in the background, since a library will come."""
        if self.bare is not None:
            self.bare.start()

    def load(self, path: Path, manifest: dict[str, Any]) -> BareModel | RemoteModel:
        """A library with its manifest, ready to be called."""
        if self.bare is not None:
            return self.bare.load(path, manifest)
        from .remote_model import RemoteModel

        return RemoteModel(self.sites[0], path, manifest)

    def holds(self, size: int) -> bool:
        """Whether `size` bytes of libraries fit in memory at once."""
        from .room import room_for

        room = room_for(self.sites[0], size) if self.sites else None
        return room is None or room.holds(size)

    def least_memory(self) -> int | None:
        """The free bytes of the device that has the fewest; None where no device reports them."""
        rooms = [room for site in self.sites if (room := site.room()) is not None]
        return min((room.memory for room in rooms if room.memory is not None), default=None)

    def quarantine(self, name: str, reason: str) -> None:
        """Run nothing more on a device until `devices doctor` has passed it."""
        if self.sites:
            from .inventory import Inventory

            Inventory.find().quarantine(name, reason)


@contextmanager
def open_machine(
    target: Target, devices: Sequence[str], report: Report
) -> Iterator[Machine | None]:
    """The devices, connected; without any, this machine, or None where it cannot run the target.

    If several devices are named, those that cannot be used are left out, with a warning.
    """
    if not devices:
        from .bare import open_bare

        with open_bare() as bare:
            yield Machine("host", bare=bare) if runs_here(target) else None
        return
    from .board import open_devices

    with ExitStack() as stack:
        sites = []
        for site in open_devices(devices, target, report):
            sites.append(site)
            stack.callback(site.close)
        yield Machine(sites[0].name, tuple(sites))


def runs_here(target: Target) -> bool:
    """Whether this machine can run code of the target."""
    return has_instructions(target) and bool(target.cores <= detect_host()["cores"])


def has_instructions(target: Target) -> bool:
    """Whether this machine's processor has the instructions that the target's code needs.

    The number of cores does not matter. For a GPU target, the GPU must fit as well.
    """
    words = (target.triple, target.cpu, target.vector_bytes, target.features)
    same = architecture(target.triple) == architecture()
    if not same or {*least_flags(*words)} - processor_flags():
        return False
    return target.gpu is None or ((gpu := local_gpu()) is not None and gpu.fits(target.gpu))


@cache
def local_gpu() -> GpuFacts | None:
    """The first GPU of this machine's driver; None where there is none."""
    from . import probe  # imported here, since builds for CPUs do not need it
    from .facts import GpuFacts

    found: dict[str, Any] | None = probe.gpu()
    return GpuFacts(**found) if found else None


def automatic(folders: Sequence[Path]) -> str:
    """The name of the target of this machine's GPU; HOST where it has none.

    folders: as in `load_target`. UsageError where no target describes the GPU.
    """
    if (gpu := local_gpu()) is None:
        return HOST
    known = [load_target(name, folders) for name in list_targets(folders) if name != HOST]
    found = next((one.name for one in known if one.gpu and gpu.fits(one.gpu)), None)
    if found is None:
        raise UsageError(
            f"no target describes the GPU of this machine ({gpu})",
            f'write one: extends = "h100" and [gpu] with arch = "{gpu.arch}", sms = {gpu.sms}; '
            f"or take the processor: --target {HOST}",
        )
    return found


def this_machine() -> Target:
    """The target of this machine, even if a project has another target named host."""
    return replace(load_target("host", [shipped("targets")]), name="host")


def rated(target: Target) -> Target:
    """A target with this machine's peak and bandwidth, if it has none, as in a frozen build."""
    if target.peak_gflops is not None:
        return target
    here = this_machine()
    return replace(target, peak_gflops=here.peak_gflops, memory_gbs=here.memory_gbs)


def cannot_run(target: Target) -> str:
    """A sentence about why this machine cannot run code of the target."""
    here = detect_host()
    if target.gpu is not None:
        wanted = f"a GPU ({target.gpu.arch}, {target.gpu.sms} multiprocessors)"
        found = f"has another ({gpu})" if (gpu := local_gpu()) else "has none that a driver knows"
        return f"target {target.name} is {wanted}, this machine {found}, and no device is given"
    if has_instructions(target):
        fewer = f"{target.name.partition(':')[0]}:{here['cores']}"
        return (
            f"target {target.name} is of {count(target.cores, 'core')}, and this machine has "
            f"{here['cores']} (--target {fewer} is of these), and no device is given"
        )
    wanted = f"{target.kind} {target.cpu}, {count(target.cores, 'core')}"
    return (
        f"target {target.name} ({wanted}) cannot run on this machine ({here['cpu']}, "
        f"{count(here['cores'], 'core')}), and no device is given"
    )
