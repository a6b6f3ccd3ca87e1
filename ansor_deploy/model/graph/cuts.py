"""A model cut at a node: just what is needed to compute some of its tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import onnx
from onnx.helper import make_tensor_value_info

from ..onnx.skeleton import uses
from .fold import sort_and_fold
from .graph import BYTES, FLOATS
from .graph import Graph as Folded
from .noise import varying_tensors


class Graph:
    """The nodes of a model by number, in the order of the file, and what each depends on."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.nodes = list(proto.graph.node)
        self._makers = {name: at for at, node in enumerate(self.nodes) for name in node.output}

    def needed(self, names: Sequence[str]) -> set[int]:
        """The nodes that compute some tensors, all the way from the inputs."""
        found: set[int] = set()
        left = [self._makers[name] for name in names if name in self._makers]
        while left:
            if (at := left.pop()) not in found:
                found.add(at)
                left += [self._makers[n] for n in uses(self.nodes[at]) if n in self._makers]
        return found

    @cached_property
    def _values(self) -> dict[str, onnx.ValueInfoProto]:
        """The tensors of known type and static shape that depend on inputs."""
        graph = Folded.of(self.proto)  # shapes may follow from constants that are computed
        for value in filter(_is_static, self.proto.graph.value_info):
            kind = value.type.tensor_type
            graph.declare(value.name, kind.elem_type, tuple(d.dim_value for d in kind.shape.dim))
        sort_and_fold(graph)
        kinds = ((name, graph.dtypes.get(name), shape) for name, shape in graph.shapes.items())
        known = (make_tensor_value_info(*one) for one in kinds if one[1] and all(one[2]))
        return {value.name: value for value in known if value.name in self._varying}

    @cached_property
    def _varying(self) -> set[str]:
        """The tensors that depend on inputs."""
        return varying_tensors(self.proto.graph)

    @cached_property
    def shown(self) -> dict[int, str]:
        """By node, the tensor that shows what it computes: its first of floats, else of bytes."""
        kinds = {n: one.type.tensor_type.elem_type for n, one in self._values.items()}
        found = {}
        for at, node in enumerate(self.nodes):
            names = sorted(node.output, key=lambda name: kinds.get(name) in BYTES)
            found[at] = next((n for n in names if kinds.get(n) in (*FLOATS, *BYTES)), "")
        return {at: name for at, name in found.items() if name}

    def cut(self, names: Sequence[str]) -> onnx.ModelProto:
        """The model with these tensors, all from `shown`, as its outputs."""
        return self._of_nodes([self.nodes[at] for at in sorted(self.needed(names))], [], names)

    def without(self, apart: Collection[int]) -> onnx.ModelProto | None:
        """The model without some nodes: their results become inputs, and what they read, outputs.

        None if no output is left, or the type of a cut tensor is not known.
        """
        kept = [node for at, node in enumerate(self.nodes) if at not in apart]
        left_out = [node for at, node in enumerate(self.nodes) if at in apart]
        made = {name for node in kept for name in node.output}
        read = {name for node in kept for name in uses(node)}
        inputs = [name for node in left_out for name in node.output if name in read]
        outputs = {one.name for one in self.proto.graph.output} & made
        outputs |= {name for node in left_out for name in uses(node)} & made & self._varying
        if not outputs or not {*inputs, *outputs} <= self._values.keys():
            return None
        return self._of_nodes(kept, inputs, sorted(outputs))

    def _of_nodes(
        self, kept: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str]
    ) -> onnx.ModelProto:
        """A model of some of the nodes. inputs: those beside the model's own that are read."""
        read = {name for node in kept for name in uses(node)} | {*outputs}
        made = type(self.proto)()
        made.CopyFrom(self.proto)
        graph, old = made.graph, self.proto.graph
        for field in ("node", "input", "output", "initializer", "value_info"):
            graph.ClearField(field)
        graph.node.extend(kept)
        graph.input.extend(value for value in old.input if value.name in read)
        graph.input.extend(self._values[name] for name in inputs)
        graph.initializer.extend(one for one in old.initializer if one.name in read)
        known = {value.name: value for value in old.output}
        graph.output.extend(known.get(name) or self._values[name] for name in outputs)
        return made


def _is_static(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    dims = kind.shape.dim if kind.HasField("shape") else None
    return dims is not None and all(dim.dim_value > 0 for dim in dims)
