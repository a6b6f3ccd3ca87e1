"""Tasks and their best records to one shared library, weights packed for the schedules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._tvm import relax, tvm
from .errors import AnsorError
from .model.importer import Imported, tvm_target
from .model.tasks import Task
from .registry.keys import TaskKey
from .registry.record import Record
from .search.default import default_schedule
from .search.trace import replay
from .target import Target


def compile_model(
    model: Imported,
    tasks: Mapping[str, Task],
    records: Mapping[TaskKey, Record],
    target: Target,
) -> Any:
    """The executable (`relax.VMExecutable`) of a model, each task under its record's schedule.

    A task without a record gets the default schedule.
    """
    mod = tvm.IRModule(dict(model.mod.functions.items()))
    scheduled: dict[TaskKey, Any] = {}
    for name, task in tasks.items():
        if task.key not in scheduled:
            scheduled[task.key] = schedule(task, records.get(task.key), target)
        mod[mod.get_global_var(name)] = _named(scheduled[task.key], name)
    with tvm_target(target), tvm.transform.PassContext(opt_level=3):
        packed = _pack_weights(mod)
        return relax.build(packed, tvm_target(target), relax_pipeline=_lower())


def schedule(task: Task, record: Record | None, target: Target) -> Any:
    """The task's scheduled PrimFunc."""
    if record is None:
        return default_schedule(task.mod, target).mod["main"]
    return replay(task.mod, record.trace).mod["main"]


def export(executable: Any, path: Path) -> None:
    """Link the executable into a shared library at `path`."""
    try:
        executable.export_library(str(path))
    except FileNotFoundError as error:
        raise AnsorError(
            f"no C++ compiler to link the library with: {error}",
            "install one (Debian: apt-get install g++), then repeat the build",
        ) from error


def _named(func: Any, name: str) -> Any:
    return func.with_attr("global_symbol", name).with_attr("tirx.is_scheduled", True)


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
