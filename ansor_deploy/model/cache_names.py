"""One name for equal sizes of a decoder's caches and masks, where a file names them apart.

Unless they are told which sizes are equal, exporters give every open axis a name of its own:

    past_0 (1, heads, s29, 12) ; past_1 (1, heads, s71, 12) ; mask (1, s12)        a token a step
    -->
    past_0 (1, heads, s29, 12) ; past_1 (1, heads, s29, 12) ; mask (1, s29 + 1)

Some also copy a cache before they append rows to it, or cast it to the type that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import product

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from .misfit import misfit
from .onnx.bind import model_inputs
from .onnx.sizes import Axis, open_axes
from .onnx.skeleton import attribute

Place = tuple[str, int]  # an input, and an axis of it
_ROWS = "past_rows"  # where no name in the file can be a part of a sum
_OF_MASKS = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def origin(name: str, makers: Mapping[str, NodeProto], kind: int) -> str:
    """The tensor of this type of which another is a copy, or that tensor itself."""
    while name in makers and _copies(makers[name], kind):
        name = makers[name].input[0]
    return name


def _copies(node: NodeProto, kind: int) -> bool:
    if node.op_type == "Cast":
        return attribute(node, "to") == kind
    return node.op_type in ("Identity", "Concat") and len(node.input) == 1


def kind_of(value: ValueInfoProto) -> int:
    """ONNX's number of a tensor's type."""
    return int(value.type.tensor_type.elem_type)


def read_directly(proto: ModelProto, caches: Collection[str]) -> None:
    """Let nodes that read a copy of a cache read the cache."""
    makers = {name: node for node in proto.graph.node for name in node.output if name}
    kinds = {value.name: kind_of(value) for value in model_inputs(proto) if value.name in caches}
    for node, kind in product(proto.graph.node, {*kinds.values()}):
        for at, name in enumerate(node.input):
            if kinds.get(source := origin(name, makers, kind)) == kind:
                node.input[at] = source


def name_rows(proto: ModelProto, rows: Collection[Place]) -> None:
    """Give the axes of the rows of caches one name, if all of them are open."""
    axes = open_axes(proto)
    names = {axis.name for axis in axes if (axis.value.name, axis.at) in rows}
    found = [axis for axis in axes if axis.name in names]
    if names and {*rows} <= {(axis.value.name, axis.at) for axis in found}:
        _rename(proto, found, min(filter(str.isidentifier, names), default=_ROWS))


def name_masks(
    proto: ModelProto,
    shapes: Mapping[str, tuple[int, ...]],
    given: Collection[str],
    past: str,
    tokens: int,
) -> None:
    """Name the axes of masks that have an element for each row, those of a step included.

    shapes: of all inputs, proposed ones but for those of the inputs in `given`. A graph that does
    not take a shorter mask with shorter caches keeps the names that it has.
    """
    axes = open_axes(proto)
    sizes = {axis.name: shapes[axis.value.name][axis.at] for axis in axes}
    masks = {axis.name for axis in axes if sizes[axis.name] == sizes[past] + tokens}
    masks -= {axis.name for axis in axes if not _is_mask(axis) or axis.value.name in given}
    fewer = {place: list(shape) for place, shape in shapes.items()}
    for axis in axes:
        if axis.name in {past, *masks}:
            fewer[axis.value.name][axis.at] -= sizes[past] // 2
    if masks and not misfit(proto, {name: tuple(shape) for name, shape in fewer.items()}):
        _rename(proto, [axis for axis in axes if axis.name in masks], f"{past} + {tokens}")


def _is_mask(axis: Axis) -> bool:
    return axis.at > 0 and axis.value.type.tensor_type.elem_type in _OF_MASKS


def _rename(proto: ModelProto, axes: Iterable[Axis], name: str) -> None:
    places = {(axis.value.name, axis.at) for axis in axes}
    for value in model_inputs(proto):
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if (value.name, at) in places:
                dim.dim_param = name
