"""Kernels that read or write the caller's memory rely on the alignment of an element alone.

All other tensors begin at multiples of `arena.ALIGNMENT`. Arrays of NumPy and of C mostly do not,
and copying them takes longer than loads and stores that cross cache lines. A part of a model must
be computed by exactly the kernels of the whole, whatever its inputs and outputs are: so it copies
them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..._tvm import collect, relax, shape_of, structural_map, tirx, tvm
from ...runtime.tensors import tensor_bytes
from .arena import aligned
from .storage import COPY, RESHAPE, Slot, Stored, bytes_of, call, is_call

AT = "@"  # separates the original's name in the name of a kernel that was made from another
_WITHIN = "ansor.within"


def within(mod: tvm.IRModule) -> tvm.IRModule:
    """An imported module, marked so that no kernel reads or writes the caller's memory."""
    return tvm.IRModule({name: _marked(func) for name, func in mod.functions.items()})


def _marked(func: Any) -> Any:
    return func.with_attr(_WITHIN, True) if isinstance(func, relax.Function) else func


def is_within(func: relax.Function) -> bool:
    """Whether `within` marked a function."""
    return bool((func.attrs or {}).get(_WITHIN))


def copied(run: Stored) -> Stored:
    """A run that first copies its inputs to the arena, and last its outputs from there."""
    size, places = run.size, dict[relax.Var, relax.Var]()
    views = dict(run.views)
    for var in (*run.inputs, *run.outputs):
        slot = Slot(size, shape_of(var.ty), str(var.ty.dtype))
        places[var] = views[slot] = relax.Var(f"a{len(views)}", var.ty)
        size += aligned(bytes_of(var.ty))
    body = structural_map(run.body, (relax.Var, lambda var: places.get(var, var)))
    before = relax.BindingBlock([_copy(var, places[var]) for var in run.inputs])
    after = relax.BindingBlock([_copy(places[var], var) for var in run.outputs])
    body = relax.SeqExpr([before, *body.blocks, after], body.body)
    return replace(run, views=views, size=size, body=body)


def _copy(source: relax.Var, to: relax.Var) -> relax.Binding:
    return relax.VarBinding(relax.Var("_", relax.TupleType([])), call(COPY, source, to))


Added = dict[str, tuple[tvm.ir.GlobalVar, Any]]  # kernels by their names


def anywhere(mod: tvm.IRModule, run: Stored, added: Added) -> Stored:
    """A run whose inputs and outputs may have any address.

    added: receives the kernels that this adds; runs of the same module share them.
    """
    given = _callers(run)

    def kernel(call: relax.Call) -> relax.Call:
        places = [at for at, one in enumerate(call.args) if one in given]
        if not places or not isinstance(call.op, tvm.ir.GlobalVar):
            return call
        name = f"{call.op.name_hint}{AT}{places}"
        if name not in added:
            added[name] = tvm.ir.GlobalVar(name), _unaligned(mod[call.op], places)
        return structural_map(call, (tvm.ir.GlobalVar, lambda _: added[name][0]))

    body = structural_map(run.body, (relax.Call, kernel))
    return replace(run, body=body)


def original(name: str) -> str:
    """The name of the kernel that this one was made from, or its own name."""
    return name.partition(AT)[0]


def _callers(run: Stored) -> set[relax.Var]:
    """The variables of inputs, of outputs, and of views of these."""
    found = {*run.inputs, *run.outputs}
    for binding in collect(run.body, relax.VarBinding):
        if is_call(binding.value, RESHAPE) and binding.value.args[0] in found:
            found.add(binding.var)
    return found


def _unaligned(func: Any, places: Sequence[int]) -> Any:
    """A program that relies on no alignment of the arguments at these places."""
    fresh = {func.params[at]: _anywhere(func.params[at]) for at in places}
    return structural_map(func, (tirx.Var, lambda var: fresh.get(var, var)))


def _anywhere(buffer: Any) -> Any:
    size = tensor_bytes([], str(buffer.dtype))
    return tirx.decl_buffer(buffer.shape, buffer.dtype, name=buffer.name, data_alignment=size)
