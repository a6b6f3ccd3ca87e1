"""A shipment: everything that goes into a library, the oracles that try it, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ..tune import intake
from ..tune.lenders import lenders, lenders_digest
from ..tune.sources.near import borrow
from .lock import lock_digest, locked_preset

if TYPE_CHECKING:
    from pathlib import Path

    from ..codegen.model import Scheduled
    from ..devices.machine import Machine
    from ..model.prepare import Prepared
    from ..registry.lock_text import Lock
    from ..registry.record import Record, TaskKey
    from ..request import Outputs, Request
    from ..target import Target
    from ..tune.sources.near import Loan
    from ..tune.workspace import Workspace
    from ..views import Report
    from .preset import Preset
    from .verify.oracle import Oracle


@dataclass(frozen=True)
class Shipment:
    """A library in the making. records: those of tasks that do not get their default schedule.

    machine: the one that runs it; None where an emulator runs it, or a stand-in runs instead.
    oracles: one for each of the model's shapes; none where nothing is verified, or the build is
    frozen. loans: schedules that neighbours lend to tasks without a record. lent: the digest of the
    lenders. locked: the digest of the lock's entries in a frozen build. preset: that of the lock,
    if it is asked for. others: the shipments of the other targets that the library has code for.
    strict: whether no task may be rewritten. rewritten: keys of the workloads that were rewritten
    in the compiled code. scheduled: the compiled tasks' schedules. unfit: why records could not be
    compiled, by their keys. rules: the user's rules that were asked, with their digests.
    """

    model: Prepared
    records: dict[TaskKey, Record]
    outputs: Outputs
    request: Request
    report: Report
    machine: Machine | None = None
    oracles: Sequence[Oracle] = ()
    loans: Mapping[TaskKey, Loan] = field(default_factory=dict)
    lent: str | None = None
    locked: str | None = None
    preset: Preset | None = None
    others: tuple[Shipment, ...] = ()
    strict: bool = False
    rewritten: set[str] = field(default_factory=set)
    scheduled: dict[TaskKey, Scheduled] = field(default_factory=dict)
    unfit: dict[TaskKey, str] = field(default_factory=dict)
    rules: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of_work(
        cls,
        model: Prepared,
        outputs: Outputs,
        work: Workspace,
        best: Mapping[TaskKey, Record],
        oracles: Sequence[Oracle] = (),
    ) -> Shipment:
        """The shipment with these records, and with the best records for the other targets."""
        others = [
            cls._of_records(one, outputs, at, at.ledger.best(task.key for task in one.tasks))
            for one, at in intake.others(model, work)
        ]
        shipment = cls._of_records(model, outputs, work, best)
        return replace(shipment, oracles=oracles, others=tuple(others))

    @classmethod
    def _of_records(
        cls, model: Prepared, outputs: Outputs, work: Workspace, best: Mapping[TaskKey, Record]
    ) -> Shipment:
        """The shipment for one target, with what neighbours lend where nothing runs."""
        lacking = [task.key for task in model.tasks if task.key not in best]
        lending = lenders(lacking, work.ledger)
        loans = borrow(model.tasks, lending, work)
        shipment = cls(model, dict(best), outputs, work.request, work.report, work.machine)
        return replace(shipment, loans=loans, lent=lenders_digest(lending))

    @classmethod
    def of_lock(
        cls, model: Prepared, outputs: Outputs, lock: Lock, request: Request, report: Report
    ) -> Shipment:
        """The shipment with the records of a lock alone: the same library on every machine."""
        keys = [task.key for task in model.tasks]
        records = {key: lock.records[key] for key in keys if key in lock.records}
        shipment = cls(model, records, outputs, request, report)
        preset = locked_preset(model, lock, request)
        return replace(shipment, preset=preset, locked=lock_digest(lock, keys, request.preset))

    @property
    def target(self) -> Target:
        """The target that the library is made for."""
        return self.request.target

    @property
    def precision(self) -> Literal["default", "strict"]:
        """How the tasks may be computed."""
        return "strict" if self.strict else self.request.precision

    @property
    def codes(self) -> list[Shipment]:
        """The shipment of each code, the most demanding target first."""
        if not self.others:
            return [self]
        of_target = {one.target.fingerprint: one for one in (self, *self.others)}
        return [of_target[target.fingerprint] for target in self.request.codes]

    def strictly(self) -> Shipment:
        """The same shipment without anything that rewrites a task."""
        exact = {key: one for key, one in self.records.items() if not one.rewrites}
        loans = {key: one for key, one in self.loans.items() if not one.schedule.rewrites}
        others = tuple(one.strictly() for one in self.others)
        exactly = replace(self, records=exact, loans=loans, others=others)
        return replace(exactly, strict=True, rewritten=set(), scheduled={}, unfit={}, rules={})

    @property
    def put_aside(self) -> list[tuple[Record, str]]:
        """Claims that could not be compiled, and why: no library will use them."""
        claims = {key: one for key, one in self.records.items() if one.claimed}
        return [(claims[key], why) for key, why in self.unfit.items() if key in claims]
