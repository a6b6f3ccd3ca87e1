"""Loops of which a run decides the number of steps: all that there can be are written out.

for t < n: state, y[t] = body(state, x[t])
-->
state1, y0 = body(state0, x[0]) ; state2, y1 = body(state1, x[1]) ; ...
state = [state0, state1, ...][n] ; y = [y0, y1, ...][:n]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from onnx import NodeProto, helper

from ..graph.graph import is_op
from ..onnx.skeleton import attribute
from ..operators.emitter import expanded
from ..operators.loop_steps import Condition
from ..operators.repetition import MOST_NODES, counted_loop
from .known import Known, Step
from .numbers import Number, Sum, Symbol, valued
from .values import objects

_MOST = 1 << 8  # the most values of a number for which the steps are counted


def written_out(known: Known, node: NodeProto) -> list[NodeProto] | None:
    """The nodes of all steps; None unless one number, which a run decides, says how many count."""
    if not is_op(node, "Loop") or (found := _steps(known, node)) is None:
        return None
    most, number = found
    step = Step(known, node)
    name = step.scalar(number)
    known.hold(name, objects(number))
    known.idle.update(node.output)
    made = expanded(known.graph, node, partial(counted_loop, steps=most, number=name))
    return [*step.nodes, *(made or [])]


def _steps(known: Known, node: NodeProto) -> tuple[int, Number] | None:
    """The most steps, and how many count."""
    condition = Condition(known.graph, node, attribute(node, "body"))
    symbols = _symbols(known, [*node.input[:2], *condition.reads])
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    values = range(symbol.least, symbol.most + 1)
    if len(values) > _MOST:
        return None
    counts = [_counted(condition, node, partial(_value, known, symbol, n)) for n in values]
    return _line(symbol, counts)


def _symbols(known: Known, names: Iterable[str]) -> set[Symbol]:
    """What decides the elements of some tensors."""
    tensors = (known.values(name) for name in names if name)
    numbers = (one for values in tensors if values is not None for one in values.flat)
    sums = (one for one in numbers if isinstance(one, Sum))
    return {part for one in sums for term, _ in one.factors for part in term.parts}


def _value(known: Known, symbol: Symbol, value: int, name: str) -> np.ndarray | None:
    """The elements of a tensor in a run in which a symbol has a value."""
    if (values := known.values(name)) is None:
        return known.graph.value(name)
    made = [valued(one, symbol, value) for one in values.flat]
    if None in made:
        return None
    kind = helper.tensor_dtype_to_np_dtype(known.graph.dtypes[name])
    return np.array(made, kind).reshape(values.shape)


def _counted(
    condition: Condition, node: NodeProto, value: Callable[[str], np.ndarray | None]
) -> int | None:
    """How many steps the Loop takes with the values of a run."""
    count, start = (value(name) if name else None for name in node.input[:2])
    if any(name and one is None for name, one in zip(node.input[:2], (count, start), strict=True)):
        return None
    most = MOST_NODES if count is None else int(count.item())
    return condition.steps(value, most) if start is None or start.all() else 0


def _line(symbol: Symbol, counts: list[int | None]) -> tuple[int, Number] | None:
    """The most of the counts, and the counts as a multiple of the symbol, plus a constant."""
    first, *more = counts
    if first is None or not more or more[0] is None or not (by := more[0] - first):
        return None
    if counts != list(range(first, first + by * len(counts), by)):
        return None
    number = Sum(0, ((symbol, 1),)) * by + (first - by * symbol.least)
    return max(first, first + by * len(more)), number
