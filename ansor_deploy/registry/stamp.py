"""Stamps of signed bundles, and what was seen at a place before: together they reveal old copies.

The first line of a signed bundle has the time when it was made, which is later than that of any
other bundle its key has signed in that place, and the digests of withdrawn bundles. So whoever
missed a withdrawal learns of it from any bundle signed since. And a bundle that is new to us, but
older than one the place has shown before, was put there again by somebody. A place that withholds
everything newer cannot be distinguished from one to which nobody pushes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ..system.atomic_file import write_whole
from ..system.checks import list_of, text
from ..system.digest import canonical_json
from ..system.untrusted import exactly, quoted, refuse, strict_json

BEGIN = '{"ansor-deploy-bundle":'
VERSION = 1
MOST_WITHDRAWN = 10_000
LATE = timedelta(days=1)  # a bundle may come so much after newer ones, and a clock be so far ahead

_MOST_LINE = 1 << 20
_TIME = text(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\+00:00")
_DIGESTS = list_of(text("[0-9a-f]{64}"), 0, MOST_WITHDRAWN)


@dataclass(frozen=True)
class Stamp:
    """The first line of a signed bundle.

    made: ISO 8601, UTC; of two bundles of a key in one place the later is the successor.
    withdrawn: digests of bundles in that place that are withdrawn.
    """

    made: str
    withdrawn: tuple[str, ...] = ()

    @classmethod
    def succeeding(cls, before: Iterable[Stamp | None], withdrawn: Iterable[str]) -> Stamp:
        """A stamp of now, or, where this clock is behind, of a second after the latest stamp."""
        known = [one for one in before if one]
        made = datetime.now(timezone.utc).replace(microsecond=0)
        for one in known:
            made = max(made, datetime.fromisoformat(one.made) + timedelta(seconds=1))
        gone = {*withdrawn, *(name for one in known for name in one.withdrawn)}
        return cls(made.isoformat(), tuple(sorted(gone)[:MOST_WITHDRAWN]))


def header(stamp: Stamp | None) -> str:
    """The first line of a bundle."""
    said = {"made": stamp.made, "withdrawn": list(stamp.withdrawn)} if stamp else {}
    return canonical_json({"ansor-deploy-bundle": VERSION, **said})


def stamp_of(content: bytes) -> Stamp | None:
    """The stamp in a bundle's first line; None if it has none; Refused if the line is invalid."""
    first = content[: _MOST_LINE + 1].partition(b"\n")[0].decode("ascii", errors="replace")
    refuse(not first.startswith(BEGIN), "it is not a bundle of ansor-deploy")
    if first == header(None):
        return None
    version = first.startswith(f"{BEGIN}{VERSION},")
    refuse(not version, f"this ansor-deploy reads version {VERSION} of bundles: update it")
    data = exactly(strict_json(first, _MOST_LINE), "ansor-deploy-bundle", "made", "withdrawn")
    refuse(not _TIME(data["made"]), f"it was made {quoted(data['made'])}, which is no time")
    refuse(not _DIGESTS(data["withdrawn"]), "what it withdraws are no digests")
    latest = datetime.now(timezone.utc) + LATE
    refuse(data["made"] > latest.isoformat(), f"it was made {data['made']}, which is to come")
    return Stamp(data["made"], tuple(data["withdrawn"]))


class Seen:
    """What one place has shown so far: a file in the cache, which may be damaged or missing.

    withdrawn: digests of bundles that were withdrawn, by a file beside them or by a later bundle.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest: dict[str, str] = {}  # the time of the newest stamp of each key
        self._bundles: set[str] = set()
        self.withdrawn: set[str] = set()
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = json.loads(path.read_bytes())
            self._newest = dict(said["newest"])
            self._bundles, self.withdrawn = set(said["bundles"]), set(said["withdrawn"])
        self._before, self._said = dict(self._newest), self._text()

    def replayed(self, digest: str, key: str, stamp: Stamp | None) -> str:
        """Why a bundle is an old one that was put there again; "" where it is not, or unstamped.

        digest: the bundle's, to recognise one that was seen before; "" for a layer of one file.
        """
        newest = self._before.get(key, "")
        if stamp is None or digest in self._bundles or not newest:
            return ""
        if datetime.fromisoformat(stamp.made) + LATE >= datetime.fromisoformat(newest):
            return ""
        return (
            f"it was made {stamp.made}, and its key had signed a newer one there by {newest}: an "
            "old copy is served. If it is meant to be there, take it in with `registry import`"
        )

    def note(self, digest: str, key: str, stamp: Stamp | None) -> None:
        """Remember a bundle that was taken."""
        self._bundles.update([digest] if digest else [])
        if stamp is not None:
            self._newest[key] = max(stamp.made, self._newest.get(key, ""))
            self.withdrawn.update(stamp.withdrawn)

    def save(self, *, whole: bool) -> None:
        """Write the file if anything is new.

        whole: whether the place was complete, so that later bundles must have newer stamps.
        """
        if not whole:
            self._newest = self._before
        if (said := self._text()) != self._said:
            write_whole(self._path, said.encode(), durable=False)

    def _text(self) -> str:
        named = {"bundles": sorted(self._bundles), "withdrawn": sorted(self.withdrawn)}
        return canonical_json({"newest": self._newest, **named})
