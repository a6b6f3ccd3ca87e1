"""Lower a model to bytecode, weights, and kernels that are compiled separately.

A kernel is named after the digest of its program: equal programs become one kernel, and code that
was compiled before is found by this name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._tvm import relax, tirx, tvm, tvm_target
from ..model.relax.importer import Imported
from ..runtime.functions import code_prefix
from ..target import Target
from .entry import SIZE, Entries, entries
from .gpu.entry_functions import gpu_entries
from .gpu.program import Run
from .kernels.constants import fold
from .kernels.lowering import code_generation, compiled
from .kernels.objects import TASK, Kernel
from .lengths.unmasked import unmasked
from .lengths.whole import lengths
from .memory.appended import appended
from .memory.callers_memory import original
from .memory.figures import Memory
from .memory.in_place import in_place
from .memory.weights import Weights
from .planned_memory import memory_of
from .runtime_calls import check_calls


@dataclass(frozen=True)
class Lowered:
    """A lowered model: its graph, which calls kernels by symbol, its weights and its kernels.

    functions: for each kernel's symbol, the functions of the model that it computes. tasks: for
    each kernel's symbol, the keys of the workloads that it computes. runs: what the functions of a
    library for a GPU launch.
    """

    mod: tvm.IRModule
    weights: Weights
    memory: Memory
    kernels: tuple[Kernel, ...]
    functions: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, frozenset[str]]
    runs: tuple[Run, ...] = ()


def lower_model(
    mod: tvm.IRModule,
    scheduled: Mapping[str, tuple[str, Any]],
    target: Target,
    code: int = 0,
    others: Weights | None = None,
) -> Lowered:
    """Lower an imported module.

    scheduled: for each function's name, the key of its workload and its scheduled PrimFunc. code:
    the number of this code in a library for several targets. others: the weights of the codes
    before it. ModelError where the library would call a function that the runtime lacks.
    """
    mod = _of_code(mod, code)
    for name, (key, func) in scheduled.items():
        mod[mod.get_global_var(name)] = _private(func).with_attr(TASK, key)
    with code_generation(target):
        lowered = _lower(target)(_pack_weights(mod))
        made = entries(lowered, on_gpu=target.gpu is not None, others=others)
        check_calls(made.mod)
        memory = memory_of(lowered, made)
        kernels: dict[str, Kernel] = {}  # by the names of their functions
        functions: dict[str, tuple[str, ...]] = {}
        tasks: dict[str, frozenset[str]] = {}
        for name, func in made.mod.functions.items():
            if isinstance(func, tirx.PrimFunc):
                kernel = kernels[name.name_hint] = Kernel.of(func, code)
                known = functions.get(kernel.symbol, ())
                functions[kernel.symbol] = (*known, original(name.name_hint))
                tasks[kernel.symbol] = tasks.get(kernel.symbol, frozenset()) | _tasks(func)
        symbols = {name: kernel.symbol for name, kernel in kernels.items()}
        mod, runs = _calling(made, symbols, target)
        unique = {kernel.symbol: kernel for kernel in kernels.values()}
        words = (made.weights, memory, tuple(unique.values()), functions, tasks, runs)
        return Lowered(mod, *words)


def _of_code(mod: tvm.IRModule, code: int) -> tvm.IRModule:
    """A copy of a module whose functions are named as those of this code of a library."""
    functions = dict(mod.functions.items())
    for name, func in mod.functions.items():
        if code and isinstance(func, relax.Function):
            renamed = code_prefix(code) + name.name_hint
            del functions[name]
            functions[tvm.ir.GlobalVar(renamed)] = func.with_attr("global_symbol", renamed)
    return tvm.IRModule(functions)


def _calling(
    made: Entries, symbols: Mapping[str, str], target: Target
) -> tuple[tvm.IRModule, tuple[Run, ...]]:
    """A module whose functions call kernels by symbol; for a GPU, they launch runs instead."""
    if target.gpu is not None:
        on_gpu = gpu_entries(made, symbols)
        return on_gpu.mod, on_gpu.runs
    mod = made.mod
    for name, symbol in symbols.items():
        mod[name] = relax.ExternFunc(symbol)
    return mod, ()


def _tasks(func: Any) -> frozenset[str]:
    key = (func.attrs or {}).get(TASK)
    return frozenset([str(key)] if key else [])


def executable(mods: Sequence[tvm.IRModule], target: Target) -> Any:
    """A library's graphs as bytecode (`relax.VMExecutable`), without weights and kernels.

    mods: one for each of its codes; the last one has the size of the block of weights.
    """
    target = replace(target, kind="llvm", gpu=None)  # bytecode runs on the host, also for a GPU
    builder = relax.ExecBuilder()
    for at, mod in enumerate(mods, start=1):
        kept = {gv: f for gv, f in mod.functions.items() if at == len(mods) or gv.name_hint != SIZE}
        relax.vm_build._vmcodegen(builder, tvm.IRModule(kept))  # noqa: SLF001 - `relax.build` compiles kernels, too
    # It looks for its kernels in a library, even one that has none but is linked with them.
    return relax.vm_build.VMExecutable(
        relax.vm_build._ffi_api.VMLink(builder, tvm_target(target), compiled({}, target), [], {})  # noqa: SLF001
    )


def memory_of_tensors(model: Imported, target: Target) -> Memory:
    """What a model's weights and tensors take, before its kernels have schedules."""
    lowered = _lower(target)(model.mod)
    return memory_of(lowered, entries(lowered))


def _private(func: Any) -> Any:
    # A global symbol would keep the function as it was before its weights were packed alive.
    return func.without_attr("global_symbol").with_attr("tirx.is_scheduled", True)


def _pack_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Run the layout-rewriting part of each program now, on the constants, and drop it."""
    t = relax.transform
    split = t.SplitLayoutRewritePreproc()(mod)
    return tvm.transform.Sequential([t.FoldConstant(), t.DeadCodeElimination()])(fold(split))


def _lower(target: Target) -> Any:
    """TVM's CPU pipeline after fusion, without its memory planning, for a scheduled module."""
    t = relax.transform
    return tvm.transform.Sequential(
        [
            t.RewriteDataflowReshape(),
            t.ToNonDataflow(),
            t.RemovePurityChecking(),
            t.CallTIRRewrite(),
            appended(),
            *([] if target.gpu else [unmasked()]),
            in_place(target),
            *([] if target.gpu else [lengths()]),
            t.LowerAllocTensor(),
            t.LowerRuntimeBuiltin(),
            t.ComputePrimValue(),
            t.VMShapeLower(),
            t.AttachGlobalSymbol(),
        ]
    )
