"""Write new rows into a cache in place: in the caller's memory, which is an input.

    c = ansor.append(cache, new, at) ; z = h(c)
    -->
    append(new, at, cache) ; z = h'(at, cache)          h' stops at the rows that count

Other readers of the cache may run before or after that: no row that counted before is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._tvm import collect, relax, shape_of, structural_map, tirx, tvm
from ...model.relax.appended import OPERATOR
from .callers_memory import AT
from .counted_rows import Rows, counting
from .in_place import is_kernel


def appended() -> Any:
    """The pass that replaces these calls, between `CallTIRRewrite` and the plan of memory."""
    return tvm.transform.module_pass(_changed, opt_level=0, name="ansor.Append")


def _changed(mod: Any, _context: Any) -> Any:
    mains = {gv: f for gv, f in mod.functions.items() if isinstance(f, relax.Function)}
    if not any(_appends(one) for main in mains.values() for one in collect(main, relax.Call)):
        return mod
    builder = relax.BlockBuilder(mod)
    made = {gv: _rewritten(main, builder) for gv, main in mains.items()}
    return tvm.IRModule({**dict(builder.get().functions.items()), **made})


def _appends(value: Any) -> bool:
    return getattr(getattr(value, "op", None), "global_symbol", "") == OPERATOR


def _rewritten(main: relax.Function, builder: relax.BlockBuilder) -> relax.Function:
    writer = _Writer(builder)
    blocks = [
        relax.BindingBlock([new for old in block.bindings for new in writer.written(old)])
        for block in main.body.blocks
    ]
    body = relax.SeqExpr(blocks, main.body.body)
    return relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)


class _Writer:
    """Rewrites the bindings of a function, one after another.

    _rows: which rows count, for each variable that is a cache after rows were appended. _made: the
    kernels that stop at the rows that count, by their names and the argument that is the cache.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self._builder = builder
        self._rows: dict[Any, Rows] = {}
        self._made: dict[tuple[str, int], Any] = {}

    def written(self, binding: Any) -> Iterator[Any]:
        """The bindings that replace a binding."""
        value = binding.value
        if _appends(value):
            yield from self._appended(binding.var, *value.args)
        elif is_kernel(value):
            yield relax.VarBinding(binding.var, self._counting(value))
        else:
            yield binding

    def _appended(self, var: Any, cache: Any, new: Any, at: Any) -> Iterator[Any]:
        kernel = self._builder.add_func(_kernel(new, at, cache), "append")
        call = relax.Call(kernel, [new, at, cache], ret_ty=relax.TupleType([]))
        yield relax.VarBinding(relax.Var("_", relax.TupleType([])), call)
        yield relax.VarBinding(var, cache)
        axis = _axis(new, cache)
        self._rows[var] = Rows(axis, shape_of(new.ty)[axis], at)

    def _counting(self, call: relax.Call) -> relax.Call:
        """A kernel's call with the number of rows that count of the cache that it reads."""
        found = [place for place, one in enumerate(call.args) if one in self._rows]
        if len(found) != 1:
            return call
        rows, key = self._rows[call.args[found[0]]], (call.op.name_hint, found[0])
        if key not in self._made:
            func = self._builder.get()[call.op]
            made = counting(func, found[0], rows, _starts(rows.at))
            name = f"{call.op.name_hint}{AT}rows"
            self._made[key] = made and self._builder.add_func(made, name)
        if self._made[key] is None:
            return call
        return relax.Call(self._made[key], [rows.at, *call.args], ret_ty=relax.TupleType([]))


def _axis(new: Any, cache: Any) -> int:
    """The axis of rows: the one along which a cache is longer than the new rows."""
    room = shape_of(cache.ty)
    return next(k for k, n in enumerate(shape_of(new.ty)) if n != room[k])


def _starts(at: Any) -> Any:
    return tirx.decl_buffer(list(map(_long, shape_of(at.ty))), "int64", "at")


def _kernel(new: Any, at: Any, cache: Any) -> tirx.PrimFunc:
    """A function that copies new rows behind each sample's rows, within the cache's room."""
    shape, room, dtype = shape_of(new.ty), shape_of(cache.ty), str(new.ty.dtype)
    axis = _axis(new, cache)
    source = tvm.te.placeholder(list(map(_long, shape)), dtype, "new")
    made = tvm.te.compute(source.shape, lambda *place: source[place], "append")
    copy = tvm.te.create_prim_func([source, made])
    starts = _starts(at)
    whole = tirx.decl_buffer(list(map(_long, room)), dtype, "cache")
    own, last = copy.params[1], _long(room[axis] - shape[axis])

    def store(one: Any) -> Any:
        if not one.buffer.same_as(own):
            return one
        place = list(one.indices)
        start = tirx.BufferLoad(starts, [place[0]])
        place[axis] = place[axis] + tirx.Max(tirx.Min(start, last), _long(0))
        return tirx.BufferStore(whole, one.value, place)

    def region(one: Any) -> Any:
        if not one.source.same_as(own):
            return one
        return tirx.BufferRegion(
            whole, [tvm.ir.Range.from_min_extent(_long(0), _long(n)) for n in room]
        )

    body = structural_map(copy.body, [(tirx.BufferStore, store), (tvm.ir.TensorRegion, region)])
    made = tirx.PrimFunc([copy.params[0], starts, whole], body, copy.ret_type, copy.attrs)
    return made.without_attr("global_symbol").with_attr("tirx.noalias", True)


def _long(number: int) -> Any:
    return tirx.const(number, "int64")
