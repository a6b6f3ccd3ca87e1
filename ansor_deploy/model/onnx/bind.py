"""Static shapes for a model's inputs: code is generated and tuned for known sizes."""

from collections.abc import Mapping, Sequence
from itertools import chain

from onnx import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto

from ...errors import ModelError
from .bounds import check_shape
from .skeleton import nested, nodes, with_initializers


class OpenInputsError(ModelError):
    """Inputs have sizes that nobody gave."""


def model_inputs(proto: ModelProto) -> list[ValueInfoProto]:
    """The inputs a caller feeds: graph inputs that are not also initializers (constants)."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in constants]


def bind_shapes(proto: ModelProto, input_shapes: Mapping[str, tuple[int, ...]]) -> ModelProto:
    """A copy of the model in which every input has a static shape, given or already declared.

    A TopK that may return its elements in any order returns them sorted: that is one of the allowed
    orders, and whatever is compared with it needs the same order.

    Raises:
        ModelError: a name that is no input, a rank that disagrees, a fixed dimension that a node
            forbids to change, a size below one, or an input left with an unknown dimension.
    """
    inputs = {value.name: value for value in model_inputs(proto)}
    for name, shape in input_shapes.items():
        _check_binding(name, shape, inputs)
    if (old := exported_shapes(proto, input_shapes)) != input_shapes:
        from .rebatch import rebatched

        proto = rebatched(proto, old, input_shapes)
    bound = with_initializers(proto, proto.graph.initializer)
    # Shapes between the nodes follow from the inputs; those in the file may be symbolic.
    del bound.graph.value_info[:]
    for value in model_inputs(bound):
        if value.name in input_shapes:
            set_shape(value, input_shapes[value.name])
    _check_static(bound)
    for node in nodes(bound.graph):
        if node.op_type == "TopK":
            kept = [entry for entry in node.attribute if entry.name != "sorted"]
            del node.attribute[:]
            node.attribute.extend(kept)
        for graph in nested(node):
            _forget_symbolic(graph)
    return bound


def with_open_inputs(proto: ModelProto) -> ModelProto:
    """A copy of the model in which no size of an input is known."""
    made = with_initializers(proto, proto.graph.initializer)
    for value in model_inputs(made):
        for size in _sizes(value):
            size.Clear()
    return made


def at_all_sizes(protos: Sequence[ModelProto]) -> ModelProto | None:
    """The model that has open the sizes in which these differ; None if they differ otherwise.

    What it says of other tensors are their types and ranks alone.
    """
    first, *others = protos
    for one in others:
        if one.graph.node != first.graph.node or one.graph.initializer != first.graph.initializer:
            return None
    made = with_initializers(first, first.graph.initializer)
    for size in chain.from_iterable(map(_sizes, made.graph.value_info)):
        size.Clear()
    for value, *known in zip(*map(model_inputs, (made, *protos)), strict=True):
        for size, *sizes in zip(*map(_sizes, (value, *known)), strict=True):
            if len({one.dim_value for one in sizes}) > 1:
                size.Clear()
    return made


def _sizes(value: ValueInfoProto) -> Sequence[TensorShapeProto.Dimension]:
    return value.type.tensor_type.shape.dim


def _forget_symbolic(branch: GraphProto) -> None:
    """Forget symbolic shapes inside a node: exporters write some of a wrong rank."""
    del branch.value_info[:]
    for value in branch.output:
        if value.type.HasField("tensor_type") and not _is_static(declared_shape(value)):
            value.type.tensor_type.ClearField("shape")


def exported_shapes(
    proto: ModelProto, input_shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The given shapes, with dimensions that the model fixes as the model has them."""
    declared = {value.name: declared_shape(value) for value in model_inputs(proto)}
    return {
        name: tuple(
            size if isinstance(fixed, str) else fixed
            for fixed, size in zip(declared[name] or map(str, shape), shape, strict=True)
        )
        for name, shape in input_shapes.items()
    }


def declared_shape(value: ValueInfoProto) -> tuple[int | str, ...] | None:
    """The shape in the file: sizes, and for an unknown size its name or '?'; None: no rank."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or "?"
        for dim in value.type.tensor_type.shape.dim
    )


def _check_binding(name: str, shape: tuple[int, ...], inputs: dict[str, ValueInfoProto]) -> None:
    if name not in inputs:
        known = ", ".join(f"'{n}'" for n in inputs) or "none"
        raise ModelError(f"the model has no input '{name}'", f"Its inputs are: {known}.")
    if any(size < 1 for size in shape):
        raise ModelError(
            f"input '{name}': shape {_show(shape)} has a size below one",
            "Every dimension must be a positive number.",
        )
    check_shape(name, shape)
    declared = declared_shape(inputs[name])
    if declared is None:
        return
    if len(declared) != len(shape):
        raise ModelError(
            f"input '{name}' has shape {_show(declared)} in the model; {_show(shape)} does not fit",
            "Give as many dimensions as the model has.",
        )


def set_shape(value: ValueInfoProto, shape: tuple[int, ...]) -> None:
    """Declare a static shape for a tensor."""
    tensor = value.type.tensor_type
    tensor.ClearField("shape")
    tensor.shape.SetInParent()
    for size in shape:
        tensor.shape.dim.add().dim_value = size


def _check_static(proto: ModelProto) -> None:
    inputs = model_inputs(proto)
    declared = {value.name: declared_shape(value) for value in inputs}
    open_ = {name: shape for name, shape in declared.items() if not _is_static(shape)}
    if open_:
        listed = ", ".join(f"'{name}' {_show(shape)}" for name, shape in open_.items())
        hint = "Give each a shape: --input-shape NAME=1,3,224,224"
        raise OpenInputsError(f"inputs with unknown dimensions: {listed}", hint)


def _is_static(shape: tuple[int | str, ...] | None) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape)


def _show(shape: tuple[int | str, ...] | None) -> str:
    return "of unknown rank" if shape is None else f"({', '.join(map(str, shape))})"
