"""What a pack's machine has measured, taken into the registry, after everything is checked.

The numbers come from a file that was elsewhere, and so may the schedules: what is no schedule, no
time that a machine can have taken, or of another target is refused, and then nothing is taken in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from ..devices.answers import Errors, Seconds, Words
from ..errors import RegistryError, UsageError
from ..measure.offline import PACK, RESULTS
from ..measure.outcome import Outcome
from ..registry.firewall import check_record, target_fields
from ..registry.instructions import check_trace
from ..registry.record import Record
from ..system.digest import canonical_json
from ..system.regular_file import read_regular
from ..system.untrusted import Refused, admit, refuse
from .search.context import SearchContext
from .search.recall import recall
from .trial import settle

if TYPE_CHECKING:
    from ..model.tasks import Task
    from .workspace import Workspace

_MOST_PACK, _MOST_RESULTS = 1 << 30, 1 << 26  # bytes
_MOST = 1 << 12  # candidates of a task

Kind = Literal["", "load", "run", "timeout", "crash", "wrong-output"]
Positions = Annotated[list[Annotated[int, Meta(ge=0, lt=_MOST)]], Meta(max_length=_MOST)]


class Found(Struct, forbid_unknown_fields=True):
    """A candidate's times, or why it has none."""

    seconds: Annotated[list[Seconds], Meta(max_length=_MOST)]
    error: Kind
    message: Words
    errors: Errors | None

    def __post_init__(self) -> None:
        if bool(self.seconds) == bool(self.error) or not (self.error or self.errors):
            raise ValueError("neither the times of a right candidate nor an error")


class Measured(Struct, forbid_unknown_fields=True):
    """Of a task: each candidate, and then some in turns."""

    found: Annotated[list[Found], Meta(max_length=_MOST)]
    finalists: Positions
    turns: Annotated[list[Found], Meta(max_length=_MOST)]


class Results(Struct, forbid_unknown_fields=True):
    """All of `results.json`. pack: the digest of the pack's description."""

    pack: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    device: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@-]{1,100}$")]
    tasks: dict[str, Measured]


def take_in(folder: Path, tasks: Sequence[Task], work: Workspace) -> int:
    """Take a pack's results in: how many measurements they are.

    What was measured before is left out, and so are tasks that are not among these; there are none
    where nobody has measured the pack. RegistryError where anything is refused.
    """
    if not ((folder / RESULTS).is_file() and (folder / PACK).is_file()):
        return 0
    results, pack = _read(folder, work)
    known = {task.key.workload: task for task in tasks}
    try:
        taken = [
            (known[key], _Taken(known[key], pack["tasks"][key], measured, results.device, work))
            for key, measured in results.tasks.items()
            if key in known
        ]
        for _, one in taken:
            one.check()
    except (Refused, KeyError, TypeError, ValueError, IndexError) as error:
        raise _refused(folder, str(error)) from error
    count = sum(one.add() for _, one in taken)
    limit = work.request.budget.per_task
    standing = work.ledger.standing(task.key for task, _ in taken)
    full = {key: "limit" for key, known in standing.items() if known.spent >= limit}
    work.ledger.add_ends(full)
    return count


class _Taken:
    """One task's results."""

    def __init__(
        self,
        task: Task,
        entry: dict[str, Any],
        measured: Measured,
        device: str,
        work: Workspace,
    ) -> None:
        self._task, self._entry, self._measured = task, entry, measured
        self._device, self._work = device, work

    def check(self) -> None:
        """Refused where anything is not what a pack's machine may have said."""
        task, target = self._task, self._work.request.target
        measured, traces = self._measured, self._entry["traces"]
        refuse(len(measured.found) != len(traces), "it has not a result for each candidate")
        refuse(len(measured.turns) != len(measured.finalists), "finalists without results")
        refuse(max(measured.finalists, default=0) >= len(traces), "a finalist that is none")
        for one in (*self._outcomes(), *self._turns()):
            check_trace(one.trace, target.kind)
            if one.error:
                continue
            wrong = task.workload.impossible(list(one.seconds), target)
            refuse(wrong, f"{task.name}: {wrong}")
            record = self._record(one)
            as_sent = json.loads(canonical_json(record.to_json()))
            check_record(record.id, as_sent, target, task.workload)

    def add(self) -> int:
        """Add what is new; the winner in turns becomes the record."""
        ledger, key, task = self._work.ledger, self._task.key, self._task
        tried = {one.trace for one in ledger.registry.measurements(key.target, key)}
        new = [one for one in self._outcomes() if one.trace not in tried]
        context = SearchContext(self._work.request.target, self._work.rules)
        recall(task, [one.trace for one in new], context)
        best = ledger.standing([key])[key].record
        ledger.add(
            key,
            new,
            lambda one: ledger.provenance(self._found_by(one), one.device),
            lambda one: context.features(task, one.trace),
            lambda one: best is None or one.latency < best.latency,
        )
        if new and (turns := self._turns()):
            settle(key, turns, ledger)
        return len(new)

    def _record(self, one: Outcome) -> Record:
        origin = self._work.ledger.provenance(self._found_by(one), one.device)
        return Record(self._task.key, one.trace, one.seconds, one.proof or {}, origin)

    def _found_by(self, one: Outcome) -> str:
        standards = (self._entry["traces"][at] for at in self._entry["standards"])
        return "default" if one.trace in standards else self._work.request.search

    def _outcomes(self) -> list[Outcome]:
        pairs = zip(self._entry["traces"], self._measured.found, strict=True)
        return [self._outcome(trace, found) for trace, found in pairs]

    def _turns(self) -> list[Outcome]:
        pairs = zip(self._measured.finalists, self._measured.turns, strict=True)
        return [self._outcome(self._entry["traces"][at], found) for at, found in pairs]

    def _outcome(self, trace: str, found: Found) -> Outcome:
        proof = None
        if found.errors is not None:
            errors = found.errors
            proof = {"oracle": self._entry["oracle"], "seed": self._work.request.seed}
            proof |= {"max_abs_err": errors.max_abs_err, "max_rel_err": errors.max_rel_err}
        seconds = tuple(found.seconds)
        return Outcome(trace, seconds, found.error, found.message, proof, self._device)


def _read(folder: Path, work: Workspace) -> tuple[Results, dict[str, Any]]:
    """The results and the pack that they are of."""
    try:
        content = read_regular(folder / PACK, _MOST_PACK)
        said = read_regular(folder / RESULTS, _MOST_RESULTS)
        results, pack = admit(said, Results, _MOST_RESULTS), json.loads(content)
    except OSError as error:
        raise _refused(folder, f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _refused(folder, str(error)) from error
    if hashlib.sha256(content).hexdigest() != results.pack:
        raise _refused(folder, "they are of another pack")
    if pack["target"] != target_fields(work.request.target.to_json()):
        named = f"--target {work.request.target.name}"
        hint = "name the target that it was written for, or another folder"
        raise UsageError(f"{folder}: the pack is for another target than {named}", hint)
    return results, pack


def _refused(folder: Path, why: str) -> RegistryError:
    return RegistryError(
        f"{folder / RESULTS} is refused, and nothing of it was taken: {why}",
        "measure the pack again, or remove the file",
    )
