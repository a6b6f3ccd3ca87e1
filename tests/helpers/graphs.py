"""Tiny ONNX graphs for tests: built in a few lines, run in ONNX Runtime, retrained by seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

LIGHT_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; inputs and outputs are words, and '-' is an omitted input."""
    read = ["" if name == "-" else name for name in inputs.split()]
    made = outputs.split()
    return helper.make_node(op, read, made, name=made[0], **attributes)


def contrib(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    """As `node`, for one of ONNX Runtime's own operators."""
    made = node(op, inputs, outputs, **attributes)
    made.domain = "com.microsoft"
    return made


def either(
    condition: str,
    made: str,
    then: Sequence[NodeProto],
    other: Sequence[NodeProto],
    kind: Any = TensorProto.FLOAT,
) -> NodeProto:
    """An If whose branches return their last nodes' outputs. kind: their type, as in `typed`."""
    results = ([_info(nodes[-1].output[0], kind)] for nodes in (then, other))
    first, second = map(helper.make_graph, (then, other), ("then", "else"), ([], []), results)
    return node("If", condition, made, then_branch=first, else_branch=second)


def typed(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    **versions: int,
) -> ModelProto:
    """A model with inputs and outputs of any types, unchecked.

    inputs, outputs: by name, a type, a type and a shape, or an array with both. constants: arrays
    or tensors, by name. versions: of other operator sets, if not 1.
    """
    held = [
        value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), key)
        for key, value in (constants or {}).items()
    ]
    ends = ([_info(*pair) for pair in some.items()] for some in (inputs, outputs))
    graph = helper.make_graph(list(nodes), "test", *ends, held)
    used = {**dict.fromkeys((one.domain for one in nodes), 1), **versions, "": opset}
    opsets = [helper.make_opsetid(*pair) for pair in used.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _info(name: str, kind: Any) -> ValueInfoProto:
    if kind is None:
        return helper.make_empty_tensor_value_info(name)
    if isinstance(kind, np.ndarray):
        kind = kind.dtype, kind.shape
    element, shape = kind if isinstance(kind, tuple) else (kind, None)
    if not isinstance(element, int):
        element = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    return helper.make_tensor_value_info(name, element, shape)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
) -> ModelProto:
    """A model, checked if its shapes can be inferred.

    constants: arrays, by name. dtype: of inputs and outputs.
    """
    ends = {name: (dtype, shape) for name, shape in inputs.items()}
    proto = typed(nodes, ends, dict.fromkeys(outputs, dtype), constants, opset)
    # The checker demands output shapes: those that can be inferred are declared.
    inferred = onnx.shape_inference.infer_shapes(proto)
    for value, known in zip(proto.graph.output, inferred.graph.output, strict=True):
        value.CopyFrom(known)
    if all(value.type.tensor_type.HasField("shape") for value in proto.graph.output):
        onnx.checker.check_model(proto)
    return proto


def randn(seed: int, *shape: int) -> np.ndarray:
    """Seeded normal numbers, as float32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def likeness(queries: str, keys: str) -> list[NodeProto]:
    """Nodes for `p`, the softmax of products of rows with rows, as in attention."""
    return [
        node("Transpose", keys, "t", perm=[0, 2, 1]),
        node("MatMul", f"{queries} t", "s"),
        node("Softmax", "s", "p", axis=-1),
    ]


def dense(*widths: int, rows: int = 8) -> ModelProto:
    """Dense layers between these widths, each a task of its own."""
    nodes, constants, read = [], {}, "x"
    for layer, (width, following) in enumerate(pairwise(widths)):
        constants[f"w{layer}"] = randn(layer, width, following)
        made = "y" if layer == len(widths) - 2 else f"r{layer}"
        nodes += [node("MatMul", f"{read} w{layer}", f"h{layer}"), node("Relu", f"h{layer}", made)]
        read = made
    return model(nodes, {"x": (rows, widths[0])}, constants=constants)


def batches() -> ModelProto:
    """A convolution and a matmul over any number of images of any height."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Flatten", "p", "f"),
        node("MatMul", "f v", "y"),
    ]
    constants = {"w": randn(0, 16, 3, 3, 3), "v": randn(1, 16, 256)}
    return model(nodes, {"x": ("n", 3, "h", 8)}, constants=constants)


def batch_norm(name: str, channels: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Scale, offset, mean and variance under `name`.s, .b, .m and .v."""
    values = {f"{name}.{key}": randn(seed + i, channels) for i, key in enumerate("sbm")}
    return {**values, f"{name}.v": np.abs(randn(seed + 3, channels)) + np.float32(0.5)}


def ops(proto: ModelProto) -> list[str]:
    """The operators, in order."""
    return [entry.op_type for entry in proto.graph.node]


def light_models() -> list[Path]:
    """The light models that the onnx wheel carries for its own tests."""
    return sorted(LIGHT_FOLDER.glob("light_*.onnx"))


def before_softmax(proto: ModelProto) -> ModelProto:
    """The model without its last Softmax, which would hide most differences before it."""
    cut = ModelProto()
    cut.CopyFrom(proto)
    last = cut.graph.node[-1]
    assert last.op_type == "Softmax"
    cut.graph.output[0].CopyFrom(
        helper.make_tensor_value_info(last.input[0], TensorProto.FLOAT, None)
    )
    del cut.graph.node[-1]
    return cut


def with_product(proto: ModelProto, rows: int, columns: int) -> ModelProto:
    """The model with a product of its output and a matrix behind it."""
    longer = ModelProto()
    longer.CopyFrom(proto)
    (last,) = longer.graph.output
    longer.graph.initializer.append(numpy_helper.from_array(randn(0, rows, columns), "matrix"))
    longer.graph.node.append(node("MatMul", f"{last.name} matrix", "product"))
    last.CopyFrom(helper.make_tensor_value_info("product", TensorProto.FLOAT, None))
    return longer


def random_feeds(proto: ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded values for every input that is not a constant; unknown sizes become 1."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in proto.graph.input:
        if value.name not in constants:
            tensor = value.type.tensor_type
            shape = [dim.dim_value or 1 for dim in tensor.shape.dim]
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            is_float = np.issubdtype(dtype, np.floating)
            values = rng.standard_normal(shape) if is_float else rng.integers(0, 2, shape)
            feeds[value.name] = values.astype(dtype)
    return feeds


class Calibration:
    """Samples of a model's inputs, in the interface of ONNX Runtime's quantiser."""

    def __init__(self, feeds: Iterable[Mapping[str, np.ndarray]]) -> None:
        self._feeds = iter(list(feeds))

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        """The next sample; None after the last one."""
        return next(self._feeds, None)


def run(proto: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of ONNX Runtime without its own graph optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def assert_same(before: ModelProto, after: ModelProto, tolerance: float = 1e-5) -> None:
    """Both models give the same outputs for the same seeded inputs, including shapes."""
    feeds = random_feeds(before)
    for want, have in zip(run(before, feeds), run(after, feeds), strict=True):
        assert want.shape == have.shape
        assert want.dtype == have.dtype
        scale = max(1.0, float(np.abs(np.nan_to_num(want)).max(initial=0)))
        np.testing.assert_allclose(have, want, rtol=0, atol=tolerance * scale)


def randomize_weights(proto: ModelProto, seed: int) -> ModelProto:
    """The model as if trained anew: the same graph with other weights, which keep values finite.

    Weights made by ConstantOfShape become initializers, as in a trained model.
    """
    retrained = ModelProto()
    retrained.CopyFrom(proto)
    retrained.ir_version = max(proto.ir_version, 4)
    _materialize(retrained)
    roles = _roles(retrained)
    rng = np.random.default_rng(seed)
    for tensor in retrained.graph.initializer:
        if tensor.name in roles:
            old = numpy_helper.to_array(tensor)
            new = _sample(rng, roles[tensor.name], old.shape).astype(old.dtype)
            tensor.CopyFrom(numpy_helper.from_array(new, tensor.name))
    return retrained


def _materialize(proto: ModelProto) -> None:
    """ConstantOfShape of an initializer --> initializer."""
    shapes = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer if len(t.dims) == 1}
    made = [n for n in proto.graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    gone = {entry.input[0] for entry in made}
    for entry in made:
        zeros = np.zeros(tuple(shapes[entry.input[0]]), np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(zeros, entry.output[0]))
        proto.graph.node.remove(entry)
    read = {name for entry in proto.graph.node for name in entry.input}
    for field in (proto.graph.initializer, proto.graph.input):
        for entry in [e for e in field if e.name in gone - read]:
            field.remove(entry)


def _roles(proto: ModelProto) -> dict[str, str]:
    """The role of each float initializer for the operators that read it, also by an Unsqueeze."""
    floats = {t.name for t in proto.graph.initializer if t.data_type == TensorProto.FLOAT}
    source = {n.output[0]: n.input[0] for n in proto.graph.node if n.op_type == "Unsqueeze"}
    roles: dict[str, str] = {}
    for entry in proto.graph.node:
        for index, name in enumerate(entry.input):
            root = name
            while root in source:
                root = source[root]
            if root in floats:
                roles.setdefault(root, _role(entry, index))
    return roles


def _role(entry: NodeProto, index: int) -> str:
    if entry.op_type == "BatchNormalization":
        return ("", "gain", "offset", "offset", "variance")[index]
    if entry.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        transposed = entry.op_type == "Gemm" and any(
            a.name == "transB" and a.i for a in entry.attribute
        )
        is_conv = entry.op_type == "Conv"
        return ("", "rows" if is_conv or transposed else "columns", "offset")[index]
    return {"Mul": "gain", "Div": "gain", "Add": "offset", "Sub": "offset"}.get(
        entry.op_type, "gain" if index == 1 else "offset"
    )


def _sample(rng: np.random.Generator, role: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values for a role: He-scaled where a layer sums over them, near one for factors."""
    if role in ("gain", "variance"):
        return rng.uniform(0.5, 1, shape) + (role == "variance")
    if role == "offset":
        return 0.1 * rng.standard_normal(shape, dtype=np.float32)
    fan_in = (
        prod(shape[1:]) if role == "rows" else prod(shape[:-1]) if len(shape) == 2 else shape[0]
    )
    return rng.standard_normal(shape, dtype=np.float32) * np.float32((2 / max(fan_in, 1)) ** 0.5)
