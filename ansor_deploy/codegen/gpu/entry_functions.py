"""The functions of a library for a GPU: those of any library (`entry.py`), but each calls one run.

main_into(x, y, state)      runs the program (`program.py`) on the GPU
main(x, state) -> y         the same, but allocates its outputs
main_weights(block)         (state,): loads the kernels, and copies the weights to device memory
weights_size()              bytes of the block of weights
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..._tvm import collect, relax, tvm
from ..entry import BINDER, INTO, Entries, Functions, allocating, size_function
from ..memory.storage import Slot, Stored, call
from .program import Run, gpu_run, on_host

_LOAD, _RUN = "ansor_deploy_gpu_load", "ansor_deploy_gpu_run"  # functions of launcher.c


@dataclass(frozen=True)
class GpuEntries:
    """A module with the functions of a library, and the run of each, in the same order."""

    mod: tvm.IRModule
    runs: tuple[Run, ...]


def gpu_entries(made: Entries, symbols: Mapping[str, str]) -> GpuEntries:
    """The functions that launch runs, instead of those that call kernels.

    symbols: those of the kernels, by their functions' names.
    """
    functions: Functions = size_function(made.weights)
    for number, (name, run) in enumerate(made.runs.items()):
        several = isinstance(made.mod[name].ret_ty, relax.TupleType)
        functions |= _entries(name, number, run, several)
    runs = [gpu_run(run, made.constants[name], symbols) for name, run in made.runs.items()]
    return GpuEntries(tvm.IRModule(functions), tuple(runs))


def _entries(name: str, number: int, run: Stored, several: bool) -> Functions:
    state = relax.Var("state", relax.ObjectType())
    params = [*run.inputs, *run.outputs, state]
    which = tvm.tirx.IntImm("int64", number)
    launched = call(_RUN, state, which, *run.inputs, *run.outputs)
    checks = [one for one in collect(run.body, relax.VarBinding) if on_host(one.value)]
    bindings = [*checks, relax.VarBinding(relax.Var("_", relax.ObjectType()), launched)]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], relax.Tuple([]))
    made = relax.Function(params, body, relax.ObjectType(), False)
    into = made.with_attr("global_symbol", name + INTO)
    bound = replace(run, views={Slot(0, (), "state"): state})
    return allocating(name, into, bound, several) | _binder(name + BINDER)


def _binder(name: str) -> Functions:
    builder, block = relax.BlockBuilder(), relax.Var("block", relax.ObjectType())
    with builder.function(name, [block], attrs={"global_symbol": name}, pure=False):
        state = builder.emit(call(_LOAD, block))
        builder.emit_func_output(relax.Tuple([state]))
    return dict(builder.get().functions.items())
