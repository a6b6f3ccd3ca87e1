"""The shapes of a model's inputs: bound where they fit, proposed where they lack or do not."""

from collections.abc import Iterator, Mapping

from onnx import ModelProto, NodeProto, inliner

from ..errors import ModelError
from .graph.cleanup import drop_dead, sort_nodes
from .graph.fold import fold_constants
from .graph.graph import Graph, is_op
from .onnx.bind import OpenInputsError, bind_shapes
from .onnx.sizes import proposals
from .onnx.skeleton import attribute, name_of, skeleton

Shape = tuple[int, ...]
_WINDOWED = ("Conv", "MaxPool", "AveragePool", "LpPool")


def bound(proto: ModelProto, given: Mapping[str, Shape]) -> ModelProto:
    """The model with these shapes; ModelError that proposes some for the inputs left open."""
    try:
        return bind_shapes(proto, given)
    except OpenInputsError as error:
        error.hint = _hint(proto, given)
        raise


def _hint(proto: ModelProto, given: Mapping[str, Shape]) -> str:
    """Options to paste: shapes that were found to fit, or those of the right form."""
    tried = list(proposals(proto, given))
    for shapes in tried:
        if not misfit(proto, {**given, **shapes}):
            return f"Give them: {_options(shapes)}"
    return f"Give them, with sizes that fit the model: {_options(tried[0])}"


def _options(shapes: Mapping[str, Shape]) -> str:
    return " ".join(f"--input-shape {name}={_numbers(shape)}" for name, shape in shapes.items())


def _numbers(shape: Shape) -> str:
    return ",".join(map(str, shape))


def misfit(proto: ModelProto, shapes: Mapping[str, Shape]) -> str:
    """Where the graph contradicts shapes of its inputs, as far as inference sees; else "".

    Weights are left out, so that it takes little time with a model of any size.
    """
    try:
        bare = inliner.inline_local_functions(skeleton(proto))
        graph = Graph.of(bind_shapes(bare, shapes))
        for change in (sort_nodes, drop_dead, fold_constants):
            change(graph)
        graph.infer(strict=True)
    except ModelError as error:
        return str(error)
    return next(_faults(graph), "")


def _faults(graph: Graph) -> Iterator[str]:
    """What inference lets pass: windows that are larger than their data, rows beyond a table."""
    for node in graph.nodes:
        given = graph.shapes.get(node.input[0]) if node.input else None
        where = f"node '{name_of(node)}' ({node.op_type})"
        if given and is_op(node, *_WINDOWED) and (wide := _window(graph, node, given)):
            yield f"{where} takes {wide} at once, and gets {_numbers(given[2:])}"
        if given and is_op(node, "Gather"):
            indices, rows = graph.value(node.input[1]), given[attribute(node, "axis", 0)]
            if indices is not None and indices.size and indices.max() >= rows:
                yield f"{where} reads row {indices.max()} of {rows}"


def _window(graph: Graph, node: NodeProto, given: Shape) -> str:
    """The window of a node if it is larger than its data with what is laid around it; else ""."""
    sizes = given[2:]
    kernel = attribute(node, "kernel_shape") or graph.shapes.get("".join(node.input[1:2]), ())[2:]
    steps = attribute(node, "dilations") or [1] * len(sizes)
    pads = attribute(node, "pads") or [0, 0] * len(sizes)
    wide = [step * (size - 1) + 1 for step, size in zip(steps, kernel, strict=False)]
    room = [sum(one) for one in zip(sizes, pads[: len(sizes)], pads[len(sizes) :], strict=False)]
    fits = all(window <= free for window, free in zip(wide, room, strict=False))
    return "" if fits or "SAME" in attribute(node, "auto_pad", "") else _numbers(tuple(wide))
