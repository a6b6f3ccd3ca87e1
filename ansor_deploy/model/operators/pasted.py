"""Loops that paste each mask, resized to its box, into an image of its own, written as products.

    for n: part = Resize(mask[n], the size of box[n]) ; y[n] = zeros, with part where box[n] lies
    -->
    w[p, m] = max(0, 1 - |at[p] - m|)       how much of element m there is at place p, on each axis
    y[n] = Where(place in box[n], w_rows[n] x mask[n] x transpose(w_columns[n]), 0)

torchvision exports Mask R-CNN so. A step is some hundred nodes, which cut a box at the edges of the
image. Whether a loop does this is found by running it on a few boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from ...system.machine_fault import raise_if_fault
from ..graph.cleanup import drop_dead
from ..graph.graph import Graph, is_op
from ..onnx.skeleton import attribute, uses
from .emitter import INT64, Emitter, expanded

_REAL = TensorProto.FLOAT
_SIDE = 5  # of the masks in a trial: [boxes, 1, 5, 5]


class _Paste(NamedTuple):
    """Masks and their boxes by name, and the height and width of an image."""

    masks: str
    boxes: str
    image: tuple[int, int]


def multiply_pasted(graph: Graph) -> None:
    """Write each of these loops as products of matrices."""
    made, changed = graph.producers(), False
    for node in [one for one in graph.nodes if is_op(one, "Loop")]:
        found = _paste(graph, made, node)
        if found and (new := expanded(graph, node, partial(_multiplied, found=found))):
            graph.replace(node, new)
            changed = True
    if changed:
        drop_dead(graph)


def _multiplied(emit: Emitter, found: _Paste) -> str:
    masks = emit("Gather", found.masks, emit.constant(0, INT64), axis=1)
    (rows, high), (columns, wide) = (_along(emit, found, axis) for axis in (0, 1))
    turned = emit("Transpose", columns, perm=[0, 2, 1])
    made = emit("MatMul", emit("MatMul", rows, masks), turned)
    inside = emit("And", emit.unsqueeze(high, 2), emit.unsqueeze(wide, 1))
    return emit("Where", inside, made, emit.constant(0))


def _along(emit: Emitter, found: _Paste, axis: int) -> tuple[str, str]:
    """Weights [boxes, places, elements] along an axis of images, and which places boxes hold."""
    columns = (emit.constant([at], INT64) for at in (1 - axis, 3 - axis))
    first, last = (emit.cast(emit("Gather", found.boxes, at, axis=1), _REAL) for at in columns)
    places = emit.constant(np.arange(found.image[axis])[None])
    one, half = emit.constant(1), emit.constant(0.5)
    size = emit("Max", emit("Add", emit("Sub", last, first), one), one)
    whole = emit("Gather", emit("Shape", found.masks), emit.constant(2 + axis, INT64), axis=0)
    elements = emit("Range", emit.constant(0, INT64), whole, emit.constant(1, INT64))
    extent = emit.cast(whole, _REAL)
    scale = emit("Div", extent, size)
    middle = emit("Add", emit("Sub", places, first), half)
    at = emit("Sub", emit("Mul", middle, scale), half)
    at = emit("Max", emit("Min", at, emit("Sub", extent, one)), emit.constant(0))
    apart = emit("Abs", emit("Sub", emit.unsqueeze(at, 2), emit.cast(elements, _REAL)))
    outside = emit("Or", emit("Less", places, first), emit("Less", last, places))
    return emit("Relu", emit("Sub", one, apart)), emit("Not", outside)


def _paste(graph: Graph, made: Mapping[str, NodeProto], loop: NodeProto) -> _Paste | None:
    """What a loop pastes, if it does."""
    body = attribute(loop, "body")
    if len(loop.input) != 3 or not any(is_op(one, "Resize") for one in body.node):
        return None
    start, more = (graph.value(name) for name in (loop.input[2], loop.input[1]))
    given = [name for name in uses(loop) - {*loop.input} if name not in graph.constants]
    of = {graph.dtypes.get(name): name for name in given}
    if len(given) != 2 or of.keys() != {_REAL, INT64} or more is None or not more.all():
        return None
    if start is None or start.ndim != 3 or start.size or not _counts(graph, made, loop, given):
        return None
    found = _Paste(of[_REAL], of[INT64], start.shape[1:])
    return found if _pastes(graph, loop, found) else None


def _counts(graph: Graph, made: Mapping[str, NodeProto], loop: NodeProto, given: list[str]) -> bool:
    """Whether a loop takes as many steps as one of the tensors has rows."""
    if (steps := graph.value(loop.input[0])) is not None:
        return any(graph.shapes.get(name, ())[:1] == (int(steps.item()),) for name in given)
    picked = made.get(loop.input[0])
    sizes = made.get(picked.input[0]) if picked is not None and is_op(picked, "Gather") else None
    if picked is None or sizes is None or not is_op(sizes, "Shape") or sizes.attribute:
        return False
    at = graph.value(picked.input[1])
    return sizes.input[0] in given and at is not None and not at.any()


def _pastes(graph: Graph, loop: NodeProto, found: _Paste) -> bool:
    """Whether a loop makes of some masks and boxes what pasting makes of them."""
    boxes = _boxes(*found.image)
    masks = np.random.default_rng(0).random((len(boxes), 1, _SIDE, _SIDE), np.float32)
    wanted = _pasted(masks, boxes, found.image)
    try:
        made = _run(graph, loop, {found.masks: masks, found.boxes: boxes})
    except Exception as error:  # noqa: BLE001 - any other loop may fail on such inputs
        raise_if_fault(error)
        return False
    return made.shape == wanted.shape and np.allclose(made, wanted, rtol=0, atol=1e-5)


def _boxes(height: int, width: int) -> np.ndarray:
    """Boxes inside an image, across each edge and all, of one place, and of none."""
    right, low = width - 1, height - 1
    return np.array([
        (0, 0, 2, 5), (3, 1, 9, 7), (-2, 1, 3, 4), (1, -3, 4, 3), (right - 3, 2, right + 2, 4),
        (2, low - 2, 5, low + 3), (-2, -1, width, 2), (right, low, right, low), (5, 5, 4, 4),
        (1, -2, 1, height + 1),
    ])  # fmt: skip


def _run(graph: Graph, loop: NodeProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    """The first result of a loop that takes a step for each row of the inputs."""
    from onnx.reference import ReferenceEvaluator  # slow to import

    held = [graph.constants[name] for name in sorted(uses(loop) & graph.constants.keys())]
    steps = helper.make_tensor(loop.input[0], INT64, (), [len(next(iter(feeds.values())))])
    given = [helper.make_empty_tensor_value_info(name) for name in feeds]
    result = helper.make_empty_tensor_value_info(loop.output[0])
    alone: GraphProto = helper.make_graph([loop], "loop", given, [result], [*held, steps])
    model = helper.make_model(alone, opset_imports=graph.proto.opset_import)
    return np.asarray(ReferenceEvaluator(model).run(None, dict(feeds))[0])


def _pasted(masks: np.ndarray, boxes: np.ndarray, image: tuple[int, int]) -> np.ndarray:
    """The images [boxes, *image] in float64."""
    parts = []
    for axis, extent in enumerate(image):
        first, last = boxes[:, [1 - axis]], boxes[:, [3 - axis]]
        places, elements = np.arange(extent), masks.shape[2 + axis]
        size = np.maximum(last - first + 1, 1)
        at = np.clip((places - first + 0.5) * elements / size - 0.5, 0, elements - 1)
        weights = np.maximum(1 - np.abs(at[..., None] - np.arange(elements)), 0)
        parts.append(weights * ((places >= first) & (places <= last))[..., None])
    return np.einsum("nhr,nrc,nwc->nhw", parts[0], masks[:, 0], parts[1])
