"""The steps that set a device up: each is a command of its own, and `add` takes them all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import click

from ..errors import DeviceError, UsageError
from .output import say, tell

if TYPE_CHECKING:
    from ..devices.inventory import Device, Inventory
    from ..devices.ssh import SshConnection
    from ..doctor.host import Check
    from ..target import Target

    Connecting = Callable[[], SshConnection]


def trust(
    device: Device,
    inventory: Inventory,
    again: str,
    *,
    replace: bool = False,
    fingerprint: str = "",
    yes: bool = False,
) -> None:
    """Show a board's host key, let a person compare it, and pin it.

    again: the command to repeat where there is no terminal to ask at. DeviceError where the key is
    refused, or is not the one that is asked for or known.
    """
    from ..devices.ssh import known_keys, offered_key, refuse_revoked, verify

    key = offered_key(device, inventory)
    say(f"{device.name} ({device.url}) shows {key.fingerprint} ({key.kind})", err=True)
    if fingerprint and fingerprint != key.fingerprint:
        hint = "do not connect: whoever answers there is not the board that you mean"
        what = f"{device.name}: its host key is {key.fingerprint}, not {fingerprint}"
        raise DeviceError(what, hint)
    refuse_revoked(device, key)
    if key in inventory.keys(device.name):
        tell(f"{device.name} is trusted already")
        return
    if not inventory.has(device.name):
        inventory.distrust(device.name)  # left over from an `add` that did not finish
    known = known_keys(device, inventory)
    if known and not replace:
        verify(device, key, inventory)
    if not (fingerprint or yes or key in known):
        ask(device.name, f"{again} --fingerprint {key.fingerprint}")
    inventory.trust(device.name, key)
    tell(f"{device.name} is trusted")


def ask(name: str, again: str) -> None:
    """Let a person compare the key. again: the command that needs no answer, for the hint.

    Raises:
        UsageError: there is no terminal to ask at.
        DeviceError: the answer is no.
    """
    hint = f"compare the fingerprint with the board's own, then: {again}"
    if not sys.stdin.isatty():
        raise UsageError(f"{name} is not trusted: there is no terminal to ask at", hint)
    say("on the board itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", err=True)
    if not click.confirm("Is this the board's own fingerprint?", err=True):
        raise DeviceError(f"{name} is not trusted", hint)


def install(name: str, target: Target, connecting: Connecting) -> None:
    """Install the runtime on a board that lacks it, and start it once."""
    from ..devices.board import BoardSite

    def say_so(line: str) -> None:
        tell(f"installing {line}")

    with closing(BoardSite(name, connecting, target.cores, say=say_so)) as site:
        site.start()
    tell(f"{name} has the runtime")


def examine(name: str, target: Target, connecting: Connecting, *, as_json: bool) -> list[Check]:
    """Print the doctor's checks; where none fails, release the device from quarantine."""
    from ..devices.inventory import Inventory
    from ..doctor.device import diagnose
    from ..doctor.reference_kernel import check_kernel
    from .doctor import failed, print_checks

    kernel = check_kernel(name, target, connecting)
    checks = print_checks(diagnose(target, connecting, kernel), as_json)
    inventory = Inventory.find()
    if not failed(checks) and inventory.reason(name):
        inventory.release(name)
        tell(f"{name} is out of quarantine")
    return checks


def accept(name: str, target: Target, connecting: Connecting) -> float:
    """Take a board's present speed as normal: the seconds that the reference kernel takes there.

    DeviceError where the kernel does not run on the board.
    """
    from ..devices.inventory import Inventory
    from ..doctor.reference_kernel import kernel_times
    from ..system.worker import WorkerFailure

    try:
        seconds = max(kernel_times(name, target, connecting))
    except WorkerFailure as failure:
        what = f"{name} does not run the reference kernel: {failure.message}"
        raise DeviceError(what, f"see: ansor-deploy devices doctor {name}") from failure
    Inventory.find().accept(name, seconds)
    return seconds


def board(name: str) -> tuple[Target, Connecting]:
    """A device's target, and a function that connects to it."""
    from ..devices.inventory import Inventory, target_of

    inventory = Inventory.find()
    device = inventory.get(name)
    return target_of(device), way_to(device, inventory)


def way_to(device: Device, inventory: Inventory) -> Connecting:
    """A function that connects to a device."""
    from ..devices.ssh import connect

    return partial(connect, device, inventory)
