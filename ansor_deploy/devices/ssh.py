"""Connect to a device over SSH, and to nothing else that answers at its address.

A host key is accepted if it is pinned for the device or, where no key is pinned, if the user's own
~/.ssh/known_hosts has it; any other is refused before the user name is sent. No password is asked
for, sent or stored: keys come from ssh-agent or from files.
"""

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import paramiko

from ..errors import DeviceError
from .channel import SILENT_SECONDS, Line, Peer, SshConnection, lost
from .identity import AUTH_SECONDS, authenticate
from .inventory import Device, Inventory, parse_jump
from .known_hosts import HostKey, is_revoked, keys_of, parse
from .ssh_config import Route, resolve, ssh_folder

CONNECT_SECONDS = 10.0
HANDSHAKE_SECONDS = 15.0
_MOST_JUMPS = 8
_SEND_BUFFER = 1 << 19  # bytes that may wait in the kernel before a sign of life is sent
# Authenticated ciphers first: one pass over the data instead of two.
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")

# Errors are raised; paramiko would also log them, with tracebacks, to the user's terminal.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


def connect(device: Device, inventory: Inventory | None = None) -> SshConnection:
    """A connection to the device, which has proved its identity.

    DeviceLost where it cannot be reached, DeviceError where its host key is not a known one, or it
    accepts none of the user's keys. inventory: the pinned keys; by default the user's.
    """
    inventory = inventory or Inventory.find()
    peer = _reach(device, inventory, resolve(device).jumps, ())
    return _logged_in(peer, device, lambda: verify(device, peer.key, inventory))


def offered_key(device: Device, inventory: Inventory) -> HostKey:
    """The host key that the device's address offers; it is not verified yet."""
    with closing(_reach(device, inventory, resolve(device).jumps, ())) as peer:
        return peer.key


def known_keys(device: Device, inventory: Inventory) -> Sequence[HostKey]:
    """The pinned keys of a device or, where there are none, those of ~/.ssh/known_hosts."""
    return inventory.keys(device.name) or keys_of(parse(_user_file()), resolve(device).known_as)


def verify(device: Device, key: HostKey, inventory: Inventory) -> None:
    """DeviceError unless this is a known key of the device."""
    refuse_revoked(device, key)
    known = known_keys(device, inventory)
    if not known:
        what = f"{device.name}: its host key is not known: {key.fingerprint} ({key.kind})"
        hint = f"Compare it with the board's own, then: ansor-deploy devices trust {device.name}"
        raise DeviceError(what, hint)
    if key not in known:
        before = ", ".join(f"{k.fingerprint} ({k.kind})" for k in known)
        accept = f"ansor-deploy devices trust {device.name} --replace"
        if not inventory.has(device.name):
            accept = f"ssh-keygen -R '{resolve(device).known_as}', and the same command"
        raise DeviceError(
            f"{device.name}: THE HOST KEY HAS CHANGED. Somebody may be between you and the board.\n"
            f"  known:   {before}\n  offered: {key.fingerprint} ({key.kind})",
            "Connect to it only if you know why, such as a new system on it: "
            f"compare, then: {accept}",
        )


def refuse_revoked(device: Device, key: HostKey) -> None:
    """DeviceError if ~/.ssh/known_hosts marks this key of the device as revoked."""
    if is_revoked(parse(_user_file()), resolve(device).known_as, key):
        what = f"{device.name}: its host key {key.fingerprint} is revoked in ~/.ssh/known_hosts"
        hint = "Do not connect. Ask whoever revoked it; give the board a new key."
        raise DeviceError(what, hint)


def _reach(
    device: Device, inventory: Inventory, jumps: tuple[str, ...], seen: tuple[str, ...]
) -> Peer:
    """Connect, through the jump hosts if any, as far as the exchange of keys."""
    route = resolve(device)
    under = _under(device, inventory, jumps, seen)
    with ExitStack() as undo:
        if under is not None:
            undo.callback(under.close)
            line = Line(under.tunnel(route.host, route.port, CONNECT_SECONDS))
        else:
            line = Line(_dial(device.name, route))
        preferred = [key.kind for key in known_keys(device, inventory)]
        transport = _shake_hands(device.name, line, preferred)
        undo.pop_all()
    key = transport.get_remote_server_key()
    return Peer(transport, line, HostKey(key.get_name(), key.asbytes()), route, under)


def _under(
    device: Device, inventory: Inventory, jumps: tuple[str, ...], seen: tuple[str, ...]
) -> SshConnection | None:
    """A verified connection to the last of the jump hosts, through those before it."""
    if not jumps:
        return None
    *before, last = jumps
    if last in seen or len(seen) == _MOST_JUMPS:
        what = f"{device.name}: its jump hosts lead in a circle: {' -> '.join((*seen, last))}"
        hint = "Correct ProxyJump in ~/.ssh/config, or --jump."
        raise DeviceError(what, hint)
    host = inventory.get(last) if inventory.has(last) else parse_jump(last)
    peer = _reach(host, inventory, tuple(before) or resolve(host).jumps, (*seen, last))
    return _logged_in(peer, host, lambda: _verify_jump(host, peer.key, inventory))


def _logged_in(peer: Peer, device: Device, check: Callable[[], None]) -> SshConnection:
    """Check the peer, and only then log in, so that nobody else learns the user name."""
    with ExitStack() as undo:
        undo.callback(peer.close)
        check()
        authenticate(peer.transport, peer.route, device.name)
        undo.pop_all()
    return SshConnection(peer, device.name)


def _verify_jump(host: Device, key: HostKey, inventory: Inventory) -> None:
    """Verify a jump host; one that is not a device is trusted if the user's ssh trusts it."""
    try:
        verify(host, key, inventory)
    except DeviceError as error:
        if inventory.has(host.name):
            raise
        hint = "Check it with ssh first; or add it as a device, and give --jump that name."
        raise DeviceError(error.message, hint) from error


def _dial(name: str, route: Route) -> socket.socket:
    place = f"{route.host} port {route.port}"
    try:
        sock = socket.create_connection((route.host, route.port), timeout=CONNECT_SECONDS)
    except socket.gaierror as error:
        raise lost(name, f"no address of {route.host}: {error.strerror}") from error
    except ConnectionRefusedError as error:
        raise lost(name, f"nothing listens at {place}") from error
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise lost(name, f"{place} cannot be reached: {reason.lower()}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_SECONDS * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return sock


def _shake_hands(name: str, line: Line, preferred: list[str]) -> paramiko.Transport:
    """Exchange keys. preferred: kinds of host key to ask for first."""
    transport = paramiko.Transport(line)
    transport.banner_timeout = transport.handshake_timeout = HANDSHAKE_SECONDS
    transport.auth_timeout = AUTH_SECONDS
    security = transport.get_security_options()
    security.ciphers = (*_CIPHERS, *(c for c in security.ciphers if c not in _CIPHERS))
    security.key_types = sorted(security.key_types, key=lambda kind: _plain(kind) not in preferred)
    try:
        transport.start_client(timeout=HANDSHAKE_SECONDS)
        transport.get_remote_server_key()  # raises where the time ran out
    except (paramiko.SSHException, EOFError, OSError) as error:
        transport.close()
        line.close()
        what = f"whoever listens there does not speak SSH in {HANDSHAKE_SECONDS:.0f} s"
        raise lost(name, f"{what}: {error}" if str(error) else what) from error
    return transport


def _plain(kind: str) -> str:
    """The kind of a key: RSA keys are of one kind, whatever their signatures use."""
    return "ssh-rsa" if kind.startswith("rsa-sha2-") else kind


def _user_file() -> str:
    try:
        return (ssh_folder() / "known_hosts").read_text("utf-8", errors="replace")
    except OSError:  # not there: nobody is known
        return ""
