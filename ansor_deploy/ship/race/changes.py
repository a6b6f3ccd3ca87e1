"""The changes between two libraries of a model: tasks, their schedules and times, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from ...system.json_types import Digest, Ms
from ..manifest import Manifest, Memory, Race, RecordId, Task
from .race import ALIKE

What = Literal["new", "gone", "same", "tuned", "untuned", "other schedule"]


@dataclass(frozen=True)
class TaskChange:
    """A task of two libraries. before, after: its records, null where a library lacks it.

    before_ms, after_ms: the time of all its runs in one run of the library; null where it was not
    timed. what: the kind of change.
    """

    key: Digest
    title: str
    before: RecordId | None
    after: RecordId | None
    before_ms: Ms | None = None
    after_ms: Ms | None = None
    what: What = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", _what(self.before, self.after))

    @property
    def delta_ms(self) -> float:
        """How much longer its runs take now; 0 where it was not timed in both."""
        return (self.after_ms or 0.0) - (self.before_ms or 0.0)

    @property
    def share(self) -> float:
        """How much longer its runs take now, as a share of the time before."""
        return self.delta_ms / (self.before_ms or 1.0)


class MadeBy(Struct, frozen=True):
    """An input of two builds that differs: a version, or the digest of a rule.

    before, after: null where a library lacks it.
    """

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Changes:
    """The changes from one library to another. beside: the race of the second with the first.

    bytes: sizes of the two libraries, by what they count. tasks: those that changed, then the
    others; each with the largest difference first. made_by: inputs of the builds that differ. same:
    whether the two are equal, byte by byte. beside is None where neither ran.
    """

    beside: Race | None
    bytes: Mapping[str, tuple[int, int]]
    tasks: tuple[TaskChange, ...]
    made_by: tuple[MadeBy, ...] = ()
    same: bool = False

    @property
    def explanation(self) -> str:
        """Why the tasks' times and the race disagree; "" where they agree."""
        timed = [task for task in self.tasks if task.before_ms and task.after_ms]
        if self.beside is None or not timed:
            return ""
        new = sum(task.after_ms or 0.0 for task in timed)
        old = new - sum(task.delta_ms for task in timed)
        faster, slower = (sum(sign * task.share > ALIKE for task in timed) for sign in (-1, 1))
        seems = {"faster"} if new < old * (1 - ALIKE) or 2 * faster > len(timed) else set()
        seems |= {"slower"} if new > old * (1 + ALIKE) or 2 * slower > len(timed) else set()
        if seems <= {self.beside.verdict}:
            return ""
        return (
            f"by the profile {faster} of {len(timed)} tasks are faster and {slower} slower; all "
            f"take {old:.3g} ms before and {new:.3g} ms now ({new / old - 1:+.1%}). The profile is "
            "of one load of each library, with a clock around each kernel, and the race of whole "
            f"runs on {self.beside.turns} loads: what that does not bear out is noise, or is lost "
            "again between the kernels"
        )

    @property
    def untimed(self) -> str:
        """Why neither library ran."""
        why = "they are the same, byte by byte" if self.same else "they do not run here"
        return f"not timed: {why}"

    @property
    def timed(self) -> bool:
        """Whether they ran in turns, or need not, since they are the same."""
        return self.same or self.beside is not None

    def slower(self, share: float) -> bool:
        """Whether the second is slower for sure, and by more than this share.

        False where the race cannot say.
        """
        race = self.beside
        return race is not None and race.verdict == "slower" and race.ratio > 1 + share

    def answer(self, *, failed: bool) -> Compare:
        """The answer of `compare --json`."""
        known = {name: getattr(self, name) for name in Compare.__struct_fields__[:-1]}
        return Compare(**known, failed=failed)


class Compare(Struct, frozen=True):
    """`compare --json`. same: every byte is equal. bytes: before and after.

    explanation: why the tasks' times and the race disagree; empty where they agree. failed: the
    result of --fail-if-slower.
    """

    same: bool
    beside: Race | None
    bytes: dict[str, tuple[int, int]]
    made_by: tuple[MadeBy, ...]
    tasks: tuple[TaskChange, ...]
    explanation: str
    failed: bool


Times = Mapping[str, float]  # milliseconds of a run, by a task's key


def changes(
    before: Manifest, after: Manifest, beside: Race | None, times: tuple[Times, Times] = ({}, {})
) -> Changes:
    """The changes. before, after: the libraries' manifests; times: those of their tasks."""
    known = [{task.key: task for task in one.tasks} for one in (before, after)]
    tasks = [
        _change(key, known[0].get(key), known[1].get(key), times)
        for key in dict.fromkeys([*known[0], *known[1]])
    ]
    tasks.sort(key=lambda task: (task.what == "same", -abs(task.delta_ms), task.title))
    return Changes(beside, _bytes(before, after), tuple(tasks), _made_by(before, after))


def _what(before: str | None, after: str | None) -> What:
    """The kind of change of a task with these records."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    if before == after:
        return "same"
    return "tuned" if before == "default" else "untuned" if after == "default" else "other schedule"


def _change(key: str, old: Task | None, new: Task | None, times: tuple[Times, Times]) -> TaskChange:
    title = new.title if new else old.title if old else ""
    records = (old.record if old else None, new.record if new else None)
    return TaskChange(key, title, *records, times[0].get(key), times[1].get(key))


def _made_by(before: Manifest, after: Manifest) -> tuple[MadeBy, ...]:
    old, new = (
        {name: getattr(one, name) for name in ("tool", "tvm", "linker", "precision")}
        | {f"rule {rule.file}": rule.sha256 for rule in one.rules}
        for one in (before, after)
    )
    names = dict.fromkeys([*old, *new])
    return tuple(
        MadeBy(name, old.get(name), new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    )


def _bytes(before: Manifest, after: Manifest) -> dict[str, tuple[int, int]]:
    names = Memory.__struct_fields__
    return {name: (getattr(before.memory, name), getattr(after.memory, name)) for name in names}
