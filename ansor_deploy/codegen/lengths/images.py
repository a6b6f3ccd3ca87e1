"""Store the pixels of an image that count without gaps, where a run decides lines and columns.

    y[i, j] = f(x[i, j])                        h, w of 640, 640 count
    -->
    y[0, p] = f(x[0, p])        p = i w + j

The first line stands for all of them, as in memory. As p / 640 and p % 640, with all that p is made
of, compilers would take minutes for kernels of large images.

So what counts is as dense in memory as in a library for that size alone, and tiles of packed rows
(`packed.py`) read and write each row at its own number. Only the order of elements in tensors
between kernels changes. Tensors that something else than a kernel uses keep their order, as do a
library's inputs and results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..._tvm import collect, relax, shape_of, structural_map, tirx, tvm, uses
from ..blocks import Leaf, leaves, outside
from ..memory.in_place import is_allocation
from .asked import part_of
from .bound import Needed
from .places import Numbers, Places
from .tensors import Tensors


class Image(NamedTuple):
    """A tensor of dense pixels. axis: that of its lines; columns follow. places: what counts."""

    axis: int
    places: Places

    def moved(self, indices: Sequence[Any], numbers: Numbers, *, stored: bool) -> list[Any]:
        """The indices of an element in this order. Pixels that do not count are stored last."""
        line, column = indices[self.axis : self.axis + 2]
        slot = self.places.slot(line, column, numbers, stored=stored)
        parts = tirx.const(0, str(slot.ty.dtype)), slot
        return [*indices[: self.axis], *parts, *indices[self.axis + 2 :]]


Images = Mapping[Any, Image]  # by tensors, or by the buffers of a kernel


def dense(
    body: Any, found: Sequence[Leaf], images: Images, numbers: Numbers
) -> tuple[Any, Sequence[Leaf]]:
    """A kernel's body whose images have this order, and its leaves."""
    if not images:
        return body, found

    def load(one: Any) -> Any:
        image = images.get(one.source)
        if image is None:
            return one
        return tirx.BufferLoad(one.source, image.moved(one.indices, numbers, stored=False))

    def store(one: Any) -> Any:
        image = images.get(one.buffer)
        if image is None:
            return one
        indices = image.moved(one.indices, numbers, stored=True)
        return tirx.BufferStore(one.buffer, one.value, indices)

    changed = structural_map(body, [(tvm.ir.TensorLoad, load), (tirx.BufferStore, store)])
    return changed, list(leaves(changed))


def images(
    main: relax.Function,
    every: Sequence[Any],
    tensors: Tensors,
    needed: Mapping[Any, Needed],
    mod: tvm.IRModule,
) -> Images:
    """The tensors of a function whose pixels can be dense. every: its bindings."""
    graph = _Graph(main, every, tensors, mod)
    found = {one: graph.image(one, needed.get(one, {})) for one in graph.own}
    return {tensor: image for tensor, image in found.items() if image is not None}


class _Graph:
    """The tensors of a function, and the kernels that use them. own: those that only kernels use.

    _used: by tensor, these kernels, each with its buffer. _first: the first one's position.
    """

    def __init__(
        self, main: relax.Function, every: Sequence[Any], tensors: Tensors, mod: tvm.IRModule
    ) -> None:
        self._tensors, self._mod = tensors, mod
        self._used: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
        self._first: dict[Any, int] = {}
        allocated = [one.var for one in every if is_allocation(one.value)]
        elsewhere = self._tensors.named(main.body.body)
        for at, binding in enumerate(every):
            elsewhere |= self._noted(at, binding.value)
        self.own = [one for one in allocated if one in self._first and one not in elsewhere]

    def image(self, tensor: Any, needed: Needed) -> Image | None:
        """A tensor as an image; None where it is none, or a kernel has vectors of its pixels."""
        shape = shape_of(tensor.ty)
        open_ = [k for k in range(len(shape) - 2) if (k + 1, 0) in needed]
        used = self._used[tensor]
        pairs = [k for k in open_ if (k, 0) in needed or any(_is_fused(*one, k) for one in used)]
        if not pairs or any(_is_along(*one, pairs[-1]) for one in used):
            return None
        axis = pairs[-1]
        lines, columns = needed.get((axis, 0)), needed[axis + 1, 0]
        places = Places(shape[axis], shape[axis + 1], lines, columns)
        numbers = [number for bound in places.bounds for number in bound.numbers]
        known = all(self._tensors.made_at[one] < self._first[tensor] for one in numbers)
        return Image(axis, places) if known else None

    def _noted(self, at: int, value: Any) -> set[Any]:
        """The tensors that something else than a kernel uses; what kernels use is noted."""
        if isinstance(value, relax.Var):
            return set()
        if not self._tensors.is_plain(value):
            return self._tensors.named(value)
        func = self._mod[value.op]
        for buffer, one in zip(func.params, value.args, strict=True):
            if isinstance(one, relax.Var):
                tensor = self._tensors.tensor(one)
                self._first.setdefault(tensor, at)
                self._used[tensor].append((func, buffer))
        return set()


def _is_along(func: Any, buffer: Any, axis: int) -> bool:
    """Whether vectors of a kernel run along the lines or columns of a buffer."""
    return any(
        uses(outside(index, leaf.realize), loop.loop_var)
        for leaf in leaves(func.body)
        for loop in leaf.loops
        if loop.kind == tirx.ForKind.VECTORIZED
        for indices in _accesses(leaf, buffer)
        for index in indices[axis : axis + 2]
    )


def _is_fused(func: Any, buffer: Any, axis: int) -> bool:
    """Whether a kernel goes over lines and columns of a buffer together, as over rows of a tile."""
    every = (indices for leaf in leaves(func.body) for indices in _accesses(leaf, buffer))
    parts = ((part_of(one[axis]), part_of(one[axis + 1])) for one in every)
    return any(line and column and line[0].same_as(column[0]) for line, column in parts)


def _accesses(leaf: Leaf, buffer: Any) -> Iterator[Sequence[Any]]:
    """The indices of each access of a block to a buffer."""
    for one in collect(leaf.block, tvm.ir.TensorLoad, tirx.BufferStore):
        own = one.buffer if isinstance(one, tirx.BufferStore) else one.source
        if own.same_as(buffer):
            yield one.indices
