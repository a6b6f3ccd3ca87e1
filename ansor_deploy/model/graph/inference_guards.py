"""Guards for ONNX's shape inference where a failed assertion would end the process.

A window larger than its data leaves a negative size, which inference accepts, but a Slice along
that axis then fails an assertion. So each Slice reads its data through a guard: a Concat of the
data and of no elements, taken by a TopK. Inference refuses that TopK for a negative size, so the
guard has no shape, and the Slice is not inferred. A LabelEncoder fails if its input has no type:
the type is read from its keys.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from ..onnx.skeleton import attribute

GUARD = "ansor_deploy.guard"  # the names of the guards' tensors begin so
NONE = f"{GUARD}.none"
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
