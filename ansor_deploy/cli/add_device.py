"""`ansor-deploy devices add`: from an address to a board that can be measured on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import DeviceError, UsageError
from ..project import Project
from ..system.words import count
from .declare import existing_file
from .device_steps import examine, install, trust, way_to
from .helptext import Command, with_examples
from .output import json_option, say, tell
from .requests import chosen_target

_NAMELESS = "device"

if TYPE_CHECKING:
    from ..devices.facts import Facts
    from ..devices.inventory import Device, Inventory
    from ..target import Target


@with_examples(
    "devices add pi@192.0.2.7",
    "devices add pi@raspberrypi.local --target rpi3 --name lab",
    'devices add pi@192.0.2.7 --fingerprint "$(cat pi.fingerprint)"',
    "devices add ssh://[2001:db8::7]:2222 --target ./lab.toml",
)
@click.command("add", cls=Command)
@click.argument("address", metavar="[USER@]HOST|ssh://[USER@]HOST[:PORT]")
@click.option("--name", default="", help="The device's name.  [default: from the host's name]")
@click.option(
    "--target",
    default="",
    help="What machine it is: a name of `targets list`.  [default: asks; without a terminal, the "
    "one that surely fits]",
)
@click.option("--fingerprint", default="", metavar="SHA256:...", help="Accept only this host key.")
@click.option(
    "--yes", is_flag=True, help="Accept any host key. Use this only on a network that you trust."
)
@click.option(
    "--identity",
    type=existing_file,
    help="The file of the private key.  [default: as ssh would choose]",
)
@click.option(
    "--jump",
    default="",
    metavar="HOST",
    help="Go through this device or [USER@]HOST[:PORT]; separate several by commas.",
)
@json_option
def add_command(
    address: str,
    name: str,
    target: str,
    fingerprint: str,
    yes: bool,
    identity: Path | None,
    jump: str,
    as_json: bool,
) -> int:
    """Make a board ready to be measured on.

    The command shows the board's host key and asks whether it is right, finds out what machine it
    is, installs what runs candidates under ~/.cache/ansor-deploy there, and runs the doctor. If a
    check fails, it exits 4, and the board gets no work until `devices doctor` passes it. If it is
    interrupted, repeat it: it goes on where it stopped.
    """
    from ..devices.inventory import Inventory

    inventory = Inventory.find()
    target = target and lasting(target)
    device = asked_for(inventory, address, name, target, identity, jump)
    again = shlex.join(["ansor-deploy", *click.get_current_context().find_root().obj])
    with _to_be_repeated(device.name, again):
        trust(device, inventory, again, fingerprint=fingerprint, yes=yes)
        connecting = way_to(device, inventory)
        with closing(connecting()) as connection:
            from ..devices.facts import look_at
            from ..doctor.proposal import summary

            facts = look_at(device.name, connection)
    tell(f"{device.name} is: {summary(facts)}")
    device = replace(device, target=device.target or decided(facts, again))
    known = chosen_target(device.target)
    refuse_misfit(device.name, facts, known)
    inventory.put(device)
    install(device.name, known, connecting)
    return concluded(device, known, inventory, as_json=as_json)


@contextmanager
def _to_be_repeated(name: str, again: str) -> Iterator[None]:
    """Make the hint of a DeviceError repeat `add`: the doctor would not know a board not yet added.

    again: the command as it was given.
    """
    try:
        yield
    except DeviceError as error:
        error.hint = error.hint.replace(f"ansor-deploy devices doctor {name}", again)
        raise


def lasting(target: str) -> str:
    """A target's name, or the absolute path of its file.

    UsageError where there is no such target.
    """
    chosen_target(target)
    return str(Path(target).resolve()) if target.endswith(".toml") else target


def concluded(device: Device, target: Target, inventory: Inventory, *, as_json: bool) -> int:
    """Return the exit code of the doctor's checks; quarantine a board that fails one."""
    checks = examine(device.name, target, way_to(device, inventory), as_json=as_json)
    if fails := [f"{check.name}: {check.found}" for check in checks if check.level == "FAIL"]:
        inventory.quarantine(device.name, f"the doctor found {'; '.join(fails)}")
        say(
            f"{device.name} is added, and in quarantine until this finds nothing wrong: "
            f"ansor-deploy devices doctor {device.name}",
            err=True,
        )
        return DeviceError.exit_code
    tell(f"{device.name} is ready: ansor-deploy build MODEL --target {device.target}")
    return 0


def asked_for(
    inventory: Inventory, address: str, name: str, target: str, identity: Path | None, jump: str
) -> Device:
    """The device that these words describe; one known already keeps what they leave out.

    UsageError where the name is another device's, or the known device has another target.
    """
    from ..devices.inventory import check_name, name_of, parse_url

    url = address if "://" in address else f"ssh://{address}"
    key = str(identity.absolute()) if identity else ""
    device = parse_url(name or _NAMELESS, url, target, key, jump)
    device = device if name else replace(device, name=name_of(device.host))
    check_name(device.name)
    if not inventory.has(device.name):
        return device
    known = inventory.get(device.name)
    if device.url != known.url:
        hint = f"choose another name: --name NAME; or: ansor-deploy devices remove {device.name}"
        raise UsageError(f"there is a device {device.name!r} already, at {known.url}", hint)
    if target and target != known.target:
        hint = f"to change that: ansor-deploy devices remove {device.name}, and add it again"
        raise UsageError(f"{device.name} is a {known.target}, and not a {target}", hint)
    return replace(known, identity=key or known.identity, jump=jump or known.jump)


def decided(facts: Facts, again: str) -> str:
    """A board's target: the one that surely fits, or the one that a person chooses.

    UsageError where there is no terminal to ask at, or no target fits.
    """
    from ..doctor.proposal import clear, proposals
    from ..target import list_targets, load_target

    folders = Project.find().target_path()
    likely = proposals(facts, [load_target(name, folders) for name in list_targets(folders)])
    names = [target.name for target in likely]
    if not likely:
        raise UsageError(
            f"no known target fits this machine ({facts.machine}, {count(facts.cores, 'core')})",
            f"describe it in targets/NAME.toml (docs/targets.md); then: {again} --target NAME",
        )
    if sys.stdin.isatty():
        say(f"it may be: {', '.join(names)}", err=True)
        return lasting(click.prompt("Its target", default=names[0], err=True))
    if clear(facts, likely):
        tell(f"its target is {names[0]}: {likely[0].description}")
        return names[0]
    raise UsageError(
        f"it may be one of several targets: {' or '.join(names)}",
        f"say which: {again} --target {names[0]}",
    )


def refuse_misfit(name: str, facts: Facts, target: Target) -> None:
    """DeviceError where code for the target would not run there."""
    from ..doctor.device import check_architecture, check_features

    checks = check_architecture(facts.machine, target), check_features(facts.flags, target)
    for check in checks:
        if check.level == "FAIL":
            what = f"{name} cannot be a {target.name}: {check.name}: {check.found}"
            raise DeviceError(what, check.remedy)
