"""Products that add up thousands of steps, as those over the pixels of an image, do so in parts.

    y = MatMul(a, b)                 a: (.., rows, 36864), b: (.., 36864, columns)
    -->
    y = ReduceSum(MatMul(a, b), 0)   a: (.., 72, rows, 512), b: (.., 72, 512, columns)

A kernel adds up one step after the other. For 36864 equal products that is off by 1,500 roundings,
and in such parts by 30. The errors of products with weights, which are not equal, cancel out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, helper

from .graph import Graph, is_op

_MANY = 1 << 12  # steps, from which on a sum is parted
_MOST, _LEAST = 1 << 9, 1 << 5  # steps of a part
_OF_LISTS = 13  # the first version of ReduceSum that reads its axes from an input


def part_long_products(graph: Graph) -> None:
    """Part the sums of products of two computed tensors, unless one is a softmax: as in attention.

    Not where a run decides how many steps there are: it leaves out those that do not count.
    """
    if graph.ranges or graph.context is not None:
        return
    makers = graph.producers()
    for node in [one for one in graph.nodes if is_op(one, "MatMul")]:
        left, right = (graph.shapes.get(name, ()) for name in node.input)
        computed = all(name in makers for name in node.input)
        if not computed or is_op(makers[node.input[0]], "Softmax") or len(left) != len(right):
            continue
        if len(left) > 1 and left[-1] >= _MANY and (steps := _steps(left[-1])):
            _part(graph, node, steps)


def _steps(count: int) -> int:
    """The steps of a part: the largest number of them that divides all; 0 if there is none."""
    return next((part for part in range(_MOST, _LEAST - 1, -1) if count % part == 0), 0)


def _part(graph: Graph, node: NodeProto, steps: int) -> None:
    """Replace a product by the sum of products of so many steps each."""
    left, right = node.input
    *batch, rows, count = graph.shapes[left]
    *others, _, columns = graph.shapes[right]
    at, made = len(batch), list[NodeProto]()

    def emit(op: str, *inputs: str, **words: Any) -> str:
        result = graph.fresh(node.output[0])
        made.append(helper.make_node(op, inputs, [result], result, **words))
        return result

    def listed(*numbers: int) -> str:
        return graph.add_constant(np.array(numbers, np.int64), node.output[0])

    order = [*range(at), at + 1, at, at + 2]
    left = emit("Reshape", left, listed(*batch, rows, count // steps, steps))
    right = emit("Reshape", right, listed(*others, count // steps, steps, columns))
    product = emit("MatMul", emit("Transpose", left, perm=order), right)
    words = ([product, listed(at)], {}) if graph.opset >= _OF_LISTS else ([product], {"axes": [at]})
    total = helper.make_node("ReduceSum", words[0], node.output, node.name, keepdims=0, **words[1])
    graph.replace(node, [*made, total])
