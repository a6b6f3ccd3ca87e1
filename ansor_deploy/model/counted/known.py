"""What is known of tensors during the walk over a graph: shapes, numbers and counted axes.

A *counted* axis is as long as it can be, and a run decides how many elements count: the first so
many. The elements behind them are arbitrary, and no result depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, TypeVar

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ..graph.fold import computed, constant_tensor
from ..graph.graph import FLOATS, Graph, Shape, is_op
from ..graph.one_node import infer_node
from ..onnx.skeleton import attribute
from ..operators.emitter import INT64, Emitter
from .numbers import Number, Sum, Symbol, floored, least, most, symbol
from .quotients import Quotients
from .shares import is_fine
from .values import Values, certain, named, objects, tracked

T = TypeVar("T")
Axes = Mapping[int, Number]  # for each counted axis, how many elements count
_SMALL = 64  # the most elements of a constant whose values are tracked


class Known:
    """A graph, the counted axes of its tensors by name, and the values of small integer tensors."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.axes: dict[str, Axes] = {}
        self.makers: dict[str, NodeProto] = {}  # by result, the node as it was before its rewriting
        self.found: dict[str, tuple[str, str]] = {}  # where a tensor is not zero, and how often
        # By tensor, the axes along which the elements that do not count are finite, where they
        # count along all other axes.
        self.finite: dict[str, frozenset[int]] = {}
        self.sources: dict[str, str] = {}  # by tensor, the one that a Reshape made it of
        # By sequence, the tensor of which it holds parts, the axis, and the ends of each part.
        self.parts: dict[str, tuple[str, int, list[tuple[int, int]]]] = {}
        self.equal: dict[str, int] = {}  # the value of all elements of a filled tensor
        self.least: dict[str, np.float32] = {}  # the least value of a dequantised tensor
        self.words: dict[str, str] = {}  # for a branch's node, by its result: its name in messages
        # Results of nodes in branches and steps that a run may not take: none of them may fail it.
        self.idle: set[str] = set()
        self._values: dict[str, Values] = {}
        self.divided = Quotients()
        self._scalars: dict[Number, str] = {}
        self._made: dict[Hashable, Any] = {}

    def values(self, name: str) -> Values | None:
        """The elements of a small tensor of integers, as far as they are known."""
        held = None if name in self._values else _held(self.graph.constants.get(name))
        if held is not None:
            self._values[name] = held
        return self._values.get(name)

    def hold(self, name: str, values: Values) -> None:
        """Note the elements of a tensor."""
        self._values[name] = values

    def dims(self, name: str) -> list[Number]:
        """How many elements of a tensor count along each axis."""
        counted = self.axes.get(name, {})
        return [counted.get(at, n) for at, n in enumerate(self.graph.shapes[name])]

    def learn(self, node: NodeProto) -> None:
        """Find types, shapes and values of a node's results."""
        constants = self._constants([name for name in node.input if name])
        if infer_node(self.graph, node, constants):
            self._follow(node)

    def _follow(self, node: NodeProto) -> None:
        names = [name for name in node.output if name in self.graph.dtypes]
        if not names or names[0] in self._values:
            return
        made = self._parts(node) if is_op(node, "Split") else [self._computed(node)]
        for name, values in zip(node.output, made, strict=False):
            if values is not None and name in names:
                self._values[name] = values

    def _parts(self, node: NodeProto) -> list[Values]:
        """The elements of each result of a Split, if they are known."""
        whole, shapes = self.values(node.input[0]), self.graph.shapes
        if whole is None or not all(name in shapes for name in node.output):
            return []
        axis = attribute(node, "axis", 0)
        ends = np.cumsum([shapes[name][axis] for name in node.output])
        return np.split(whole, ends[:-1], axis)

    def _computed(self, node: NodeProto) -> Values | None:
        """The elements of a node's first result, if they are known."""
        if node.op_type == "Shape" and node.input[0] in self.graph.shapes:
            dims = self.dims(node.input[0])
            return objects(dims[attribute(node, "start", 0) : attribute(node, "end", len(dims))])
        if node.op_type == "Constant":
            return _held(constant_tensor(node))
        whole = self.graph.dtypes[node.output[0]] not in FLOATS
        given = [self.values(one) if one else None for one in node.input]
        if not given or given[0] is None:
            return None
        made = tracked(node, given, whole, self.divided)
        return self._folded(node) if made is None and whole else made

    def _folded(self, node: NodeProto) -> Values | None:
        """The elements that a node makes of constants, which it may have got in this walk."""
        if not all(name in self.graph.constants for name in node.input if name):
            return None
        if prod(self.graph.shapes.get(node.output[0], (_SMALL + 1,))) > _SMALL:
            return None
        made = computed(self.graph, node)
        return None if made is None else objects(made.astype(object))

    def array(self, name: str) -> np.ndarray | None:
        """The elements of a tensor as an array; None unless all are known integers."""
        values = self.values(name)
        if values is None or any(isinstance(one, Sum) for one in values.flat):
            return None
        numbers = list(values.flat)
        kind = helper.tensor_dtype_to_np_dtype(self.graph.dtypes[name])
        return np.array(numbers, kind).reshape(values.shape)

    def _constants(self, names: Sequence[str]) -> dict[str, TensorProto]:
        """The constants whose values inference may read."""
        arrays = {name: self.array(name) for name in names}
        known = {name: array for name, array in arrays.items() if array is not None}
        return {name: numpy_helper.from_array(array, name) for name, array in known.items()}


def _held(tensor: TensorProto | None) -> Values | None:
    """The elements of a small constant of exact numbers; None for any other."""
    if tensor is None or tensor.data_type == TensorProto.STRING:
        return None
    if prod(tensor.dims) > _SMALL:
        return None
    array = numpy_helper.to_array(tensor)
    if tensor.data_type in FLOATS and not all(is_fine(float(one)) for one in array.flat):
        return None
    return objects(array.astype(object))


class Step(Emitter):
    """A node with counted axes that is being rewritten; emitted nodes are inferred at once."""

    def __init__(self, known: Known, node: NodeProto) -> None:
        super().__init__(known.graph, node)
        self.facts = known

    def several(self, op: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Like the emitter's; also finds what is known of the results."""
        made = super().several(op, inputs, count, **attributes)
        self.facts.learn(self.nodes[-1])
        return made

    def known_shape(self, name: str) -> Shape | None:
        """Like the emitter's, but without whole inference, since the graph lacks the new nodes."""
        return self.graph.shapes.get(name)

    def again(self, *inputs: str) -> str:
        """The same node, with other inputs if they are given; returns its first result."""
        node, given = self.node, list(inputs or self.node.input)
        words = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        return self(node.op_type, *given, *node.input[len(given) :], **words)

    def numbers(self, *values: int) -> str:
        """A constant list of int64."""
        return self.constant(values, INT64)

    @property
    def cause(self) -> str:
        """The name of the node in messages."""
        return self.facts.words.get(self.node.output[0], named(self.node))

    def dims(self, at: int) -> list[Number]:
        """How many elements of an input count along each axis."""
        return self.facts.dims(self.input(at))

    def axes(self, at: int) -> Axes:
        """The counted axes of an input."""
        return self.facts.axes.get(self.input(at), {})

    def values(self, at: int) -> Values | None:
        """The elements of an input, as far as they are known."""
        return self.facts.values(self.input(at)) if self.input(at) else None

    def listed(self, at: int, attribute: str = "") -> list[int] | None:
        """Integers that are listed by an input, or by the attribute of older versions."""
        given = self.attribute(attribute) if attribute else None
        return certain(self.values(at)) if given is None else list(given)

    def scalar(self, number: Number) -> str:
        """An int64 scalar tensor that holds a number."""
        known = self.facts._scalars  # noqa: SLF001 - a cache of what steps made
        if number not in known or not isinstance(number, Sum):
            known[number] = self._scalar(number)
        return known[number]

    def _scalar(self, number: Number) -> str:
        if not isinstance(number, Sum):
            return self.constant(number, INT64)
        made = ""
        for term, by in number.factors:
            one = reduce(partial(self, "Mul"), map(self._element, term.parts))
            one = one if by == 1 else self("Mul", one, self.constant(by, INT64))
            made = self("Add", made, one) if made else one
        return self("Add", made, self.constant(number.constant, INT64)) if number.constant else made

    def _element(self, symbol: Symbol) -> str:
        flat = self.reshape(symbol.tensor, -1)
        return self.cast(self("Gather", flat, self.constant(symbol.at, INT64), axis=0), INT64)

    def divided(self, number: Number, by: int) -> Number:
        """A number of at least -`by`, divided by `by` and rounded down.

        The division is emitted once for all that need it.
        """
        if (known := floored(number, by)) is not None:
            return known
        if (known := self.facts.divided.find(number, by)) is not None:
            return known
        made = self("Div", self.scalar(number + by), self.constant(by, INT64))
        bounds = least(number + by) // by, most(number + by) // by
        cause = number.cause if isinstance(number, Sum) else self.cause
        return self.facts.divided.note(number, by, symbol(made, 0, bounds, cause) - 1)

    def counts(self, shape: Shape, axes: Axes) -> str:
        """Booleans that broadcast to a shape: whether each element counts; "" if all do."""
        key = (len(shape), *((axis, shape[axis], number) for axis, number in axes.items()))
        return self.once(key, partial(self._counts, shape, axes))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` emits, or what an earlier step emitted with the same key."""
        known = self.facts._made  # noqa: SLF001 - a cache of what steps made
        if key not in known:
            known[key] = make()
        return known[key]

    def _counts(self, shape: Shape, axes: Axes) -> str:
        made = ""
        for axis, number in axes.items():
            form = [-1 if at == axis else 1 for at in range(len(shape))]
            places = self.constant(np.arange(shape[axis]).reshape(form), INT64)
            inside = self("Less", places, self.scalar(number))
            made = self("And", made, inside) if made else inside
        return made

    def masked(self, name: str, axes: Axes, value: Any = 0) -> str:
        """A tensor in which elements that do not count are replaced by a value, or a tensor's."""
        if not axes:
            return name
        kind = self.dtype(name)
        inside = self.counts(self.shape(name), axes)
        other = value if isinstance(value, str) else self.constant(value, kind)
        return self("Where", inside, name, other)

    def cut(self, name: str, axis: int, size: int) -> str:
        """The first `size` elements of a tensor along an axis."""
        return name if self.shape(name)[axis] == size else self.slice(name, axis, 0, size)
