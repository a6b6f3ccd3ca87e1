"""Where a build's code runs: on this machine, on devices, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError

if TYPE_CHECKING:
    from ..build.verify import Library
    from ..report import Report
    from ..request import Request
    from ..target import Target
    from .site import Site


@dataclass(frozen=True)
class Place:
    """Where code of the target runs. name: "host", or a device's. sites: none for this machine.

    Of several devices, the first also runs the whole model.
    """

    name: str
    sites: Sequence[Site] = ()

    def load(self, path: Path, manifest: dict[str, Any]) -> Library:
        """A library and what its manifest says, ready to be called."""
        if self.sites:
            from .model import RemoteModel

            return RemoteModel(self.sites[0], path, manifest)
        from ..runtime.model import Model

        return Model(path, manifest)

    def unfit(self, name: str, reason: str) -> None:
        """Nothing runs on a device any more until `devices doctor` has passed it."""
        if self.sites:
            from .inventory import Inventory

            Inventory.find().quarantine(name, reason)


@contextmanager
def open_place(request: Request, report: Report) -> Iterator[Place | None]:
    """The request's devices, connected; else this machine; None where it cannot run the target."""
    if not request.devices:
        yield Place("host") if runs_here(request.target) else None
        return
    from .board import open_device

    with ExitStack() as stack:
        sites = []
        for name in request.devices:
            sites.append(open_device(name, request.target, report))
            stack.callback(sites[-1].close)
        yield Place(request.devices[0], tuple(sites))


def runs_here(target: Target) -> bool:
    """Whether this machine can run code of the target."""
    from ..system.host import architecture, detect_host

    here = detect_host()
    same = target.kind == "llvm" and architecture(target.triple) == architecture()
    return same and target.vector_bytes <= here["vector_bytes"] and target.cores <= here["cores"]


def check_buildable(target: Target) -> None:
    """DeviceError where code of the target can be compiled but not put into a library."""
    if target.kind != "llvm":
        raise DeviceError(
            cannot_run(target),
            "build for a CPU, such as --target host; `ansor-deploy plan` works for every target",
        )


def cannot_run(target: Target) -> str:
    """In words."""
    from ..system.host import detect_host

    here = detect_host()
    return (
        f"target {target.name} ({target.kind} {target.cpu}, {target.cores} cores) cannot run on "
        f"this machine ({here['cpu']}, {here['cores']} cores), and no device is given"
    )
