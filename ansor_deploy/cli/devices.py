"""`ansor-deploy devices`: the boards that candidates are measured on, reached over SSH."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import DeviceError, UsageError
from .doctor import failed, print_checks
from .helptext import with_examples
from .options import chosen_target, existing_file
from .output import Answer, answering, in_columns, json_option, say

if TYPE_CHECKING:
    from ..devices.inventory import Device, Inventory
    from ..devices.ssh import SshConnection
    from ..target import Target


@with_examples(
    "devices add pi ssh://pi@192.0.2.7 --target rpi3", "devices trust pi", "devices doctor pi"
)
@click.group("devices")
def command() -> None:
    """Add, trust and check the boards to measure on.

    A board is reached over SSH with a key of yours; ~/.ssh/config is honoured.
    """


@with_examples(
    "devices add pi ssh://pi@192.0.2.7 --target rpi3",
    "devices add lab ssh://[2001:db8::7]:2222 --target ./lab.toml",
)
@command.command("add")
@click.argument("name")
@click.argument("url", metavar="ssh://[USER@]HOST[:PORT]")
@click.option("--target", required=True, help="What it is: a machine that `targets list` names.")
@click.option(
    "--identity",
    type=existing_file,
    help="File of the private key.  [default: as ssh would choose]",
)
@click.option(
    "--jump",
    default="",
    metavar="HOST",
    help="Go through this device or [USER@]HOST[:PORT]; several with commas.",
)
def add_command(name: str, url: str, target: str, identity: Path | None, jump: str) -> None:
    """Give a board a name; nothing is connected yet."""
    from ..devices.inventory import parse_url

    chosen_target(target)
    if target.endswith(".toml"):
        target = str(Path(target).resolve())
    key = str(identity.absolute()) if identity else ""
    _inventory().add(parse_url(name, url, target, key, jump))
    say(f"added {name}; next: ansor-deploy devices trust {name}", err=True)


@with_examples(
    "devices trust pi",
    'devices trust pi --fingerprint "$(cat pi.fingerprint)"',
    "devices trust pi --replace",
)
@command.command("trust")
@click.argument("name")
@click.option("--replace", is_flag=True, help="Accept a key other than the one known so far.")
@click.option("--fingerprint", default="", metavar="SHA256:...", help="Accept only this key.")
@click.option("--yes", is_flag=True, help="Accept without looking: only on a network you trust.")
def trust_command(name: str, replace: bool, fingerprint: str, yes: bool) -> None:
    """Fetch a board's host key, compare it, and remember it.

    On the board itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    from ..devices.ssh import known_keys, offered_key, refuse_revoked, verify

    inventory = _inventory()
    device = inventory.get(name)
    key = offered_key(device, inventory)
    say(f"{name} ({device.url}) shows {key.fingerprint} ({key.kind})", err=True)
    if fingerprint and fingerprint != key.fingerprint:
        hint = "Do not connect: whoever answers there is not the board that you mean."
        raise DeviceError(f"{name}: its host key is {key.fingerprint}, not {fingerprint}", hint)
    refuse_revoked(device, key)
    if key in inventory.keys(name):
        say(f"{name} is trusted already", err=True)
        return
    if known_keys(device, inventory) and not replace:
        verify(device, key, inventory)
    if not (fingerprint or yes):
        ask(name)
    inventory.trust(name, key)
    say(f"{name} is trusted; next: ansor-deploy devices doctor {name}", err=True)


@with_examples("devices list", "devices list --json")
@command.command("list")
@answering
def list_command() -> Answer:
    """Print every device: where it is, what it is, whether it may work."""
    inventory = _inventory()
    rows = [row(device, inventory) for device in inventory.list()]
    table = in_columns([(r["name"], r["url"], r["target"], state(r)) for r in rows])
    none = "no devices; add one: ansor-deploy devices add NAME ssh://USER@HOST --target T"
    return Answer({"devices": rows}, table or [none])


@with_examples("devices doctor pi", "devices doctor pi --json")
@command.command("doctor")
@click.argument("name")
@json_option
def doctor_command(name: str, as_json: bool) -> int:
    """Check that a board can be measured on.

    Where the runtime is installed, a kernel with a known result runs there, too. Each line is
    ok, warn or FAIL, with a remedy; exits 4 on a FAIL. Where nothing fails, a device in
    quarantine is let out of it.
    """
    from ..doctor.device import diagnose
    from ..doctor.reference_kernel import check_kernel

    target, connecting = _board(name)
    kernel = check_kernel(name, target, connecting)
    if failed(print_checks(diagnose(target, connecting, kernel), as_json)):
        return DeviceError.exit_code
    if (inventory := _inventory()).reason(name):
        inventory.release(name)
        say(f"{name} is out of quarantine", err=True)
    return 0


@with_examples("devices install pi")
@command.command("install")
@click.argument("name")
def install_command(name: str) -> None:
    """Put what runs candidates on a board, under ~/.cache/ansor-deploy there.

    Where its kind of machine or its Python is not this one's, packages for it are downloaded here
    first, by pip. What is there already stays.
    """
    from ..devices.board import BoardSite
    from ..devices.bundle import is_like_here
    from ..devices.facts import look_at
    from ..devices.wheels import fetch_wheels, wheels_folder

    target, connecting = _board(name)
    with closing(connecting()) as connection:
        board = look_at(name, connection)
    arch, python = board.machine, board.short_python
    if not is_like_here(arch, python):
        say(f"fetching packages for {arch}, Python {python}", err=True)
        fetch_wheels(arch, python, wheels_folder())
    say(f"installing them on {name}", err=True)
    with closing(BoardSite(name, connecting, target.cores)) as site:
        site.start()
    say(f"{name} has the runtime; next: ansor-deploy devices doctor {name}", err=True)


@with_examples("devices remove pi")
@command.command("remove")
@click.argument("name")
def remove_command(name: str) -> None:
    """Forget a device and its host key; the board is left alone."""
    _inventory().remove(name)
    say(f"removed {name}", err=True)


def ask(name: str) -> None:
    """Let a person compare. UsageError where nobody can answer, DeviceError where they say no."""
    again = f"ansor-deploy devices trust {name} --fingerprint SHA256:..."
    hint = f"Compare the fingerprint, then: {again}"
    if not sys.stdin.isatty():
        raise UsageError(f"{name} is not trusted: there is no terminal to ask at", hint)
    if not click.confirm("Is this the board's own fingerprint?", err=True):
        raise DeviceError(f"{name} is not trusted", hint)


def row(device: Device, inventory: Inventory) -> dict[str, Any]:
    """A row of `devices list --json`: what is known of a device."""
    quarantine = inventory.reason(device.name)
    return {
        **{key: getattr(device, key) for key in ("name", "url", "target", "identity", "jump")},
        "host_keys": [key.fingerprint for key in inventory.keys(device.name)],
        "quarantine": asdict(quarantine) if quarantine else None,
    }


def state(values: dict[str, Any]) -> str:
    """The last column of the list."""
    if quarantine := values["quarantine"]:
        return f"in quarantine since {quarantine['since'][:10]}: {quarantine['reason']}"
    return "trusted" if values["host_keys"] else "no host key pinned"


def _inventory() -> Inventory:
    from ..devices.inventory import Inventory

    return Inventory.find()


def _board(name: str) -> tuple[Target, Callable[[], SshConnection]]:
    """What a device is, and a function that connects to it."""
    from ..devices.inventory import target_of
    from ..devices.ssh import connect

    inventory = _inventory()
    device = inventory.get(name)
    return target_of(device), partial(connect, device, inventory)
