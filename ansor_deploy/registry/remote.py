"""Folders of bundles at any fsspec URL, which registries push to and pull from.

The process that mirrors one loads this alone, and not what reads bundles.
"""

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import RegistryError
from ..system.atomic_file import held, write_whole
from ..system.machine_fault import about, raise_if_fault
from ..system.printable import printable
from ..system.regular_file import open_regular
from .limits import BUNDLE_BYTES, SIGNATURE_BYTES

SIGNATURE = ".sig"
WITHDRAWN = ".withdrawn"  # ending of the file, signed or not, that withdraws the bundle beside it
SECONDS = 3600.0  # the limit of all requests to one place
NAME = re.compile(r"[0-9a-f]{64}\.jsonl")
_ANY_NAME = re.compile(rf"[0-9A-Za-z._-]{{1,200}}\.jsonl({WITHDRAWN})?")
_WEB = ("http://", "https://")
_WORD = re.compile(r"[0-9A-Za-z._-]+")


class BundleStore:
    """A folder at a URL. Every method raises RegistryError if it cannot be reached in time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._until = time.monotonic() + SECONDS
        self._is_web = url.startswith(_WEB)
        with self._reaching():
            self._files, root = _files(url)
            self._root = root.rstrip("/")

    def names(self) -> list[str]:
        """The bundles that are there, complete or not, under any name; sorted."""
        return [name for name in self.files() if not name.endswith(WITHDRAWN)]

    def files(self) -> list[str]:
        """The bundles as in `names`, and the files that withdraw some of them."""
        with self._reaching():
            if self._is_web:
                return _linked(self._files.cat_file(self._root))
            self._files.invalidate_cache()
            entries = self._files.ls(self._root, detail=True)
        # Only regular files: a named pipe would be read without end.
        paths = [str(entry["name"]) for entry in entries if entry["type"] == "file"]
        names = {path.rpartition("/")[2] for path in paths}
        return sorted(name for name in names if _ANY_NAME.fullmatch(name))

    def bundle(self, name: str) -> bytes | None:
        """The content of a bundle; None if its upload is incomplete, or its name is wrong."""
        content = self.read(name)
        return content if name_of(content) == name else None

    def signature(self, name: str) -> bytes | None:
        """A bundle's detached signature, if there is one."""
        with self._reaching():
            there = self._files.exists(f"{self._root}/{name}{SIGNATURE}")
        return self.read(name + SIGNATURE, SIGNATURE_BYTES) if there else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file there, and make the folder if needed.

        Buckets have no folders, and a mistyped one is not to be made: their paths have no root.
        """
        with self._reaching():
            if self._root.startswith("/"):
                self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(f"{self._root}/{name}", content)

    def exists(self) -> bool:
        """Whether the folder exists, so that something may have been pushed there."""
        with self._reaching():
            return bool(self._files.exists(self._root))

    def read(self, name: str, most: int = BUNDLE_BYTES) -> bytes:
        """A file, cut off one byte beyond the limit `most`, which gives it a wrong digest."""
        found = bytearray()
        with self._reaching(), self._files.open(f"{self._root}/{name}", "rb") as stream:
            while piece := self._piece(stream, most + 1 - len(found)):
                found += piece
        return bytes(found)

    def _piece(self, stream: Any, most: int) -> bytes:
        """The next bytes of a stream; b"" at its end."""
        self._in_time()
        return bytes(stream.read(most))

    def _in_time(self) -> None:
        """RegistryError where the time limit of the place is over."""
        if time.monotonic() > self._until:
            what = f"{self.url} has not sent everything after {SECONDS / 60:.0f} minutes"
            raise RegistryError(what, "Ask who keeps it, or fetch one bundle and import it.")

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        self._in_time()
        try:
            with about(Path(self.url)):
                yield
        except RegistryError:
            raise
        except ImportError as error:
            said = f"{self.url} needs another package to be reached: {error}"
            raise RegistryError(said, "pip install what it needs, such as s3fs for S3") from error
        except Exception as error:  # each file system raises its own exceptions
            raise_if_fault(error)
            raise _unusable(self.url, error) from error


def _files(url: str) -> tuple[Any, str]:
    """What reads and writes the files of a URL, and the folder's name there."""
    if url.startswith(_WEB):
        from .http import WebFiles

        return WebFiles(), url
    import fsspec

    return fsspec.core.url_to_fs(url)


def _unusable(url: str, error: Exception) -> RegistryError:
    # A subclass of RuntimeError means that a file system does not support something; RuntimeError
    # itself means that it failed, and RecursionError that it went in circles.
    if isinstance(error, RuntimeError) and type(error) not in (RuntimeError, RecursionError):
        hint = "Push to a folder, a bucket, or an HTTP server that takes PUT."
        return RegistryError(f"{url} cannot do that: {printable(repr(error)[:300])}", hint)
    hint = "Check the address, and that you may read and write there."
    return RegistryError(f"{url} cannot be used: {_reason(error)}", hint)


def _reason(error: Exception) -> str:
    """A file system's message in one line; for errors without a message, their class's name."""
    reason = str(error)
    if isinstance(error, OSError):  # its text has the file's name, and is odd without a number
        reason = error.strerror or " ".join(map(str, error.args))
    said = printable(reason.strip()[:300]) or type(error).__name__
    if isinstance(error, FileNotFoundError) and error.errno is None:
        return f"nothing is there ({said})"
    return "it does not answer in time" if isinstance(error, TimeoutError) else said


def _linked(page: bytes) -> list[str]:
    """The names of bundles that occur on a page, in links or elsewhere.

    fsspec finds links by a regular expression that takes hours on some pages.
    """
    words = (found[0] for found in _WORD.finditer(page.decode("ascii", errors="replace")))
    return sorted({word for word in words if _ANY_NAME.fullmatch(word)})


def withdrawal(name: str) -> bytes:
    """The text that is signed to withdraw a bundle."""
    return f"withdrawn {name}\n".encode()


def withdraws(name: str, words: Path | bytes, trusted: frozenset[bytes] | None) -> bool:
    """Whether a signature beside a bundle withdraws it. trusted: keys; None accepts anybody's."""
    if trusted is None:
        return True
    from .signing import signed_by

    if isinstance(words, Path):
        with open_regular(words) as file:
            words = file.read(SIGNATURE_BYTES)
    return any(signed_by(withdrawal(name), words, key) for key in trusted)


def digest(content: bytes) -> str:
    """The digest that a bundle is named after: the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()


def name_of(content: bytes) -> str:
    """The name of a bundle's file where it is pushed to."""
    return f"{digest(content)}.jsonl"


def right_name(content: bytes) -> str:
    """The name that a file should have; "" if it is not a complete bundle."""
    from .bundle import BundleRefused, numbered

    try:
        numbered(content, "")
    except BundleRefused:
        return ""
    return name_of(content)


def misnamed(where: str, name: str) -> str:
    """The warning about a bundle whose name is not that of its content."""
    return f"{where} is not used: a bundle is named after its content, and this one is {name}"


def mirror(payload: dict[str, Any]) -> dict[str, str]:
    """Mirror the bundles at a URL in a folder; complete ones stay if the process is ended.

    It runs in a process of its own, which `layers` can end. It returns the right names of bundles
    that have a wrong name.

    payload: "url", "folder", and "signed", whether signatures are fetched, also those of bundles
    that are here already. RegistryError if the URL cannot be reached.
    """
    store, folder = BundleStore(payload["url"]), Path(payload["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):  # another process may be fetching into it
        return _mirrored(store, folder, signed=payload["signed"])


def _mirrored(store: BundleStore, folder: Path, *, signed: bool) -> dict[str, str]:
    names, misnamed = store.files(), {}
    for name in names:
        if name.endswith(WITHDRAWN):
            if not (folder / name).exists():
                write_whole(folder / name, store.read(name, SIGNATURE_BYTES))
            continue
        here, beside = folder / name, folder / (name + SIGNATURE)
        if here.exists() and (beside.exists() or not signed):
            continue
        content = None if here.exists() else store.read(name)
        if content is not None and name_of(content) != name:
            misnamed[name] = right_name(content)
            continue
        signature = store.signature(name) if signed else None
        if signature is not None:  # written first, so that the bundle is never there without it
            write_whole(beside, signature)
        if content is not None:
            write_whole(here, content)
    wanted = {*names, *(name + SIGNATURE for name in names)}
    for path in folder.iterdir():
        if path.name not in wanted:  # removed at the URL, or left by a fetch that was ended
            path.unlink()
    return {name: right for name, right in misnamed.items() if right}
