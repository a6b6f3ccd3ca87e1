"""Bundles: the canonical text in which registries exchange their contents.

    {"ansor-deploy-bundle":1}
    {"contest":{...}}
    {"id":"<SHA-256 of the record>","record":{...}}
    {"search":{...}}
    {"target":{...}}
    {"workload":{...}}

Each entry is one line of canonical JSON; lines are sorted, and none occurs twice. So equal contents
are equal bytes, except for the first line of a signed bundle (`stamp.py`). A record's workload and
target, and the two records of a contest, are in the same bundle. A bundle is read as a whole or not
at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ..errors import RegistryError
from ..system.digest import canonical_json
from ..system.untrusted import Refused, exactly, quoted, refuse, strict_json
from ..target import Target
from .firewall import check_contest, check_record, check_target, check_workload, target_fields
from .limits import BUNDLE_BYTES
from .record import Contest, Record, SearchEnd, Workload
from .schema import BEATEN, SEARCHES, WORKLOADS
from .stamp import Stamp, header, stamp_of

MOST_LINE = 1 << 20
MOST_LINES = 1 << 17  # the line of a record has two to four thousand bytes
NAMED = 20  # the most refused lines that a message shows
MOST_REFUSED = 100  # after so many refused lines, the rest is not read
_REST = "what follows was not looked at"

# Kinds of entries, each after those it refers to. Each is the name of a method of `_Reading`.
_ORDER = ("target", "workload", "record", "search", "contest")
# The beginning of the line of each kind: JSON keys are sorted.
_BEGIN = tuple(f'{{"{"id" if kind == "record" else kind}":' for kind in _ORDER)


@dataclass(frozen=True)
class Bundle:
    """Records with everything that they refer to. targets are by fingerprint, workloads by key.

    searches: which searches have ended, so that another machine need not repeat them. contests:
    which records were compared, so that another machine finds the same ones best. stamp: that of
    a bundle that is signed, or says when it was made.
    """

    targets: dict[str, Target] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    searches: set[SearchEnd] = field(default_factory=set)
    contests: set[Contest] = field(default_factory=set)
    stamp: Stamp | None = None

    def to_bytes(self) -> bytes:
        """The canonical text of this content."""
        lines = [record_line(record.id, record.to_json()) for record in self.records.values()]
        targets = (target_fields(target.to_json()) for target in self.targets.values())
        lines += [canonical_json({"target": target}) for target in targets]
        workloads = self.workloads.values()
        parts = ((WORKLOADS, workloads), (SEARCHES, self.searches), (BEATEN, self.contests))
        for table, nouns in parts:
            lines += [canonical_json({table.entry: table.sent_of(noun)}) for noun in nouns]
        return "".join(f"{line}\n" for line in [header(self.stamp), *sorted(lines)]).encode()

    def without(self, known: Iterable[Bundle]) -> Bundle:
        """A bundle of the records, ends of searches and contests that none of the others has.

        It is complete by itself: a new contest comes with its two records, known or not.
        """
        others = list(known)
        contests = self.contests.difference(*(other.contests for other in others))
        compared = {name for contest in contests for name in (contest.loser, contest.winner)}
        records = {
            name: record
            for name, record in self.records.items()
            if name in compared or not any(name in other.records for other in others)
        }
        searches = self.searches.difference(*(other.searches for other in others))
        return closed(Bundle(self.targets, self.workloads, records, searches, contests))


def closed(bundle: Bundle) -> Bundle:
    """The bundle without the workloads and targets that nothing in it refers to."""
    keys = [record.key for record in bundle.records.values()]
    keys += [search.key for search in bundle.searches]
    wanted, on = {key.workload for key in keys}, {key.target for key in keys}
    return replace(
        bundle,
        targets={name: target for name, target in bundle.targets.items() if name in on},
        workloads={name: one for name, one in bundle.workloads.items() if name in wanted},
    )


def record_line(claimed: str, record: dict[str, Any]) -> str:
    """A record's line. claimed: the id to write."""
    return canonical_json({"id": claimed, "record": record})


def read_bundle(content: bytes, name: str) -> Bundle:
    """The bundle of a text from outside, with every line checked.

    BundleRefused, with each refused line and the reason, if a line is not what this tool writes.
    name: that of the file, for the message.
    """
    bundle, refusals = read_lines(numbered(content, name), MOST_REFUSED)
    if refusals:
        raise refused(name, refusals)
    return replace(bundle, stamp=stamp_of(content))


class BundleRefused(RegistryError):  # noqa: N818 - named after what was done to the bundle
    """A bundle is hostile, damaged, or not signed by a trusted key; nothing of it was taken."""


def refused(name: str, refusals: list[str]) -> BundleRefused:
    """The error that lists refused lines, and why they were refused."""
    lines, rest = refusals[:NAMED], [one for one in refusals[NAMED:] if one != _REST]
    lines += [f"and {len(rest)} more"] if rest else []
    lines += [_REST] if refusals[-1] == _REST else []
    return BundleRefused(
        f"{name} is refused, and nothing of it was taken:\n  " + "\n  ".join(lines),
        "Ask who made it to export it again with their own ansor-deploy; take in no bundle "
        "that was changed by hand.",
    )


def numbered(content: bytes, name: str) -> list[tuple[str, str]]:
    """The lines after the header, each after its place; BundleRefused if it is no bundle."""
    try:
        lines = _framed(content)
    except Refused as error:
        raise refused(name, [f"line 1: {error}"]) from None
    return [(f"line {number}", line) for number, line in enumerate(lines, 2)]


def _framed(content: bytes) -> list[str]:
    """The lines after the first, unchecked; Refused unless the text has a bundle's form."""
    refuse(len(content) > BUNDLE_BYTES, f"it is larger than {BUNDLE_BYTES >> 20} MiB")
    # Checked before the text is split into them.
    refuse(content.count(b"\n") > MOST_LINES, f"it has more than {MOST_LINES} lines")
    stamp_of(content)
    lines = content.decode("ascii", errors="replace").split("\n")
    refuse(lines.pop(), "its end is missing")
    wrong = any(before >= after for before, after in pairwise(lines[1:]))
    refuse(wrong, "its lines are not sorted, or one stands there twice")
    return lines[1:]


def read_lines(
    lines: Iterable[tuple[str, str]], most: float = math.inf
) -> tuple[Bundle, list[str]]:
    """A bundle of the lines that pass the firewall, and the reasons why the others do not.

    Each line is (where, text), and each reason begins with its place, as in "line 7: ". most: after
    so many refusals the rest is not read, and the last reason says so.
    """
    bundle, refusals = read_entries(lines, most)
    return closed(bundle), refusals


def read_entries(lines: Iterable[tuple[str, str]], most: float) -> tuple[Bundle, list[str]]:
    """As `read_lines`, but keeps workloads and targets that nothing refers to."""
    reading, found = _Reading(most), list(lines)
    try:
        for begin in ("", *_BEGIN):  # lines that begin like no entry, then each kind
            for where, text in found:
                if text.startswith(begin or _BEGIN) == bool(begin):
                    reading.attempt(where, reading.entry, text)
    except _Enough:
        reading.refusals.append(_REST)
    return reading.found, reading.refusals


def _entry(text: str) -> tuple[str, Any]:
    value = strict_json(text, MOST_LINE)
    refuse(not isinstance(value, dict), f"{quoted(text)} is no entry of a bundle")
    if "record" in value:
        return "record", exactly(value, "id", "record")
    kind = next(iter(value), "")
    refuse(len(value) != 1 or kind not in _ORDER, f"{quoted(text)} is no entry of a bundle")
    return kind, value[kind]


class _Enough(Exception):  # noqa: N818 - not an error: it ends the reading
    """So many lines were refused that the rest need not be read."""


class _Reading:
    """Reads entries: those accepted so far, and those refused. most: refusals that end it."""

    def __init__(self, most: float) -> None:
        self._most = most
        self.found = Bundle()
        self.claimed: set[str] = set()  # ids of records, accepted or refused
        self.refusals: list[str] = []  # each safe to print

    def attempt(self, where: str, check: Callable[..., Any], *given: Any) -> Any:
        """The result of a check; None where it refuses, which is noted."""
        try:
            return check(*given)
        except Refused as error:
            self.refusals.append(f"{where}: {error}")
            if len(self.refusals) >= self._most:
                raise _Enough from error
            return None

    def entry(self, text: str) -> None:
        kind, data = _entry(text)
        getattr(self, kind)(data)

    def target(self, data: Any) -> None:
        target = check_target(data)
        self.found.targets[target.fingerprint] = target

    def workload(self, data: Any) -> None:
        workload = check_workload(data)
        refuse(workload.key in self.found.workloads, "workload: it is there twice")
        self.found.workloads[workload.key] = workload

    def record(self, data: Any) -> None:
        self.claimed.add(str(data["id"]))
        target, workload = self._of(data["record"])
        record = check_record(data["id"], data["record"], target, workload)
        self.found.records[record.id] = record

    def search(self, data: Any) -> None:
        self._of(data)
        self.found.searches.add(replace(SEARCHES.admitted(data), claimed=True))

    def contest(self, data: Any) -> None:
        contest = check_contest(data)
        names = (contest.loser, contest.winner)
        keys = [self.found.records[name].key for name in names if name in self.found.records]
        if len(keys) < 2 and self.claimed.issuperset(names):
            return  # its record was refused, and the reason is noted there
        refuse(len(keys) < 2, "contest: one of its records is not in the bundle")
        refuse(len(set(keys)) > 1, "contest: its records are of different tasks")
        self.found.contests.add(contest)

    def _of(self, data: Any) -> tuple[Target, Workload]:
        """The target and workload of a record or search, which must be in the bundle as well."""
        key = exactly(data.get("key") if isinstance(data, dict) else None, "workload", "target")
        for which, there in (("target", self.found.targets), ("workload", self.found.workloads)):
            name = quoted(key[which])
            refuse(not isinstance(key[which], str), f"{name} is no key")
            refuse(key[which] not in there, f"its {which} {name} is not in the bundle")
        return self.found.targets[key["target"]], self.found.workloads[key["workload"]]
