"""Outlines of a bundle's lines: the tasks they claim to be about, read without any check.

A line is filed under its task until a build asks for it, and only then passes the firewall. A line
that lies about its task is filed where nobody asks for it, or is refused there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median
from typing import Any

from .bundle import MOST_REFUSED, Bundle, numbered, read_entries, refused

ONE_IN = 1000  # one line in so many is checked before any is filed

_DIGEST = "[0-9a-f]{64}"
_KEY = rf'"key":\{{"target":"(?P<target>{_DIGEST})","workload":"(?P<workload>{_DIGEST})"\}}'
_FORMS = {
    '{"id":': rf'"(?P<id>{_DIGEST})","record":\{{{_KEY},',
    '{"workload":': rf'\{{[^{{}}]*?"key":"(?P<workload>{_DIGEST})"',
    '{"search":': rf"\{{[^{{}}]*?{_KEY}",
    '{"contest":': rf'\{{[^{{}}]*?"loser":"(?P<loser>{_DIGEST})","winner":"(?P<winner>{_DIGEST})"',
    '{"target":': "",
}
# A later part of a record's line: a plain search finds it faster than a regular expression.
_FURTHER = '"tvm":"'
_TIMES = re.compile(
    rf'{_FURTHER}(?P<tvm>[0-9A-Za-z.+-]+)"\}},"seconds":\[(?P<seconds>[0-9.e+,-]+)\],"trace":'
)
_BEGINNINGS = {begin: re.compile(re.escape(begin) + form) for begin, form in _FORMS.items()}


@dataclass(slots=True)
class Outline:
    """A line of a bundle, its place, and what it is about.

    workload: "" for a target. target: "" for a target and for a workload. id, tvm, latency: those
    of a record; the last in seconds, for a contest that of the loser. loser, winner: ids of the two
    records of a contest.
    """

    place: str
    line: str
    workload: str = ""
    target: str = ""
    id: str = ""
    tvm: str = ""
    latency: float = 0.0
    loser: str = ""
    winner: str = ""


def outlines(content: bytes, name: str) -> tuple[Bundle, list[Outline]]:
    """The checked targets of a bundle's text, and the unchecked outlines of its lines.

    BundleRefused if it is no bundle, if a target or a line of no known form is refused, or one of
    the few lines that are checked at once. name: that of the file, for the message.
    """
    lines = numbered(content, name)
    found = {place: one for place, line in lines if (one := _outline(place, line))}
    records = {one.id: one for one in found.values() if one.id}
    for one in [one for one in found.values() if one.loser]:
        if records.keys() >= {one.loser, one.winner}:
            _file_with(one, records[one.loser])
        else:
            del found[one.place]
    at_once = [
        (place, line) for place, line in lines if not (place in found and found[place].workload)
    ]
    every = list(found.values())
    read, refusals = read_entries(at_once + _few(every), MOST_REFUSED)
    if refusals:
        raise refused(name, refusals)
    return Bundle(read.targets), every


def _few(found: list[Outline]) -> list[tuple[str, str]]:
    """One line in a thousand, with those that it refers to: enough to detect a file of junk."""
    few = {one.place: one for one in found[ONE_IN - 1 :: ONE_IN]}
    rivals = {name for one in few.values() for name in (one.loser, one.winner) if name}
    few |= {one.place: one for one in found if one.id in rivals}
    keys = {one.workload for one in few.values()}
    workloads = (one for one in found if not one.target and one.workload in keys)
    few |= {one.place: one for one in workloads}
    return [(one.place, one.line) for one in few.values() if one.workload]


def _outline(place: str, line: str) -> Outline | None:
    """The outline of a line; None if it begins like no entry."""
    form = _BEGINNINGS.get(line[: line.find(":") + 1])
    match = form.match(line) if form else None
    if match is None:
        return None
    said: dict[str, Any] = match.groupdict()
    if "id" in said:
        times = _TIMES.match(line, line.find(_FURTHER, match.end()))
        if times is None:
            return None
        said |= times.groupdict()
    try:
        latency = median(map(float, said.pop("seconds", "0").split(",")))
    except ValueError:
        return None
    return Outline(place, line, **said, latency=latency)


def _file_with(contest: Outline, loser: Outline) -> None:
    """File a contest with its loser; one between different tasks is refused there later."""
    contest.workload, contest.target = loser.workload, loser.target
    contest.latency = loser.latency
