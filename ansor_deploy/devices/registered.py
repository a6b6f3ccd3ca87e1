"""The user's devices for a target, on which commands run where none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from ..project import Project
from ..target import HOST, Target, list_targets
from .inventory import Device, Inventory, target_of

if TYPE_CHECKING:
    from ..views import Report


def registered_for(target: Target, report: Report) -> tuple[str, ...]:
    """Names of the usable devices of a target; none for this machine itself.

    A project may bind some devices to the target; otherwise all of them count. Unusable ones are
    named in a warning, with the reason and the remedy. No board is contacted.
    """
    if target.name == HOST or (inventory := _inventory()) is None:
        return ()
    bound = Project.find().devices.get(target.name)
    found = []
    for device in inventory.list():
        if (device.name in bound) if bound is not None else _is(device, target):
            if fault := unfit(device, inventory):
                report.warn(f"{device.name} is left out: {fault}")
            else:
                found.append(device.name)
    for name in bound or ():
        if not inventory.has(name):
            report.warn(f"{name} is left out: there is no such device here; {how_to_add(target)}")
    return tuple(sorted(found, key=bound.index) if bound is not None else found)


def unfit(device: Device, inventory: Inventory) -> str:
    """The reason why a device takes no work, with the user's next step; "" where it does."""
    if quarantine := inventory.reason(device.name):
        return f"{quarantine.text(device.name)}; {quarantine.remedy(device.name)}"
    if not inventory.keys(device.name):
        from .ssh import known_keys  # imported here, since it loads a lot

        if not known_keys(device, inventory):
            return (
                f"its host key is not known; compare it: ansor-deploy devices trust {device.name}"
            )
    return ""


def how_to_add(target: Target) -> str:
    """The one command that registers a board of a target."""
    known = target.name in list_targets(Project.find().target_path())
    return f"ansor-deploy devices add USER@HOST{f' --target {target.name}' if known else ''}"


def _inventory() -> Inventory | None:
    """The user's inventory; None without a home directory, as in a build service's jobs."""
    try:
        return Inventory.find()
    except UsageError:
        return None


def _is(device: Device, target: Target) -> bool:
    """Whether a device has this target; False where the device's target is unknown."""
    try:
        return target_of(device).fingerprint == target.fingerprint
    except UsageError:
        return False
