"""A library in the making: what it is made of, what it is tried with, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ..tune import intake
from ..tune.lenders import lenders, lenders_digest
from ..tune.sources.near import borrow
from .lock import lock_digest, locked_preset

if TYPE_CHECKING:
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
    """A library in the making. records: of the tasks that do not get their default schedule.

    machine: that runs it; None where it is emulated, or a stand-in of it is run. oracles: one of
    each of the model's shapes; none where nothing is verified, or the build is frozen. loans: what
    neighbours lend to tasks without a record. lent: their digest. locked: the digest of what the
    lock of a frozen build says. preset: with the split of that lock, if it is asked for. others:
    the same for the other targets that it has code for. strict: whether no task may be rewritten.
    rewritten: those that are, in what was compiled. scheduled: its tasks with their schedules.
    unfit: why records made no code, by their keys.
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

    @classmethod
    def of_work(
        cls,
        model: Prepared,
        outputs: Outputs,
        work: Workspace,
        best: Mapping[TaskKey, Record],
        oracles: Sequence[Oracle] = (),
    ) -> Shipment:
        """With these records, and those that there are for the other targets."""
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
        """For one target, with what is lent where nothing runs."""
        lacking = [task.key for task in model.tasks if task.key not in best]
        lending = lenders(lacking, work.ledger)
        loans = borrow(model.tasks, lending, work)
        shipment = cls(model, dict(best), outputs, work.request, work.report, work.machine)
        return replace(shipment, loans=loans, lent=lenders_digest(lending))

    @classmethod
    def of_lock(
        cls, model: Prepared, outputs: Outputs, lock: Lock, request: Request, report: Report
    ) -> Shipment:
        """With the records of a lock, and no others: the same library on every machine."""
        keys = [task.key for task in model.tasks]
        records = {key: lock.records[key] for key in keys if key in lock.records}
        shipment = cls(model, records, outputs, request, report)
        preset = locked_preset(model, lock, request)
        return replace(shipment, preset=preset, locked=lock_digest(lock, keys, request.preset))

    @property
    def target(self) -> Target:
        """The machine that it is made for."""
        return self.request.target

    @property
    def precision(self) -> Literal["default", "strict"]:
        """How the tasks may be computed."""
        return "strict" if self.strict else self.request.precision

    @property
    def codes(self) -> list[Shipment]:
        """One for each code, the most demanding first."""
        if not self.others:
            return [self]
        of_target = {one.target.fingerprint: one for one in (self, *self.others)}
        return [of_target[target.fingerprint] for target in self.request.codes]

    def strictly(self) -> Shipment:
        """The same without anything that rewrites a task."""
        exact = {key: one for key, one in self.records.items() if not one.rewrites}
        loans = {key: one for key, one in self.loans.items() if not one.schedule.rewrites}
        others = tuple(one.strictly() for one in self.others)
        exactly = replace(self, records=exact, loans=loans, others=others)
        return replace(exactly, strict=True, rewritten=set(), scheduled={}, unfit={})

    @property
    def put_aside(self) -> list[tuple[Record, str]]:
        """Claims that made no code, and why: no library has them, and none will."""
        claims = {key: one for key, one in self.records.items() if one.claimed}
        return [(claims[key], why) for key, why in self.unfit.items() if key in claims]
