"""Read ~/.ssh/config for a device. The device's own address and options come first."""

import getpass
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from ..errors import UsageError
from ..system.environment import expanded
from .inventory import Device
from .known_hosts import host_name

# OpenSSH's order; other kinds of key are no longer supported by paramiko.
USUAL_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa")
_DEPTH = 16  # OpenSSH's own limit of Include


@dataclass(frozen=True)
class Route:
    """Everything that is needed to reach a host.

    identities: files of private keys, to be tried in turn; explicit: whether the user named them,
    so that a missing one is an error. only: no other key of ssh-agent is offered. jumps: hosts to
    go through, the first one first. known_as: the host's name in ~/.ssh/known_hosts.
    """

    host: str
    port: int
    user: str
    identities: tuple[Path, ...]
    explicit: bool
    only: bool
    jumps: tuple[str, ...]
    known_as: str


def resolve(device: Device) -> Route:
    """The route to a device. UsageError where ~/.ssh/config cannot be followed."""
    options = _options(device.host)
    if options.get("proxycommand") and not device.jump:
        hint = "Use ProxyJump there, or add the device with --jump HOST."
        raise UsageError(f"{device.name}: ~/.ssh/config has a ProxyCommand for {device.host}", hint)
    host = options.get("hostname", device.host)
    port = str(device.port or options.get("port", 22))
    if not port.isdecimal():
        raise UsageError(f"~/.ssh/config: Port {port} of {device.host}", "A port is a number.")
    jump = device.jump or options.get("proxyjump", "none")
    named = [device.identity] if device.identity else options.get("identityfile", [])
    usual = [ssh_folder() / name for name in USUAL_IDENTITIES]
    return Route(
        host=host,
        port=int(port),
        user=device.user or options.get("user", "") or _local_user(),
        identities=tuple(map(expanded, named)) or tuple(usual),
        explicit=bool(device.identity),
        only=bool(device.identity) or options.get("identitiesonly", "no").lower() == "yes",
        jumps=() if jump.lower() == "none" else tuple(jump.replace(" ", "").split(",")),
        known_as=options.get("hostkeyalias") or host_name(host, int(port)),
    )


def ssh_folder() -> Path:
    """~/.ssh; a nonexistent folder for a user without a home."""
    try:
        return Path.home() / ".ssh"
    except RuntimeError:
        return Path("/nonexistent")


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        hint = "Say who: ssh://USER@HOST"
        raise UsageError("this user has no name to log in with", hint) from error


def _options(host: str) -> dict[str, Any]:
    path = ssh_folder() / "config"
    try:
        text = "\n".join(_lines(path, "Host *", 0))
        options: dict[str, Any] = paramiko.SSHConfig.from_text(text).lookup(host)
    except FileNotFoundError:
        return {}
    except (OSError, RuntimeError, ValueError, KeyError, paramiko.SSHException) as error:
        hint = "Correct the file; ssh -G HOST reads it too."
        raise UsageError(f"{path}: {error}", hint) from error
    return options


def _lines(path: Path, section: str, depth: int) -> list[str]:
    """The lines, with those of included files in their places, since paramiko does not include."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        word, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if word.lower() in ("host", "match"):
            section = line
        if word.lower() != "include" or depth == _DEPTH:
            found.append(line)
            continue
        for name in rest.split():
            pattern = ssh_folder() / expanded(name.strip('"'))
            for file in sorted(Path("/").glob(str(pattern)[1:])):
                found += [*_lines(file, section, depth + 1), section]
    return found
