"""A model's graph as bytecode and constants, and its kernels as programs to be compiled apart.

A kernel is called after the digest of its program: equal ones are one, and the code of a program
that was compiled before is found by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._tvm import relax, tirx, tvm, tvm_target
from ..model.importer import Imported
from ..target import Target
from .callers_memory import original
from .concatenation import in_place
from .constants import fold
from .entry import Entries, entries
from .gpu_entry import gpu_entries
from .gpu_program import Run
from .kernels import TASK, Kernel
from .lowering import code_generation, compiled
from .memory import Memory
from .planned_memory import memory_of
from .runtime_calls import check_calls
from .weights import Weights


@dataclass(frozen=True)
class Lowered:
    """An executable (`relax.VMExecutable`) that lacks its weights and its kernels, and these.

    functions: of the model, by the symbol of the kernel that computes them. tasks: of a kernel's
    symbol, the keys of the workloads that it computes. runs: of a library for a GPU, what its
    functions launch.
    """

    executable: Any
    weights: Weights
    memory: Memory
    kernels: tuple[Kernel, ...]
    functions: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, frozenset[str]]
    runs: tuple[Run, ...] = ()


def lower_model(
    mod: tvm.IRModule, scheduled: Mapping[str, tuple[str, Any]], target: Target
) -> Lowered:
    """Lower an imported module.

    scheduled: of a function's name, the key of its workload and its scheduled PrimFunc. ModelError
    where the library would call what is nowhere that it runs.
    """
    mod = tvm.IRModule(dict(mod.functions.items()))
    for name, (key, func) in scheduled.items():
        mod[mod.get_global_var(name)] = _private(func).with_attr(TASK, key)
    with code_generation(target):
        lowered = _lower(target)(_pack_weights(mod))
        made = entries(lowered, on_gpu=target.gpu is not None)
        check_calls(made.mod)
        memory = memory_of(lowered, made, target.cores if target.gpu is None else 0)
        kernels: dict[str, Kernel] = {}  # by the names of their functions
        functions: dict[str, tuple[str, ...]] = {}
        tasks: dict[str, frozenset[str]] = {}
        for name, func in made.mod.functions.items():
            if isinstance(func, tirx.PrimFunc):
                kernel = kernels[name.name_hint] = Kernel.of(func)
                known = functions.get(kernel.symbol, ())
                functions[kernel.symbol] = (*known, original(name.name_hint))
                tasks[kernel.symbol] = tasks.get(kernel.symbol, frozenset()) | _tasks(func)
        symbols = {name: kernel.symbol for name, kernel in kernels.items()}
        mod, runs = _calling(made, symbols, target)
        unique = {kernel.symbol: kernel for kernel in kernels.values()}
        words = (made.weights, memory, tuple(unique.values()), functions, tasks, runs)
        return Lowered(_executable(mod, target), *words)


def _calling(
    made: Entries, symbols: Mapping[str, str], target: Target
) -> tuple[tvm.IRModule, tuple[Run, ...]]:
    """A module whose functions call kernels by symbol; for a GPU, their runs instead of them."""
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


def _executable(mod: tvm.IRModule, target: Target) -> Any:
    target = replace(target, kind="llvm", gpu=None)  # of a GPU's library, it is the host's part
    builder = relax.ExecBuilder()
    relax.vm_build._vmcodegen(builder, mod)  # noqa: SLF001 - `relax.build` compiles kernels, too
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
    """TVM's CPU pipeline after fusion, less its plan of memory: the module comes scheduled."""
    t = relax.transform
    return tvm.transform.Sequential(
        [
            t.RewriteDataflowReshape(),
            t.ToNonDataflow(),
            t.RemovePurityChecking(),
            t.CallTIRRewrite(),
            in_place(target),
            t.LowerAllocTensor(),
            t.LowerRuntimeBuiltin(),
            t.ComputePrimValue(),
            t.VMShapeLower(),
            t.AttachGlobalSymbol(),
        ]
    )
