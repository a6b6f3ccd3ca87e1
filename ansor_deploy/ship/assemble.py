"""From records to shipped files: compile, verify, compare with the untuned build, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from ..codegen.model import check_space
from ..devices.bare import open_bare
from ..devices.emulator import open_emulator
from ..devices.machine import Machine, runs_here
from ..errors import MachineError, ModelError, UsageError, VerificationError
from ..model.prepare import Prepared
from ..registry.lock import Lock
from ..registry.record import Record, TaskKey
from ..request import Outputs, Request
from ..system.digest import file_sha256
from ..system.jobserver import threads
from ..tune.borrow import Loan, borrow, lenders, lenders_digest
from ..tune.workspace import Workspace
from .codes import try_codes, write_codes
from .describe import compiled, describe, frozen
from .lock import lock_digest
from .manifest import Code, Draft, Manifest, Race
from .outputs.commit import commit, staged
from .outputs.depfile import input_files, write_depfile
from .race.beside import race_engine
from .race.compare import Comparison, compare_speed, time_alone
from .race.fresh import on_this_machine
from .race.race import LOOKS
from .result import TuneResult, verified
from .up_to_date import records_digest
from .verify.blame import refusal, wrong_outputs
from .verify.oracle import Oracle
from .verify.stand_in import is_small, make_stand_in
from .verify.verify import Library, Runnable, verify_model

if TYPE_CHECKING:
    from ..target import Target
    from ..views import Report

Records = dict[TaskKey, Record]

RACE_SECONDS = 10.0  # beside another engine, unless it is sure before


def assemble(
    model: Prepared,
    oracles: Sequence[Oracle],
    work: Workspace,
    outputs: Outputs,
    tuned: TuneResult,
    others: Sequence[tuple[Prepared, Workspace]] = (),
) -> Manifest:
    """Write the library and its manifest, which is returned. VerificationError writes nothing.

    oracles: one of each of the model's shapes; none where nothing is to be verified. Without a
    machine the library is emulated, or its stand-in is run. others: the model for each of the other
    targets that it has code for.
    """

    def attempt(made: Assembly) -> Manifest:
        with made.staged() as (library, codes):
            draft = describe(made, tuned, codes)
            if work.machine is not None:
                draft = made.try_out(library, draft, work.machine, oracles)
            elif not others:
                draft = made.try_elsewhere(library, draft, oracles)
            if others:
                draft = try_codes(made, library, draft, oracles)
            return made.commit(library, draft)

    if work.machine is not None:
        work.machine.start()
    made = _with_loans(model, work, outputs)
    rest = tuple(_with_loans(*other, outputs) for other in others)
    return _right(replace(made, others=rest), attempt)


def _with_loans(model: Prepared, work: Workspace, outputs: Outputs) -> Assembly:
    keys = [task.key for task in model.tasks]
    records, found = work.ledger.best(keys), lenders(keys, work.ledger)
    words = (borrow(model.tasks, found, work), lenders_digest(found))
    return Assembly(model, records, outputs, work.request, work.report, False, set(), *words)


def assemble_frozen(
    model: Prepared,
    lock: Lock,
    outputs: Outputs,
    request: Request,
    tuned: TuneResult,
    report: Report,
) -> Manifest:
    """Write the library of a lock's records and its manifest, which is returned.

    Nothing that is measured is in either: they are the same on every machine. So the manifest says
    that the numbers were verified, and not where: that depends on the machine that builds.
    """
    keys = [task.key for task in model.tasks]
    records = {key: lock.records[key] for key in keys if key in lock.records}

    def attempt(made: Assembly) -> Manifest:
        with made.staged() as (library, codes):
            draft = frozen(describe(made, tuned, codes), lock_digest(lock, keys))
            if request.verify:
                with threads(request.target.cores) as width:
                    oracles = [Oracle(proto, width) for proto in model.protos]
                    # Numbers do not hang on the other cores.
                    if runs_here(replace(request.target, cores=1)):
                        with open_bare() as bare:
                            there = bare.load(library, draft.to_json(), width)
                            made.verify(draft, there, oracles, "native")
                    else:
                        made.try_elsewhere(library, draft, oracles, width)
                draft = structs.replace(draft, verification=verified(None, request))
            return made.commit(library, draft)

    return _right(Assembly(model, records, outputs, request, report), attempt)


def _right(made: Assembly, attempt: Callable[[Assembly], Manifest]) -> Manifest:
    """The manifest of a library whose numbers are right, at worst of one without rewritten tasks.

    Rewritten, they round otherwise, and make NaN of an infinity in more places.
    """
    try:
        return attempt(made)
    except VerificationError as error:
        if not made.rewritten:
            raise
        made.report.warn(f"{error.text}: it is built anew as --precision strict would")
    return attempt(made.strictly())


@dataclass(frozen=True)
class Assembly:
    """A library in the making. records: of the tasks that do not get their default schedule.

    strict: whether no task may be rewritten. rewritten: those that are, in what was compiled.
    loans: what neighbours lend to tasks without a record. lent: their digest. others: the same for
    the other targets that it has code for.
    """

    model: Prepared
    records: Records
    outputs: Outputs
    request: Request
    report: Report
    strict: bool = False
    rewritten: set[str] = field(default_factory=set)
    loans: Mapping[TaskKey, Loan] = field(default_factory=dict)
    lent: str | None = None
    others: tuple[Assembly, ...] = ()

    @property
    def target(self) -> Target:
        """The machine that it is made for."""
        return self.request.target

    @property
    def precision(self) -> Literal["default", "strict"]:
        """How the tasks may be computed."""
        return "strict" if self.strict else self.request.precision

    def strictly(self) -> Assembly:
        """The same without anything that rewrites a task."""
        exact = {key: one for key, one in self.records.items() if not one.rewrites}
        loans = {key: one for key, one in self.loans.items() if not one.schedule.rewrites}
        others = tuple(one.strictly() for one in self.others)
        kept = replace(self, records=exact, loans=loans, others=others)
        return replace(kept, strict=True, rewritten=set())

    @cached_property
    def warn(self) -> Callable[[str], None]:
        """Warns of each thing once, where two libraries are compiled."""
        return cache(self.report.warn)

    @contextmanager
    def staged(self) -> Iterator[tuple[Path, list[Code]]]:
        """The library under a temporary name, to be tried and committed; and as `compile`."""
        library, tasks = self.outputs.library, self.model.tasks
        self.report.stage("compile", f"{len(self.records)} of {len(tasks)} tasks with a record")
        check_space(self.model.imported, library.parent)
        codes = list[Code]()
        with staged(library, lambda at: codes.extend(self.compile(at, self.records))) as path:
            yield path, codes

    def compile(self, path: Path, records: Records) -> list[Code]:
        """Write the library that has these records: what its manifest says of each of its codes.

        AnsorError where it takes more memory than it may.
        """
        return write_codes(path, self, records)

    def try_out(
        self, path: Path, draft: Draft, machine: Machine, oracles: Sequence[Oracle]
    ) -> Draft:
        """The manifest with what the runs say. The untuned library replaces a slower one."""
        library: Library = machine.load(path, draft.to_json())
        where = f"device {machine.name}" if machine.sites else "native"
        draft = self.verify(draft, library, oracles, where)
        untuned, second, comparison = self._compare(library, draft, machine)
        if comparison.same:
            draft = structs.replace(draft, shipped="untuned")
        if comparison.slower:
            self.report.warn(
                "the records make this model slower here: the untuned library is shipped"
            )
            draft = self.verify(second, untuned, oracles, where)
            untuned.path.replace(path)
            library = untuned if machine.sites else machine.load(path, draft.to_json())
        beside = None if machine.sites else self._race(library, comparison.latency_ms)
        speed = comparison.noted(beside, records_digest(self.records.values()))
        return structs.replace(draft, ran_on=machine.name, speed=speed)

    def try_elsewhere(
        self, path: Path, draft: Draft, oracles: Sequence[Oracle], width: int = 0
    ) -> Draft:
        """The manifest of a library that runs on no machine, verified: under an emulator, or not.

        What would take that too long, and where there is none, a stand-in is verified.

        width: threads that this may take; 0 for all.
        """
        if not oracles:
            return draft
        if is_small(self.model):
            with open_emulator(self.request.target) as emulator:
                if emulator is not None:
                    library = emulator.load(path, draft.to_json())
                    return self.verify(draft, library, oracles, f"under {emulator.name}")
        self.report.stage("stand-in", "the same import, untuned, for this machine")
        beside, step = path.with_name("stand-in.so"), partial(self.report.step, "kernels")
        with open_bare() as bare:
            words = (draft, self.precision, bare, width, step)
            stand_in = make_stand_in(self.model, beside, *words)
            return self.verify(draft, stand_in, oracles, "this machine, untuned")

    def verify(
        self, draft: Draft, library: Runnable, oracles: Sequence[Oracle], where: str
    ) -> Draft:
        """The manifest with what the numbers say; VerificationError where they are wrong.

        oracles: none where nothing is to be verified. where: the library runs.
        """
        if not oracles:
            return draft
        request = self.request
        self.report.stage("verify", "against ONNX Runtime on seeded inputs")
        verification = verify_model(library, oracles, request.seed, dict(request.tolerances))
        self.report.verified(verification)
        if not verification.ok:
            if self.rewritten and not self.strict:  # it is built anew
                raise VerificationError(wrong_outputs(verification))
            raise refusal(self, verification)
        known = verified(where, request)
        return structs.replace(draft, verify=verification.errors, verification=known)

    def _compare(
        self, library: Library, draft: Draft, machine: Machine
    ) -> tuple[Library, Draft, Comparison]:
        """The same model with no record applied, its manifest, and how fast the two are in turns.

        Where both are the same, byte by byte, or there is no second one, the one time.
        """
        untuned, same = library, False
        if not self.records:
            self.report.stage("time", "by itself: no task has a record")
        elif not machine.holds(2 * draft.memory.peak):
            self.report.stage("time", f"by itself: {machine.name} has no memory for two libraries")
        else:
            self.report.stage("compare", "with the untuned build")
            path = library.path.with_name("untuned.so")
            codes = self.compile(path, {})
            if not (same := file_sha256(path) == file_sha256(library.path)):
                draft = structs.replace(draft, shipped="untuned", **compiled(self, codes))
                untuned = machine.load(path, draft.to_json())
        if untuned is library:
            comparison = time_alone(library, self.request.seed, same=same)
        else:
            comparison = compare_speed(library, untuned, self.request.seed)
        self.report.compared(comparison)
        return untuned, draft, comparison

    def _race(self, library: Library, ours_ms: float) -> Race | None:
        """The library beside another engine, in the first of its shapes, if that is asked for.

        ours_ms: a run of it there, as the manifest says: so a build has one time of it, not two.

        Not of a model that was not verified, or with empty tensors: on some an engine ends the
        process.
        """
        engine, first = self.request.beside, library.interfaces[0]
        empty = any(0 in one.shape for one in (*first.inputs, *first.outputs))
        if not engine or not self.request.verify or empty or not on_this_machine(library):
            return None
        model, seed = self.model.protos[0].SerializeToString(), self.request.seed
        self.report.stage("beside", engine)
        try:
            until = time.monotonic() + RACE_SECONDS
            words = (library, engine, model, 0, seed, until, LOOKS, library.path.parent)
            found = race_engine(*words).at(ours_ms)
        except (ModelError, UsageError, MachineError, OSError) as error:  # it is none the worse
            self.warn(f"not timed beside it: {error}")
            return None
        self.report.raced(found)
        return found

    def commit(self, library: Path, draft: Draft) -> Manifest:
        """Put all outputs in place: the depfile before the manifest, which no output lacks then."""
        outputs = self.outputs
        inputs = input_files(self.model.path, draft, self.request.files)
        depend = partial(write_depfile, outputs.depfile, outputs.library, inputs)
        return commit(library, outputs.library, draft, header=outputs.header, before=depend)
