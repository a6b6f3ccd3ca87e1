"""Caches that a library keeps: new rows are written in place, behind those that count."""

from __future__ import annotations

from ...runtime.context import Context
from ..graph.graph import Graph
from ..onnx.bind import declared_shape, model_inputs
from ..operators.appended import append
from ..operators.emitter import INT64
from . import parts, rooms
from .known import Axes, Known, Step
from .numbers import symbol


def prepare(graph: Graph, context: Context) -> None:
    """Give a graph a context. The input sizes that this changes stay open until `end`."""
    graph.context = context
    rooms.own_model(graph)
    most = {(one.input, one.axis): context.rows for one in context.caches}
    last = context.rows - context.tokens
    most |= {(one.name, one.axis): last + one.more for one in context.counted}
    for value in model_inputs(graph.proto):
        declared = declared_shape(value) or ()
        sizes = [most.get((value.name, axis), size) for axis, size in enumerate(declared)]
        if any(name == value.name for name, _ in most):
            graph.rooms[value.name] = tuple(map(int, sizes))
    if all(_hides_by_itself(graph, one.input) for one in context.caches):
        end(graph)


def _hides_by_itself(graph: Graph, cache: str) -> bool:
    """Whether a cache is only read by a node that takes all its room and the number of its rows."""
    readers = [node.op_type for node in graph.nodes if cache in node.input]
    return readers == ["GroupQueryAttention"]


def start(known: Known) -> None:
    """Declare how much counts of the inputs that a context leaves open."""
    graph = known.graph
    if (context := graph.context) is None or not graph.rooms:
        return
    graph.shapes[context.length], graph.dtypes[context.length] = (), INT64
    bounds = 0, context.rows - context.tokens
    rows = symbol(context.length, 0, bounds, "the number of rows before")
    caches = [(one.input, one.axis, rows) for one in context.caches]
    grown = [(one.name, one.axis, rows + one.more) for one in context.counted]
    rooms.say(known, [*caches, *grown])


def end(graph: Graph) -> bool:
    """Close the sizes that a context left open, and drop cache outputs; whether there were any."""
    if (context := graph.context) is None or not graph.rooms:
        return False
    rooms.close(graph, context.length)
    for at in sorted((one.at for one in context.caches), reverse=True):
        del graph.proto.graph.output[at]
    return True


def joined(step: Step) -> list[tuple[str, Axes]] | None:
    """Append new rows to a cache; or concatenate other tensors."""
    context = step.graph.context
    if context is None or len(step.node.input) != 2 or not _is_cache(context, step.input(0)):
        return parts.joined(step)
    name, new = step.input(0), step.known_shape(step.input(1))
    ((axis, number),) = step.axes(0).items()
    if new is None or new[axis] != context.tokens or step.axes(1):
        raise step.refuse(f"it does not add the {context.tokens} rows of a step to '{name}'")
    at = step("Expand", step.scalar(number), step.numbers(step.shape(name)[0]))
    step.facts.finite[step.node.output[0]] = frozenset([axis])  # a cache begins with zeros
    return [(append(step, name, step.input(1), at, axis), {axis: number + context.tokens})]


def _is_cache(context: Context, name: str) -> bool:
    return any(name == one.input for one in context.caches)


RULES = {"Concat": joined}
