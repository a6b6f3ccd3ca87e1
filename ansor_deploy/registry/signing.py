"""Signatures of bundles in OpenSSH's format, by Ed25519 keys.

`ssh-keygen -t ed25519` makes a key; `ssh-keygen -Y sign -n ansor-deploy -f KEY FILE` signs like
`--sign KEY` does, and `ssh-keygen -Y verify` reads what is signed here.
"""

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from ..system.regular_file import read_regular
from .bundle import BundleRefused
from .limits import SIGNATURE_BYTES

NAMESPACE = b"ansor-deploy"  # a signature for another namespace is not accepted
_MOST_KEYS = 1 << 20  # bytes of a file with keys

_MAGIC = b"SSHSIG"
_KIND = b"ssh-ed25519"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES = {b"sha512": hashlib.sha512, b"sha256": hashlib.sha256}


@dataclass(frozen=True)
class Signer:
    """A private key. public: its 32 public bytes."""

    public: bytes
    private: object = field(repr=False)

    def sign(self, content: bytes) -> str:
        """A detached signature of the content, as `ssh-keygen -Y sign` writes it."""
        value = self.private.sign(_to_sign(content, b"sha512"))  # type: ignore[attr-defined]
        body = _MAGIC + struct.pack(">I", 1)
        body += _strings(_strings(_KIND, self.public), NAMESPACE, b"", b"sha512")
        body += _strings(_strings(_KIND, value))
        text = base64.b64encode(body).decode()
        lines = [text[at : at + 70] for at in range(0, len(text), 70)]
        return "\n".join([_BEGIN, *lines, _END, ""])


def load_signer(path: Path) -> Signer:
    """The key of a private OpenSSH key file; UsageError if it has another form or a passphrase."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    hint = "Make one with `ssh-keygen -t ed25519 -f KEY`."
    try:
        private = s.load_ssh_private_key(read_regular(path, _MOST_KEYS), password=None)
    except TypeError as error:
        other = f"Sign with: ssh-keygen -Y sign -n {NAMESPACE.decode()} -f {path} FILE"
        raise UsageError(f"{path} is locked with a passphrase", other) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no private OpenSSH key", hint) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise UsageError(f"{path} is no Ed25519 key", hint)
    return Signer(private.public_key().public_bytes_raw(), private)


def load_trusted(path: Path) -> frozenset[bytes]:
    """The public keys of a file with a line `ssh-ed25519 AAAA... comment` for each.

    UsageError, with the line, if the file has anything else, or no key.
    """
    hint = "Copy the one line of each KEY.pub there."
    try:
        text = read_regular(path, _MOST_KEYS).decode(errors="replace")
    except OSError as error:
        raise UsageError(f"the trusted keys {path}: {error.strerror}", hint) from error
    keys = set()
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = _public(words[1]) if len(words) > 1 and words[0] == _KIND.decode() else None
        if key is None:
            raise UsageError(f"{path}:{number}: no Ed25519 public key in OpenSSH's form", hint)
        keys.add(key)
    if not keys:
        raise UsageError(f"{path} has no key", hint)
    return frozenset(keys)


def check_signature(
    name: str, content: bytes, signature: bytes | None, trusted: frozenset[bytes]
) -> str:
    """The fingerprint of the trusted key that has signed the content; else BundleRefused.

    signature: None if there is none.
    """
    problem = _problem(content, signature, trusted)
    if problem:
        hint = "Have it signed by who is trusted: `registry export` or `push` with --sign KEY."
        raise BundleRefused(f"{name} is refused: {problem}", hint)
    return fingerprint(_parse(signature or b"")[0])


def signed_by(content: bytes, signature: bytes | None, key: bytes) -> bool:
    """Whether this key has signed the content."""
    return not _problem(content, signature, frozenset([key]))


def fingerprint(key: bytes) -> str:
    """A public key as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(_strings(_KIND, key)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _problem(content: bytes, signature: bytes | None, trusted: frozenset[bytes]) -> str:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if signature is None:
        return "it is not signed"
    try:
        key, name, value = _parse(signature)
    except (ValueError, IndexError, struct.error):
        return "its signature is none of OpenSSH's by an Ed25519 key for ansor-deploy"
    if key not in trusted:
        return f"it is signed by a key that is not trusted: {fingerprint(key)}"
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(value, _to_sign(content, name))
    except InvalidSignature:
        return "its signature is not of this content"
    return ""


def _parse(text: bytes) -> tuple[bytes, bytes, bytes]:
    """The 32 bytes of the public key, the name of the hash, and the 64 of the signature."""
    lines = text[:SIGNATURE_BYTES].decode("ascii").split()
    begin, end = _BEGIN.split(), _END.split()
    if lines[: len(begin)] != begin or lines[-len(end) :] != end:
        raise ValueError("no armour")
    body = base64.b64decode("".join(lines[len(begin) : -len(end)]), validate=True)
    if body[:6] != _MAGIC or struct.unpack(">I", body[6:10]) != (1,):
        raise ValueError("another format")
    key, namespace, _, name, value = _read_strings(body[10:], 5)
    (kind, public), (kind_again, signed) = _read_strings(key, 2), _read_strings(value, 2)
    fit = kind == kind_again == _KIND and namespace == NAMESPACE and name in _HASHES
    if not fit or len(public) != 32 or len(signed) != 64:
        raise ValueError("another kind of key, or made for another purpose")
    return public, name, signed


def _public(text: str) -> bytes | None:
    try:
        kind, key = _read_strings(base64.b64decode(text, validate=True), 2)
    except (binascii.Error, ValueError, struct.error):
        return None
    return key if kind == _KIND and len(key) == 32 else None


def _to_sign(content: bytes, name: bytes) -> bytes:
    return _MAGIC + _strings(NAMESPACE, b"", name, _HASHES[name](content).digest())


def _strings(*parts: bytes) -> bytes:
    """Strings as SSH encodes them: each after its length."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _read_strings(data: bytes, count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        (length,) = struct.unpack(">I", data[:4])
        if length > len(data) - 4:
            raise ValueError("cut off")
        found.append(data[4 : 4 + length])
        data = data[4 + length :]
    if data:
        raise ValueError("more than there should be")
    return found
