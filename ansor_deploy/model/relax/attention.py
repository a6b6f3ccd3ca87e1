"""Attention as one task: two products and the softmax between, whose scores stay in the cache.

    s = matmul(q, k) ; t = f(s) ; p = softmax(t) ; y = matmul(p, v)
    -->
    y = matmul_f_softmax_matmul(q, k, .., v)        one function, f: masks, scales and the like

TVM's patterns make three kernels of this, and the scores of all heads go to memory and back between
them; the more tokens, the more scores. The rule `attention` computes some rows at a time. Nothing
outside may read the intermediate tensors.
"""

from collections import defaultdict
from typing import Any

from ..._tvm import bindings, collect, op_name, relax, tvm
from ...space.attention import attention_pays
from ...target import Target
from .dataflow import Renaming, rewritten
from .extract import readable
from .patterns import BROADCAST, WITH_EPILOGUE


def with_attention(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The legalised module, with each attention as one function where that pays."""
    if target.kind != "llvm":
        return mod
    return rewritten(mod, lambda builder: _Grouping(builder, _Groups(mod, target)))


class _Grouping(Renaming):
    def __init__(self, builder: relax.BlockBuilder, groups: "_Groups") -> None:
        super().__init__(builder)
        self._builder, self._groups = builder, groups

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, or the call of a group; skip values within a group."""
        if var in self._groups.inside:
            return
        group = self._groups.of.get(var)
        if group is None:
            super().bind(var, value)
            return
        operands = _operands(group)
        made = self._builder.add_func(_function(group, operands), _name(group))
        self.new[var] = self.emit(relax.Call(made, [self.plain(one) for one in operands]))


class _Groups:
    """The attentions of a module's `main`, with the elementwise functions of their results.

    of: for the last binding of each attention, all its bindings in order. inside: the variables of
    its other bindings.
    """

    def __init__(self, mod: tvm.IRModule, target: Target) -> None:
        main = mod["main"]
        every = bindings(main)
        self._mod, self._target = mod, target
        self._readers: dict[Any, list[Any]] = defaultdict(list)
        for one in every:
            for var in collect(one.value, relax.Var):
                self._readers[var].append(one.var)
        for var in collect(main.body.body, relax.Var):
            self._readers[var].append(None)
        self.of: dict[Any, list[Any]] = {}
        # For each variable: the bindings from a product to it, all of them functions of the
        # product.
        self._following: dict[Any, list[Any]] = {}
        for one in every:
            if self._function(one) is not None:
                self._visit(one, list(one.value.args[1].fields))
        self.inside = {one.var for group in self.of.values() for one in group[:-1]}

    def _visit(self, binding: Any, operands: list[Any]) -> None:
        """Add a binding to the group that it belongs to."""
        if self._is(binding, "matmul"):
            group = [*self._following.get(operands[0], []), binding]
            known = self.of if self._is_attention(group) else self._following
            known[binding.var] = group if known is self.of else [binding]
            return
        if not self._is(binding, "softmax") and not self._is_elementwise(binding):
            return
        same = [one for one in operands if _shape(one) == _shape(binding.var)]
        ended = [one for one in same if one in self.of and self._readers[one] == [binding.var]]
        before = [self._following[one] for one in same if one in self._following]
        if ended and self._is_elementwise(binding):
            self.of[binding.var] = [*self.of.pop(ended[0]), binding]
        elif before and all(one is before[0] for one in before):
            before[0].append(binding)
            self._following[binding.var] = before[0]

    def _is_attention(self, group: list[Any]) -> bool:
        """Whether it is two products with a softmax of rows between, and one task pays."""
        if len(group) < 3:
            return False
        first, *between, last = group
        softmax = [one for one in between if self._is(one, "softmax")]
        own = {one.var for one in group}
        alone = all(reader in own for one in group[:-1] for reader in self._readers[one.var])
        shape, rows = _shape(first.var), _shape(last.var)[:-1]
        fits = len(softmax) == 1 and alone and rows == shape[:-1] and self._is_along_rows(*softmax)
        return fits and attention_pays(shape, self._target)

    def _is_along_rows(self, softmax: Any) -> bool:
        """Whether a softmax goes along the last axis."""
        func = self._function(softmax)
        found = collect(func.body, tvm.s_tir.SBlock) if func is not None else []
        axes = [int(one.annotations["axis"]) for one in found if "axis" in (one.annotations or {})]
        return axes == [len(_shape(softmax.var)) - 1]

    def _is_elementwise(self, binding: Any) -> bool:
        attrs = getattr(self._function(binding), "attrs", None) or {}
        return int(attrs.get("op_pattern", WITH_EPILOGUE)) <= BROADCAST

    def _is(self, binding: Any, operator: str) -> bool:
        """Whether a binding calls a function made from this operator."""
        func = self._function(binding)
        return func is not None and readable(binding.value.args[0].name_hint) == operator

    def _function(self, binding: Any) -> Any | None:
        value = binding.value
        return self._mod[value.args[0]] if op_name(value) == "relax.call_tir" else None


def _operands(group: list[Any]) -> list[Any]:
    """The operands that a group reads from outside, each once."""
    own = {one.var for one in group}
    found = [field for one in group for field in one.value.args[1].fields if field not in own]
    return [one for at, one in enumerate(found) if not any(one.same_as(o) for o in found[:at])]


def _function(group: list[Any], operands: list[Any]) -> relax.Function:
    """A group as a function of its operands."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"p{at}", one.ty) for at, one in enumerate(operands)]
    known = list(zip(operands, params, strict=True))

    def inner(field: Any) -> Any:
        return next(new for old, new in known if old.same_as(field))

    with builder.function("main", params, attrs={"Primitive": 1}, private=True):
        with builder.dataflow():
            for one in group:
                call = one.value
                args = [call.args[0], relax.Tuple([inner(f) for f in call.args[1].fields])]
                new = relax.Call(call.op, [*args, *call.args[2:]], call.attrs, call.ty_args)
                emit = builder.emit_output if one is group[-1] else builder.emit
                known.append((one.var, emit(new)))
        builder.emit_func_output(known[-1][1])
    return builder.get()["main"]


def _shape(expr: Any) -> list[int]:
    """The extents of a tensor; none for a tuple."""
    return [int(extent) for extent in getattr(expr.ty, "shape", ())]


def _name(group: list[Any]) -> str:
    return "_".join(["fused", *(readable(one.value.args[0].name_hint) for one in group)])
