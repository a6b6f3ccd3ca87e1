"""Host keys as OpenSSH writes them: the key of each host, and the keys that are revoked.

A line is `[@marker] names key-type base64 [comment]`. Names are patterns with * and ?, "!" before
one that must not match, or the HMAC-SHA1 of a single name (`|1|salt|hash`).
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

REVOKED = "@revoked"


@dataclass(frozen=True)
class HostKey:
    """A public key. kind: such as "ssh-ed25519"; blob: its bytes as SSH encodes them."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` prints it: SHA256:..."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True)
class Entry:
    """One line: a key and the names of its hosts. marker: "", or such as "@revoked"."""

    marker: str
    names: str
    key: HostKey

    def matches(self, name: str) -> bool:
        """Whether the line is about a host of this name."""
        if self.names.startswith("|1|"):
            return _hash_matches(self.names, name)
        words = self.names.lower().split(",")
        if any(word[:1] == "!" and _like(name, word[1:]) for word in words):
            return False
        return any(_like(name, word) for word in words)

    def line(self) -> str:
        """The line that `parse` reads as this entry."""
        words = (self.marker, self.names, self.key.kind, base64.b64encode(self.key.blob).decode())
        return " ".join(filter(None, words))


def parse(text: str) -> Iterator[Entry]:
    """The entries of a file. Invalid lines are skipped, and their hosts stay unknown."""
    for line in text.split("\n"):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        if blob := parse_public(" ".join(words[1:])):
            yield Entry(marker, words[0], HostKey(words[1], blob))


def parse_public(text: str) -> bytes:
    """The key of a public half, `key-type base64 [comment]`; b"" if it is invalid."""
    kind, data, *_ = [*text.split(), "", ""]
    try:
        blob = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return blob if kind and blob[4 : 4 + int.from_bytes(blob[:4], "big")] == kind.encode() else b""


def keys_of(entries: Iterable[Entry], name: str) -> list[HostKey]:
    """Every key that the host may have. Certificate authorities are not supported."""
    return [entry.key for entry in entries if not entry.marker and entry.matches(name)]


def is_revoked(entries: Iterable[Entry], name: str, key: HostKey) -> bool:
    """Whether a line says that this key is never to be accepted."""
    return any(e.marker == REVOKED and e.key == key and e.matches(name) for e in entries)


def host_name(host: str, port: int) -> str:
    """The name of a host in the file: with the port if that is not 22."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def _like(name: str, pattern: str) -> bool:
    # fnmatch knows [a-z], OpenSSH does not: there a bracket belongs to [host]:port.
    return fnmatchcase(name.lower(), pattern.replace("[", "[[]"))


def _hash_matches(names: str, name: str) -> bool:
    try:
        salt, digest = map(base64.b64decode, names.split("|")[2:4])
    except ValueError:
        return False
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)
