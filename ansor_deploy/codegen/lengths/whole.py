"""Walk the kernels of a whole model from the last to the first, and shorten their loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from math import prod
from typing import Any

from ..._tvm import bindings, collect, op_name, relax, shape_of, tirx, tvm
from ...model.operators.counted_places import READS_BELOW
from ...model.relax.importer import COUNTED
from ..blocks import Leaf, leaves
from ..kernels.signature import written
from ..memory.callers_memory import AT
from ..memory.in_place import is_allocation, is_kernel
from .bound import Bound, Needed, joined
from .cut import cut
from .images import Images, dense, images
from .needs import Needs
from .taps import asking_taps
from .tensors import Tensors


def lengths() -> Any:
    """The pass that shortens loops, between what joins parts and the plan of memory."""
    return tvm.transform.module_pass(_changed, opt_level=0, name="ansor.Lengths")


def _changed(mod: Any, _context: Any) -> Any:
    mains = {gv: f for gv, f in mod.functions.items() if isinstance(f, relax.Function)}
    if not any(COUNTED in (main.attrs or {}) for main in mains.values()):
        return mod
    builder = relax.BlockBuilder(mod)
    made = {gv: _Main(main, builder).rewritten() for gv, main in mains.items()}
    return tvm.IRModule({**dict(builder.get().functions.items()), **made})


class _Main:
    """A function of a model. _needed: the part of each tensor that its readers so far need."""

    def __init__(self, main: relax.Function, builder: relax.BlockBuilder) -> None:
        self._main, self._builder, self._mod = main, builder, builder.get()
        self._bindings = _numbers_first(main, self._mod)
        self._tensors = Tensors(main, self._bindings, self._mod)
        self._needed: dict[Any, Needed] = {}
        for one in main.params:
            self._want(one, {})
        for var, needed in _results(main, self._bindings, self._tensors):
            self._want(var, needed)

    def rewritten(self) -> relax.Function:
        """The function with kernels that skip what is not needed."""
        main, every = self._main, self._bindings
        found = [self._gone_back(at, *_pair(every[at])) for at in reversed(range(len(every)))]
        dense_ones = images(main, every, self._tensors, self._needed, self._mod)
        made = [
            relax.VarBinding(every[~back].var, self._cut(every[~back].value, needs, dense_ones))
            for back, needs in enumerate(found)
        ]
        body = relax.SeqExpr([relax.BindingBlock(made[::-1])], main.body.body)
        whole = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)
        return whole.without_attr(COUNTED)

    def _want(self, var: Any, needed: Needed) -> None:
        tensor = self._tensors.tensor(var)
        self._needed[tensor] = joined(self._needed.get(tensor), needed)

    def _gone_back(self, at: int, var: Any, value: Any) -> Needs | None:
        """The needs of a kernel that can be cut. What a binding needs of other tensors is noted."""
        if isinstance(value, relax.Var) or is_allocation(value):
            return None
        if self._tensors.is_plain(value):
            return self._kernel(at, value)
        if is_kernel(value) and READS_BELOW in (self._mod[value.op].attrs or {}):
            self._declared(value)
        elif not isinstance(value, relax.Tuple):  # the needed parts of results are known
            needed = self._needed.get(var, {})
            for one in collect(value, relax.Var):
                self._want(one, dict(_needed_of(one, var, value, needed)))
        return None

    def _kernel(self, at: int, call: Any) -> Needs:
        func, made = self._mod[call.op], written(self._mod[call.op])
        wanted = {func.params[k]: self._known_at(at, call.args[k]) for k in made}
        needs = Needs(func, self._tensors.within(call), wanted)
        for k, one in enumerate(call.args):
            if isinstance(one, relax.Var) and k not in made and func.params[k] in needs.of:
                self._want(one, needs.of[func.params[k]])
            elif isinstance(one, relax.Var) and func.params[k] in needs.read:
                self._want(one, {})  # an argument that the kernel changes in place
        return needs

    def _declared(self, call: Any) -> None:
        """Note what a kernel needs that says so itself."""
        func = self._mod[call.op]
        parts: dict[int, dict[tuple[int, int], Bound]] = defaultdict(dict)
        for place, axis, number in func.attrs[READS_BELOW]:
            bound = self._tensors.number(call.args[int(number)])
            parts[int(place)][int(axis), 0] = bound
        for place, one in enumerate(call.args):
            if isinstance(one, relax.Var) and place not in written(func):
                self._want(one, parts[place])

    def _known_at(self, at: int, var: Any) -> Needed:
        """The needed part of a tensor, by numbers that are computed before a binding."""
        made_at = self._tensors.made_at
        needed = self._needed.get(self._tensors.tensor(var), {})
        return {
            axis: bound
            for axis, bound in needed.items()
            if all(made_at.get(number, at) < at for number in bound.numbers)
        }

    def _cut(self, call: Any, needs: Needs | None, dense_ones: Images) -> Any:
        """The new value of a binding. needs: those of the kernel that it calls; None for others."""
        if needs is None:
            return call
        func = self._mod[call.op]
        pairs = zip(func.params, map(self._tensors.tensor, call.args), strict=True)
        within = {buffer: dense_ones[one] for buffer, one in pairs if one in dense_ones}
        # In the bindings' order, not in that of a set of objects: equal models give equal bytes.
        used = self._tensors.in_order(_numbers(needs, within))
        buffers = [tirx.decl_buffer([], "int64", f"count_{k}") for k in range(len(used))]
        loads = [tirx.BufferLoad(buffer, []) for buffer in buffers]
        numbers = dict(zip(used, enumerate(loads), strict=True))
        body, found = dense(*_asking(func, needs), within, numbers)
        body = cut(body, found, needs.limits, numbers) or body
        if body.same_as(func.body):
            return call
        made = tirx.PrimFunc([*buffers, *func.params], body, func.ret_type, func.attrs)
        name = self._builder.add_func(made, f"{call.op.name_hint}{AT}counted")
        return relax.Call(name, [*used, *call.args], ret_ty=relax.TupleType([]))


def _asking(func: tirx.PrimFunc, needs: Needs) -> tuple[Any, Sequence[Leaf]]:
    """A kernel's body that leaves out taps of images that end where a run says, and its leaves."""
    body = asking_taps(func)
    return (body, needs.leaves) if body.same_as(func.body) else (body, list(leaves(body)))


def _numbers(needs: Needs, within: Images) -> Iterator[Any]:
    """The numbers on which the loops and the images of a kernel depend."""
    limits = (bound for some in needs.limits for bound in some.values())
    sizes = (bound for one in within.values() for bound in one.places.bounds)
    for bound in chain(limits, sizes):
        yield from bound.numbers


def _pair(binding: Any) -> tuple[Any, Any]:
    return binding.var, binding.value


def _numbers_first(main: relax.Function, mod: tvm.IRModule) -> list[Any]:
    """The bindings, with those that compute numbers from numbers alone moved to the front.

    So these numbers are known wherever the sizes of other tensors depend on them.
    """
    numbers = {one for one in main.params if _is_number(one)}
    first, others = [], []
    for binding in bindings(main):
        var, value = binding.var, binding.value
        used = collect(value, relax.Var)
        made = is_allocation(value) and _is_number(var)
        if made or (used and numbers.issuperset(used) and not isinstance(value, relax.Tuple)):
            numbers.add(var)
            first.append(binding)
            continue
        others.append(binding)
        if is_kernel(value):  # its results depend on other tensors
            numbers.difference_update(value.args[place] for place in written(mod[value.op]))
    return [*first, *others]


def _is_number(var: Any) -> bool:
    kind = var.ty
    tensor = isinstance(kind, relax.TensorType) and str(kind.dtype) == "int64"
    return tensor and prod(shape_of(kind)) == 1


def _results(
    main: relax.Function, every: Sequence[Any], tensors: Tensors
) -> list[tuple[Any, Needed]]:
    """The tensors that a function returns, with the part of each that counts."""
    tuples = {one.var: one.value for one in every if isinstance(one.value, relax.Tuple)}
    result = tensors.tensor(main.body.body)
    fields = list(tuples[result].fields) if result in tuples else [main.body.body]
    counted: dict[int, dict[tuple[int, int], Bound]] = defaultdict(dict)
    for output, axis, at in (main.attrs or {}).get(COUNTED, ()):
        counted[int(output)][int(axis), 0] = tensors.number(fields[int(at)])
    found: list[tuple[Any, Needed]] = [(one, counted.get(at, {})) for at, one in enumerate(fields)]
    others = [one for var in tuples for one in tuples[var].fields if not var.same_as(result)]
    found += [(one, {}) for one in others]
    return [(one, needed) for one, needed in found if isinstance(one, relax.Var)]


def _needed_of(
    one: Any, var: Any, value: Any, needed: Needed
) -> Iterator[tuple[tuple[int, int], Bound]]:
    """The part that a variable needs of a tensor that its value reads: of a reshape's, by axes."""
    if op_name(value) != "relax.reshape":
        return
    made, given = shape_of(var.ty), shape_of(one.ty)
    places = {prod(given[:k]): k for k, n in enumerate(given) if n > 1}
    for (axis, modulo), bound in needed.items():
        at = places.get(prod(made[:axis]))
        if at is None or made[axis] == 1:
            continue
        own, new = given[at], made[axis]  # with as many elements in front of them
        if own == new:
            yield (at, modulo), bound
        elif not modulo and new % own == 0:
            yield (at, 0), bound.divided(new // own)
        elif not modulo and own % new == 0:
            yield (at, 0), bound.scaled(own // new, 0)
