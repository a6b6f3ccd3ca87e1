"""Concatenate without a copy: the kernel that computes a part writes it into the whole.

    a = f(x) ; b = g(y) ; c = concatenation(a, b) ; z = h(c)
    -->
    f'(x, c) ; g'(y, c) ; z = h(c)            a, b: parts of c, wherever they are read

The larger tensor is allocated before the first kernel that writes to it, and the plan of memory
sees that tensor alone. Where concatenations share parts, as in a dense block, the last one holds
them, and earlier ones are regions of it if their own parts are adjacent there. A part is copied
where something other than a kernel uses it, or where a kernel could no longer load and store whole
vectors (`region.py`).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ..._tvm import collect, op_name, relax, shape_of, tirx, tvm
from ...model.relax.concatenation import OPERATOR
from ...runtime.tensors import numpy_dtype
from ...target import Target
from .callers_memory import AT
from .region import Region, in_region

# For each tensor that lies in a larger one: the larger one, and the region in it.
Places = dict[Any, tuple[Any, Region]]
# The type of a kernel call's result: kernels return nothing.
_NOTHING = relax.TupleType([])


def in_place(target: Target) -> Any:
    """The pass that replaces concatenations, between `CallTIRRewrite` and the plan of memory."""

    def change(mod: Any, _context: Any) -> Any:
        mains = {gv: f for gv, f in mod.functions.items() if isinstance(f, relax.Function)}
        kernels = _Kernels(mod, target)
        changed = {gv: _rewritten(main, kernels) for gv, main in mains.items()}
        return tvm.IRModule({**kernels.used(changed.values()), **changed})

    return tvm.transform.module_pass(change, opt_level=0, name="ansor.Concatenations")


def _rewritten(main: relax.Function, kernels: "_Kernels") -> relax.Function:
    graph = _Graph(main)
    if not graph.concatenations:
        return main
    writer = _Writer(graph, kernels, _places(graph, kernels))
    bindings = [new for old in graph.bindings for new in writer.written(old)]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], main.body.body)
    return relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)


class _Graph:
    """The tensors of a function and their uses, by the variable that a tensor was first bound to.

    tensors: those that kernels write, and concatenations. kernels: for each tensor, the functions
    that take it, with the position of the argument. elsewhere: tensors that are also used by
    something else than a kernel.
    """

    def __init__(self, main: relax.Function) -> None:
        self.bindings = [one for block in main.body.blocks for one in block.bindings]
        self.concatenations: dict[Any, list[Any]] = {}
        self.tensors: set[Any] = set()
        self.kernels: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
        self.elsewhere: set[Any] = set()
        self._made: dict[Any, Any] = {}
        for binding in self.bindings:
            self._note(binding.var, binding.value)
        self.elsewhere |= {self.tensor(var) for var in collect(main.body.body, relax.Var)}

    def tensor(self, var: Any) -> Any:
        """The tensor that a variable stands for."""
        return self._made.get(var, var)

    def _note(self, var: Any, value: Any) -> None:
        arguments = [self.tensor(one) for one in value.args] if is_call(value) else []
        if isinstance(value, relax.Var):
            self._made[var] = self.tensor(value)
        elif is_allocation(value):
            self.tensors.add(var)
        elif is_concatenation(value):
            self.tensors.add(var)
            self.concatenations[var] = arguments
        elif is_kernel(value):
            for at, one in enumerate(arguments):
                self.kernels[one].append((value.op, at))
        else:
            self.elsewhere |= {self.tensor(one) for one in collect(value, relax.Var)}


def is_call(value: Any) -> bool:
    """Whether an expression is a call."""
    return isinstance(value, relax.Call)


def is_kernel(value: Any) -> bool:
    """Whether an expression calls a function of the module."""
    return is_call(value) and isinstance(value.op, tvm.ir.GlobalVar)


def is_allocation(value: Any) -> bool:
    """Whether an expression allocates a tensor for a kernel to write."""
    return is_call(value) and op_name(value) == "relax.builtin.alloc_tensor"


def is_concatenation(value: Any) -> bool:
    """Whether an expression is a concatenation that was left for this pass."""
    return is_call(value) and getattr(value.op, "global_symbol", "") == OPERATOR


def _axis(part: tuple[int, ...], whole: tuple[int, ...]) -> int:
    """The axis along which a part is shorter than the whole."""
    return next((k for k, n in enumerate(part) if n != whole[k]), 0)


def _offsets(whole: Any, parts: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    """The offsets of each part in the whole, along the axis of the concatenation."""
    shape, begin = shape_of(whole.ty), 0
    for part in (shape_of(part.ty) for part in parts):
        axis = _axis(part, shape)
        yield tuple(begin if k == axis else 0 for k in range(len(shape)))
        begin += part[axis]


def _places(graph: _Graph, kernels: "_Kernels") -> Places:
    """The tensors that need no memory of their own. The last concatenations choose first."""
    places: Places = {}
    for whole, parts in reversed(graph.concatenations.items()):
        found = None if whole in places else _in_a_row(whole, parts, places)
        if found and _fits(whole, found[1], graph, kernels):
            places[whole] = found
        for part, offsets in zip(parts, _offsets(whole, parts), strict=True):
            place = _within(whole, offsets, places)
            fresh = part not in places and parts.count(part) == 1
            if fresh and _fits(part, place[1], graph, kernels):
                places[part] = place
    return places


def _within(whole: Any, offsets: tuple[int, ...], places: Places) -> tuple[Any, Region]:
    """The place of a part of a tensor that may itself lie in a larger one."""
    shape = shape_of(whole.ty)
    outer, place = places.get(whole, (whole, Region(shape, (0,) * len(shape))))
    moved = tuple(a + b for a, b in zip(place.offsets, offsets, strict=True))
    return outer, Region(place.shape, moved)


def _in_a_row(whole: Any, parts: list[Any], places: Places) -> tuple[Any, Region] | None:
    """The place of a concatenation in a larger tensor where its parts are adjacent; else None."""
    first = places.get(parts[0])
    if first is None:
        return None
    outer, begin = first
    for part, offsets in zip(parts, _offsets(whole, parts), strict=True):
        at = tuple(a + b for a, b in zip(begin.offsets, offsets, strict=True))
        if places.get(part) != (outer, Region(begin.shape, at)):
            return None
    return first


def _fits(tensor: Any, place: Region, graph: _Graph, kernels: "_Kernels") -> bool:
    """Whether everything that uses a tensor can use it in that place."""
    if tensor not in graph.tensors or tensor in graph.elsewhere:
        return False
    if _is_scattered(tensor, place, kernels.target):
        return False
    return all(kernels.placed(name, {at: place}) for name, at in graph.kernels[tensor])


def _is_scattered(tensor: Any, place: Region, target: Target) -> bool:
    """Whether a large tensor's elements in that place fill less than half of the lines they are in.

    Processors fetch lines in pairs, and beyond the second cache a copy costs less than kernels that
    move whole pairs for a few elements of each.
    """
    shape, itemsize = shape_of(tensor.ty), numpy_dtype(str(tensor.ty.dtype)).itemsize
    run = math.prod(shape[_axis(shape, place.shape) :]) * itemsize
    return run < target.cache_line_bytes and math.prod(place.shape) * itemsize > target.l2_bytes


class _Writer:
    """Rewrites the bindings of a function, one after another, with tensors in their places."""

    def __init__(self, graph: _Graph, kernels: "_Kernels", places: Places) -> None:
        self._graph, self._kernels, self._places = graph, kernels, places
        self._allocated: set[Any] = set()

    def written(self, binding: Any) -> Iterator[Any]:
        """The bindings that replace a binding; none where a tensor lies in a larger one."""
        var, value = binding.var, binding.value
        if is_concatenation(value):
            yield from self._concatenation(var)
        elif is_kernel(value):
            yield from self._call(binding, value.op, list(value.args))
        elif self._graph.tensor(var) not in self._places:
            yield binding

    def _call(self, binding: Any, name: Any, arguments: list[Any]) -> Iterator[Any]:
        tensors = [self._graph.tensor(one) for one in arguments]
        found = {at: self._places[one] for at, one in enumerate(tensors) if one in self._places}
        for at, (outer, _) in found.items():
            yield from self._allocation(outer)
            arguments[at] = outer
        callee = self._kernels.placed(name, {at: place for at, (_, place) in found.items()})
        yield relax.VarBinding(binding.var, _call(callee, arguments))

    def _allocation(self, var: Any) -> Iterator[Any]:
        if var not in self._allocated:
            self._allocated.add(var)
            shape, dtype = relax.ShapeExpr(shape_of(var.ty)), str(var.ty.dtype)
            made = relax.op.builtin.alloc_tensor(shape, dtype, 0)
            typed = relax.Call(made.op, made.args, made.attrs, made.ty_args, ret_ty=var.ty)
            yield relax.VarBinding(var, typed)

    def _concatenation(self, whole: Any) -> Iterator[Any]:
        """Copies of the parts that do not lie in the whole yet."""
        parts = self._graph.concatenations[whole]
        if whole not in self._places:
            yield from self._allocation(whole)
        for part, offsets in zip(parts, _offsets(whole, parts), strict=True):
            place = _within(whole, offsets, self._places)
            if self._places.get(part) != place:
                yield from self._copy(part, place)

    def _copy(self, part: Any, place: tuple[Any, Region]) -> Iterator[Any]:
        source, own = self._places.get(part, (part, None))
        outer, target = place
        copy = self._kernels.copy(shape_of(part.ty), str(part.ty.dtype), target)
        callee = self._kernels.placed(copy, {0: own, 1: target} if own else {1: target})
        yield from self._allocation(outer)
        yield relax.VarBinding(relax.Var("_", _NOTHING), _call(callee, [source, outer]))


def _call(callee: Any, arguments: list[Any]) -> Any:
    return relax.Call(callee, arguments, ret_ty=_NOTHING)


class _Kernels:
    """A module's functions, and their versions for tensors that lie in larger ones."""

    def __init__(self, mod: tvm.IRModule, target: Target) -> None:
        self.target = target
        self._builder = relax.BlockBuilder(mod)
        self._made: dict[tuple[str, frozenset[tuple[int, Region]]], Any] = {}
        self._copies: dict[Any, Any] = {}

    def placed(self, name: Any, places: dict[int, Region]) -> Any:
        """The function with these arguments in larger tensors; None where that is impossible."""
        if not places:
            return name
        key = (name.name_hint, frozenset(places.items()))
        if key not in self._made:
            func = self._builder.get()[name]
            for at, place in places.items():
                func = func and in_region(func, at, place)
            named = f"{name.name_hint}{AT}part"
            self._made[key] = func and self._builder.add_func(func, named)
        return self._made[key]

    def copy(self, shape: tuple[int, ...], dtype: str, place: Region) -> Any:
        """A function that copies a tensor to such a place, one contiguous run at a time."""
        axis = _axis(shape, place.shape)
        key = (shape, dtype, axis)
        if key not in self._copies:
            func = _copy(shape, dtype, axis)
            self._copies[key] = self._builder.add_func(func, "concatenate")
        return self._copies[key]

    def used(self, mains: Iterable[relax.Function]) -> dict[Any, Any]:
        """The kernels that functions call."""
        names = {gv for main in mains for gv in collect(main, tvm.ir.GlobalVar)}
        kernels = self._builder.get().functions.items()
        return {gv: f for gv, f in kernels if gv in names and isinstance(f, tirx.PrimFunc)}


def _copy(shape: tuple[int, ...], dtype: str, axis: int) -> tirx.PrimFunc:
    source = tvm.te.placeholder(shape, dtype, "part")
    made = tvm.te.compute(shape, lambda *at: source[at], "concatenate")
    sch = tvm.s_tir.Schedule(tvm.te.create_prim_func([source, made]))
    loops = sch.get_loops("concatenate")
    sch.parallel(sch.fuse(*loops[:axis]) if axis > 0 else sch.add_unit_loop(loops[0]))
    func = sch.mod["main"].without_attr("global_symbol").with_attr("tirx.is_scheduled", True)
    return func.with_attr("tirx.noalias", True)
