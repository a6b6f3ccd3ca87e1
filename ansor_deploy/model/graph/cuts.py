"""A model cut at a node: what it takes to compute some of its tensors, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import onnx

from ..onnx.skeleton import uses
from .graph import FLOATS
from .noise import varying_tensors


class Graph:
    """The nodes of a model by number, in the order of the file, and what each needs."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.nodes = list(proto.graph.node)
        self._makers = {name: at for at, node in enumerate(self.nodes) for name in node.output}

    def needed(self, names: Sequence[str]) -> set[int]:
        """The nodes that tensors are computed by, all the way from the inputs."""
        found: set[int] = set()
        left = [self._makers[name] for name in names if name in self._makers]
        while left:
            if (at := left.pop()) not in found:
                found.add(at)
                left += [self._makers[n] for n in uses(self.nodes[at]) if n in self._makers]
        return found

    @cached_property
    def _values(self) -> dict[str, onnx.ValueInfoProto]:
        """The floating tensors of static shape that depend on inputs."""
        varying = varying_tensors(self.proto.graph)
        graph = onnx.shape_inference.infer_shapes(self.proto).graph
        known = (value for value in (*graph.value_info, *graph.output) if _is_shown(value))
        return {value.name: value for value in known if value.name in varying}

    @cached_property
    def shown(self) -> dict[int, str]:
        """By node, the tensor that shows what it computes: its first floating output."""
        known = self._values
        tensors = {at: [n for n in node.output if n in known] for at, node in enumerate(self.nodes)}
        return {at: names[0] for at, names in tensors.items() if names}

    def cut(self, names: Sequence[str]) -> onnx.ModelProto:
        """The model with these tensors as its outputs. They are floating, as `shown` has them."""
        kept = sorted(self.needed(names))
        read = {name for at in kept for name in uses(self.nodes[at])} | {*names}
        made = type(self.proto)()
        made.CopyFrom(self.proto)
        graph, old = made.graph, self.proto.graph
        for field in ("node", "input", "output", "initializer", "value_info"):
            graph.ClearField(field)
        graph.node.extend(self.nodes[at] for at in kept)
        graph.input.extend(value for value in old.input if value.name in read)
        graph.initializer.extend(one for one in old.initializer if one.name in read)
        outputs = {value.name: value for value in old.output}
        graph.output.extend(outputs.get(name) or self._values[name] for name in names)
        return made


def _is_shown(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    dims = kind.shape.dim if kind.HasField("shape") else None
    static = dims is not None and all(dim.dim_value > 0 for dim in dims)
    return static and kind.elem_type in FLOATS
