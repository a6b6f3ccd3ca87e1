"""If with branches that make tensors of different sizes: compute both, and take one.

y = c ? then : else
-->
n = c ? n_then : n_else ; y = c ? then padded to the larger size : else likewise
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, helper

from ...errors import ModelError
from ..graph.graph import Graph, is_op
from ..graph.subgraph import spliced
from ..onnx.skeleton import attribute, cone, name_of, nested, uses, with_nested
from . import found
from .known import Axes, Known, Step
from .numbers import Number, Sum, least, most, symbol
from .values import certain, named

_SIZES = ("Constant", "Shape", "Size")  # what they make does not depend on data
_EITHER = "Either"  # not an operator: its nodes exist only until their rule is applied


def counts(known: Known, node: NodeProto) -> bool:
    """Whether it is an If whose results may be as large as a run decides.

    It contains a node which counts, or a part whose bounds are computed, or it lay in such an If.
    """
    if not is_op(node, "If"):
        return False
    inner = list(with_nested([node]))
    counting = any(one.op_type in found.RULES for one in inner)
    return counting or node.output[0] in known.words or _cuts(known.graph, inner)


def grows(known: Known, node: NodeProto) -> bool:
    """Whether the branches of an If, which reads known sizes alone, make more or less.

    A branch whose sizes are not found here counts as such, unless neither's are.
    """
    if not uses(node) <= known.graph.shapes.keys():
        return False
    made = []
    for branch in ("then_branch", "else_branch"):
        results = [known.graph.fresh(name) for name in node.output]
        for one in spliced(known.graph, attribute(node, branch), {}, results):
            known.learn(one)
        made.append([known.graph.shapes.get(name) for name in results])
    return made[0] != made[1]


def _cuts(graph: Graph, inner: Sequence[NodeProto]) -> bool:
    """Whether a Slice has bounds that depend on more than constants and shapes."""
    held = {tensor.name for one in inner for body in nested(one) for tensor in body.initializer}
    sizes = {name for one in inner if is_op(one, *_SIZES) for name in one.output}
    bounds = [name for one in inner if is_op(one, "Slice") for name in one.input[1:3]]
    body = [one for one in inner if not is_op(one, *_SIZES)]
    return not cone(body, bounds)[1] <= {*held, *sizes, *graph.constants}


def opened(known: Known, node: NodeProto, ahead: deque[NodeProto]) -> None:
    """Put ahead both branches of an If and a choice, or the only branch that can be taken."""
    graph = known.graph
    taken = certain(known.values(node.input[0]))
    if taken is not None:
        body = attribute(node, "then_branch" if taken[0] else "else_branch")
        ahead.extendleft(reversed(_inside(known, node, body, node.output)))
        return
    made, names = [], []
    for branch in ("then_branch", "else_branch"):
        results = [graph.fresh(name) for name in node.output]
        made += _inside(known, node, attribute(node, branch), results)
        names.append(results)
    for name, one, other in zip(node.output, *names, strict=True):
        given = [node.input[0], one, other]
        made.append(helper.make_node(_EITHER, given, [name], name=name_of(node)))
    ahead.extendleft(reversed(made))


def _inside(
    known: Known, node: NodeProto, body: GraphProto, results: Sequence[str]
) -> list[NodeProto]:
    """The nodes of a branch; in messages they keep the names that they have there."""
    made = spliced(known.graph, body, {}, results)
    known.idle.update(name for one in made for name in one.output)
    for inner, one in zip(body.node, made, strict=False):
        known.words[one.output[0]] = f"{named(inner)} inside {named(node)}"
    return made


def either(step: Step) -> list[tuple[str, Axes]]:
    """One of two tensors, each with its own size."""
    one, other = (step.known_shape(step.input(at)) for at in (1, 2))
    if one is None or other is None or len(one) != len(other):
        raise ModelError(
            f"node '{step.node.name}' (If): a run chooses one of its branches, and what they make "
            "is not of one rank, or of sizes that are not known",
            "make both branches give tensors of one rank, or cut the graph before it",
        )
    condition = step.reshape(step.input(0))
    size = tuple(max(pair) for pair in zip(one, other, strict=True))
    pairs = enumerate(zip(step.dims(1), step.dims(2), strict=True))
    axes = {at: _one_of(step, condition, *pair) for at, pair in pairs if pair[0] != pair[1]}
    same = {at: n for at, n in step.axes(1).items() if at not in axes}
    laid = [_laid_out(step, step.input(at), size) for at in (1, 2)]
    if 0 in one or 0 in other:
        made = laid[0] if 0 in other else laid[1]
    else:
        made = step("Where", condition, *laid)
    return [(made, {**same, **axes})]


def _one_of(step: Step, condition: str, one: Number, other: Number) -> Number:
    made = step("Where", condition, step.scalar(one), step.scalar(other))
    bounds = min(least(one), least(other)), max(most(one), most(other))
    causes = (number.cause for number in (one, other) if isinstance(number, Sum))
    return symbol(made, 0, bounds, next(causes, step.cause))


def _laid_out(step: Step, name: str, size: tuple[int, ...]) -> str:
    """A tensor padded with zeros to a larger size."""
    for axis, extent in enumerate(size):
        shape = list(step.shape(name))
        if 0 in shape:
            return name
        if shape[axis] < extent:
            shape[axis] = extent - shape[axis]
            more = step.constant(np.zeros(shape), step.dtype(name))
            name = step("Concat", name, more, axis=axis)
    return name


RULES = {_EITHER: either}
