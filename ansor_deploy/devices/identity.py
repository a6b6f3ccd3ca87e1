"""Log in with the keys of ssh-agent and of files, in OpenSSH's order."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import paramiko

from ..errors import DeviceError
from ..system.untrusted import brief
from .channel import lost
from .known_hosts import parse_public
from .ssh_config import Route

AUTH_SECONDS = 20.0
AGENT_SECONDS = 5.0


class Keys:
    """The private keys that may open a route. locked: files skipped since they are encrypted."""

    def __init__(self, route: Route, agent: list[Any], name: str) -> None:
        self.locked: list[Path] = []
        self.offered: list[str] = []
        self._route = route
        self._agent = agent
        self._name = name

    def __iter__(self) -> Iterator[Any]:
        """The named keys first, then all others of ssh-agent; each once."""
        seen = set()
        for key in self._candidates():
            if key.asbytes() not in seen:
                seen.add(key.asbytes())
                self.offered.append(key.fingerprint)
                yield key

    def _candidates(self) -> Iterator[Any]:
        for path in self._route.identities:
            key = self._from_agent(path) or self._from_file(path)
            if key is not None:
                yield key
        # The public half of an encrypted file is unknown, and may be any of the agent's keys.
        if not self._route.only or self.locked:
            yield from self._agent

    def _from_agent(self, path: Path) -> Any:
        """The agent's key whose public half lies beside the file, or is the file."""
        public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
        with suppress(OSError, UnicodeDecodeError):
            blob = parse_public(public.read_text("utf-8"))
            return next((key for key in self._agent if key.asbytes() == blob), None)
        return None

    def _from_file(self, path: Path) -> Any:
        if path.suffix == ".pub":
            return None
        try:
            return paramiko.PKey.from_path(path)
        except FileNotFoundError as error:
            if self._route.explicit:
                hint = "Give the file of a private key: --identity ~/.ssh/id_ed25519"
                raise DeviceError(f"{self._name}: there is no key {path}", hint) from error
        except (TypeError, paramiko.PasswordRequiredException):
            self.locked.append(path)
        except (OSError, ValueError, paramiko.SSHException, paramiko.UnknownKeyType) as error:
            if self._route.explicit:
                reason = error.strerror if isinstance(error, OSError) else "no key of a known form"
                hint = "Give the file of an Ed25519, ECDSA or RSA private key."
                raise DeviceError(f"{self._name}: {path}: {reason}", hint) from error
        return None


def authenticate(transport: paramiko.Transport, route: Route, name: str) -> None:
    """Log in. DeviceError where no key is accepted, DeviceLost where no answer comes."""
    agent = _agent()
    try:
        keys = Keys(route, list(agent.get_keys()) if agent else [], name)
        if not any(_accepted(transport, route, key, name) for key in keys):
            raise _refused(keys, route, name, transport.is_active())
    finally:
        if agent is not None:
            agent.close()


def _accepted(transport: paramiko.Transport, route: Route, key: Any, name: str) -> bool:
    began = time.monotonic()
    try:
        transport.auth_publickey(route.user, key)
    except paramiko.BadAuthenticationType as error:
        allowed = brief(", ".join(error.allowed_types))
        hint = "Allow PubkeyAuthentication in the board's sshd_config, and add your public key."
        raise DeviceError(f"{name}: it takes no keys, only: {allowed}", hint) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        if time.monotonic() - began >= AUTH_SECONDS:
            raise lost(name, f"no answer to the log-in in {AUTH_SECONDS:.0f} s") from error
    return bool(transport.is_authenticated())


def _refused(keys: Keys, route: Route, name: str, active: bool) -> DeviceError:
    if not active and len(keys.offered) < 2:
        return lost(name, "the connection was lost during the log-in")
    who = f"{name}: {route.user}@{route.host} accepted none of the keys"
    tried = f"{who}: {', '.join(keys.offered) or 'there are none'}"
    if keys.locked:
        files = ", ".join(map(str, keys.locked))
        hint = f"Unlock it first: ssh-add {keys.locked[0]}"
        return DeviceError(f"{tried}; encrypted, and not in ssh-agent: {files}", hint)
    hint = "Copy a public key there (ssh-copy-id), or name the right one with --identity."
    return DeviceError(tried if active else f"{tried}; then it hung up", hint)


def _agent() -> paramiko.Agent | None:
    """The user's ssh-agent; None where there is none, or it does not answer."""
    found: list[paramiko.Agent] = []

    def ask() -> None:
        with suppress(paramiko.SSHException, OSError):
            found.append(paramiko.Agent())

    # paramiko would wait for ever for a dead agent, such as one forwarded from a host that is gone.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(AGENT_SECONDS)
    return found[0] if found else None
