"""Constant folding: what does not depend on input values is computed now, in NumPy.

Only operators with exact or correctly rounded results are folded, and those of `constant_math`, so
that the same model gives the same bytes on every host; tanh and its like differ between processors.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ...errors import ModelError
from ...system.machine_fault import raise_if_fault
from ..onnx.bind import model_inputs
from ..onnx.reference import gather_elements, run_reference, scatter_rows
from ..onnx.skeleton import attribute, name_of, uses
from .answers import key_of
from .branches import hoist_constants
from .cleanup import drop_dead, sort_nodes
from .constant_math import OPERATORS, evaluate
from .constant_room import Room
from .empty import fold_empty
from .graph import FLOATS, GROWTH, Graph, is_op, optional_input
from .one_node import infer_node
from .subgraph import resolve_branches

# fmt: off
_EXACT = frozenset((
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat",
    "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor",
    "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less",
    "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pad",
    "Range", "Reciprocal", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ScatterElements",
    "ScatterND", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
))
# fmt: on
_LITERALS = {"value_float": np.float32, "value_int": np.int64}  # attributes of Constant, or lists
_OF_SHAPE = frozenset(("EyeLike", "Shape", "Size"))  # they do not read the values
_SHRINKING = frozenset(("Compress", "NonZero"))  # the size of their result depends on values
_INTEGER_ONLY = frozenset(("Pow", "ReduceProd", "ReduceSum", "Sum"))  # exact for integers only
# Bytes, at eight for each element, of the largest constant whose values inference may read.
_ASKED = 4096


def fold_constants(graph: Graph, *, strict: bool = False) -> None:
    """Make initializers of constants, shapes of static tensors, and what is computed from them.

    ModelError if there is no room for the results, or an operator rejects its constants; if strict,
    also where shapes contradict each other.
    """
    changed, known, fault, learned = True, set[str](), None, set[str]()
    while changed:
        fault = _inferred(graph, strict=strict and bool(known))
        learned = graph.shapes.keys() - known
        changed = _resolve_reshapes(graph) or resolve_branches(graph) or fold_empty(graph)
        if changed or learned:  # else the last round has folded all that can be
            changed = _folded(graph) or changed
        known = {*graph.shapes}
        # Last: a branch that is never taken may have constants that do not fit.
        changed = changed or hoist_constants(graph, _EXACT | _OF_SHAPE | {"Constant"})
    if strict and learned:
        graph.infer(strict=True)
    elif fault:
        raise fault


def _inferred(graph: Graph, *, strict: bool) -> ModelError | None:
    """Infer shapes; if strict, the fault of a graph whose shapes contradict each other.

    Another round may still drop the node at fault.
    """
    try:
        graph.infer(strict=strict)
    except ModelError as error:
        if not strict:
            raise
        graph.infer()
        return error
    return None


def sort_and_fold(graph: Graph) -> None:
    """Sort the nodes of a graph as it was read, drop those without readers, and fold constants."""
    sort_nodes(graph)
    drop_dead(graph)
    fold_constants(graph)


def computed(graph: Graph, node: NodeProto) -> np.ndarray | None:
    """The first result of a node of constants, computed; None if the node is not folded."""
    made = _results(graph, node) if _is_foldable(graph, node) else None
    first = made[0] if made else None
    return numpy_helper.to_array(first) if isinstance(first, TensorProto) else first


def check_unfolded(graph: Graph) -> None:
    """ModelError if TVM would compute more from constants than there is room for.

    graph: after all passes; its shapes are known.
    """
    computed = {value.name for value in model_inputs(graph.proto)}
    size = 0.0
    for node in graph.nodes:
        if computed.isdisjoint(uses(node)):
            size += _made_bytes(graph, node)
            graph.room.check(name_of(node), size)
        else:
            computed.update(node.output)


def check_left_out(graph: Graph, room: Room, weights: Collection[str]) -> None:
    """ModelError if there is no room for the constants that a sketch leaves out.

    graph: a sketch that is folded. room: that of the model. weights: the model's constants that are
    inputs of the sketch.
    """
    folded, left, made = weights | graph.constants.keys(), list[NodeProto](), set[str]()
    readers = Counter(name for node in graph.nodes for name in uses(node))
    for node in graph.nodes:
        read = uses(node)
        if not read or not read <= folded | made:
            continue
        if not read <= folded or not _would_fold(graph, node):
            left.append(node)
            made.update(node.output)
            continue
        size = _made_bytes(graph, node)
        if is_op(node, "ConstantOfShape"):
            room.fill(name_of(node), size)
        room.take(node.output[0], size)
        folded |= {*node.output}
        readers.subtract(read)
        for name in read:
            if not readers[name]:
                room.free(name)
    _check_left(graph, room, left)


def _check_left(graph: Graph, room: Room, left: Sequence[NodeProto]) -> None:
    """ModelError if there is no room for what TVM computes for other nodes from constants.

    Results that only such nodes read are not counted, since passes may drop them.
    """
    apart, size = {id(node) for node in left}, 0
    wanted = {name for node in graph.nodes if id(node) not in apart for name in uses(node)}
    for node in left:
        size += _made_bytes(graph, node) * (not wanted.isdisjoint(node.output))
        room.check(name_of(node), size)


def _would_fold(graph: Graph, node: NodeProto) -> bool:
    """Whether a node of constants that a sketch leaves out is folded in the model itself."""
    made = sum(_bytes(graph, name) for name in node.output if name)
    small = is_op(node, "ConstantOfShape") or made <= max(GROWTH, _given(graph, node))
    return is_op(node, *_EXACT) and small


def _folded(graph: Graph) -> bool:
    """Whether a node was folded. A computed constant is dropped once nothing reads it any more."""
    readers = Counter(name for node in graph.nodes for name in uses(node))
    done, outputs = set(), graph.output_names
    for node in list(graph.nodes):
        wanted = any(readers[name] or name in outputs for name in node.output)
        if not wanted:
            continue
        if (results := _made(graph, node)) is None:
            continue
        read = uses(node)  # before its outputs are renamed
        _store(graph, node, results)
        done.add(id(node))
        readers.subtract(read)
        for name in read - outputs:
            if not readers[name] and graph.room.has(name):
                graph.room.free(name)
                del graph.constants[name]
    graph.nodes = [n for n in graph.nodes if id(n) not in done and not _is_done(graph, n)]
    return bool(done)


def _made(graph: Graph, node: NodeProto) -> Sequence[TensorProto | np.ndarray] | None:
    """The values of the node's outputs; None if it is not folded."""
    if _is_done(graph, node):
        return None
    key = key_of(node, graph.constants)
    if key is not None and (known := graph.answers.find(key)) is not None:
        graph.room.check(name_of(node), sum(one.nbytes for one in known))
        return known
    _learn(graph, node)
    made = _results(graph, node) if _is_foldable(graph, node) else None
    if key is not None and made is not None:
        graph.answers.note(key, made)
    return made


def _learn(graph: Graph, node: NodeProto) -> None:
    """Infer the shapes of a node whose inputs were just folded, without a whole inference."""
    is_known = all(name in graph.shapes for name in node.output if name)
    # The shape of any input may be enough: a Reshape to constant sizes needs that of its second.
    if not is_known and any(name in graph.shapes for name in node.input):
        infer_node(graph, node, _small(graph, node))


def _small(graph: Graph, node: NodeProto) -> dict[str, TensorProto]:
    found = ((name, graph.constants.get(name)) for name in node.input if name)
    return {n: one for n, one in found if one is not None and _bytes(graph, n) <= _ASKED}


def _is_done(graph: Graph, node: NodeProto) -> bool:
    return all(name in graph.constants for name in node.output if name)


def _is_foldable(graph: Graph, node: NodeProto) -> bool:
    if node.domain not in ("", "ai.onnx") or _is_done(graph, node):
        return False
    if node.op_type == "Constant":
        outside = graph.output_names.isdisjoint(node.output)  # outputs of the model need a node
        return outside and constant_tensor(node) is not None
    if node.op_type == "Identity" and not graph.output_names.isdisjoint(node.output):
        return False
    if node.op_type in _OF_SHAPE:
        return node.input[0] in graph.shapes and node.input[0] in graph.dtypes
    given: list[Any] = [graph.constants.get(name) for name in node.input if name]
    # A NonZero with a second output, the count, is ours and not ONNX's.
    if None in given or (node.op_type == "NonZero" and len(node.output) > 1):
        return False
    return _is_reproducible(node, given) and _is_sensible(graph, node)


def _is_reproducible(node: NodeProto, given: list[TensorProto]) -> bool:
    """Whether the operator gives the same result for these constants on every host."""
    integers = all(tensor.data_type not in FLOATS for tensor in given)
    exact = node.op_type in _EXACT or (node.op_type in _INTEGER_ONLY and integers)
    empty = any(0 in tensor.dims for tensor in given)  # then there is nothing to round
    return exact or empty or _is_rounded(node, given)


def _is_rounded(node: NodeProto, given: list[TensorProto]) -> bool:
    """Whether `constant_math` computes it: all its floats have one type, which is not float64."""
    floats = {tensor.data_type for tensor in given if tensor.data_type in FLOATS}
    return node.op_type in OPERATORS and len(floats) == 1 and TensorProto.DOUBLE not in floats


def _is_sensible(graph: Graph, node: NodeProto) -> bool:
    """Whether the result is no larger than the inputs, or small anyway."""
    if node.op_type == "ConstantOfShape" and not graph.is_sketch:
        return True
    if node.op_type in _SHRINKING:
        rank = len(graph.shapes.get(node.input[0], ()))  # NonZero gives an index for each axis
        return _bytes(graph, node.input[0]) * max(1, rank) <= graph.growth
    made = sum(_bytes(graph, name) for name in node.output if name)
    return made <= graph.growth or (not graph.is_sketch and made <= _given(graph, node))


def _given(graph: Graph, node: NodeProto) -> float:
    return sum(_bytes(graph, name) for name in set(node.input) if name)


def _bytes(graph: Graph, name: str) -> float:
    """Size of a tensor at eight bytes an element; infinite if its shape is not known."""
    shape = graph.shapes.get(name)
    return math.inf if shape is None else 8 * math.prod(shape)


def _made_bytes(graph: Graph, node: NodeProto) -> int:
    """Size of the results of a node, as far as their shapes are known."""
    known = [n for n in node.output if n in graph.shapes and graph.dtypes.get(n)]
    kinds = [helper.tensor_dtype_to_np_dtype(graph.dtypes[name]) for name in known]
    sizes = zip(known, kinds, strict=True)
    return sum(kind.itemsize * math.prod(graph.shapes[name]) for name, kind in sizes)


def _fill(graph: Graph, node: NodeProto) -> None:
    """Count what a ConstantOfShape makes; ModelError if there is no room for it."""
    shape = graph.value(node.input[0])
    if shape is None or (shape < 0).any():
        hint = "Check the shapes given with --input-shape, or export the model again."
        raise _fault(node, "ConstantOfShape of a negative size", hint)
    value = attribute(node, "value")
    item = 4 if value is None else numpy_helper.to_array(value).itemsize
    graph.room.fill(name_of(node), math.prod(int(size) for size in shape) * item)


def _fault(node: NodeProto, text: str, hint: str) -> ModelError:
    return ModelError(f"node '{name_of(node)}': {text}", hint)


def _results(graph: Graph, node: NodeProto) -> Sequence[TensorProto | np.ndarray] | None:
    """The values of the node's outputs; None for a form of the operator that is not folded."""
    if node.op_type == "Constant":
        return [constant_tensor(node)]
    if node.op_type == "ConstantOfShape":
        _fill(graph, node)
    else:
        graph.room.check(name_of(node), _made_bytes(graph, node))
    if node.op_type in _OF_SHAPE:
        return [_of_shape(graph, node)]
    return _evaluate(graph, node)


def _of_shape(graph: Graph, node: NodeProto) -> np.ndarray:
    shape = graph.shapes[node.input[0]]
    if node.op_type == "EyeLike":
        element = attribute(node, "dtype", graph.dtypes[node.input[0]])
        kind = helper.tensor_dtype_to_np_dtype(element)
        return np.eye(*shape, k=attribute(node, "k", 0), dtype=kind)
    sizes = shape[attribute(node, "start", 0) : attribute(node, "end", len(shape))]
    return np.array(sizes if node.op_type == "Shape" else math.prod(shape), np.int64)


def _evaluate(graph: Graph, node: NodeProto) -> list[np.ndarray] | None:
    """Run one node, by `constant_math` or by ONNX's reference implementation.

    ModelError if it does not take these constants.
    """
    try:
        with np.errstate(all="ignore"):
            names = [name for name in node.input if name]
            given = [np.asarray(graph.value(name)) for name in names]
            if is_op(node, "GatherElements"):
                return [gather_elements(given[0], given[1], attribute(node, "axis", 0))]
            if is_op(node, "ScatterND") and attribute(node, "reduction", "none") == "none":
                return [scatter_rows(*given)]
            if _is_rounded(node, [graph.constants[name] for name in names]):
                return evaluate(node, given, graph.opset)
            return _reference(graph, node)
    except Exception as error:  # NumPy raises many types for a wrong axis, index or shape
        raise_if_fault(error)
        hint = "The file is damaged or was exported wrongly: export it again."
        fault = f"{node.op_type} does not fit its constant inputs: {error}"
        raise _fault(node, fault, hint) from error


def _reference(graph: Graph, node: NodeProto) -> list[np.ndarray]:
    given = [graph.value(name) if name else None for name in node.input]
    if is_op(node, "CumSum") and np.size(given[1]) == 1:
        given[1] = np.reshape(np.asarray(given[1]), ())  # torch's exporter writes a list of one
    return run_reference(node, given, graph.opset)


def _store(graph: Graph, node: NodeProto, results: Sequence[TensorProto | np.ndarray]) -> None:
    _free_outputs(graph, node)
    # An operator may have more results than the node names, as a norm has its mean.
    for name, result in zip(node.output, results, strict=False):
        if not name:
            continue
        if isinstance(result, TensorProto):  # a Constant's own tensor
            result.name = name
            graph.note(result)
        else:
            graph.keep(numpy_helper.from_array(np.asarray(result), name))


def _free_outputs(graph: Graph, node: NodeProto) -> None:
    """Rename the node's results that are outputs of the model, and make the outputs by Identity."""
    outputs = graph.output_names
    for at, name in enumerate(node.output):
        if name in outputs:
            node.output[at] = graph.fresh(name)
            graph.rename_uses({name: node.output[at]})
            graph.nodes.append(helper.make_node("Identity", [node.output[at]], [name]))


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The value of a Constant node; None for a sparse tensor or a string."""
    for entry in node.attribute:
        if entry.name == "value":
            return entry.t
        if kind := _LITERALS.get(entry.name.removesuffix("s")):
            return numpy_helper.from_array(np.array(helper.get_attribute_value(entry), kind))
    return None


def _resolve_reshapes(graph: Graph) -> bool:
    """Replace a Reshape's shape that has 0, -1 or computed sizes by the static shape it gives.

    Returns:
        Whether a Reshape of a constant was changed, which can be folded now.
    """
    changed = False
    for node in graph.nodes:
        shape = graph.shapes.get(node.output[0]) if is_op(node, "Reshape") else None
        if shape is None or 0 in shape or not optional_input(node, 1):
            continue  # a 0 in the shape input would mean "the input's size"
        given = graph.value(node.input[1])
        if given is None or tuple(given) != shape:
            node.input[1] = graph.add_constant(np.array(shape, np.int64), f"{node.output[0]}_shape")
            changed = changed or node.input[0] in graph.constants
    return changed
