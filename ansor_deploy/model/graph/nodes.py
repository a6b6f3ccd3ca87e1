"""The nodes of the model that a kernel computes.

A tensor keeps its name when the ONNX graph is rewritten. So the tensors that a kernel reads and
makes tell which of the model's nodes it computes: those between them. `labels.py` finds these
tensors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import onnx
from onnx import ModelProto, NodeProto

from ..onnx.bind import model_inputs
from ..onnx.skeleton import name_of, uses
from .places import Node, Place

_FIXED = ("Constant", "Shape", "Size")  # shapes are static


# A function's name, and the place where it is called.
PlacedCall = tuple[str, Place]


class Origin:
    """The nodes of a model and of the graph that computes it, without weights.

    inputs: of the model. outputs: of the graph. tensors: of the graph; labels refer to them by
    number.
    """

    def __init__(
        self,
        model: ModelProto,
        nodes: Sequence[NodeProto],
        constants: Collection[str],
        aliases: Mapping[str, str] = MappingProxyType({}),
        outputs: Sequence[str] = (),
    ) -> None:
        """nodes, constants, aliases: of the graph. outputs: of the graph, if not the model's."""
        self._aliases = aliases
        known = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value.name for value in model_inputs(model)]
        self.outputs = list(outputs) or [value.name for value in model.graph.output]
        self._model = _Wires(model.graph.node, known)
        self._graph = _Wires(nodes, {*known, *constants})
        self._known = {*self._model.makers, *self.inputs}
        self.tensors = [*self.inputs, *self._graph.makers]
        self._found_behind: dict[str, frozenset[str]] = {}
        self._found_ahead: dict[str, frozenset[str]] = {}

    def between(self, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[Node, ...]:
        """The model's nodes between some tensors of the graph and others, in the model's order."""
        begin = {one for name in inputs for one in self._behind(name)}
        end = {one for name in outputs for one in self._ahead(name)}
        return self._model.between(begin, end - begin)

    def _behind(self, name: str) -> Collection[str]:
        return self._nearest(name, self._graph.sources, self._found_behind)

    def _ahead(self, name: str) -> Collection[str]:
        return self._nearest(name, self._graph.results, self._found_ahead)

    def _nearest(
        self, name: str, step: Callable[[str], Iterable[str]], found: dict[str, frozenset[str]]
    ) -> frozenset[str]:
        """The model's tensor of this name, or else the nearest ones along the steps.

        found: the answers so far, since a loop that is written out has thousands of tensors between
        two of the model's.
        """
        ahead, passed = [name], set[str]()
        while ahead:
            one = ahead[-1]
            known = self._of_model(one)
            parts = list(step(one)) if known is None and one not in found else []
            left = [part for part in parts if part not in found and part not in passed]
            if left:
                passed.add(one)
                ahead += left
                continue
            ahead.pop()
            each = (found.get(part, frozenset[str]()) for part in parts)
            found.setdefault(
                one, frozenset[str]((known,) if known is not None else ()).union(*each)
            )
        return found[name]

    def _of_model(self, name: str) -> str | None:
        """The model's tensor that has this name or the same content; None if there is none."""
        seen = set()
        while name not in self._known and name in self._aliases and name not in seen:
            seen.add(name)
            name = self._aliases[name]
        return name if name in self._known else None


class _Wires:
    """The maker and the readers of each tensor that depends on an input.

    makers: for each tensor, the place of the node that makes it.
    """

    def __init__(self, nodes: Iterable[NodeProto], constants: Collection[str]) -> None:
        fixed = set(constants)
        self._nodes: list[Node] = []
        self._reads: list[set[str]] = []
        self._makes: list[list[str]] = []
        for node in nodes:
            made = [name for name in node.output if name]
            if node.op_type in _FIXED or (node.input and uses(node) <= fixed):
                fixed.update(made)
            self._nodes.append(Node(name_of(node), node.op_type))
            self._reads.append(uses(node) - fixed)
            self._makes.append(made)
        self.makers = {name: at for at, made in enumerate(self._makes) for name in made}
        self._readers: dict[str, list[int]] = defaultdict(list)
        for at, names in enumerate(self._reads):
            for name in names:
                self._readers[name].append(at)

    def sources(self, tensor: str) -> Iterable[str]:
        """The tensors that the maker of a tensor reads."""
        return self._reads[self.makers[tensor]] if tensor in self.makers else ()

    def results(self, tensor: str) -> Iterable[str]:
        """The tensors that the readers of a tensor make."""
        return (name for at in self._readers.get(tensor, ()) for name in self._makes[at])

    def between(self, begin: set[str], end: set[str]) -> tuple[Node, ...]:
        """The nodes on paths from `begin` to `end`, and in any case the makers of `end`."""
        last = {self.makers[name] for name in end if name in self.makers}
        found, ahead = set(last), list(last)
        while ahead:
            names = self._reads[ahead.pop()] - begin
            new = {self.makers[name] for name in names if name in self.makers} - found
            found |= new
            ahead += new
        reached = set(begin)
        for at in sorted(found):
            if reached & self._reads[at]:
                reached.update(self._makes[at])
            elif at not in last:
                found.remove(at)
        return tuple(self._nodes[at] for at in sorted(found))


def with_names(model: ModelProto) -> ModelProto:
    """The model with each node named as `Node` names it."""
    made = ModelProto()
    made.CopyFrom(model)
    for node in made.graph.node:
        node.name = name_of(node)
    return made


def computed_by(model: ModelProto, optimized: Path) -> dict[str, tuple[Node, ...]]:
    """For each node of the graph that ONNX Runtime optimised, the model's nodes it computes.

    model: with names. The keys are names of the optimised nodes: a convolution whose channels are
    in blocks is named after its result, with "_nchwc" appended; a node that was left alone keeps
    its name.
    """
    graph = onnx.load(optimized, load_external_data=False).graph
    results = {node.name: node.output[0] for node in model.graph.node}
    results |= {f"{name}_nchwc": name for node in model.graph.node for name in node.output}
    new = {node.output[0]: results[node.name] for node in graph.node if node.name in results}
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    origin = Origin(model, graph.node, {tensor.name for tensor in graph.initializer})
    return {node.name: origin.between(node.input, node.output) for node in graph.node}
