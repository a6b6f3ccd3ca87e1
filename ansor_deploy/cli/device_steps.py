"""The steps of setting a device up, each of which is a command of its own and a part of `add`."""

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
    """Show a board's host key, have it compared, and pin it.

    again: the command to repeat where nobody can be asked. DeviceError where the key is another
    than the one asked for or known, or is refused.
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
        inventory.distrust(device.name)  # it is of an `add` that was not finished
    known = known_keys(device, inventory)
    if known and not replace:
        verify(device, key, inventory)
    if not (fingerprint or yes or key in known):
        ask(device.name, f"{again} --fingerprint {key.fingerprint}")
    inventory.trust(device.name, key)
    tell(f"{device.name} is trusted")


def ask(name: str, again: str) -> None:
    """Let a person compare. again: the command by which they do so where nobody can be asked.

    Raises:
        UsageError: nobody can answer.
        DeviceError: they say no.
    """
    hint = f"compare the fingerprint with the board's own, then: {again}"
    if not sys.stdin.isatty():
        raise UsageError(f"{name} is not trusted: there is no terminal to ask at", hint)
    say("on the board itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", err=True)
    if not click.confirm("Is this the board's own fingerprint?", err=True):
        raise DeviceError(f"{name} is not trusted", hint)


def install(name: str, target: Target, connecting: Connecting) -> None:
    """Put the runtime on a board that lacks it, and start it once."""
    from ..devices.board import BoardSite

    def say_so(line: str) -> None:
        tell(f"installing {line}")

    with closing(BoardSite(name, connecting, target.cores, say=say_so)) as site:
        site.start()
    tell(f"{name} has the runtime")


def examine(name: str, target: Target, connecting: Connecting, *, as_json: bool) -> list[Check]:
    """Print what a doctor finds; where that is well, a device in quarantine is let out of it."""
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
    """Let a board be as fast as it is: seconds of the reference kernel.

    DeviceError where the kernel does not run there.
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
    """What a device is, and a function that connects to it."""
    from ..devices.inventory import Inventory, target_of

    inventory = Inventory.find()
    device = inventory.get(name)
    return target_of(device), way_to(device, inventory)


def way_to(device: Device, inventory: Inventory) -> Connecting:
    """A function that connects to a device."""
    from ..devices.ssh import connect

    return partial(connect, device, inventory)
