"""`ansor-deploy devices`: the boards that candidates are measured on, reached over SSH."""

from __future__ import annotations

import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .helptext import examples
from .options import json_option
from .output import in_columns, print_json

if TYPE_CHECKING:
    from ..devices.inventory import Device, Inventory


@click.group(
    "devices",
    epilog=examples(
        "devices add pi ssh://pi@192.0.2.7 --target rpi3",
        "devices trust pi",
        "devices doctor pi",
    ),
)
def command() -> None:
    """Add, trust and check the boards to measure on.

    A board is reached over SSH with a key of yours; ~/.ssh/config is honoured.
    """


@command.command(
    "add",
    epilog=examples(
        "devices add pi ssh://pi@192.0.2.7 --target rpi3",
        "devices add lab ssh://[2001:db8::7]:2222 --target ./lab.toml",
    ),
)
@click.argument("name")
@click.argument("url", metavar="ssh://[USER@]HOST[:PORT]")
@click.option("--target", required=True, help="What it is: a machine that `targets list` names.")
@click.option(
    "--identity",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
    from ..devices.inventory import Inventory, parse_url
    from ..project import Project
    from ..target import load_target

    load_target(target, Project.find().target_path())
    if target.endswith(".toml"):
        target = str(Path(target).resolve())
    key = str(identity.absolute()) if identity else ""
    Inventory.find().add(parse_url(name, url, target, key, jump))
    click.echo(f"added {name}; next: ansor-deploy devices trust {name}", err=True)


@command.command(
    "trust",
    epilog=examples(
        "devices trust pi",
        'devices trust pi --fingerprint "$(cat pi.fingerprint)"',
        "devices trust pi --replace",
    ),
)
@click.argument("name")
@click.option("--replace", is_flag=True, help="Accept a key other than the one known so far.")
@click.option("--fingerprint", default="", metavar="SHA256:...", help="Accept only this key.")
@click.option("--yes", is_flag=True, help="Accept without looking: only on a network you trust.")
def trust_command(name: str, replace: bool, fingerprint: str, yes: bool) -> None:
    """Fetch a board's host key, compare it, and remember it.

    On the board itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    from ..devices.inventory import Inventory
    from ..devices.ssh import known_keys, offered_key, refuse_revoked, verify
    from ..errors import DeviceError

    inventory = Inventory.find()
    device = inventory.get(name)
    key = offered_key(device, inventory)
    click.echo(f"{name} ({device.url}) shows {key.fingerprint} ({key.kind})", err=True)
    if fingerprint and fingerprint != key.fingerprint:
        raise DeviceError(
            f"{name}: its host key is {key.fingerprint}, not {fingerprint}",
            "Do not connect: whoever answers there is not the board that you mean.",
        )
    refuse_revoked(device, key)
    if key in inventory.keys(name):
        click.echo(f"{name} is trusted already", err=True)
        return
    if known_keys(device, inventory) and not replace:
        verify(device, key, inventory)
    if not (fingerprint or yes):
        ask(name)
    inventory.trust(name, key)
    click.echo(f"{name} is trusted; next: ansor-deploy devices doctor {name}", err=True)


@command.command("list", epilog=examples("devices list", "devices list --json"))
@json_option
def list_command(as_json: bool) -> None:
    """Print every device: where it is, what it is, whether it may work."""
    from ..devices.inventory import Inventory

    inventory = Inventory.find()
    rows = [row(device, inventory) for device in inventory.list()]
    if as_json:
        print_json({"devices": rows})
    elif rows:
        table = [(r["name"], r["url"], r["target"], state(r)) for r in rows]
        click.echo("\n".join(in_columns(table)))
    else:
        click.echo("no devices; add one: ansor-deploy devices add NAME ssh://USER@HOST --target T")


@command.command("doctor", epilog=examples("devices doctor pi", "devices doctor pi --json"))
@click.argument("name")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, name: str, as_json: bool) -> None:
    """Check that a board can be measured on.

    Where the runtime is installed, a kernel whose result is known runs there, too. Each line is
    ok, warn or FAIL, with a remedy; exits 4 on a FAIL. Where nothing fails, a device in
    quarantine is let out of it.
    """
    from ..devices.inventory import Inventory, target_of
    from ..devices.ssh import connect
    from ..doctor.device import diagnose
    from ..doctor.reference_kernel import check_kernel
    from .doctor import print_checks

    inventory = Inventory.find()
    device = inventory.get(name)
    target = target_of(device)
    connecting = partial(connect, device, inventory)
    kernel = check_kernel(name, target, connecting)
    if not print_checks(diagnose(target, connecting, kernel), as_json):
        ctx.exit(4)
    if inventory.reason(name):
        inventory.release(name)
        click.echo(f"{name} is out of quarantine", err=True)


@command.command("install", epilog=examples("devices install pi"))
@click.argument("name")
def install_command(name: str) -> None:
    """Put what runs candidates on a board, under ~/.cache/ansor-deploy there.

    Where its kind of machine or its Python is not this one's, packages for it are downloaded here
    first, by pip. What is there already stays.
    """
    from ..devices.bundle import is_like_here
    from ..devices.install import look_at
    from ..devices.inventory import Inventory, target_of
    from ..devices.remote import open_site
    from ..devices.ssh import connect
    from ..devices.wheels import cache_folder, fetch_wheels

    inventory = Inventory.find()
    device = inventory.get(name)
    target = target_of(device)
    with closing(connect(device, inventory)) as connection:
        board = look_at(name, connection)
    arch, python = board.machine, board.short_python
    if not is_like_here(arch, python):
        click.echo(f"fetching packages for {arch}, Python {python}", err=True)
        fetch_wheels(arch, python, cache_folder())
    click.echo(f"installing them on {name}", err=True)
    open_site(name, partial(connect, device, inventory), target.cores).close()
    click.echo(f"{name} has the runtime; next: ansor-deploy devices doctor {name}", err=True)


@command.command("remove", epilog=examples("devices remove pi"))
@click.argument("name")
def remove_command(name: str) -> None:
    """Forget a device and its host key; the board is left alone."""
    from ..devices.inventory import Inventory

    Inventory.find().remove(name)
    click.echo(f"removed {name}", err=True)


def ask(name: str) -> None:
    """Let a person compare; an error where there is none, or the answer is no."""
    from ..errors import DeviceError, UsageError

    hint = (
        f"Compare the fingerprint, then: ansor-deploy devices trust {name} --fingerprint SHA256:..."
    )
    if not sys.stdin.isatty():
        raise UsageError(f"{name} is not trusted: there is no terminal to ask at", hint)
    if not click.confirm("Is this the board's own fingerprint?", err=True):
        raise DeviceError(f"{name} is not trusted", hint)


def row(device: Device, inventory: Inventory) -> dict[str, Any]:
    """What is known of a device, for a program."""
    quarantine = inventory.reason(device.name)
    return {
        **{key: getattr(device, key) for key in ("name", "url", "target", "identity", "jump")},
        "host_keys": [key.fingerprint for key in inventory.keys(device.name)],
        "quarantine": quarantine and {"reason": quarantine.reason, "since": quarantine.since},
    }


def state(values: dict[str, Any]) -> str:
    """The last column of the list."""
    if quarantine := values["quarantine"]:
        return f"in quarantine since {quarantine['since'][:10]}: {quarantine['reason']}"
    return "trusted" if values["host_keys"] else "no host key pinned"
