"""A device of the inventory as a place where candidates run, found again after it was lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, DeviceLost, UsageError
from .inventory import Inventory, target_of
from .remote import RemoteSite, open_site

if TYPE_CHECKING:
    from ..report import Report
    from ..target import Target
    from .connection import Connection


class DeviceSite:
    """A `Site` over one connection after another.

    connect: makes the next. open_: makes a site of it.
    """

    remote = True

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection],
        open_: Callable[[Callable[[], Connection]], RemoteSite],
    ) -> None:
        self.name = name
        self._connect, self._open = connect, open_
        self._connection: Connection | None = None
        self._site: RemoteSite | None = None

    def start(self) -> None:
        """Connect, unless there is a connection. DeviceError where the device cannot be used."""
        if self._site is None:
            self._site = self._open(self._connecting)

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """As `Worker.call`; DeviceLost where the device or the way to it is at fault."""
        return self._ask("call", function, payload, timeout)

    def put(self, path: Path) -> str:
        """Send a file."""
        return str(self._ask("put", path))

    def get(self, place: str) -> bytes:
        """Fetch a file."""
        return bytes(self._ask("get", place))

    def drop(self, place: str) -> None:
        """Remove a file of the device's session; with a lost session it is gone already."""
        if self._site is not None:
            self._ask("drop", place)

    def scratch(self, name: str) -> str:
        """A path in the session's folder."""
        return str(self._ask("scratch", name))

    def restart(self) -> None:
        """Kill the device's process and start a fresh one in the background."""
        self._ask("restart")

    def interrupt(self) -> None:
        """Hang up: the thread that waits, if only for its turn, sees a lost device."""
        self.close()

    def close(self) -> None:
        """Hang up; the device's agent cleans up behind itself."""
        site, self._site = self._site, None
        connection, self._connection = self._connection, None
        if site is not None:
            site.close()
        elif connection is not None:
            connection.close()

    def _connecting(self) -> Connection:
        self._connection = self._connect()
        return self._connection

    def _ask(self, do: str, *words: Any) -> Any:
        site = self._site
        if site is None:
            raise DeviceLost(f"{self.name} is not connected", "repeat the command")
        try:
            return getattr(site, do)(*words)
        except DeviceLost:
            self.close()
            raise


def open_device(name: str, target: Target, report: Report) -> DeviceSite:
    """A device of the user's inventory, connected and ready to run code of the target.

    UsageError where there is no such device or it is no such machine; DeviceError where it is in
    quarantine or cannot be used; DeviceLost where it cannot be reached.
    """
    from .ssh import connect

    inventory = Inventory.find()
    device = inventory.get(name)
    known = target_of(device)
    if known.fingerprint != target.fingerprint:
        raise UsageError(
            f"device {name} is a {known.name}, and the build is for {target.name}",
            f"build with --target {known.name}, or name another device",
        )
    if quarantine := inventory.reason(name):
        raise DeviceError(
            f"device {name} is in quarantine since {quarantine.since}: {quarantine.reason}",
            f"run `ansor-deploy devices doctor {name}`, which lets it out if all is well",
        )

    def waiting(holder: str) -> None:
        report.stage("wait", f"for {name}, which serves {holder}")

    opened = partial(open_site, name, cores=target.cores, waiting=waiting)
    site = DeviceSite(name, partial(connect, device, inventory), opened)
    report.stage("connect", f"to {name} ({device.url})")
    site.start()
    return site
