"""What differs between two libraries of a model: tasks, their schedules and times, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..registry.title import title_of
from .beside import Beside

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class TaskChange:
    """A task of either library. before, after: its record's id, or "default"; None in neither.

    before_ms, after_ms: all its runs in one of the library's; None where it was not timed.
    """

    key: str
    title: str
    before: str | None
    after: str | None
    before_ms: float | None = None
    after_ms: float | None = None

    @property
    def what(self) -> str:
        """What became of it, in a word or two."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if self.before == self.after:
            return "same"
        return {self.before: "tuned", self.after: "untuned"}.get("default", "other schedule")

    @property
    def delta_ms(self) -> float:
        """By how much its runs take longer now; 0 where it was not timed in both."""
        return (self.after_ms or 0.0) - (self.before_ms or 0.0)


@dataclass(frozen=True)
class Changes:
    """From one library to another. beside: the second beside the first; None where neither ran.

    bytes: of the two libraries, by name. tasks: those that changed, then the others; of both those
    first that matter most. same: whether the two are one, byte by byte.
    """

    beside: Beside | None
    bytes: Mapping[str, tuple[int, int]]
    tasks: tuple[TaskChange, ...]
    same: bool = False

    @property
    def untimed(self) -> str:
        """Why neither ran."""
        why = "they are the same, byte by byte" if self.same else "they do not run here"
        return f"not timed: {why}"

    def slower(self, share: float) -> bool:
        """Whether the second is surely slower, and by more than this share."""
        if self.beside is None or self.beside.interval is None:
            return False
        return self.beside.interval[0] > 1 and self.beside.ratio > 1 + share

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "same": self.same,
            "beside": self.beside and asdict(self.beside),
            "bytes": {name: list(pair) for name, pair in self.bytes.items()},
            "tasks": [{**asdict(task), "what": task.what} for task in self.tasks],
        }


Times = Mapping[str, float]  # milliseconds of a run, by a task's key


def changes(
    before: Manifest, after: Manifest, beside: Beside | None, times: tuple[Times, Times] = ({}, {})
) -> Changes:
    """What differs. before, after: the libraries' manifests; times: of their tasks."""
    known = [{task["key"]: task for task in one["tasks"]} for one in (before, after)]
    tasks = [
        TaskChange(
            key,
            title_of(known[1].get(key) or known[0][key]),
            *(one[key]["record"] if key in one else None for one in known),
            *(one.get(key) for one in times),
        )
        for key in dict.fromkeys([*known[0], *known[1]])
    ]
    tasks.sort(key=lambda task: (task.what == "same", -abs(task.delta_ms), task.title))
    return Changes(beside, _bytes(before, after), tuple(tasks))


def _bytes(before: Manifest, after: Manifest) -> dict[str, tuple[int, int]]:
    pairs = [one["memory"] or {} for one in (before, after)]
    return {name: (pairs[0][name], pairs[1][name]) for name in pairs[0] if name in pairs[1]}
