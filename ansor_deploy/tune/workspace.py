"""The workspace of a running command; only `pipeline.py` opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..devices.machine import Machine, cannot_run, open_machine, runs_here
from ..errors import DeviceError, UsageError
from ..registry.store import Registry
from ..request import Request
from ..system.host import RUN_64_BITS, no_runtime
from ..target import HOST
from .ledger import Ledger

if TYPE_CHECKING:
    from ..measure.measurer import Measurer
    from ..model.tasks import Task
    from ..registry.record import Provenance, TaskKey
    from ..space.rule import Rule
    from ..target import Target
    from ..views import Report


def with_devices(request: Request, report: Report) -> Request:
    """The request with the devices that are registered for its target, if it may look for them."""
    if request.devices or not request.finds_devices or request.target.name == HOST:
        return request
    from ..devices.registered import registered_for

    return replace(request, devices=registered_for(request.target, report))


def can_run(request: Request) -> bool:
    """Whether anything runs the target's code: a device, or this machine."""
    return bool(request.devices) or runs_here(request.target)


def check_buildable(target: Target) -> None:
    """AnsorError, with the remedy, where code for the target cannot be compiled or loaded."""
    if reason := no_runtime(target.triple):
        raise UsageError(reason, RUN_64_BITS)
    if target.gpu is not None:
        from ..codegen.gpu import nvrtc

        nvrtc.check()


def without_runs(request: Request, report: Report) -> Request:
    """The request without trials, for a build that runs nothing. Raises as `check_buildable`."""
    check_buildable(request.target)
    report.warn(nowhere(request))
    return replace(request, budget=replace(request.budget, trials=0))


def nowhere(request: Request) -> str:
    """A sentence that nothing runs the target's code, with the command that changes this."""
    from ..devices.registered import how_to_add

    to_do = f"; to tune on a board: {how_to_add(request.target)}"
    why = f"{cannot_run(request.target)}: nothing is tuned or timed"
    return why + (to_do if request.finds_devices else "")


@dataclass
class Workspace:
    """A request, and everything that is needed to serve it.

    registry: open for writing. indexes: registries of the present contents of the request's layers.
    machine: where code of the target runs; None where nothing here can run it. measurer: builds and
    runs candidates, during `measuring`.
    """

    request: Request
    report: Report
    registry: Registry
    indexes: tuple[Path, ...] = ()
    machine: Machine | None = None
    measurer: Measurer | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the registry for this request."""
        return Ledger(self.registry, self.request, measures=self.machine is not None)

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules to ask: the user's before the shipped ones."""
        from ..space.rule import rule_set

        request, heard = self.request, self.report.printed
        return rule_set(request.rules, request.target.kind, request.precision, heard)

    def default_trace(self, task: Task) -> str:
        """The trace of a task's default schedule under these rules."""
        return self._default(task)[0]

    def default_origin(self, task: Task) -> Provenance:
        """The origin of a task's default schedule."""
        return self.ledger.provenance("default", "", self._default(task)[1])

    def _default(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """The trace and the rules of a task's default schedule, which is derived once."""
        if task.key not in self._defaults:
            from ..space.default_schedule import default_program
            from ..space.trace import dump

            made = default_program(task.mod, self.request.target, self.rules)
            self._defaults[task.key] = dump(made.sch.trace), made.sketch.rules
        return self._defaults[task.key]

    @cached_property
    def _defaults(self) -> dict[TaskKey, tuple[str, tuple[str, ...]]]:
        return {}

    @contextmanager
    def measuring(self) -> Iterator[Measurer]:
        """The measurer of this workspace, which is closed at the end.

        DeviceError where the target's code runs nowhere.
        """
        from ..measure.measurer import Measurer
        from ..system.cluster import open_farm

        request, machine = self.request, _running(self.machine, self.request)
        warn = self.report.warn
        with ExitStack() as stack:
            farm = stack.enter_context(open_farm(request.farm, warn)) if request.farm else None
            made = Measurer(
                request.target,
                machine.sites,
                request.seed,
                farm,
                warn=warn,
                unfit=machine.quarantine,
            )
            self.measurer = stack.enter_context(made)
            stack.callback(setattr, self, "measurer", None)
            yield self.measurer


@contextmanager
def open_workspace(
    request: Request, indexes: tuple[Path, ...], report: Report, *, must_run: bool = False
) -> Iterator[Workspace]:
    """Connect the request's devices and open its registry; both are closed at the end.

    must_run: DeviceError where the target's code runs nowhere; then no registry is made.
    """
    with open_machine(request.target, request.devices, report) as machine:
        if must_run:
            _running(machine, request)
        with open_registry(request) as registry:
            yield Workspace(request, report, registry, indexes, machine)


@contextmanager
def open_registry(request: Request, *, write: bool = True) -> Iterator[Registry]:
    """Open the request's registry; a copy in memory if it must stay unchanged."""
    copies = write and request.read_only
    with Registry.open(request.registry, write=write and not copies) as registry:
        if not copies:
            yield registry
            return
        with registry.copy() as copy:
            yield copy


def _running(machine: Machine | None, request: Request) -> Machine:
    if machine is None:
        from ..devices.registered import how_to_add

        add = f"add one: {how_to_add(request.target)}"
        to_do = add if request.finds_devices else "leave out --no-device"
        raise DeviceError(cannot_run(request.target), f"{to_do}; `build` and `plan` need none")
    return machine
