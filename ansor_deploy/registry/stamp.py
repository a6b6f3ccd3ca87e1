"""When signed bundles were made, and what a place has shown of that: by it an old copy shows.

A signed bundle says in its first line when it was made, which is later than all that its key has
signed in that place, and which others nobody is to take any more. So who never saw a withdrawal
learns of it from whatever was signed since; and a bundle that is new here, but older than what the
place has shown before, is one that somebody puts there again. A source that withholds all that is
newer cannot be told from one that nobody pushes to.
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
LATE = timedelta(days=1)  # by which a bundle may come after newer ones, or a clock be ahead

_MOST_LINE = 1 << 20
_TIME = text(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\+00:00")
_DIGESTS = list_of(text("[0-9a-f]{64}"), 0, MOST_WITHDRAWN)


@dataclass(frozen=True)
class Stamp:
    """What a signed bundle says of itself.

    made: ISO 8601, UTC; of two bundles of a key in one place the later is the successor.
    withdrawn: digests of bundles of that place that nobody is to take.
    """

    made: str
    withdrawn: tuple[str, ...] = ()

    @classmethod
    def succeeding(cls, before: Iterable[Stamp | None], withdrawn: Iterable[str]) -> Stamp:
        """A stamp of now, or of a second after the latest before where this clock is behind."""
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
    """What the first line of a bundle says; None without a date; Refused if it is no such line."""
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
    """What one place has shown: a file of the cache, which may be damaged or gone.

    withdrawn: digests of bundles that were, by words beside them or by a later bundle.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest: dict[str, str] = {}  # by key
        self._bundles: set[str] = set()
        self.withdrawn: set[str] = set()
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = json.loads(path.read_bytes())
            self._newest = dict(said["newest"])
            self._bundles, self.withdrawn = set(said["bundles"]), set(said["withdrawn"])
        self._before, self._said = dict(self._newest), self._text()

    def replayed(self, digest: str, key: str, stamp: Stamp | None) -> str:
        """Why a bundle is an old one that is there again; "" where it is none, or has no date.

        digest: of one that may have been there before; "" of a layer that is one file.
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
        """Write down what is new. whole: whether all was there, so that what comes is younger."""
        if not whole:
            self._newest = self._before
        if (said := self._text()) != self._said:
            write_whole(self._path, said.encode(), durable=False)

    def _text(self) -> str:
        named = {"bundles": sorted(self._bundles), "withdrawn": sorted(self.withdrawn)}
        return canonical_json({"newest": self._newest, **named})
