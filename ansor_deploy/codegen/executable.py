"""A model's graph as bytecode and constants, and its kernels as programs to be compiled apart.

A kernel is called after the digest of its program: equal ones are one, and the code of a program
that was compiled before is found by its name.
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
    """Functions of a library's graph, which call kernels by their symbols; its weights; and these.

    functions: of the model, by the symbol of the kernel that computes them. tasks: of a kernel's
    symbol, the keys of the workloads that it computes. runs: of a library for a GPU, what its
    functions launch.
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

    scheduled: of a function's name, the key of its workload and its scheduled PrimFunc. code: its
    number in a library with code for several targets. others: the weights of those before it.
    ModelError where the library would call what is nowhere that it runs.
    """
    mod = _of_code(mod, code)
    for name, (key, func) in scheduled.items():
        mod[mod.get_global_var(name)] = _private(func).with_attr(TASK, key)
    with code_generation(target):
        lowered = _lower(target)(_pack_weights(mod))
        made = entries(lowered, on_gpu=target.gpu is not None, others=others)
        check_calls(made.mod)
        memory = memory_of(lowered, made, target.cores if target.gpu is None else 0)
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
    """A copy of a module with the names that its functions have as a library's code."""
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


def executable(mods: Sequence[tvm.IRModule], target: Target) -> Any:
    """A library's graphs as bytecode (`relax.VMExecutable`), without weights and kernels.

    mods: of its codes; the block of weights is the last one's.
    """
    target = replace(target, kind="llvm", gpu=None)  # of a GPU's library, it is the host's part
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
    """TVM's CPU pipeline after fusion, less its plan of memory: the module comes scheduled."""
    t = relax.transform
    return tvm.transform.Sequential(
        [
            t.RewriteDataflowReshape(),
            t.ToNonDataflow(),
            t.RemovePurityChecking(),
            t.CallTIRRewrite(),
            appended(),
            *([] if target.gpu else [lengths()]),
            in_place(target),
            t.LowerAllocTensor(),
            t.LowerRuntimeBuiltin(),
            t.ComputePrimValue(),
            t.VMShapeLower(),
            t.AttachGlobalSymbol(),
        ]
    )
