"""Which of our tasks and which of ONNX Runtime's nodes compute the same contraction.

Neither side keeps the names of the model's nodes: both fuse, and ONNX Runtime renames and pads. So
pairs are found by what is computed: the multiply-adds, the elements that come out, and the order
in which both run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

NODES = ("Conv", "FusedConv", "ConvTranspose", "MatMul", "Gemm", "FusedMatMul", "FusedGemm")
# Nodes behind a contraction, and words in the name of a task that computes them in its kernel.
BEHIND = {
    "Relu": ("relu",),
    "LeakyRelu": ("leaky", "leakyrelu"),
    "Clip": ("clip",),
    "Tanh": ("tanh",),
    "Sigmoid": ("sigmoid",),
    "Add": ("add",),
    "Mul": ("multiply",),
    "Gelu": ("erf", "tanh"),
    "BiasGelu": ("erf", "tanh"),
    "FastGelu": ("tanh", "erf"),
    "QuickGelu": ("sigmoid",),
}
FAR = 2.0  # pairs that differ by more than this are none: doublings, all in all
ORDER = 0.5  # doublings that the whole way from the first kernel to the last counts for


@dataclass(frozen=True)
class Contraction:
    """A convolution or a matrix multiplication. kind: "conv" or "matmul"; of: it is summed over.

    elements: that come out, spatial extents and channels; of: extents of the sum.
    """

    kind: str
    elements: tuple[int, ...]
    of: tuple[int, ...]

    @property
    def flops(self) -> float:
        """Two for each multiply-add."""
        return 2.0 * math.prod(self.elements) * math.prod(self.of)

    def __str__(self) -> str:
        out = [extent for extent in self.elements if extent > 1] or [1]
        return "x".join(map(str, out)) + " of " + "x".join(map(str, self.of))


@dataclass(frozen=True)
class Node:
    """A contraction among ONNX Runtime's nodes. name: in its profile.

    stride: of a convolution, the largest. behind: names and operators of the nodes that follow it
    one after another, each the only reader of the one before.
    """

    name: str
    op: str
    contraction: Contraction
    stride: int = 1
    behind: tuple[tuple[str, str], ...] = ()

    def computed_by(self, task: str) -> list[str]:
        """The names of this node and of those behind it that a task's kernel computes, too."""
        words = Counter(re.findall(r"[a-z]+", task))
        names = [self.name]
        for name, op in self.behind:
            word = next((word for word in BEHIND.get(op, ()) if words[word]), None)
            if word is None:
                break
            words[word] -= 1
            names.append(name)
        return names


def of_task(program: Any, op: str) -> Contraction | None:
    """The contraction of a task's program (`IRModule`), or None where it has none."""
    from ansor_deploy._tvm import tirx, tvm
    from ansor_deploy.space.block_view import blocks

    if not re.search(r"conv[123]d|matmul|dense", op):
        return None
    sch = tvm.s_tir.Schedule(program, debug_mask="none")
    kind = "conv" if "conv" in op else "matmul"
    found = []
    for axes in (sch.get(block).iter_vars for block in blocks(sch)):
        summed = [axis for axis in axes if axis.iter_type == tirx.IterVar.CommReduce]
        kept = [axis for axis in axes if axis.iter_type == tirx.IterVar.DataPar]
        if summed:
            found.append(Contraction(kind, _extents(kept), _extents(summed)))
    return max(found, key=lambda one: one.flops, default=None)


def _extents(axes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(axis.dom.extent) for axis in axes)


def of_graph(model: onnx.ModelProto, events: Sequence[Mapping[str, Any]]) -> list[Node]:
    """The contractions of ONNX Runtime's optimised graph, in the order of one run's events.

    events: of its profile; they have the shapes of what is no weight, and the graph the others.
    """
    nodes = {node.name: node for node in model.graph.node}
    weights = {one.name: tuple(one.dims) for one in model.graph.initializer}
    made = []
    for event in events:
        node = nodes.get(_name(event))
        if node is not None and node.op_type in NODES:
            outputs = _shapes(event["args"]["output_type_shape"])
            inputs = _shapes(event["args"]["input_type_shape"])
            found = _contraction(node, inputs[0], weights.get(node.input[1]), outputs[0])
            behind = tuple((one.name, one.op_type) for one in _behind(model, node))
            made.append(Node(node.name, node.op_type, found, _stride(node), behind))
    return made


def _name(event: Mapping[str, Any]) -> str:
    return str(event["name"]).removesuffix("_kernel_time")


def _shapes(listed: Sequence[Mapping[str, Sequence[int]]]) -> list[tuple[int, ...]]:
    return [tuple(shape) for one in listed for shape in one.values()]


def _contraction(
    node: onnx.NodeProto,
    left: tuple[int, ...],
    weight: tuple[int, ...] | None,
    out: tuple[int, ...],
) -> Contraction:
    if node.op_type == "ConvTranspose" and weight:  # every input meets one filter
        taps = math.prod(left) * math.prod(weight[1:]) / math.prod(out)
        return Contraction("conv", (*out[2:], out[1]), (max(1, round(taps)),))
    if node.op_type in ("Conv", "FusedConv") and weight:
        return Contraction("conv", (*out[2:], out[1]), (*weight[2:], weight[1]))
    flipped = any(one.name == "transA" and one.i for one in node.attribute)
    return Contraction("matmul", out, (left[-2 if flipped else -1],))


def _stride(node: onnx.NodeProto) -> int:
    return max((max(one.ints) for one in node.attribute if one.name == "strides"), default=1)


def _behind(model: onnx.ModelProto, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    found: list[onnx.NodeProto] = []
    results = {one.name for one in model.graph.output}
    while True:
        output = (found[-1] if found else node).output[0]
        readers = [one for one in model.graph.node if output in one.input]
        if len(readers) != 1 or output in results or readers[0].op_type not in BEHIND:
            return found
        found.append(readers[0])


def match(ours: Sequence[Contraction], theirs: Sequence[Node]) -> dict[int, int]:
    """Of each of ours the place of its counterpart, where there is one; both in running order."""
    from scipy.optimize import linear_sum_assignment

    if not ours or not theirs:
        return {}
    costs = np.array(
        [
            [
                _distance(one, other.contraction) + ORDER * abs(i / len(ours) - j / len(theirs))
                for j, other in enumerate(theirs)
            ]
            for i, one in enumerate(ours)
        ]
    )
    pairs = zip(*linear_sum_assignment(costs), strict=True)
    return {int(i): int(j) for i, j in pairs if costs[i, j] <= FAR}


def _distance(one: Contraction, other: Contraction) -> float:
    sizes = math.log2(math.prod(one.elements) / math.prod(other.elements))
    return abs(math.log2(one.flops / other.flops)) + abs(sizes) + (one.kind != other.kind)
