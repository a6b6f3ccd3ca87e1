"""Concatenations without a kernel of their own: their parts are written in place, where that pays.

    c = concatenate(f(x), g(y)) ; z = h(c)         f, g: convolutions; h: convolutions
    -->
    c = concatenation(f(x), g(y)) ; z = h(c)       f and g write to c, as
                                                   `codegen/memory/in_place.py` says

TVM fuses a concatenation with elementwise functions before and behind it, which saves the memory
traffic between them. Writing in place saves the copy of those parts that other functions make, or
that have other readers. It pays where these have more elements than the parts that would be fused.
The rotated halves of a rotary embedding stay in one kernel. Each place takes a kernel of its own,
which is worth its compilation unless parts are tiny, such as the steps of a recurrence.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..._tvm import bindings, collect, op_name, relax, shape_of, tvm
from .dataflow import Renaming, rewritten
from .patterns import BROADCAST, INJECTIVE, WITH_EPILOGUE

# The name of the packed function that stands for a concatenation until its parts have places.
OPERATOR = "ansor.concatenation"
# Attribute of a legalised concatenation.
_MARK = "ansor.concatenates"
# With at least this many elements, copying a part takes longer than another kernel is worth
# compiling.
_LEAST = 1 << 10


def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A concatenation as the PrimFunc that TVM makes, with a mark to recognise it by."""
    if not isinstance(call.args[0], relax.Tuple) or call.attrs.axis is None:
        return call.op.get_attr("FLegalize")(builder, call)
    fields, axis = list(call.args[0].fields), call.attrs.axis
    given = {"primfunc_name_hint": "concatenate", "primfunc_attrs": {_MARK: 1}}
    return builder.call_te(
        tvm.topi.concatenate, fields, None if axis is None else int(axis), **given
    )


def with_parts_in_place(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module, with each concatenation a call of `OPERATOR` where that pays."""
    made = rewritten(mod, lambda builder: _InPlace(builder, mod))
    functions = {gv: f.without_attr(_MARK) for gv, f in made.functions.items()}
    return tvm.IRModule(functions)


class _InPlace(Renaming):
    def __init__(self, builder: relax.BlockBuilder, mod: tvm.IRModule) -> None:
        super().__init__(builder)
        self._mod = mod
        self._uses = _Uses(mod)

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, or a concatenation whose parts are written in place."""
        if not self._uses.pays(var, value):
            super().bind(var, value)
            return
        parts = [self.plain(part) for part in value.args[1].fields]
        self.new[var] = self.emit(relax.call_pure_packed(OPERATOR, *parts, ty_args=var.ty))


class _Uses:
    """How tensors of a module's `main` are made, as TVM's patterns, and which tensors need them.

    A pattern is None for a tensor that no kernel makes. A reader is None for the caller of `main`.
    """

    def __init__(self, mod: tvm.IRModule) -> None:
        self._mod = mod
        self._makers: dict[Any, int | None] = {}
        self._operands: dict[Any, list[Any]] = {}
        self._readers: dict[Any, list[Any]] = defaultdict(list)
        main = mod["main"]
        for binding in bindings(main):
            value = binding.value
            self._makers[binding.var] = self._pattern(value)
            self._operands[binding.var] = operands = collect(value, relax.Var)
            for operand in operands:
                self._readers[operand].append(binding.var)
        for result in collect(main.body.body, relax.Var):
            self._readers[result].append(None)

    def pays(self, var: Any, value: Any) -> bool:
        """Whether a value is a concatenation whose parts should be written in place."""
        if not self._is_concatenation(value):
            return False
        parts = list(value.args[1].fields)
        joins = self._is_fused(self._readers[var])
        fixed = [part for part in parts if self._is_fixed(part) and parts.count(part) == 1]
        gained = sum(map(_elements, fixed))
        lost = sum(map(_elements, parts)) - gained if joins else 0
        return gained > lost and gained >= _LEAST * len(parts)

    def _is_fused(self, readers: list[Any]) -> bool:
        """Whether the only reader of a value is a function that can be fused with its maker."""
        pattern = self._makers.get(readers[0]) if len(readers) == 1 else None
        return pattern is not None and pattern <= INJECTIVE

    def _is_fixed(self, part: Any) -> bool:
        """Whether a kernel writes a part to memory in any case, and only kernels read it."""
        pattern, readers = self._makers.get(part), self._readers[part]
        if pattern is None or any(self._makers.get(reader) is None for reader in readers):
            return False
        return pattern > INJECTIVE or len(readers) > 1 or self._is_epilogue(part)

    def _is_epilogue(self, var: Any) -> bool:
        """Whether a value is computed in the kernel of a contraction.

        What is computed on the way may have several readers if all of them are on it, too: a swish
        multiplies a convolution's result by a sigmoid of it.
        """
        on_the_way = self._before(var, lambda operand: True)
        alone = self._before(var, lambda operand: on_the_way.issuperset(self._readers[operand]))
        return any(self._makers.get(one) == WITH_EPILOGUE for one in alone)

    def _before(self, var: Any, chosen: Callable[[Any], bool]) -> set[Any]:
        """A value and the operands of as many elements, found through what can be an epilogue."""
        found, ahead = {var}, [var]
        while ahead:
            one = ahead.pop()
            pattern = self._makers.get(one)
            if pattern is not None and pattern <= BROADCAST:
                same = {o for o in self._operands[one] if _elements(o) == _elements(var)}
                new = {operand for operand in same - found if chosen(operand)}
                found |= new
                ahead += new
        return found

    def _pattern(self, value: Any) -> int | None:
        func = self._callee(value)
        return None if func is None else int(func.attrs.get("op_pattern", INJECTIVE + 1))

    def _is_concatenation(self, value: Any) -> bool:
        func = self._callee(value)
        return func is not None and _MARK in func.attrs

    def _callee(self, value: Any) -> Any:
        """The function that a value calls; None for other values, and for a view."""
        if op_name(value) != "relax.call_tir":
            return None
        func = self._mod[value.args[0]]
        return None if relax.analysis.has_reshape_pattern(func) else func


def _elements(var: Any) -> int:
    return math.prod(shape_of(var.ty))
