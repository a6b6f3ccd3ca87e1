"""A hostile web server, and the commands that take a team's records from it.

It has intact bundles, signed by a trusted key, and lies in some replies (`lies.py`). Deadlines are
seconds, where users have minutes; all else is as for users.
"""

from __future__ import annotations

import os
import random
import resource
import socketserver
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from ansor_deploy.registry import http, layers, remote
from ansor_deploy.registry.signing import Signer
from benchmarks.fuzz import command
from benchmarks.fuzz.lies import LIES, Reply

_FOLDER = "/records"
_SECONDS = 3.0  # the deadline for a server's replies
_CLOSED = 0.7  # the share of a liar's connections that it closes after a reply
_KEYS = "keys.pub"
_COMMANDS = (
    "registry pull {url} --registry other.db",
    "registry pull {url} --registry other.db --trust keys.pub",
    "registry push {url} --registry records.db",
    "plan net.onnx --target ./own.toml --registry other.db",
)
_KINDS = ("listing", "bundle", "signature", "write", "anything")


@dataclass(frozen=True)
class Plan:
    """What a server does.

    lies: by the kind of request, one of `_KINDS`. words: the command.
    """

    seed: int
    lies: Mapping[str, str]
    words: str

    def __str__(self) -> str:
        told = ", ".join(f"{kind}: {lie}" for kind, lie in self.lies.items())
        return f"{self.words.split(' {')[0]} ({told or 'honest'})"


def planned(seed: int) -> Plan:
    """The plan for the try of a seed."""
    chance = random.Random(seed)
    kinds = chance.sample(_KINDS, chance.choice((0, 1, 1, 1, 1, 1, 2)))
    lies = {kind: chance.choice(sorted(LIES)) for kind in kinds}
    return Plan(seed, lies, chance.choice(_COMMANDS))


@contextmanager
def serving(plan: Plan, samples: Path) -> Iterator[str]:
    """Serve within the block; the URL of the records."""
    files = _signed((samples / "bundle.ansor").read_bytes())

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            chance = random.Random(plan.seed)
            with suppress(OSError, ValueError):  # the client has gone, or its request is invalid
                while line := self.rfile.readline(1 << 16):
                    method, path = line.decode().split()[:2]
                    self._skip()
                    for piece in _reply(plan, chance, files, method, path):
                        self.wfile.write(piece)
                    if plan.lies and chance.random() < _CLOSED:
                        return

        def _skip(self) -> None:
            size = 0
            while (header := self.rfile.readline(1 << 16)).strip():
                if header.lower().startswith(b"content-length:"):
                    size = int(header.partition(b":")[2])
            self.rfile.read(size)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True  # endless replies are not waited for
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}{_FOLDER}"
        server.shutdown()


def _signed(bundle: bytes) -> dict[str, bytes]:
    """The files of the server, by name: a bundle and its signature."""
    name = remote.name_of(bundle)
    return {name: bundle, name + remote.SIGNATURE: _signer().sign(bundle).encode()}


def _signer() -> Signer:
    """A fixed key, which signs only this server's bundles."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(bytes(32))
    return Signer(private.public_key().public_bytes_raw(), private)


def _reply(
    plan: Plan, chance: random.Random, files: Mapping[str, bytes], method: str, path: str
) -> Iterator[bytes]:
    """The pieces of the reply to a request."""
    name = path.partition("?")[0].removeprefix(_FOLDER).strip("/")
    kind, honest = _honest(files, method, name)
    lie = plan.lies.get(kind) or plan.lies.get("anything")
    pieces = LIES[lie](chance, honest) if lie else iter([honest.whole()])
    if method != "HEAD":
        yield from pieces
        return
    for piece in pieces:  # of replies with a body, only the head
        yield piece.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if b"\r\n\r\n" in piece else piece
        if b"\r\n\r\n" in piece:
            return


def _honest(files: Mapping[str, bytes], method: str, name: str) -> tuple[str, Reply]:
    """(the kind of request, its honest reply)."""
    if method == "PUT":
        return "write", Reply(b"", "201 Created")
    if not name:
        links = "".join(f'<a href="{one}">{one}</a>\n' for one in files)
        return "listing", Reply(links.encode(), headers={"Content-Type": "text/html"})
    kind = "signature" if name.endswith(remote.SIGNATURE) else "bundle"
    if name not in files:
        return kind, Reply(b"", "404 Not Found")
    return kind, Reply(files[name], headers={"Content-Type": "application/octet-stream"})


def prepare(plan: Plan, url: str, folder: Path) -> list[str]:
    """Make a project's folder whose team's records are at a URL; returns the command's words."""
    from cryptography.hazmat.primitives import serialization as s

    public = _signer().private.public_key()  # type: ignore[attr-defined]
    line = public.public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH)
    (folder / _KEYS).write_bytes(line + b" fuzz\n")
    trust = f'trust = "{_KEYS}"\n' if plan.seed % 2 else ""
    (folder / "ansor-deploy.toml").write_text(f'team = "{url}"\n{trust}', encoding="utf-8")
    return plan.words.format(url=url).split()


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """As `command.attempt`, with short deadlines and an empty cache.

    The memory of child processes counts, too.
    """
    http.SECONDS, http._STALLED = _SECONDS, _SECONDS / 2  # noqa: SLF001
    layers.PATIENCE = remote.SECONDS = _SECONDS
    before, cache = _of_children(), os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(Path(payload["folder"]) / "cache")
    try:
        ended = command.attempt(payload)
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        os.environ.update({"XDG_CACHE_HOME": cache} if cache else {})
    grown = _of_children()
    most = max(ended["megabytes"], grown if grown > before else 0.0)
    return {**ended, "megabytes": most}


def _of_children() -> float:
    """The peak memory of any child process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
