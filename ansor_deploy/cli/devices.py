"""`ansor-deploy devices`: the boards that candidates are measured on, reached over SSH."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import DeviceError
from ..system.json_types import Seconds, Time
from ..views.text import latency
from .add_device import add_command
from .device_steps import accept, board, examine, install, trust
from .doctor import failed
from .helptext import Group, with_examples
from .output import Answer, answering, in_columns, json_option, tell

if TYPE_CHECKING:
    from ..devices import inventory as known
    from ..devices.inventory import Inventory


class Quarantine(Struct, frozen=True):
    """Why a device takes no work for now."""

    reason: str
    since: Time


class Device(Struct, frozen=True):
    """A board or machine that was added; for `remove`, as it was before.

    host_keys: the fingerprints of its pinned keys. accepted: the time of the reference kernel that
    `devices accept` took as normal.
    """

    name: str
    url: str
    target: str
    identity: str
    jump: str
    host_keys: list[str]
    quarantine: Quarantine | None
    accepted: Seconds | None

    @classmethod
    def of(cls, device: known.Device, inventory: Inventory) -> Device:
        """The entry of a device, from the inventory."""
        quarantine = inventory.reason(device.name)
        return cls(
            *(device.name, device.url, device.target, device.identity, device.jump),
            [key.fingerprint for key in inventory.keys(device.name)],
            Quarantine(quarantine.reason, quarantine.since) if quarantine else None,
            inventory.pace(device.name) or None,
        )

    @property
    def state(self) -> str:
        """Whether the device may work, as text."""
        if self.quarantine:
            since, reason = self.quarantine.since[:10], self.quarantine.reason
            ends = f"`devices doctor {self.name}` or `accept` ends it"
            return f"in quarantine since {since}: {reason}; {ends}"
        return "trusted" if self.host_keys else "no host key pinned"


class Devices(Struct, frozen=True):
    """The answer of `devices list --json`."""

    devices: list[Device]


@with_examples("devices add pi@192.0.2.7", "devices list", "devices doctor pi")
@click.group("devices", cls=Group)
def command() -> None:
    """Add, trust and check the boards to measure on.

    A board is reached over SSH with a key of yours; ~/.ssh/config is read.
    """


command.add_command(add_command)


@with_examples(
    "devices trust pi",
    'devices trust pi --fingerprint "$(cat pi.fingerprint)"',
    "devices trust pi --replace",
)
@command.command("trust")
@click.argument("name")
@click.option("--replace", is_flag=True, help="Accept a key that differs from the known one.")
@click.option("--fingerprint", default="", metavar="SHA256:...", help="Accept only this key.")
@click.option(
    "--yes", is_flag=True, help="Accept any key. Use this only on a network that you trust."
)
@answering
def trust_command(name: str, replace: bool, fingerprint: str, yes: bool) -> Answer:
    """Fetch a board's host key, compare it, and remember it.

    The board itself prints its key with: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    inventory = _inventory()
    again = f"ansor-deploy devices trust {name}"
    device = inventory.get(name)
    trust(device, inventory, again, replace=replace, fingerprint=fingerprint, yes=yes)
    return _entry(name)


@with_examples("devices list", "devices list --json")
@command.command("list")
@answering
def list_command() -> Answer:
    """Print every device: where it is, what it is, whether it may work."""
    inventory = _inventory()
    devices = [Device.of(device, inventory) for device in inventory.list()]
    table = in_columns([(d.name, d.url, d.target, d.state) for d in devices])
    none = "no devices; add one: ansor-deploy devices add USER@HOST"
    return Answer(Devices(devices), table or [none])


@with_examples("devices doctor pi", "devices doctor pi --json")
@command.command("doctor")
@click.argument("name")
@json_option
def doctor_command(name: str, as_json: bool) -> int:
    """Check that a board can be measured on.

    If the runtime is installed, a kernel with a known result runs there, too. Each line is ok, warn
    or FAIL, with a remedy. Exits 4 if a check fails; otherwise ends the device's quarantine.
    """
    checks = examine(name, *board(name), as_json=as_json)
    return DeviceError.exit_code if failed(checks) else 0


@with_examples("devices accept pi")
@command.command("accept")
@click.argument("name")
@answering
def accept_command(name: str) -> Answer:
    """Accept a board's present speed, and end its quarantine.

    Use it if the speed has changed for good, for example by a slower clock. A reference kernel is
    timed there, and its result is checked. From then on, the board goes into quarantine if the
    kernel takes three times as long as now.
    """
    seconds = accept(name, *board(name))
    tell(f"{name} is accepted: the reference kernel takes {latency(seconds)}")
    return _entry(name)


@with_examples("devices install pi")
@command.command("install")
@click.argument("name")
@answering
def install_command(name: str) -> Answer:
    """Install what runs candidates on a board.

    It is installed under ~/.cache/ansor-deploy there, unless it is there already. If the board has
    another kind of processor or another Python than this machine, pip first downloads packages for
    it here.
    """
    install(name, *board(name))
    return _entry(name)


@with_examples("devices remove pi")
@command.command("remove")
@click.argument("name")
@answering
def remove_command(name: str) -> Answer:
    """Forget a device and its host key; the board is left alone."""
    entry = _entry(name)
    _inventory().remove(name)
    tell(f"removed {name}")
    return entry


def _entry(name: str) -> Answer:
    """The answer about one device, which has no text."""
    inventory = _inventory()
    return Answer(Device.of(inventory.get(name), inventory), [])


def _inventory() -> Inventory:
    from ..devices.inventory import Inventory

    return Inventory.find()
