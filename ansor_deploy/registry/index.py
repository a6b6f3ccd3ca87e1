"""The index of a layer: the unchecked lines of its bundles, and the rows that passed the firewall.

A bundle is taken as a whole: under its right name, signed where that is required, with each line of
a known form. A line's content passes the firewall only when a build asks for its task: the ends of
searches, the fastest few records that none has beaten, and the fastest beaten ones with those that
beat them. The registry's own tables hold only what has passed, and builds read these alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.digest import canonical_json, file_sha256
from .lookups import FEW
from .stamp import Seen, stamp_of
from .store import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from .bundle import Bundle
    from .exchange import Trusted
    from .record import TaskKey

    Warn = Callable[[str], None]
    Lines = list[dict[str, Any]]

LAYOUT = 5  # the version of the tables below
MOST_ASKED = 128  # the most unbeaten records of a task, beaten ones, and ends of its searches
_JUNK_SECONDS = 2.0  # a build spends at most so long on useless files; later ones read the rest
_MOST_NAMED = 8  # the most useless files that are warned of

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS taken (
        digest TEXT PRIMARY KEY, file TEXT NOT NULL, path TEXT NOT NULL
    ) STRICT
    """,
    "CREATE TABLE IF NOT EXISTS useless (file TEXT PRIMARY KEY, reason TEXT NOT NULL) STRICT",
    """
    CREATE TABLE IF NOT EXISTS lines (
        number INTEGER PRIMARY KEY AUTOINCREMENT, bundle TEXT NOT NULL, place TEXT NOT NULL,
        line TEXT NOT NULL, workload TEXT NOT NULL, target TEXT NOT NULL, id TEXT NOT NULL,
        tvm TEXT NOT NULL, latency REAL NOT NULL, loser TEXT NOT NULL, winner TEXT NOT NULL,
        UNIQUE (bundle, place)
    ) STRICT
    """,
    # It has every column by which lines are chosen, since the lines themselves are long.
    """
    CREATE INDEX IF NOT EXISTS lines_of
    ON lines (workload, target, id, tvm, latency, loser, winner)
    """,
    "CREATE TABLE IF NOT EXISTS passed (line INTEGER PRIMARY KEY) STRICT",
)
_TAKEN = "INSERT INTO taken VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_USELESS = "INSERT INTO useless VALUES (?, ?) ON CONFLICT DO NOTHING"
_COLUMNS = ("place", "line", "workload", "target", "id", "tvm", "latency", "loser", "winner")
_LINE = f"INSERT INTO lines VALUES (NULL, ?{', ?' * len(_COLUMNS)}) ON CONFLICT DO NOTHING"  # noqa: S608
_columns = attrgetter(*_COLUMNS)
_PASSED = "INSERT INTO passed VALUES (?) ON CONFLICT DO NOTHING"

# The lines for a key that are wanted and have not passed yet; with a contest its records, even if
# these have. A record that has beaten a wanted one may itself be beaten.
_WANTED = """
    WITH RECURSIVE mine AS (
        SELECT number, id, tvm, latency, loser, winner FROM lines
        WHERE workload = :workload AND target = :target
    ),
    contests AS (
        SELECT * FROM (
            SELECT number, loser, winner FROM mine
            WHERE loser <> '' ORDER BY latency, number LIMIT :most
        )
        UNION SELECT m.number, m.loser, m.winner
        FROM contests AS c JOIN mine AS m ON m.loser = c.winner
    ),
    ranked AS (
        SELECT id, row_number() OVER (PARTITION BY tvm ORDER BY min(latency), id) AS rank FROM mine
        WHERE id <> '' AND id NOT IN (SELECT loser FROM mine)
        AND id NOT IN (SELECT value FROM json_each(:beaten))
        GROUP BY tvm, id
    ),
    records AS (
        SELECT loser AS id FROM contests UNION SELECT winner FROM contests
        UNION SELECT * FROM (
            SELECT id FROM ranked WHERE rank <= :few ORDER BY rank LIMIT :most
        )
    ),
    asked AS (
        SELECT number FROM mine WHERE id IN (SELECT id FROM records)
        UNION ALL SELECT number FROM contests UNION ALL SELECT * FROM (
            SELECT number FROM mine WHERE id = '' AND loser = '' LIMIT :most
        )
    ),
    new AS (SELECT * FROM contests WHERE number NOT IN (SELECT line FROM passed))
    SELECT number, bundle, place, workload, line FROM lines
    WHERE number IN (SELECT number FROM asked) AND (
        number NOT IN (SELECT line FROM passed)
        OR id IN (SELECT loser FROM new UNION SELECT winner FROM new)
    )
"""
_REFERRED_TO = """
    SELECT place, line FROM lines WHERE bundle = :bundle AND target = ''
    AND (workload = '' OR workload IN (SELECT value FROM json_each(:workloads)))
"""
_HAS_PASSED = "SELECT 1 FROM passed AS p JOIN lines AS l ON l.number = p.line WHERE l.bundle = ?"
_PASSED_TABLES = ("beaten", "records", "searches", "passed")


def update(path: Path, bundles: Mapping[str, Path], trusted: Trusted | None, warn: Warn) -> None:
    """Take new bundles into the index, and withdraw those that are no longer there.

    bundles: by the digests in their names, or by `state`. trusted: one of these keys must have
    signed each bundle. Useless files are not read again until they change.
    """
    seen = Seen(path.with_suffix(".seen"))
    with Registry.open_cache(path) as index:
        for sql in _TABLES:
            index.rows(sql)
        bundles = _less_withdrawn(seen, bundles, trusted, warn)
        taken = {row["digest"] for row in index.rows("SELECT digest FROM taken")}
        if gone := taken - bundles.keys():
            _withdraw(index, gone)
        new = {digest: path for digest, path in bundles.items() if digest not in taken}
        _say(_take_all(index, new, trusted, seen), warn)
        if gone := seen.withdrawn & bundles.keys():  # withdrawn by a bundle that was read later
            _withdraw(index, gone)
    seen.save(whole=not path.with_suffix(".failed").exists())


def _take_all(
    index: Registry, bundles: Mapping[str, Path], trusted: Trusted | None, seen: Seen
) -> list[str]:
    """Take bundles into the index; return why each useless one was not taken."""
    known = {row["file"]: row["reason"] for row in index.rows("SELECT * FROM useless")}
    reasons: list[str] = []
    found: list[tuple[str, str]] = []
    spent, left = 0.0, 0
    for digest, path in bundles.items():
        if (why := known.get(file := state(path))) is None and spent < _JUNK_SECONDS:
            began = time.monotonic()
            if (why := _take(index, digest, path, trusted, seen)) is not None:
                found.append((file, why))
                spent += time.monotonic() - began
        elif why is None:
            left += 1
        if why:
            reasons.append(why)
    if found:
        index.write(_USELESS, found)
    more = f"{left} files more are read by later builds: those before them were of no use"
    return reasons + ([more] if left else [])


def _say(reasons: Sequence[str], warn: Warn) -> None:
    """Warn of the first few reasons, and of how many more there are."""
    for why in reasons[:_MOST_NAMED]:
        warn(why)
    if more := len(reasons[_MOST_NAMED:]):
        warn(f"and {more} more such files")


def _less_withdrawn(
    seen: Seen, bundles: Mapping[str, Path], trusted: Trusted | None, warn: Warn
) -> dict[str, Path]:
    """The bundles without those that were ever withdrawn.

    A withdrawn bundle that is there without its withdrawal comes from an old copy of the layer.
    """
    from .remote import WITHDRAWN, withdraws

    left = {}
    for digest, path in bundles.items():
        words = path.with_name(path.name + WITHDRAWN)
        if digest in seen.withdrawn:
            if not words.exists():
                warn(f"{path} was withdrawn, and is not used: an old copy of the layer is served")
        elif words.exists() and withdraws(path.name, words, trusted):
            seen.withdrawn.add(digest)
        else:
            left[digest] = path
    return left


def state(path: Path) -> str:
    """A text that changes whenever a file or its signature changes."""
    from .remote import SIGNATURE

    found = []
    for one in (path, path.with_name(path.name + SIGNATURE)):
        with suppress(OSError):
            facts = one.stat()
            found.append((one.name, facts.st_size, facts.st_mtime_ns, facts.st_ino))
    return canonical_json(found)


def let_in(index: Registry, keys: Mapping[TaskKey, Collection[str]], warn: Warn) -> None:
    """Check the lines that a build may use for these keys, and add them to the registry's tables.

    keys: each with the ids of its records that were beaten elsewhere, so that the next best are
    taken. A bundle with a refused line is withdrawn, and not read again until it changes.
    """
    while refusals := _let_in(index, keys):
        _refuse(index, refusals, warn)


def _let_in(index: Registry, keys: Mapping[TaskKey, Collection[str]]) -> dict[str, list[str]]:
    """Add the lines of good bundles; return the refusals of each bundle that has any."""
    waiting = _waiting(index, keys)
    checked = {bundle: _checked(index, bundle, lines) for bundle, lines in waiting.items()}
    refusals = {bundle: why for bundle, (_, why) in checked.items() if why}
    if good := checked.keys() - refusals.keys():
        _add(index, [checked[one][0] for one in good], [waiting[one] for one in good])
    return refusals


def _waiting(index: Registry, keys: Mapping[TaskKey, Collection[str]]) -> dict[str, Lines]:
    """The wanted lines that have not passed yet, by bundle."""
    found: dict[str, Lines] = {}
    for key, beaten in keys.items():
        values = {**vars(key), "beaten": canonical_json(sorted(beaten)), "few": FEW}
        values["most"] = MOST_ASKED
        for line in index.rows(_WANTED, values):
            found.setdefault(line["bundle"], []).append(line)
    return found


def _checked(index: Registry, bundle: str, lines: Lines) -> tuple[Bundle, list[str]]:
    """The lines of a bundle that pass, with what they refer to; and why others do not."""
    from .bundle import MOST_REFUSED, read_lines

    workloads = canonical_json(sorted({line["workload"] for line in lines}))
    others = index.rows(_REFERRED_TO, {"bundle": bundle, "workloads": workloads})
    return read_lines(((one["place"], one["line"]) for one in others + lines), MOST_REFUSED)


def _add(index: Registry, passed: list[Bundle], lines: list[Lines]) -> None:
    from .transfer import add_bundle

    with index.writing() as run:
        for bundle in passed:
            add_bundle(index, bundle)
        run.executemany(_PASSED, [(line["number"],) for some in lines for line in some])


def _refuse(index: Registry, refusals: Mapping[str, list[str]], warn: Warn) -> None:
    """Withdraw bundles with refused lines, and warn, unless another process has done so."""
    from .bundle import refused

    for bundle, lines in refusals.items():
        for taken in index.rows("SELECT file, path FROM taken WHERE digest = ?", (bundle,)):
            reason = refused(taken["path"], lines).message
            index.write(_USELESS, [(taken["file"], reason)])
            warn(reason)
    _withdraw(index, refusals.keys())


def _take(
    index: Registry, digest: str, path: Path, trusted: Trusted | None, seen: Seen
) -> str | None:
    """Take a bundle into the index, and return None; else the warning, "" for a partial upload."""
    from .bundle import BundleRefused
    from .exchange import read_signed
    from .outline import outlines
    from .remote import misnamed, right_name
    from .transfer import add_bundle

    file = state(path)
    if digest != file and file_sha256(path) != digest:
        name = right_name(path.read_bytes())
        return misnamed(str(path), name) if name else ""
    try:
        content, key = read_signed(path, trusted)
        targets, found = outlines(content, str(path))
    except BundleRefused as error:
        return error.message
    stamp, name = (stamp_of(content) if key else None), "" if digest == file else digest
    if old := seen.replayed(name, key, stamp):
        return f"{path} is not used: {old}"
    with index.writing() as run:
        add_bundle(index, targets)
        run.executemany(_LINE, ((digest, *_columns(one)) for one in found))
        run.execute(_TAKEN, (digest, file, str(path)))
    seen.note(name, key, stamp)
    return None


def _withdraw(index: Registry, bundles: Collection[str]) -> None:
    """Forget bundles, and also everything that has passed if some of it came from them."""
    theirs = any(index.rows(_HAS_PASSED, (bundle,)) for bundle in bundles)
    with index.writing() as run:
        run.executemany("DELETE FROM lines WHERE bundle = ?", [(one,) for one in bundles])
        run.executemany("DELETE FROM taken WHERE digest = ?", [(one,) for one in bundles])
        for table in _PASSED_TABLES if theirs else ():
            run.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
