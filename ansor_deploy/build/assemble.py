"""From records to shipped files: compile, verify, compare with the untuned build, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from .._tvm import VERSION
from ..artifact.depfile import input_files, write_depfile
from ..artifact.outputs import commit, staged
from ..codegen.linker import linker_name
from ..codegen.model import Compiled, check_space
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
from ..tune.plan import impacts, latencies
from ..tune.workspace import Workspace
from .beside import race_engine
from .blame import refusal, wrong_outputs
from .codes import described, try_codes, write_codes
from .compare import Comparison, compare_speed, time_alone
from .fresh import on_this_machine
from .lock import lock_digest
from .oracle import Oracle
from .race import LOOKS, Race
from .result import UNVERIFIED, TuneResult, verified
from .stand_in import is_small, make_stand_in
from .up_to_date import identity, records_digest
from .verify import Library, Runnable, verify_model

if TYPE_CHECKING:
    from ..report import Report
    from ..target import Target

Records = dict[TaskKey, Record]

RACE_SECONDS = 10.0  # beside another engine, unless it is sure before


def assemble(
    model: Prepared,
    oracles: Sequence[Oracle],
    work: Workspace,
    outputs: Outputs,
    tuned: TuneResult,
    others: Sequence[tuple[Prepared, Workspace]] = (),
) -> dict[str, Any]:
    """Write the library and its manifest, which is returned. VerificationError writes nothing.

    oracles: one of each of the model's shapes; none where nothing is to be verified. Without a
    machine the library is emulated, or its stand-in is run. others: the model for each of the other
    targets that it has code for.
    """

    def attempt(made: Assembly) -> dict[str, Any]:
        manifest = made.describe(tuned)
        with made.staged() as (library, known):
            manifest |= known
            if work.machine is not None:
                manifest |= made.try_out(library, manifest, work.machine, oracles)
            elif not others:
                manifest |= made.try_elsewhere(library, manifest, oracles)
            if others:
                manifest |= try_codes(made, library, manifest, oracles)
            return made.commit(library, manifest)

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
) -> dict[str, Any]:
    """Write the library of a lock's records and its manifest, which is returned.

    Nothing that is measured is in either: they are the same on every machine. So the manifest says
    that the numbers were verified, and not where: that depends on the machine that builds.
    """
    keys = [task.key for task in model.tasks]
    records = {key: lock.records[key] for key in keys if key in lock.records}

    def attempt(made: Assembly) -> dict[str, Any]:
        manifest = _without_estimates(made.describe(tuned))
        manifest["lock"] = lock_digest(lock, keys)
        with made.staged() as (library, known):
            manifest |= known
            if request.verify:
                with threads(request.target.cores) as width:
                    oracles = [Oracle(proto, width) for proto in model.protos]
                    # Numbers do not hang on the other cores.
                    if runs_here(replace(request.target, cores=1)):
                        with open_bare() as bare:
                            made.verify(bare.load(library, manifest, width), oracles, "native")
                    else:
                        made.try_elsewhere(library, manifest, oracles, width)
                manifest["verification"] = verified(None, request)
            return made.commit(library, manifest)

    return _right(Assembly(model, records, outputs, request, report), attempt)


def _right(made: Assembly, attempt: Callable[[Assembly], dict[str, Any]]) -> dict[str, Any]:
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
    def precision(self) -> str:
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

    def describe(self, tuned: TuneResult) -> dict[str, Any]:
        """The manifest, as far as it is known before the library is there."""
        request, model, target = self.request, self.model, self.request.target
        header = self.outputs.header
        shapes = [one.to_json() for one in model.imported.interfaces]
        return {
            "format": 2,
            "tool": __version__,
            "tvm": VERSION,
            "linker": linker_name(target),
            "identity": identity(model.path.name, model.digest, request, header=header),
            "model": {
                "name": model.path.name,
                "digest": model.digest,
                "sha256": file_sha256(model.path),
                "external": [_file(path, model.path.parent) for path in model.external],
                "input_shapes": request.shapes_json,
            },
            "precision": self.precision,
            "rules": [_file(path, path.parent) for path in request.rules],
            **shapes[0],
            "variants": shapes if len(shapes) > 1 else None,
            "target": described(target),
            "tuning": tuned.to_json(),
            "ran_on": None,  # as long as nothing was run
            "verification": UNVERIFIED,
            "verify": None,
            "speed": None,
            "shipped": "tuned" if self.records else "untuned",
            "memory": None,
            "lock": None,
            **({} if self.request.frozen else {"lenders": self.lent}),
        }

    def listed_tasks(self, built: Compiled) -> list[dict[str, Any]]:
        """The manifest's list of tasks; of a frozen build without estimates."""
        known = {} if self.request.frozen else self._estimates()
        return [
            {
                "name": task.name,
                "title": task.title,
                "op": task.workload.op,
                "key": task.key.workload,
                "weight": task.weight,
                "flops": task.workload.flops,
                "bytes": task.workload.bytes,
                "record": self.records[task.key].id if task.key in self.records else "default",
                "fallback": built.fallbacks.get(task.key.workload),
                "rewriting": built.rewritings.get(task.key.workload),
                "lender": self.loans[task.key].to_json() if task.key in self.loans else None,
                "places": [asdict(place) for place in task.places],
                **known.get(task.key, {"impact": None, "latency_ms": None}),
            }
            for task in self.model.tasks
        ]

    def _estimates(self) -> dict[TaskKey, Any]:
        words = (self.model.tasks, self.records, self.request.target)
        seconds, shares = latencies(*words), impacts(*words)
        return {k: {"impact": shares[k], "latency_ms": seconds[k] * 1e3} for k in seconds}

    @contextmanager
    def staged(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The library under a temporary name, to be tried and committed; and as `compile`."""
        library, tasks = self.outputs.library, self.model.tasks
        self.report.stage("compile", f"{len(self.records)} of {len(tasks)} tasks with a record")
        check_space(self.model.imported, library.parent)
        known: dict[str, Any] = {}
        with staged(library, lambda at: known.update(self.compile(at, self.records))) as path:
            yield path, known

    def compile(self, path: Path, records: Records) -> dict[str, Any]:
        """Write the library that has these records: what the manifest says of it.

        AnsorError where it takes more memory than it may.
        """
        return write_codes(path, self, records)

    def try_out(
        self, path: Path, manifest: dict[str, Any], machine: Machine, oracles: Sequence[Oracle]
    ) -> dict[str, Any]:
        """What the manifest says of the runs. The untuned library replaces a slower one."""
        library: Library = machine.load(path, manifest)
        where = f"device {machine.name}" if machine.sites else "native"
        figures = self.verify(library, oracles, where)
        untuned, comparison = self._compare(library, machine)
        shipped = {"shipped": "untuned" if comparison.same else manifest["shipped"]}
        if comparison.slower:
            self.report.warn(
                "the records make this model slower here: the untuned library is shipped"
            )
            figures = self.verify(untuned, oracles, where)
            names = ("memory", "tasks", "kernels", "others", "codes")
            known = {name: untuned.manifest[name] for name in names if name in untuned.manifest}
            shipped = {"shipped": "untuned", **known}
            untuned.path.replace(path)
            library = untuned if machine.sites else machine.load(path, untuned.manifest)
        beside = None if machine.sites else self._race(library, comparison.latency_ms)
        return {
            "ran_on": machine.name,
            **figures,
            "speed": {
                **comparison.to_json(),
                "beside": beside and beside.to_json(),
                "records": records_digest(self.records.values()),
            },
            **shipped,
        }

    def try_elsewhere(
        self, path: Path, manifest: dict[str, Any], oracles: Sequence[Oracle], width: int = 0
    ) -> dict[str, Any]:
        """What the manifest says of a library that runs on no machine: under an emulator, or not.

        What would take that too long, and where there is none, a stand-in is verified.

        width: threads that this may take; 0 for all.
        """
        if not oracles:
            return {}
        if is_small(self.model):
            with open_emulator(self.request.target) as emulator:
                if emulator is not None:
                    library = emulator.load(path, manifest)
                    return self.verify(library, oracles, f"under {emulator.name}")
        self.report.stage("stand-in", "the same import, untuned, for this machine")
        beside, step = path.with_name("stand-in.so"), partial(self.report.step, "kernels")
        with open_bare() as bare:
            words = (manifest, self.precision, bare, width, step)
            stand_in = make_stand_in(self.model, beside, *words)
            return self.verify(stand_in, oracles, "this machine, untuned")

    def verify(self, library: Runnable, oracles: Sequence[Oracle], where: str) -> dict[str, Any]:
        """What the manifest says of the numbers; VerificationError where they are wrong.

        oracles: none where nothing is to be verified. where: the library runs.
        """
        if not oracles:
            return {}
        request = self.request
        self.report.stage("verify", "against ONNX Runtime on seeded inputs")
        verification = verify_model(library, oracles, request.seed, dict(request.tolerances))
        self.report.verified(verification)
        if not verification.ok:
            if self.rewritten and not self.strict:  # it is built anew
                raise VerificationError(wrong_outputs(verification))
            raise refusal(self, verification)
        return {"verify": verification.to_json(), "verification": verified(where, request)}

    def _compare(self, library: Library, machine: Machine) -> tuple[Library, Comparison]:
        """The same model with no record applied, and how fast the two are side by side.

        Where both are the same, byte by byte, or there is no second one, the one time.
        """
        untuned, same = library, False
        if not self.records:
            self.report.stage("time", "by itself: no task has a record")
        elif not machine.holds(2 * library.manifest["memory"]["peak"]):
            self.report.stage("time", f"by itself: {machine.name} has no memory for two libraries")
        else:
            self.report.stage("compare", "with the untuned build")
            path = library.path.with_name("untuned.so")
            known = self.compile(path, {})
            if not (same := file_sha256(path) == file_sha256(library.path)):
                untuned = machine.load(path, {**library.manifest, **known})
        if untuned is library:
            comparison = time_alone(library, self.request.seed, same=same)
        else:
            comparison = compare_speed(library, untuned, self.request.seed)
        self.report.compared(comparison)
        return untuned, comparison

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

    def commit(self, library: Path, manifest: dict[str, Any]) -> dict[str, Any]:
        """Put all outputs in place: the depfile before the manifest, which no output lacks then."""
        outputs = self.outputs
        inputs = input_files(self.model.path, manifest, self.request.files)
        depend = partial(write_depfile, outputs.depfile, outputs.library, inputs)
        return commit(library, outputs.library, manifest, header=outputs.header, before=depend)


def _without_estimates(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a machine is only taken to do differs between machines that build the same."""
    target = {**manifest["target"], "peak_gflops": None, "memory_gbs": None}
    return {**manifest, "target": target, "tuning": None}


def _file(path: Path, folder: Path) -> dict[str, str]:
    return {"file": str(path.relative_to(folder)), "sha256": file_sha256(path)}
