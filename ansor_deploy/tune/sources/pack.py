"""A pack's candidates, with outcomes that another machine has written to a file.

The file is untrusted, and the schedules may be too. If anything in it is no schedule, is a time
that no machine can reach, or is for another target, the file is refused and nothing is taken in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from ...devices.answers import Clock, Errors, Seconds, Words
from ...errors import RegistryError, UsageError
from ...measure.offline import PACK, RESULTS
from ...measure.outcome import Outcome
from ...registry.firewall import check_record, target_fields
from ...registry.instructions import check_trace
from ...registry.record import Provenance, Record
from ...system.digest import canonical_json
from ...system.regular_file import read_regular
from ...system.untrusted import Refused, admit, refuse
from ..search.context import SearchContext
from ..search.recall import recall
from . import Source, try_out

if TYPE_CHECKING:
    from ...model.tasks import Task
    from ..workspace import Workspace

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
    clock: Clock = 0

    def __post_init__(self) -> None:
        if bool(self.seconds) == bool(self.error) or not (self.error or self.errors):
            raise ValueError("neither the times of a right candidate nor an error")

    def outcome(self, trace: str, oracle: Mapping[str, Any], device: str) -> Outcome:
        """The outcome of a schedule. oracle: what its outputs were compared with."""
        proof = None
        if self.errors is not None:
            proof = {**oracle, "max_abs_err": self.errors.max_abs_err}
            proof["max_rel_err"] = self.errors.max_rel_err
        times = tuple(self.seconds)
        return Outcome(trace, times, self.error, self.message, proof, device, self.clock)


class Measured(Struct, forbid_unknown_fields=True):
    """The results of a task.

    found: each candidate alone. finalists: positions of the candidates that ran in turns. turns:
    their results.
    """

    found: Annotated[list[Found], Meta(max_length=_MOST)]
    finalists: Positions
    turns: Annotated[list[Found], Meta(max_length=_MOST)]


class Results(Struct, forbid_unknown_fields=True):
    """The contents of `results.json`. pack: the digest of the pack's description."""

    pack: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    device: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@-]{1,100}$")]
    tasks: dict[str, Measured]


def take_in(folder: Path, tasks: Sequence[Task], work: Workspace) -> int:
    """Take a pack's results in. Returns the number of new measurements.

    Candidates that were measured before are left out, and so are other tasks than these. The number
    is 0 where the pack was not measured yet. RegistryError where anything is refused.
    """
    if not ((folder / RESULTS).is_file() and (folder / PACK).is_file()):
        return 0
    results, pack = _read(folder, work)
    known = {task.key.workload: task for task in tasks}
    try:
        taken = [
            Pack(
                known[key],
                Answers(pack["tasks"][key], measured, results.device, work.request.seed),
                work,
            )
            for key, measured in results.tasks.items()
            if key in known
        ]
        for source in taken:
            source.check()
    except (Refused, KeyError, TypeError, ValueError, IndexError) as error:
        raise _refused(folder, str(error)) from error
    for source in taken:
        try_out(source, source.answers)
    return sum(len(source.new) for source in taken)


class Answers:
    """The results of a pack's machine for one task, as the judge of its candidates.

    standards: candidates that no search proposed: the default schedule or the previous best. alone:
    the outcome of each candidate, by its trace. turns: the outcomes of those that ran in turns.
    """

    def __init__(
        self, entry: Mapping[str, Any], measured: Measured, device: str, seed: int
    ) -> None:
        """Refused where the results do not fit this entry of a pack."""
        traces, finalists = entry["traces"], measured.finalists
        refuse(len(measured.found) != len(traces), "it has not a result for each candidate")
        refuse(len(measured.turns) != len(finalists), "finalists without results")
        refuse(max(finalists, default=0) >= len(traces), "a finalist that is none")

        def outcomes(positions: Sequence[int], results: Sequence[Found]) -> dict[str, Outcome]:
            proof = {"oracle": entry["oracle"], "seed": seed}
            pairs = zip(positions, results, strict=True)
            made = (one.outcome(traces[at], proof, device) for at, one in pairs)
            return {one.trace: one for one in made}

        self.standards = {traces[at] for at in entry["standards"]}
        self.alone = outcomes(range(len(traces)), measured.found)
        self.turns = outcomes(finalists, measured.turns)

    def measure(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """The outcome of each candidate alone."""
        return [self.alone[trace] for trace in traces]

    def fastest(self, task: Task, within: float) -> list[str]:
        """The candidates that ran in turns on the pack's machine."""
        return list(self.turns)

    def head_to_head(self, task: Task, traces: Sequence[str]) -> list[Outcome]:
        """The outcomes of those candidates that ran in turns on the pack's machine."""
        return [self.turns[trace] for trace in traces if trace in self.turns]


class Pack(Source):
    """The candidates of a pack that were not measured before. new: these, after `propose`."""

    alone = True
    improves = True

    def __init__(self, task: Task, answers: Answers, work: Workspace) -> None:
        super().__init__(task, work, SearchContext(work.request.target, work.rules))
        self.answers = answers
        self.new: dict[str, Provenance] = {}
        self._left = True

    def check(self) -> None:
        """Refused where an outcome is not one that a pack's machine may report."""
        task, target, answers = self.task, self.work.request.target, self.answers
        for one in (*answers.alone.values(), *answers.turns.values()):
            check_trace(one.trace, target.kind)
            if one.error:
                continue
            wrong = task.workload.impossible(list(one.seconds), target)
            refuse(wrong, f"{task.name}: {wrong}")
            record = Record(task.key, one.trace, one.seconds, one.proof or {}, self._origin(one))
            as_sent = json.loads(canonical_json(record.to_json()))
            check_record(record.id, as_sent, target, task.workload)

    def propose(self, most: int = 1) -> Mapping[str, Provenance]:
        """Once: all candidates that are new here."""
        if not self._left:
            return {}
        self._left, key = False, self.task.key
        tried = {one.trace for one in self.work.registry.measurements(key.target, key)}
        new = [one for one in self.answers.alone.values() if one.trace not in tried]
        recall(self.task, [one.trace for one in new], self.context)
        self.new = {one.trace: self._origin(one) for one in new}
        return self.new

    def end(self, best: Record | None) -> None:
        """Record that the search is over if the task has had its trials."""
        ledger, key = self.work.ledger, self.task.key
        if ledger.standing([key])[key].spent >= self.work.request.budget.per_task:
            ledger.add_ends({key: "limit"})

    def _origin(self, one: Outcome) -> Provenance:
        standard = one.trace in self.answers.standards
        found_by = "default" if standard else self.work.request.search
        derived_by = self.context.rules_of(self.task, one.trace)
        return self.work.ledger.provenance(found_by, one.device, derived_by)


def _read(folder: Path, work: Workspace) -> tuple[Results, dict[str, Any]]:
    """The results of a folder, and the pack that they belong to."""
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
