"""Make constants of inputs that have one value in every run, and take the branches they choose.

    sr==16000:    y = If(sr == 16000) { a } else { b }   -->   y = a

So the library has code for one branch only; the other one may need inputs of other sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from ..errors import ModelError, UsageError
from ..system.machine_fault import raise_if_fault
from .batches import Value, Values
from .graph.cleanup import drop_dead
from .graph.graph import Graph, is_op
from .graph.subgraph import spliced
from .onnx.bind import declared_shape, model_inputs
from .onnx.skeleton import attribute, cone, uses

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def with_values(proto: ModelProto, values: Values) -> ModelProto:
    """The model with constants in the place of the inputs of these names.

    The model no longer has these inputs, nor those that only the other branches read. UsageError if
    there is no such input, or if the text is no value of its type.
    """
    if not values:
        return proto
    graph = Graph.of(proto)
    read = _read(graph)
    for name, (value,) in values.items():
        graph.constants[name] = numpy_helper.from_array(_array(proto, name, value), name)
    while _resolved(graph):
        pass
    drop_dead(graph)
    made, gone = graph.to_proto(), {*values, *(read - _read(graph))}
    kept = [one for one in made.graph.input if one.name not in gone]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    return made


def _read(graph: Graph) -> set[str]:
    """The names that are read by nodes, or are outputs."""
    return graph.output_names.union(*map(uses, graph.nodes))


def _array(proto: ModelProto, name: str, value: Value) -> np.ndarray:
    """An array of the input's shape and type, filled with the value."""
    inputs = {one.name: one for one in model_inputs(proto)}
    if name not in inputs:
        raise UsageError(f"there is no input '{name}'", f"the inputs are {', '.join(inputs)}")
    shape = declared_shape(inputs[name])
    if shape is None or any(isinstance(size, str) for size in shape):
        hint = "those of a known size can be constants, such as a single number"
        raise UsageError(f"the size of input '{name}' is open", hint)
    kind = helper.tensor_dtype_to_np_dtype(inputs[name].type.tensor_type.elem_type)
    try:
        return np.full(shape, _number(value.text, kind))
    except (KeyError, OverflowError, ValueError):
        fault = f"{value.text} is no {kind.name}, as input '{name}' is"
        raise UsageError(fault, "give one that is") from None


def _number(text: str, kind: np.dtype) -> np.ndarray:
    """The value of a text. KeyError, OverflowError or ValueError if it is no value of the type."""
    if kind.kind == "b":
        return np.array(_TRUTHS[text.lower()])
    if kind.kind in "iu":
        return np.array(int(text), kind)
    return np.array(float(text)).astype(kind)


def _resolved(graph: Graph) -> bool:
    """Whether an If could be replaced by the branch that is taken."""
    for node in graph.nodes:
        taken = _decided(graph, node.input[0]) if is_op(node, "If") else None
        if taken is not None:
            body = attribute(node, "then_branch" if taken else "else_branch")
            graph.replace(node, spliced(graph, body, {}, node.output))
            return True
    return False


def _decided(graph: Graph, condition: str) -> bool | None:
    """The value of a condition that depends on constants alone; None for any other."""
    from onnx.reference import ReferenceEvaluator  # slow to import

    body, read = cone(graph.nodes, [condition])
    if not read <= graph.constants.keys():
        return None
    given = helper.make_graph(
        [*body, helper.make_node("Identity", [condition], ["decided"])],
        "condition",
        [],
        [helper.make_empty_tensor_value_info("decided")],
        [graph.constants[name] for name in read],
    )
    model = helper.make_model(given, opset_imports=graph.proto.opset_import)
    try:
        return bool(np.all(ReferenceEvaluator(model).run(None, {})[0]))
    except Exception as error:  # noqa: BLE001 - it may be a foreign operator: the run decides then
        raise_if_fault(error)
        return None


@contextmanager
def proposing_values(proto: ModelProto) -> Iterator[None]:
    """Where a model is refused, propose constants for the inputs that choose its branches."""
    names = _choosing(proto)
    del proto  # the caller drops it meanwhile, with its weights
    try:
        yield
    except ModelError as error:
        if names and "==" not in error.hint:
            options = " ".join(f"--input-shape {name}==VALUE" for name in names)
            error.hint = f"{error.hint.rstrip('.')}; or build one branch alone: {options}"
        raise


def _choosing(proto: ModelProto) -> list[str]:
    """The inputs that choose branches in a run without any other input."""
    known = {tensor.name for tensor in proto.graph.initializer}
    sizes = {one.name: declared_shape(one) for one in model_inputs(proto)}
    small = {name for name, shape in sizes.items() if shape is not None and {*shape} <= {1}}
    conditions = [node.input[0] for node in proto.graph.node if is_op(node, "If")]
    reads = [cone(proto.graph.node, [one])[1] - known for one in conditions]
    return sorted({name for read in reads if read <= small for name in read})
