"""Rewrite nodes with results of a data-dependent size to nodes of static shapes.

    i = NonZero(x) ; y = Gather(z, i) ; m = ReduceSum(y)
    -->
    i, n = NonZero(x) ; y = Gather(z, i) ; m = ReduceSum(Where(arange < n, y, 0))

A node that counts makes as many elements as there can be, and a second result holds their number.
Each node that reads such a tensor has a rule (`RULES`): it says which axes of the results are
counted, and masks inputs so that nothing which does not count gets into what does. Sizes are
tracked as numbers, and may become static again. A result of the model gets its numbers as further
results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto, helper

from ...errors import ModelError
from ..graph.fold import fold_constants
from ..graph.graph import OWN, Graph, Length, is_op
from ..onnx.bind import model_inputs
from ..onnx.skeleton import domain_of, name_of, uses
from ..operators.emitter import expanded
from ..operators.repetition import loop
from . import (
    attentions,
    branches,
    caches,
    found,
    fourier,
    fused,
    loops,
    moves,
    norms,
    parts,
    picks,
    ranges,
    recurrences,
    remainders,
    reshapes,
    resized,
    rounded,
    sampled,
    sequences,
    skews,
    spread,
    sums,
    unbounded,
    windows,
)
from .known import Axes, Known, Step
from .numbers import Number, Sum

Made = Sequence[tuple[str, Axes]]  # a node's results, with their counted axes
Rule = Callable[[Step], Made | None]

# Rules for nodes that count, or have computed sizes; and for nodes that read what was counted.
_OPEN: Mapping[str, Rule] = {
    **found.RULES, **spread.RULES, **parts.RULES, **reshapes.RULES, **branches.RULES,
    **resized.RULES, **sequences.RULES, "TopK": picks.first_of_order,
}  # fmt: skip
RULES: Mapping[str, Rule] = {
    **_OPEN, **moves.RULES, **picks.RULES, **sums.RULES, **windows.RULES, **caches.RULES,
    **recurrences.RULES, **sampled.RULES, **norms.RULES, **fourier.RULES,
    **skews.RULES,
}  # fmt: skip
# Operators that keep all elements in their order.
_MOVES = ("Expand", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze")


def bound_sizes(graph: Graph) -> bool:
    """Give static shapes to all nodes with data-dependent sizes.

    graph: sorted, its constants folded. Nodes without a rule stay, and are refused later.

    Returns:
        Whether there was such a node.

    Raises:
        ModelError: a node that no rule accepts reads a tensor with a size that a run decides.
    """
    known = all(name in graph.shapes for node in graph.nodes for name in node.output if name)
    facts = Known(graph)
    if known and not graph.rooms and not any(branches.counts(facts, one) for one in graph.nodes):
        return False
    changed = _Walk(graph).run()
    if changed:
        fold_constants(graph)
    return changed


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.known = graph, Known(graph)
        caches.start(self.known)
        ranges.start(self.known)
        self.done: list[NodeProto] = []
        self._made = unbounded.Makers(self.done)
        self.ahead = deque(graph.nodes)
        self._literal: set[str] = set()
        self._changed = False

    def run(self) -> bool:
        """Go through the nodes; whether there was anything to do."""
        while self.ahead:
            self._take(self.ahead.popleft())
        self.graph.nodes = self.done
        ended = caches.end(self.graph) or ranges.end(self.graph)
        self._changed = ended or self._changed
        self._name_lengths()
        return self._changed

    def _take(self, node: NodeProto) -> None:
        self.known.makers.update(dict.fromkeys(node.output, node))
        counted = [name for name in sorted(uses(node)) if self.known.axes.get(name)]
        if remainders.opened(self.known, node, self.ahead):
            self._changed = True
            return
        if self._is_ruled(node, rounded.RULES):
            self._changed = True
            return
        self.done += unbounded.opened(self.known, node, self._made)
        opens = branches.counts(self.known, node) or (counted and is_op(node, "If"))
        if not opens and not counted and self._is_settled(node):
            self.done.append(node)
            return
        if opens or (is_op(node, "If") and (self.graph.rooms or branches.grows(self.known, node))):
            branches.opened(self.known, node, self.ahead)
        elif counted and attentions.opened(self.graph, node, self.ahead):
            pass  # its parts come next
        elif self._is_written_out(node):
            pass
        elif not self._is_ruled(node, RULES if counted else _OPEN):
            if counted:
                raise _refused(node, self._causes(counted))
            self._check_size(node)
            self.done.append(node)
            return
        self._changed = True

    def _is_written_out(self, node: NodeProto) -> bool:
        """Whether the node is a Loop or fused; then its steps or parts are put ahead instead."""
        self._hold_constants(node)
        made = None
        if is_op(node, "Loop") and any(map(self.known.axes.get, uses(node))):
            made = loops.written_out(self.known, node) or expanded(self.graph, node, loop)
        elif self.graph.rooms or any(self.known.axes.values()):  # else fusion has better rules
            made = fused.written_out(self.graph, node)
        if made and self.known.idle.intersection(node.output):
            self.known.idle.update(name for one in made for name in one.output)
        self.ahead.extendleft(reversed(made or []))
        return made is not None

    def _is_settled(self, node: NodeProto) -> bool:
        """Whether the shapes of the node's results follow from those of its inputs."""
        if is_op(node, "Constant"):
            self._literal.update(node.output)
        self._hold_constants(node)
        self.known.learn(node)
        return all(name in self.graph.shapes for name in node.output if name)

    def _hold_constants(self, node: NodeProto) -> None:
        """Let a node read constants in place of computed tensors with known elements."""
        graph = self.graph
        for at, name in enumerate(node.input):
            if not name or name in graph.constants or name in self._literal:
                continue
            if (array := self.known.array(name)) is not None:
                held = node.input[at] = graph.add_constant(array, name)
                graph.shapes[held], graph.dtypes[held] = array.shape, graph.dtypes[name]

    def _is_ruled(self, node: NodeProto, rules: Mapping[str, Rule]) -> bool:
        """Whether a rule accepted the node."""
        known = fused.RULES if node.domain == OWN else {} if domain_of(node) else rules
        rule = known.get(node.op_type)
        step = Step(self.known, node)
        made = rule(step) if rule else None
        if made is None or any(result not in self.graph.shapes for result, _ in made):
            return False  # contradicting shapes are not known either
        self.done += step.nodes
        for name, (result, axes) in zip(node.output, made, strict=False):
            if name:
                self._pass_on(name, result, axes)
        if node.op_type in _MOVES:
            self._stays_finite(node)
        return True

    def _stays_finite(self, node: NodeProto) -> None:
        """Note where a result is finite if its counted axes are those of its input."""
        known, name = self.known, node.output[0]
        own, made = known.axes.get(node.input[0], {}), known.axes[name]
        if [own[at] for at in sorted(own)] == [made[at] for at in sorted(made)]:
            finite = known.finite.get(node.input[0], ())
            pairs = zip(sorted(own), sorted(made), strict=True)
            known.finite[name] = frozenset(new for old, new in pairs if old in finite)

    def _pass_on(self, name: str, result: str, axes: Axes) -> None:
        """Give a result the name that it has as the node's output."""
        graph, known = self.graph, self.known
        self.done.append(helper.make_node("Identity", [result], [name]))
        graph.shapes[name], graph.dtypes[name] = graph.shapes[result], graph.dtypes[result]
        known.axes[name] = {axis: n for axis, n in axes.items() if isinstance(n, Sum)}
        values = known.values(result)
        if values is not None and not known.axes[name]:  # else a reader would take all elements
            known.hold(name, values)

    def _check_size(self, node: NodeProto) -> None:
        """ModelError for a Resize to a size that a run computes, which nothing makes constant.

        It is found here, as a Loop may be written out to many steps with one, and passes follow.
        """
        for name in node.input[2:] if is_op(node, "Resize") else ():
            if name and name not in self.graph.constants and self._is_of_data(name):
                raise Step(self.known, node).refuse(f"its input '{name}' must be a constant")

    def _is_of_data(self, name: str) -> bool:
        """Whether the elements of a tensor follow from those of the model's inputs."""
        given = {value.name for value in model_inputs(self.graph.proto)}
        made = {result: node for node in self.done for result in node.output}
        ahead, seen = [name], set[str]()
        while ahead:
            if (name := ahead.pop()) in given:
                return True
            node = made.get(name)
            if node is None or name in seen or is_op(node, "Shape", "Size"):
                continue
            seen.add(name)
            ahead += uses(node) if self.known.values(name) is None else ()
        return False

    def _causes(self, names: Sequence[str]) -> str:
        numbers = [n for name in names for n in self.known.axes.get(name, {}).values()]
        causes = sorted({n.cause for n in numbers if isinstance(n, Sum)})
        return ", ".join(one if one.startswith("the ") else f"what {one} finds" for one in causes)

    def _name_lengths(self) -> None:
        """Add the numbers of results with counted axes to the graph's results."""
        names: dict[Number, str] = {}
        for output in [value.name for value in self.graph.proto.graph.output]:
            step = Step(self.known, helper.make_node("Identity", [output], [output], name=output))
            for axis, number in sorted(self.known.axes.get(output, {}).items()):
                if number not in names:
                    names[number] = self._length(step, output, number)
                self.graph.lengths.append(Length(output, axis, names[number]))
            self.done += step.nodes

    def _length(self, step: Step, output: str, number: Number) -> str:
        name = self.graph.name_like(f"{output}.length")
        step.nodes.append(helper.make_node("Identity", [step.scalar(number)], [name]))
        return name


def _refused(node: NodeProto, causes: str) -> ModelError:
    return ModelError(
        f"node '{name_of(node)}' ({node.op_type}): a run decides how much it reads, by "
        f"{causes}, and this use of {node.op_type} is not compiled for that",
        "cut the graph before it, or give the operator a tensor of a fixed size",
    )
