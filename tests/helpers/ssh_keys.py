"""Keys as `ssh-keygen -t ed25519` makes them, without that program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def make_key(path: Path, lock: bytes | None = None) -> None:
    """Write a private key to the path, and its public half beside it, as `.pub`."""
    private = Ed25519PrivateKey.generate()
    path.write_bytes(private_text(private, lock))
    path.chmod(0o600)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b" tester\n")


def private_text(key: Any, lock: bytes | None = None) -> bytes:
    """A private key in OpenSSH's format, encrypted if a passphrase is given."""
    locked = BestAvailableEncryption(lock) if lock else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, locked)
