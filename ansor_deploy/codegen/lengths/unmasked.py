"""Let what reads a masked tensor ask how much of it counts, instead of storing what is masked.

    b = where(y < n, a, 0) ; p[y] = b[y - 1] if 1 <= y < 33 else 0
    -->
    p[y] = (a[y - 1] if y - 1 < n else 0) if 1 <= y < 33 else 0

Convolutions and poolings read images with a margin of zeros, which a mask continues where an image
ends before its room. So no kernel copies the image for that, and nobody computes the margin: tiles
of Winograd's convolution would need 13 x 13 pixels of 10 x 10. Where a block that adds up terms
reads the tensor, it would ask in each step, so there the mask stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from ..._tvm import (
    bindings,
    collect,
    conjuncts,
    relax,
    structural_equal,
    structural_map,
    sym,
    tirx,
    tvm,
)
from ...model.relax.importer import COUNTED
from ..blocks import leaves
from ..kernels.signature import written
from ..memory.callers_memory import AT
from ..memory.in_place import is_allocation
from .asked import is_choice, parts
from .masks import Masked, Masks
from .tensors import Tensors


def unmasked() -> Any:
    """The pass that does so, between `CallTIRRewrite` and what joins parts of concatenations."""
    return tvm.transform.module_pass(_changed, opt_level=0, name="ansor.Unmasked")


def _changed(mod: Any, _context: Any) -> Any:
    mains = {gv: f for gv, f in mod.functions.items() if isinstance(f, relax.Function)}
    counted = {gv: main for gv, main in mains.items() if COUNTED in (main.attrs or {})}
    if not counted:
        return mod
    builder = relax.BlockBuilder(mod)
    made = {gv: _rewritten(_Graph(main, builder), main) for gv, main in counted.items()}
    return tvm.IRModule({**dict(builder.get().functions.items()), **made})


def _rewritten(graph: _Graph, main: relax.Function) -> relax.Function:
    if not (found := graph.only_copied()):
        return main
    made = [new for at in range(len(graph.every)) for new in graph.written(at, found)]
    body = relax.SeqExpr([relax.BindingBlock(graph.without_masks(made))], main.body.body)
    return relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)


class _Graph:
    """The tensors of a function: what masks them, and what reads and writes them."""

    def __init__(self, main: relax.Function, builder: relax.BlockBuilder) -> None:
        self.every = bindings(main)
        self._builder, self._mod = builder, builder.get()
        self._tensors = Tensors(main, self.every, self._mod)
        self._masks = Masks(self._tensors, self._mod)
        self._uses: dict[Any, list[tuple[int, int]]] = defaultdict(list)  # call and argument
        self._writers: Counter[Any] = Counter()
        self._elsewhere = self._tensors.named(main.body.body)
        for at, binding in enumerate(self.every):
            self._note(at, binding.value)

    def only_copied(self) -> dict[Any, Masked]:
        """The masked tensors that only blocks read which copy what they read."""
        every = self._masks.masked.items()
        return {tensor: one for tensor, one in every if self._is_only_copied(tensor, one)}

    def written(self, at: int, found: Mapping[Any, Masked]) -> Iterator[Any]:
        """The bindings that replace a binding; none for a tensor that is a copy of another."""
        var, value = self.every[at].var, self.every[at].value
        made = next((one for one in found.values() if one.at == at), None)
        if isinstance(value, relax.Var) or is_allocation(value):
            made = found.get(self._tensors.tensor(var))
            value = None if made and made.source is not None else value
        elif made and made.source is not None:
            value = None
        elif self._tensors.is_plain(value):
            read = {k: found[one] for k, one in self._read(value) if one in found}
            value = self._asking(value, read, made) if read or made else value
        if value is not None:
            yield relax.VarBinding(var, value)

    def without_masks(self, every: Sequence[Any]) -> list[Any]:
        """Bindings without those of masks that nothing reads any more."""
        values = (one.value for one in every if not isinstance(one.value, relax.Var))
        named = Counter(one for value in values for one in self._tensors.named(value))
        unread = {one for one in self._masks.numbers if named[one] == 1}  # by what makes it
        return [
            one
            for one in every
            if not unread & {*self._tensors.named(one.value), *self._tensors.named(one.var)}
        ]

    def _note(self, at: int, value: Any) -> None:
        if isinstance(value, relax.Var) or is_allocation(value):
            return
        if not self._tensors.is_plain(value):
            self._elsewhere |= self._tensors.named(value)
            return
        for k, one in self._read(value):
            self._uses[one].append((at, k))
        places = written(self._mod[value.op])
        self._writers.update(self._tensors.tensor(value.args[k]) for k in places)
        self._masks.note(at, value)

    def _read(self, call: Any) -> Iterator[tuple[int, Any]]:
        """The arguments that a kernel only reads: their positions, and the tensors."""
        places = written(self._mod[call.op])
        for k, one in enumerate(call.args):
            if isinstance(one, relax.Var) and k not in places:
                yield k, self._tensors.tensor(one)

    def _is_only_copied(self, tensor: Any, made: Masked) -> bool:
        alone = self._writers[tensor] == 1 and self._writers[made.source] <= 1
        return (
            alone and tensor not in self._elsewhere and all(map(self._copies, self._uses[tensor]))
        )

    def _copies(self, use: tuple[int, int]) -> bool:
        """Whether a call reads an argument only in blocks that compute each element once."""
        at, place = use
        func = self._mod[self.every[at].value.op]
        buffer, every = func.params[place], (leaf.block for leaf in leaves(func.body))
        loads = ((one, collect(one, tvm.ir.TensorLoad)) for one in every)
        reading = (one for one, some in loads if any(load.source.same_as(buffer) for load in some))
        axes = (axis for one in reading for axis in one.iter_vars)
        return all(axis.iter_type == tirx.IterVar.DataPar for axis in axes)

    def _asking(self, call: Any, read: Mapping[int, Masked], made: Masked | None) -> Any:
        """A call that asks how much counts of what it reads. made: what it need not mask."""
        func, args = self._mod[call.op], list(call.args)
        every = (number for one in read.values() for number in one.numbers.values())
        numbers = list(dict.fromkeys(number.tensor for number in every))
        buffers = [tirx.decl_buffer([], "int64", f"end_{k}") for k in range(len(numbers))]
        ends = dict(zip(numbers, buffers, strict=True))
        for place, one in read.items():
            args[place] = args[place] if one.source is None else one.source
        known = {func.params[place]: one for place, one in read.items()}
        load = lambda one: _up_to(one, known, ends)  # noqa: E731
        body = structural_map(func.body, (tvm.ir.TensorLoad, load))
        body = structural_map(body, (tvm.ir.Call, _together))
        if made:
            body = _as_it_is(body, func.params[written(func)[0]])
        new = tirx.PrimFunc([*buffers, *func.params], body, func.ret_type, func.attrs)
        name = self._builder.add_func(new, f"{call.op.name_hint}{AT}unmasked")
        return relax.Call(name, [*numbers, *args], ret_ty=relax.TupleType([]))


def _up_to(load: Any, known: Mapping[Any, Masked], ends: Mapping[Any, Any]) -> Any:
    """A load of a masked tensor that asks whether the element counts; others as they are."""
    if (masked := known.get(load.source)) is None:
        return load
    numbers = (
        (axis, tirx.BufferLoad(ends[number.tensor], []) * number.times)
        for axis, number in masked.numbers.items()
    )
    counts = reduce(tirx.And, (load.indices[axis] < number for axis, number in numbers))
    return tirx.Select(counts, load, tirx.const(masked.value, str(load.ty.dtype)))


def _together(choice: Any) -> Any:
    """A choice of padding that asks at once where a tensor's room ends and how much counts.

    What counts is within the room.
    """
    condition, inner, no = parts(choice) if is_choice(choice) else (None, None, None)
    if not isinstance(inner, tirx.Select) or not isinstance(inner.true_value, tvm.ir.TensorLoad):
        return choice
    load, counts = inner.true_value, list(conjuncts(inner.condition))
    if not structural_equal(inner.false_value, no):
        return choice
    asked = [one.a for one in counts if isinstance(one, tirx.LT)]
    pairs = zip(load.indices, load.source.shape, strict=True)
    left = [room - at for at, room in pairs if any(at.same_as(one) for one in asked)]
    others = [one for one in conjuncts(condition) if not _is_within(one, left)]
    return tirx.if_then_else(reduce(tirx.And, [*others, *counts]), load, no)


def _is_within(condition: Any, left: Sequence[Any]) -> bool:
    """Whether a condition asks only that one of these differences is positive."""
    analyzer = sym.Analyzer()
    below = isinstance(condition, tirx.LT)
    return below and any(analyzer.can_prove_equal(condition.b - condition.a, one) for one in left)


def _as_it_is(body: Any, buffer: Any) -> Any:
    """A kernel's body that stores a tensor without its mask."""

    def store(one: Any) -> Any:
        if not one.buffer.same_as(buffer):
            return one
        return tirx.BufferStore(one.buffer, parts(one.value)[1], one.indices)

    return structural_map(body, (tirx.BufferStore, store))
