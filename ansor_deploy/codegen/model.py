"""Compile a model's tasks, each under its best record's schedule, to one shared library.

The weights are packed as the schedules read them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._tvm import collect, elements, relax, tvm
from ..errors import AnsorError, MachineError, ModelError, RegistryError
from ..runtime.gpu_code import GpuKernel
from ..space.code_size import TooMuchCodeError, check_size
from ..space.cover import UncoveredError, check_cover
from ..space.fallback import schedules
from ..space.rewriting import rewritings
from ..space.trace import replay
from ..system.machine_fault import raise_if_fault
from ..system.untrusted import brief
from ..target import GpuLimits, Target
from .executable import Lowered, executable, lower_model
from .gpu.launcher import gpu_launcher
from .gpu.program import check_types, most_workspace, packed
from .kernels.heap import CpuKernel
from .kernels.objects import Refusal, compile_kernels
from .linker import export
from .memory.figures import Memory, MemoryUse, total
from .memory.weights import Weights
from .planned_memory import with_buffers
from .processor import least, processor_check
from .thread_pool import thread_pool

if TYPE_CHECKING:
    from ..model.relax.importer import Imported
    from ..model.tasks import Task
    from ..registry.record import Record, TaskKey
    from ..space.rule import Rule

# How often the weights lie on the disk: in the tuned library and in the untuned one beside it.
COPIES = 2
# Bytes that object files and code take besides the weights.
SPARE_BYTES = 16 << 20
_RECORD = "record "  # the prefix of a schedule's name where the schedule is a record's
_BRIEF = 120  # the most characters of TVM's message that are shown


@dataclass(frozen=True)
class Scheduled:
    """A schedule that a task was compiled with. name: its name in warnings."""

    name: str
    func: Any


@dataclass(frozen=True)
class Compiled:
    """A model's code for a target, and the weights that it is called with.

    mod: the graph, which calls kernels by symbol. memory: without the code, whose size is known
    only when it is linked. objects: object files of the kernels, by symbol. functions: for each
    kernel's symbol, the functions of the model that it computes. tasks: for each kernel's symbol,
    the keys of the workloads that it computes. fallbacks: for each workload that could not be
    compiled as it should, the schedule that it has instead. rewritings: for each workload that is
    computed in another way, which way, as "winograd b1 4". schedules: the schedule of each task.
    unfit: why records could not be compiled, by their workloads. program: what a library for a GPU
    launches.
    """

    mod: tvm.IRModule
    weights: Weights
    memory: Memory
    objects: Mapping[str, bytes]
    functions: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, frozenset[str]]
    fallbacks: Mapping[str, str]
    rewritings: Mapping[str, str]
    schedules: Mapping[TaskKey, Scheduled]
    unfit: Mapping[str, str]
    program: bytes = b""

    def export(self, path: Path, target: Target) -> Memory:
        """Write the library; return the memory it takes.

        LinkError, or OSError where the disk is full.
        """
        (memory,) = export_codes([self], path, [target])
        return memory


def export_codes(codes: Sequence[Compiled], path: Path, targets: Sequence[Target]) -> list[Memory]:
    """Write one library with code for several targets; return the memory that each code takes.

    The most demanding target comes first. Each code was compiled with its number, and with the
    weights of the codes before it; all are for one architecture. LinkError, or OSError where the
    disk is full.
    """
    pool = targets[0] if len(targets) == 1 else least(targets[0])
    if pool.gpu is None:
        objects = {name: code for one in codes for name, code in one.objects.items()}
        objects["thread_pool"] = thread_pool(pool)
    else:
        objects = {"gpu_launcher": gpu_launcher(codes[0].program, pool)}
    objects["processor"] = processor_check(targets)
    export(executable([one.mod for one in codes], pool), objects, path, pool)
    codes[-1].weights.append_to(path)
    size, block = path.stat().st_size, len(codes[-1].weights.block)
    return [_taken(one.memory, size, block if len(codes) > 1 else 0) for one in codes]


def _taken(memory: Memory, size: int, block: int) -> Memory:
    """The memory of a code with the size of its machine code, from the library's size in bytes.

    block: bytes of the weights of all codes where there are several; else 0.
    """
    if others := max(0, block - total(memory.weights)):
        memory = replace(
            memory, weights=(*memory.weights, MemoryUse("weights of other codes", others))
        )
    return replace(memory, code=(MemoryUse("code", size - total(memory.weights)),))


def compile_model(
    model: Imported,
    tasks: Mapping[str, Task],
    records: Mapping[TaskKey, Record | Scheduled],
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    code: int = 0,
    others: Weights | None = None,
) -> Compiled:
    """Compile a model, each task under its record's schedule, or under a schedule that is given.

    A task without either gets the default schedule of these rules, by default the shipped ones.
    A task gets a simpler schedule wherever its own cannot be compiled: where it does not fit the
    program, where TVM fails on it, or where it exceeds a kernel's limits.
    warn: called with a sentence for each rule that had to be left out, and for each task that got
    another schedule. progress: called with how many kernels are compiled and how many there are.
    code: the number of this code in a library for several targets. others: the weights of the codes
    before it.
    """
    if target.gpu is not None:
        check_types(model.mod)
    choices = _Choices(tasks, records, target, rules, warn)
    results: dict[str, bytes | Refusal] = {}
    while True:
        lowered = _lowered(model, choices, target, code, others)
        wanted = [kernel for kernel in lowered.kernels if kernel.symbol not in results]
        results |= compile_kernels(wanted, target, progress, warn)
        of_kernels = {kernel.symbol: results[kernel.symbol] for kernel in lowered.kernels}
        kernels = {name: one for name, one in of_kernels.items() if isinstance(one, bytes)}
        if len(kernels) == len(of_kernels):
            return _compiled(lowered, choices, kernels, target)
        refused = {name: one for name, one in of_kernels.items() if isinstance(one, Refusal)}
        choices.simplify({lowered.tasks[name]: one for name, one in refused.items()})


def _lowered(
    model: Imported, choices: _Choices, target: Target, code: int, others: Weights | None
) -> Lowered:
    """The model lowered by TVM: tasks get simpler schedules until TVM lowers all of them."""
    while True:
        scheduled = choices.scheduled()
        try:
            return lower_model(model.mod, scheduled, target, code, others)
        except AnsorError:
            raise
        except Exception as error:
            raise_if_fault(error)
            if not (refused := _refused_alone(model, scheduled, target)):
                raise
            choices.simplify(refused)


def _refused_alone(
    model: Imported, scheduled: Mapping[str, tuple[str, Any]], target: Target
) -> dict[frozenset[str], Refusal]:
    """Why TVM does not lower tasks; each is tried with no other task scheduled."""
    refused = {}
    for key in sorted({key for key, _ in scheduled.values()}):
        alone = {name: one for name, one in scheduled.items() if one[0] == key}
        try:
            lower_model(model.mod, alone, target)
        except Exception as error:  # noqa: BLE001 - of whatever kind, it is this schedule's
            refused[frozenset([key])] = Refusal(f"TVM cannot lower it: {_said(error)}", error)
    return refused


def _said(error: Exception) -> str:
    """The first line of TVM's message, which names the check that failed."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return brief((lines or [type(error).__name__])[0], _BRIEF)


def _compiled(
    lowered: Lowered, choices: _Choices, kernels: Mapping[str, bytes], target: Target
) -> Compiled:
    """The compiled model, from the lowered one and its compiled kernels by symbol."""
    compiled = Compiled(
        lowered.mod,
        lowered.weights,
        lowered.memory,
        {},
        lowered.functions,
        lowered.tasks,
        choices.fallbacks,
        choices.rewritings,
        choices.schedules,
        choices.unfit,
    )
    if target.gpu is None:
        return _with_objects(compiled, kernels)
    return _with_program(compiled, lowered, kernels, target.gpu)


def _with_objects(made: Compiled, kernels: Mapping[str, bytes]) -> Compiled:
    """The compiled model for a processor, with the object files and the buffers of its kernels."""
    known = {symbol: CpuKernel.from_bytes(one) for symbol, one in kernels.items()}
    heaps = {made.functions[symbol][0]: one.heap for symbol, one in known.items()}
    objects = {symbol: one.code for symbol, one in known.items()}
    return replace(made, objects=objects, memory=with_buffers(made.memory, heaps))


def _with_program(
    made: Compiled, lowered: Lowered, kernels: Mapping[str, bytes], gpu: GpuLimits
) -> Compiled:
    """The compiled model for a GPU, with its program and the buffers of its kernels."""
    known = {symbol: GpuKernel.from_bytes(one) for symbol, one in kernels.items()}
    program = packed(lowered.runs, known, len(made.weights.block), gpu.arch)
    buffers = (MemoryUse("buffers of kernels", most_workspace(lowered.runs, known)),)
    return replace(made, program=program, memory=replace(made.memory, buffers=buffers))


class _Choices:
    """The schedule of each task, which can be replaced by a simpler one."""

    def __init__(
        self,
        tasks: Mapping[str, Task],
        records: Mapping[TaskKey, Record | Scheduled],
        target: Target,
        rules: Sequence[Rule] | None,
        warn: Callable[[str], None],
    ) -> None:
        self._tasks, self._target, self._warn = tasks, target, warn
        self._simpler = {
            task.key.workload: _schedules(task, records.get(task.key), target, rules, warn)
            for task in tasks.values()
        }
        self._chosen = {key: next(simpler) for key, simpler in self._simpler.items()}
        self.fallbacks: dict[str, str] = {}
        self.unfit: dict[str, str] = {}
        chosen = {frozenset([key]): func for key, (_, func) in self._chosen.items()}
        bad = {key: one for key, one in chosen.items() if isinstance(one, Refusal)}
        if bad:
            self.simplify(bad)

    def scheduled(self) -> dict[str, tuple[str, Any]]:
        """For each function's name, the key of its workload and its scheduled PrimFunc."""
        keys = {name: task.key.workload for name, task in self._tasks.items()}
        return {name: (key, self._chosen[key][1]) for name, key in keys.items()}

    @property
    def schedules(self) -> dict[TaskKey, Scheduled]:
        """The current schedule of each task."""
        return {t.key: Scheduled(*self._chosen[t.key.workload]) for t in self._tasks.values()}

    @property
    def rewritings(self) -> dict[str, str]:
        """How tasks are rewritten, by the keys of the rewritten workloads."""
        steps = {key: rewritings(func) for key, (_, func) in self._chosen.items()}
        return {key: ", ".join(found) for key, found in steps.items() if found}

    def simplify(self, refused: Mapping[frozenset[str], Refusal]) -> None:
        """Give each refused task its next simpler schedule.

        refused: for each refused kernel, the keys of the workloads it computes, and the reason.
        AnsorError where a task has no simpler schedule, or a kernel computes no task; its cause has
        the frames of the process that refused it.
        """
        names = {task.key.workload: task.name for task in self._tasks.values()}
        each = {key: one for keys, one in refused.items() for key in keys}
        if not each:
            one = next(iter(refused.values()))
            what = "a kernel that has but one schedule"
            raise _uncompilable(what, one.reason, self._target) from one.cause
        for key in sorted(each):
            reason, (before, _) = each[key].reason, self._chosen[key]
            if (simpler := next(self._simpler[key], None)) is None:
                what = f"task {names[key]}"
                raise _uncompilable(what, reason, self._target) from each[key].cause
            if before.startswith(_RECORD):
                self.unfit[key] = reason
            self._chosen[key] = simpler
            self.fallbacks[key] = simpler[0]
            self._warn(f"task {names[key]}: {reason} under {before}; it gets {simpler[0]} instead")


def _schedules(
    task: Task,
    record: Record | Scheduled | None,
    target: Target,
    rules: Sequence[Rule] | None,
    warn: Callable[[str], None],
) -> Iterator[tuple[str, Any]]:
    """Names and PrimFuncs of a task's schedules: first the best one, then simpler and simpler ones.

    The first may be a Refusal instead, where a record does not fit.
    """
    if isinstance(record, Scheduled):
        yield record.name, record.func
    elif record is not None:
        name = f"{_RECORD}{record.id[:12]}"
        try:
            yield name, schedule(task, record, target)
        except RegistryError as error:
            yield name, Refusal(error.text, error)
    for name, mod in schedules(
        task.mod, target, rules, lambda text: warn(f"task {task.name}: {text}")
    ):
        yield f"the {name} schedule", mod["main"]


def _uncompilable(what: str, reason: str, target: Target) -> AnsorError:
    if target.gpu is not None:
        hint = "build the model for a CPU, such as --target host"
        return ModelError(f"{what} cannot be compiled for a GPU: {reason}", hint)
    return AnsorError(f"{what} cannot be compiled: {reason}", "report the model, please")


def schedule(task: Task, record: Record, target: Target) -> Any:
    """The PrimFunc of a task under a record's schedule; RegistryError where it does not fit."""
    hint = "tune into a new registry (--registry PATH), and report the record"
    try:
        sch = replay(task.mod, record.trace)
        check_size(sch, target)
        check_cover(sch)
    except (TooMuchCodeError, UncoveredError) as error:
        raise RegistryError(f"it {error}", hint) from error
    except Exception as error:
        raise_if_fault(error)
        raise RegistryError("it does not replay on its program", hint) from error
    return sch.mod["main"]


def check_space(model: Imported, folder: Path) -> None:
    """MachineError if a folder cannot hold the library and the temporary files of linking it.

    It is asked before the build, so that no work is lost.
    """
    mains = [func for func in model.mod.functions.values() if isinstance(func, relax.Function)]
    weights = [one for main in mains for one in collect(main, tvm.ir.GenericConst)]
    needed = SPARE_BYTES + COPIES * sum(elements(one).nbytes for one in weights)
    if (free := shutil.disk_usage(folder).free) < needed:
        raise MachineError(
            f"{folder}: {free / 1e6:.0f} MB free, and a build of this model may take "
            f"{needed / 1e6:.0f} MB while it links",
            "free some space, or give another place with -o/--output (or TMPDIR, if it is named)",
        )
