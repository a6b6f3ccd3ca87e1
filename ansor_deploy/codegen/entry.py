"""The functions of a library that the loader of the library calls.

    main(x) -> y                has its constants inside, and allocates memory as it needs it
    -->
    main_into(x, y, w0, a0)     writes into the caller's memory; arguments bound once come last
    main(x, w0, a0) -> y        the same, but allocates its outputs
    main_weights(block)         (w0, a0): the arguments that are bound when a library is loaded
    weights_size()              bytes of the block of weights

w0 is a view of the block of weights (`weights.py`), a0 of the arena (`storage.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .._tvm import collect, relax, shape_of, tvm, vm
from .memory.callers_memory import Added, anywhere, copied, is_within
from .memory.storage import Slot, Stored, bytes_of, call, stored
from .memory.weights import Weights, lifted

Functions = dict[tvm.ir.GlobalVar, Any]  # Relax functions and PrimFuncs

INTO, BINDER, SIZE = "_into", "_weights", "weights_size"


@dataclass(frozen=True)
class Entries:
    """A lowered module with the functions of a library, and the memory that they take.

    weights: those of all functions. runs: the body and the tensors' places of each function, by
    its name. constants: the weights of each function, with the variables that stand for them.
    """

    mod: tvm.IRModule
    weights: Weights
    runs: dict[str, Stored]
    constants: dict[str, dict[Slot, relax.Var]]


def entries(mod: tvm.IRModule, on_gpu: bool = False, others: Weights | None = None) -> Entries:
    """The functions of a library, made from the Relax functions of a lowered module.

    The module is lowered already, since otherwise a function would check each argument in every
    call. on_gpu: kernels get no memory of the caller's. others: weights of the library's other
    codes.
    """
    functions, weights = dict(mod.functions.items()), others.copy() if others else Weights()
    runs: dict[str, Stored] = {}
    constants: dict[str, dict[Slot, relax.Var]] = {}
    added: Added = {}
    for name, func in mod.functions.items():
        if isinstance(func, relax.Function):
            run = _placed(mod, func, on_gpu, added)
            body, places = lifted(run.body, weights)
            run = replace(run, body=body)
            del functions[name]
            functions |= _entries(name.name_hint, func, run, places)
            runs[name.name_hint], constants[name.name_hint] = run, places
    if not weights.block:
        weights.place(b"\0")  # an empty block could not be mapped into memory
    functions |= dict(added.values()) | size_function(weights)
    return Entries(_needed(functions), weights, runs, constants)


def _placed(mod: tvm.IRModule, func: relax.Function, on_gpu: bool, added: Added) -> Stored:
    """A function with the places of its tensors. added: receives the kernels that this adds."""
    run = stored(func)
    if is_within(func):
        return copied(run)
    return run if on_gpu else anywhere(mod, run, added)


def _needed(functions: Functions) -> tvm.IRModule:
    """A module of the functions, without the kernels that none of them calls."""
    mains = [func for func in functions.values() if isinstance(func, relax.Function)]
    called = {name for main in mains for name in collect(main.body, tvm.ir.GlobalVar)}
    kept = {gv: f for gv, f in functions.items() if gv in called or isinstance(f, relax.Function)}
    return tvm.IRModule(kept)


def _entries(
    name: str, func: relax.Function, run: Stored, places: dict[Slot, relax.Var]
) -> Functions:
    """The functions of a library that replace one Relax function."""
    params = [*run.inputs, *run.outputs, *places.values(), *run.views.values()]
    made = relax.Function(params, run.body, relax.ObjectType(), False, func.attrs)
    into = made.with_attr("global_symbol", name + INTO)
    several = isinstance(func.ret_ty, relax.TupleType)
    return allocating(name, into, run, several) | _binder(name + BINDER, places, run)


def allocating(name: str, into: relax.Function, run: Stored, several: bool) -> Functions:
    """A function, and a second one that allocates outputs, calls the first, and returns them.

    several: whether the second one returns a tuple.
    """
    params = [relax.Var(var.name, var.ty) for var in into.params]
    given, bound = params[: len(run.inputs)], params[len(run.inputs) + len(run.outputs) :]
    builder = relax.BlockBuilder()
    target = builder.add_func(into, name + INTO)
    with builder.function(name, [*given, *bound], attrs={"global_symbol": name}, pure=False):
        made = [_allocated(builder, var.ty) for var in run.outputs]
        builder.emit(relax.Call(target, [*given, *made, *bound]))
        builder.emit_func_output(relax.Tuple(made) if several else made[0])
    return dict(builder.get().functions.items())


def _allocated(builder: relax.BlockBuilder, kind: relax.TensorType) -> relax.Var:
    """A tensor in memory of its own."""
    storage = builder.emit(vm.alloc_storage(_shape(bytes_of(kind)), 0, "uint8"))
    return builder.emit(vm.alloc_tensor(storage, 0, _shape(*shape_of(kind)), str(kind.dtype)))


def _binder(name: str, weights: Iterable[Slot], run: Stored) -> Functions:
    """The function that takes the block of weights and returns the bound arguments.

    These are views of the block, and of an arena that it allocates.
    """
    builder, block = relax.BlockBuilder(), relax.Var("block", relax.ObjectType())
    with builder.function(name, [block], attrs={"global_symbol": name}, pure=False):
        views = [_view(block, place) for place in weights]
        if run.views:
            arena = _allocated(builder, relax.TensorType(_shape(run.size), "uint8"))
            views += [_view(arena, place) for place in run.views]
        builder.emit_func_output(relax.Tuple(views))
    return dict(builder.get().functions.items())


def _view(block: relax.Var, place: Slot) -> relax.Expr:
    """A tensor in a block whose data pointer is its first element: kernels ignore offsets."""
    dtype = tvm.ir.GenericConst(tvm.DataType(place.dtype), relax.AnyType())
    where = [_shape(*place.shape), dtype, tvm.tirx.IntImm("int64", place.offset)]
    view = call("runtime.TVMTensorCreateView", block, *where)
    return call("vm.builtin.ensure_zero_offset", view)


def _shape(*extents: int) -> relax.ShapeExpr:
    return relax.ShapeExpr(extents)


def size_function(weights: Weights) -> Functions:
    """The function that says how large the block of weights is."""
    builder = relax.BlockBuilder()
    with builder.function(SIZE, [], attrs={"global_symbol": SIZE}, pure=False):
        builder.emit_func_output(tvm.tirx.IntImm("int64", len(weights.block)))
    return dict(builder.get().functions.items())
