"""The user's devices: their names, the way to reach each, and their host keys.

These are two small files in the user's configuration folder: `devices.json`, and `known_hosts` in
OpenSSH's format, with devices' names instead of hosts', since two boards behind two jump hosts may
have the same address. Both are replaced whole, under a lock, so that two processes lose nothing.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from ..errors import AnsorError, UsageError, did_you_mean
from ..project import Project
from ..system.atomic_file import write_whole
from ..system.environment import user_folder
from ..system.json_types import Time
from ..system.regular_file import read_regular
from ..target import Target, load_target
from .known_hosts import Entry, HostKey, parse

# The exceptions of reading a file that this module did not write.
_DAMAGES = (ValueError, KeyError, TypeError, AttributeError, UsageError, msgspec.ValidationError)
_MOST_BYTES = 4 << 20
_PRIVATE = 0o600  # readable by its owner alone
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\$?")
_URL = re.compile(r"ssh://(?:(.*)@)?(\[[^]]*\]|[^:@/\[\]]*)(?::([^:@/]*))?/?")


@dataclass(frozen=True)
class Device:
    """A machine reached over SSH.

    user, port: "" and 0 mean those of ~/.ssh/config, else the local user and 22. host: an address,
    a name, or an alias of ~/.ssh/config. target: the device's target, by name or path. identity:
    file of the private key, "" for the usual ones. jump: the host to go through, a device's name or
    [user@]host[:port]; "" means that of ~/.ssh/config.
    """

    name: str
    user: str
    host: str
    port: int
    target: str
    identity: str = ""
    jump: str = ""

    @property
    def url(self) -> str:
        """The address, as `devices add` takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ssh://{self.user and self.user + '@'}{host}{f':{self.port}' if self.port else ''}"


@dataclass(frozen=True)
class Quarantine:
    """The reason why a device takes no work for now. since: ISO 8601, UTC."""

    reason: str
    since: Time

    def text(self, name: str) -> str:
        """A sentence about the device of this name: since when, and why."""
        return f"{name} is in quarantine since {self.since}: {self.reason}"

    def remedy(self, name: str) -> str:
        """How long it lasts."""
        return (
            f"it lasts until `ansor-deploy devices doctor {name}` finds the board well; where its "
            f"speed has changed for good: ansor-deploy devices accept {name}"
        )


@dataclass(frozen=True)
class _Contents:
    """The content of `devices.json`, by the names of devices. paces: the accepted ones."""

    devices: dict[str, Device]
    quarantine: dict[str, Quarantine]
    paces: dict[str, float] = field(default_factory=dict)


class Inventory:
    """The devices of one configuration folder. path: its `devices.json`, which may not exist yet.

    AnsorError where the file is damaged, UsageError for a device that is not in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pins = path.with_name("known_hosts")

    @classmethod
    def find(cls) -> Inventory:
        """The user's inventory: in `$XDG_CONFIG_HOME/ansor-deploy` or `~/.config/ansor-deploy`.

        UsageError where there is no home directory.
        """
        return cls(user_folder("CONFIG", "the devices") / "devices.json")

    def list(self) -> list[Device]:
        """Every device, by name."""
        return [device for _, device in sorted(self._read().devices.items())]

    def get(self, name: str) -> Device:
        """The device of that name."""
        devices = self._read().devices
        if name in devices:
            return devices[name]
        hint = f"ansor-deploy devices add USER@HOST --name {name}"
        hint = f"{did_you_mean(name, devices)} {hint}"
        raise UsageError(f"there is no device {name!r}", hint)

    def has(self, name: str) -> bool:
        """Whether there is a device of that name."""
        return name in self._read().devices

    def put(self, device: Device) -> None:
        """Add a device, or replace the one of its name. UsageError where the name is invalid."""
        check_name(device.name)
        with self._changing() as contents:
            contents.devices[device.name] = device

    def remove(self, name: str) -> None:
        """Forget a device, its host key and its quarantine."""
        self.get(name)
        self._pin(name, [])  # first: a device without a pin is refused, a pin without one waits
        with self._changing() as contents:
            contents.devices.pop(name, None)
            contents.quarantine.pop(name, None)
            contents.paces.pop(name, None)

    def keys(self, name: str) -> Sequence[HostKey]:
        """The host keys that `trust` pinned for a device."""
        return [entry.key for entry in self._entries() if entry.names == name]

    def trust(self, name: str, key: HostKey) -> None:
        """Pin a host key for a device, in place of any other."""
        self._pin(name, [Entry("", name, key)])

    def distrust(self, name: str) -> None:
        """Forget the host keys that are pinned under a name."""
        if self.keys(name):
            self._pin(name, [])

    def quarantine(self, name: str, reason: str) -> None:
        """Give a device no more work until `release`."""
        self.get(name)
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._changing() as contents:
            contents.quarantine[name] = Quarantine(reason, since)

    def release(self, name: str) -> None:
        """End a quarantine, if there is one."""
        with self._changing() as contents:
            contents.quarantine.pop(name, None)

    def accept(self, name: str, seconds: float) -> None:
        """End a quarantine, and accept this time of the reference kernel on the device."""
        self.get(name)
        with self._changing() as contents:
            contents.quarantine.pop(name, None)
            contents.paces[name] = seconds

    def pace(self, name: str) -> float:
        """The accepted seconds of the reference kernel on a device; 0 where there are none."""
        return self._read().paces.get(name, 0.0)

    def reason(self, name: str) -> Quarantine | None:
        """The reason why the device is in quarantine; None where it is not."""
        return self._read().quarantine.get(name)

    def _read(self) -> _Contents:
        try:
            data = json.loads(read_regular(self.path, _MOST_BYTES))
            for name in data["devices"]:
                data["devices"][name]["name"] = name
            contents = msgspec.convert(data, _Contents)
            for device in contents.devices.values():
                _check(device)
        except FileNotFoundError:
            return _Contents({}, {})
        except OSError as error:
            raise _unusable(self.path, error) from error
        except _DAMAGES as error:
            hint = "restore a copy of it, or move it away and add the devices again"
            raise AnsorError(f"{self.path} is damaged: {error}", hint) from error
        return contents

    @contextmanager
    def _changing(self) -> Iterator[_Contents]:
        """The contents of the file, which are written when the block ends without an error."""
        with self._locked():
            contents = self._read()
            yield contents
            data = asdict(contents)
            for device in data["devices"].values():
                del device["name"]
            text = json.dumps(data, indent=1, sort_keys=True) + "\n"
            write_whole(self.path, text.encode(), _PRIVATE)

    def _entries(self) -> Sequence[Entry]:
        try:
            return [*parse(read_regular(self.pins, _MOST_BYTES).decode(errors="replace"))]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable(self.pins, error) from error

    def _pin(self, name: str, pins: Sequence[Entry]) -> None:
        with self._locked():
            entries = [entry for entry in self._entries() if entry.names != name]
            text = "".join(entry.line() + "\n" for entry in [*entries, *pins])
            write_whole(self.pins, text.encode(), _PRIVATE)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one writer in at a time. The lock is a separate file: the others are replaced."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self.path.with_name(".devices.lock").open("a") as lock:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise _unusable(self.path.parent, error) from error


def parse_url(name: str, url: str, target: str, identity: str = "", jump: str = "") -> Device:
    """The device at ssh://[user@]host[:port]; UsageError, without the URL's secrets, if invalid."""
    hint = "Write ssh://USER@HOST or ssh://USER@HOST:PORT; an IPv6 address in brackets."
    found = _URL.fullmatch(url)
    if not found:
        raise UsageError("this is not an address of the form ssh://USER@HOST[:PORT]", hint)
    user, host, port = (group or "" for group in found.groups())
    if ":" in user:
        hint = "Leave the password out: keys are used, from ssh-agent or a file (--identity)."
        raise UsageError("an address holds no password", hint)
    if port and not (port.isdecimal() and port.isascii() and 0 < int(port) < 65536):
        raise UsageError(f"{port!r} is no port", "A port is a number from 1 to 65535.")
    if "@" in url and not user:
        raise UsageError("the address has no user before its @", hint)
    bare = host[1:-1].replace("%25", "%") if host.startswith("[") else host
    device = Device(name, user, bare, int(port or 0), target, identity, jump)
    _check(device, bracketed=host.startswith("["))
    return device


def name_of(host: str) -> str:
    """A name for a device: the first word of its host's name, or its whole numeric address."""
    if ":" in host:
        return host.partition("%")[0].replace(":", "-").strip("-")
    return host if host.replace(".", "").isdecimal() else host.partition(".")[0]


def parse_jump(host: str) -> Device:
    """The device of [user@]host[:port], under a name that no device can have.

    So no pinned key can be that of a jump host. UsageError, without the text's secrets, if invalid.
    """
    return replace(parse_url("jump", f"ssh://{host}", ""), name=f"jump host {host}")


def check_name(name: str) -> None:
    """Raise UsageError if a device cannot be called that."""
    if not _NAME.fullmatch(name):
        hint = "Use letters, digits, dots, dashes and underscores, at most 64, a letter first."
        raise UsageError(f"a device cannot be called {name!r}", hint)


def _check(device: Device, bracketed: bool = False) -> None:
    check_name(device.name)
    if not 0 <= device.port < 65536:
        raise UsageError(f"{device.port} is no port", "A port is a number from 1 to 65535.")
    if device.user and not _USER.fullmatch(device.user):
        raise UsageError(f"{device.user!r} is no user's name", "Use letters, digits, . _ and -")
    is_ipv6 = bool(_IPV6.fullmatch(device.host))
    if not is_ipv6 and (bracketed or not _HOST.fullmatch(device.host)):
        hint = "Give a name or an address; an IPv6 address in brackets: ssh://pi@[fe80::1%eth0]"
        raise UsageError(f"{device.host!r} is no host", hint)
    for jump in filter(None, device.jump.split(",")):
        parse_jump(jump)


def _unusable(path: Path, error: OSError) -> AnsorError:
    hint = "Check the permissions and the space there, or set XDG_CONFIG_HOME to another folder."
    return AnsorError(f"{path} cannot be used: {(error.strerror or str(error)).lower()}", hint)


def target_of(device: Device) -> Target:
    """The target of a device; UsageError where it is not known any more."""
    return load_target(device.target, Project.find().target_path())
