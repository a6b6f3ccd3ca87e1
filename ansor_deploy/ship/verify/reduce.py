"""Reduce a model whose library is wrong to a small part that is wrong by itself.

The first node that is off is built alone, then with more and more of the nodes before it, until the
part is wrong as well. What it reads are ONNX Runtime's values on the whole model's inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import AnsorError
from ...model.graph.cuts import Graph
from ...model.onnx.bind import model_inputs
from ...model.onnx.written import is_large
from ...model.relax.importer import tensor_info
from ...system.atomic_file import write_whole
from ...system.interrupt import check
from .by_node import compared
from .oracle import Oracle

if TYPE_CHECKING:
    import onnx

    from ...model.prepare import Prepared
    from .parts import How

    Part = tuple[onnx.ModelProto, dict[str, np.ndarray]]


def write_reduced(model: Prepared, tensor: str, how: How, output: Path) -> list[Path]:
    """Write the smallest part that was found wrong, and its inputs; return both paths.

    tensor: one that is wrong in the model's first shape. Nothing is written where no part is wrong
    with ONNX Runtime's values, or where its weights would not fit into the file.
    """
    for proto, feed in _parts(model, tensor, how):
        check()
        if _is_wrong(proto, feed, how):
            break
    else:
        return []
    if is_large(proto):
        return []
    inputs, buffer = output.with_name(f"{output.name}.npz"), BytesIO()
    np.savez(buffer, **feed)
    write_whole(output, proto.SerializeToString())
    write_whole(inputs, buffer.getvalue())
    return [output, inputs]


def _parts(model: Prepared, tensor: str, how: How) -> Iterator[Part]:
    """Parts that compute a tensor, with their inputs: the last node, then twice as many each time.

    Parts that read a tensor of unknown size are left out.
    """
    cut = Graph(Graph(model.protos[0]).cut([tensor]))
    own = [tensor_info(value) for value in model_inputs(model.protos[0])]
    feed, _ = Oracle(model.protos[0]).ask(own, how.seed)
    size, count = 1, len(cut.nodes)
    while size < 2 * count:
        if (part := cut.without(range(count - min(size, count)))) is not None:
            yield part, _values(cut, part, feed)
        size *= 2


def _values(
    cut: Graph, part: onnx.ModelProto, feed: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """What a part reads: inputs of the whole model, and what ONNX Runtime computes from these."""
    read = [value.name for value in part.graph.input]
    made = [name for name in read if name not in feed]
    whole = Oracle(cut.cut(made)).outputs(feed) if made else {}
    return {name: feed[name] if name in feed else whole[name] for name in read}


def _is_wrong(proto: onnx.ModelProto, feed: dict[str, np.ndarray], how: How) -> bool:
    """Whether the library of a part is wrong; a part that cannot be built is not."""
    try:
        return not all(verdict.ok for verdict in compared(proto, how, feed).values())
    except AnsorError:
        return False
