"""Tasks and their best records to one shared library, weights packed for the schedules."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._tvm import collect, relax, tvm, tvm_target
from ..errors import AnsorError, RegistryError
from ..model.importer import Imported
from ..model.tasks import Task
from ..registry.record import Record, TaskKey
from ..space.rule import Rule
from ..space.sketch import default_schedule
from ..space.trace import copies, replay
from ..target import Target
from .linker import export
from .lowering import PIPELINE
from .memory import Memory, Part, total
from .planned_memory import memory_of
from .weights import Weights, lift

# The weights are in the tuned library and in the untuned one beside it; objects and code come on
# top.
COPIES = 2
SPARE_BYTES = 16 << 20

# Copies of a statement that vectors and unrolled loops make; no rule's programs come near it. A
# record from elsewhere could keep the compiler busy for days.
MOST_COPIES = 1 << 16


@dataclass(frozen=True)
class Compiled:
    """A model's code (`relax.VMExecutable`), and the weights that it is to be called with.

    memory: without the code, whose size is known when it is linked.
    """

    executable: Any
    weights: Weights
    memory: Memory

    def export(self, path: Path, target: Target) -> Memory:
        """Write the library: what it takes. LinkError, or OSError where the disk is full."""
        export(self.executable, path, target)
        self.weights.append_to(path)
        code = path.stat().st_size - total(self.memory.weights)
        return replace(self.memory, code=(Part("code", code),))


def compile_model(
    model: Imported,
    tasks: Mapping[str, Task],
    records: Mapping[TaskKey, Record],
    target: Target,
    rules: Sequence[Rule] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Compiled:
    """A model compiled, each task under its record's schedule.

    A task without a record gets the default schedule of these rules, by default the shipped ones.
    warn: is called with a sentence about each rule that had to be left out.
    """
    mod = tvm.IRModule(dict(model.mod.functions.items()))
    scheduled: dict[TaskKey, Any] = {}
    for name, task in tasks.items():
        if task.key not in scheduled:
            if (record := records.get(task.key)) is not None:
                scheduled[task.key] = schedule(task, record)
            else:
                default = default_schedule(task.mod, target, rules, warn)
                scheduled[task.key] = default.mod["main"]
        mod[mod.get_global_var(name)] = _private(scheduled[task.key])
    with tvm_target(target), tvm.transform.PassContext(opt_level=3):
        lowered, weights = lift(_lower()(_pack_weights(mod)))
        memory = memory_of(lowered, weights, target.cores)
        pipelines = {"relax_pipeline": None, "tir_pipeline": PIPELINE}
        return Compiled(relax.build(lowered, tvm_target(target), **pipelines), weights, memory)


def memory_of_tensors(model: Imported) -> Memory:
    """What a model's weights and tensors take, before its kernels have schedules."""
    return memory_of(*lift(_lower()(model.mod)))


def schedule(task: Task, record: Record) -> Any:
    """The PrimFunc of a task under a record's schedule; RegistryError where it does not fit."""
    hint = "tune into a new registry (--registry PATH), and report the record"
    named = f"record {record.id[:12]} of task {task.name}"
    try:
        sch = replay(task.mod, record.trace)
    except (RuntimeError, ValueError) as error:  # a ScheduleError is a RuntimeError
        raise RegistryError(f"{named} does not replay on its program", hint) from error
    if (count := copies(sch)) > MOST_COPIES:
        raise RegistryError(f"{named} would write out its body {count} times", hint)
    return sch.mod["main"]


def check_space(model: Imported, folder: Path) -> None:
    """AnsorError if a folder cannot hold the library and what linking it leaves meanwhile.

    Asked before, because LLVM ends the process where a write of its own fails.
    """
    weights = collect(model.mod["main"], tvm.ir.GenericConst)
    needed = SPARE_BYTES + COPIES * sum(one.value.numpy().nbytes for one in weights)
    if (free := shutil.disk_usage(folder).free) < needed:
        raise AnsorError(
            f"{folder}: {free / 1e6:.0f} MB free, and a build of this model may take "
            f"{needed / 1e6:.0f} MB while it links",
            "free some space, or give another place with -o/--output (or TMPDIR, if it is named)",
        )


def _private(func: Any) -> Any:
    # A global symbol would keep the function as it was before its weights were packed alive.
    return func.without_attr("global_symbol").with_attr("tirx.is_scheduled", True)


def _pack_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Run the layout-rewriting part of each program now, on the constants, and drop it."""
    t = relax.transform
    passes = [t.SplitLayoutRewritePreproc(), t.FoldConstant(), t.DeadCodeElimination()]
    return tvm.transform.Sequential(passes)(mod)


def _lower() -> Any:
    """TVM's CPU pipeline after fusion: the module comes fused and scheduled."""
    t = relax.transform
    return tvm.transform.Sequential(
        [
            t.RewriteDataflowReshape(),
            t.ToNonDataflow(),
            t.RemovePurityChecking(),
            t.CallTIRRewrite(),
            t.StaticPlanBlockMemory(),
            t.LowerAllocTensor(),
            t.KillAfterLastUse(),
            t.LowerRuntimeBuiltin(),
            t.ComputePrimValue(),
            t.VMShapeLower(),
            t.AttachGlobalSymbol(),
        ]
    )
