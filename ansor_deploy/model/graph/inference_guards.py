"""Guards for ONNX's shape inference where a failed assertion would end the process.

A window larger than its data leaves a negative size, which inference accepts, but a Slice along
that axis then fails an assertion. So each Slice reads its data through a guard: a Concat of the
data and of no elements, taken by a TopK. Inference refuses that TopK for a negative size, so the
guard has no shape, and the Slice is not inferred. A LabelEncoder fails if its input has no type:
the type is read from its keys.

Sizes by scales are those of ONNX Runtime, which multiplies in float32: of 24 elements, the scale
40 / 24 makes 40. Inference multiplies in float64, and rounds that down to 39.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import floor

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from ..onnx.skeleton import attribute

GUARD = "ansor_deploy.guard"  # the names of the guards' tensors begin so
NONE = f"{GUARD}.none"
SCALED = ("Resize", "Upsample")
Shape = tuple[int, ...]
_LARGEST = 1 << 20  # a scale that no image has
_WINDOWED = ("Conv", "MaxPool", "AveragePool", "LpPool")
_KEYS = {
    "keys_floats": TensorProto.FLOAT,
    "keys_int64s": TensorProto.INT64,
    "keys_strings": TensorProto.STRING,
}
_BY_INPUTS = 10  # from this opset on, a Slice has its axes as an input


def guarded(
    nodes: Sequence[NodeProto], opset: int, value: Callable[[str], np.ndarray | None]
) -> list[NodeProto]:
    """The nodes, with guards before Slices if there are windows. value: that of a constant."""
    if opset < _BY_INPUTS or not any(node.op_type in _WINDOWED for node in nodes):
        return list(nodes)
    return [made for at, node in enumerate(nodes) for made in _guarded(node, at, value)]


def rounded_sizes(
    nodes: Iterable[NodeProto],
    value: Callable[[str], np.ndarray | None],
    shapes: Mapping[str, Shape],
) -> dict[str, Shape]:
    """The shape of each result of constant scales that inference rounds otherwise."""
    found = {}
    for node in nodes:
        if node.op_type not in SCALED or not node.input or node.input[0] not in shapes:
            continue
        made, inferred = ([*shapes[node.input[0]]] for _ in range(2))
        for axis, scale in _scales(node, value, len(made)):
            size = made[axis]
            made[axis], inferred[axis] = int(scale * np.float32(size)), floor(float(scale) * size)
        if made != inferred:
            found[node.output[0]] = tuple(made)
    return found


def _scales(
    node: NodeProto, value: Callable[[str], np.ndarray | None], rank: int
) -> list[tuple[int, np.float32]]:
    """The axes that a node resizes by constant scales, and these; none if they are not valid."""
    at = min(2, len(node.input) - 1)  # the second input before opset 11
    given = value(node.input[at]) if at else None
    scales = np.float32(attribute(node, "scales", []) if given is None else given).ravel()
    axes = [axis % rank for axis in attribute(node, "axes") or range(rank) if axis < rank]
    cropped = attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
    valid = len(scales) == len(axes) and ((scales > 0) & (scales < _LARGEST)).all()
    return [*zip(axes, scales, strict=True)] if valid and not cropped else []


def sized(nodes: Iterable[NodeProto], shapes: Mapping[str, Shape]) -> Iterator[NodeProto]:
    """The nodes, with one of a constant shape in place of each that makes one of these."""
    for node in nodes:
        if node.output and node.output[0] in shapes:
            shape = shapes[node.output[0]]
            name = f"{GUARD}.sizes.{node.output[0]}"
            yield helper.make_node("Constant", [], [name], value=_list(name, shape))
            yield helper.make_node("Reshape", [node.input[0], name], node.output[:1], node.name)
        else:
            yield node


def _list(name: str, numbers: Sequence[int]) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)


def keyed(nodes: Iterable[NodeProto], known: Container[str]) -> Iterator[ValueInfoProto]:
    """Types for the inputs of LabelEncoders, except for known names."""
    for node in nodes:
        if node.op_type == "LabelEncoder" and node.input[0] not in known:
            yield helper.make_tensor_value_info(node.input[0], _type_of_keys(node), None)


def _type_of_keys(node: NodeProto) -> int:
    tensor = attribute(node, "keys_tensor")
    kinds = (kind for name, kind in _KEYS.items() if attribute(node, name))
    return next(kinds, tensor.data_type if tensor is not None else TensorProto.INT64)


def none() -> TensorProto:
    """The constant that guards read."""
    return helper.make_tensor(NONE, TensorProto.INT64, [1], [0])


def _guarded(
    node: NodeProto, at: int, value: Callable[[str], np.ndarray | None]
) -> Iterator[NodeProto]:
    axes = value(node.input[3]) if node.op_type == "Slice" and len(node.input) > 3 else None
    data = node.input[0] if node.input else ""
    for turn, axis in enumerate([] if axes is None else axes.ravel().tolist()):
        if axis in (0, 1):  # samples and channels: no window shortens them
            continue
        taken, known = f"{GUARD}.{at}.{turn}.taken", f"{GUARD}.{at}.{turn}"
        yield helper.make_node("TopK", [data, NONE], [taken, ""], node.name, axis=axis)
        yield helper.make_node("Concat", [data, taken], [known], axis=axis)
        data = known
    if data.startswith(GUARD):
        read = NodeProto()
        read.CopyFrom(node)
        read.input[0] = data
        node = read
    yield node
