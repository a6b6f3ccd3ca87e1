"""Tree ensembles of ai.onnx.ml: all become a TreeEnsembleRegressor that only sums.

For two classes, ONNX Runtime differs from the standard; here its results count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from .emitter import Emitter
from .forest import ForestError
from .forest_walk import walked_down
from .operator import Operator
from .scores import (
    FLOAT,
    class_labels,
    either,
    first_of_largest,
    labels,
    opposite,
    paired,
    transformed,
)
from .tree_lists import as_attributes

DOUBLE = TensorProto.DOUBLE
_FUNCTIONS = ("AVERAGE", "SUM", "MIN", "MAX")  # in the order of TreeEnsemble's numbers
# By TreeEnsemble's numbers, without 1 and 2: the standard's SOFTMAX is ONNX Runtime's LOGISTIC.
_TRANSFORMS = {0: "NONE", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
# Attributes of what follows the trees, or that nothing needs.
_AFTERWARDS = ("base_values", "base_values_as_tensor", "post_transform", "nodes_hitrates",
               "nodes_hitrates_as_tensor", "classlabels_int64s", "classlabels_strings")  # fmt: skip


def tree_ensemble_regressor(emit: Emitter) -> str | None:
    """Sums or means of leaves, and what follows them; None for sums without anything after."""
    targets = emit.attribute("n_targets")
    if _is_plain(emit):
        emit.graph.declare(emit.node.output[0], FLOAT, (emit.shape(emit.input(0))[0], targets))
        return None
    how = emit.attribute("aggregate_function", "SUM")
    kept = _kept(emit.node.attribute)
    if how == "AVERAGE":
        kept = [entry for entry in kept if entry.name != "aggregate_function"]
    result = _sums(emit, kept, targets)
    if how == "AVERAGE":
        trees = len(set(emit.attribute("nodes_treeids")))
        result = emit("Div", result, emit.constant(float(trees)))
    base = _base_values(emit)
    result = emit("Add", result, emit.constant(base)) if len(base) == targets else result
    return transformed(emit, result, targets)


def _is_plain(emit: Emitter) -> bool:
    """Whether it only sums."""
    return (
        not _base_values(emit).size
        and emit.attribute("post_transform", "NONE") == "NONE"
        and emit.attribute("aggregate_function", "SUM") != "AVERAGE"
        and emit.dtype(emit.input(0)) in (FLOAT, DOUBLE)
    )


def tree_ensemble(emit: Emitter) -> str:
    """The form that has branches and leaves in lists of their own."""
    targets, transform = emit.attribute("n_targets", 1), emit.attribute("post_transform", 0)
    if emit.dtype(emit.input(0)) != FLOAT:
        raise emit.refuse("it is supported in float32: cast its input")
    if transform not in _TRANSFORMS:
        raise emit.refuse("ONNX Runtime and the standard differ on its post_transform: make it a "
                          "node of its own, Softmax or Sigmoid")  # fmt: skip
    how = _FUNCTIONS[emit.attribute("aggregate_function", 1)]
    try:
        lists = as_attributes(emit.attribute)
    except ForestError as error:
        raise emit.refuse(str(error)) from error
    words = {"n_targets": targets, "aggregate_function": how, **lists}
    words["post_transform"] = _TRANSFORMS[transform]
    made = emit("TreeEnsembleRegressor", emit.input(0), domain="ai.onnx.ml", **words)
    emit.graph.declare(made, FLOAT, (emit.shape(emit.input(0))[0], targets))
    return made


def tree_ensemble_classifier(emit: Emitter) -> list[str]:
    """The class of the largest sum; the sums, transformed."""
    names = class_labels(emit, "classlabels_int64s")
    weighed = np.unique(emit.attribute("class_ids"))
    if len(names) < 2 or weighed[-1] >= len(names):
        raise emit.refuse("it is compiled for two classes or more, which all have labels")
    base = _base_values(emit)
    if len(names) == 2:
        return _of_two(emit, names, weighed, base)
    if base.size and len(base) != len(names):
        raise emit.refuse(f"it has {len(base)} base values for {len(names)} classes")
    sums, counts = _of_classes(emit, len(names), counted=not base.size)
    sums = emit("Add", sums, emit.constant(base)) if base.size else sums
    known = sums
    if counts:  # a class without a weight in any leaf that was reached is not chosen
        some = emit("Greater", counts, emit.constant(0.0))
        known = emit("Where", some, sums, emit.constant(-np.inf))
    label = labels(emit, names, first_of_largest(emit, known))
    return [label, transformed(emit, sums, len(names))]


def _of_two(
    emit: Emitter, names: Sequence[int], weighed: np.ndarray, base: np.ndarray
) -> list[str]:
    """The outputs for two classes; usually all leaves have weights for one of them."""
    if (len(base) == 2 and weighed[-1] == 1) or len(base) > 2:
        raise emit.refuse("base values of both classes are supported where leaves weigh for one")
    if weighed[-1] == 1 and not _always_weigh(emit, [1]):
        raise emit.refuse("leaves that leave out a class are not supported with two classes")
    sums, _ = _of_classes(emit, 2, counted=False)
    first, second = emit.slice(sums, 1, 0, 1), emit.slice(sums, 1, 1, 2)
    if base.size and weighed[0] == 0:
        first = emit("Add", first, emit.constant(base[0]))
    score = second if weighed[-1] == 1 else first
    positive = len(weighed) == 1 and bool((_weights(emit) >= 0).all())
    above = emit("Greater", score, emit.constant(0.5 if positive else 0.0))
    # With weights for both classes, ONNX Runtime gives 0 and 1, whatever the labels are.
    label = either(emit, above, names if len(weighed) == 1 else (0, 1))
    if weighed[-1] == 1 or len(base) == 2:
        return [label, transformed(emit, emit("Concat", first, second, axis=1), 2)]
    return [label, paired(emit, score) if positive else opposite(emit, score)]


def _of_classes(emit: Emitter, count: int, *, counted: bool) -> tuple[str, str]:
    """(sums of the classes, how many weights each sum has; "" if not counted)."""
    renamed = [_as_targets(entry) for entry in _kept(emit.node.attribute)]
    if not counted or _always_weigh(emit, range(count)):
        return _sums(emit, renamed, count), ""
    longer = [_with_counts(entry, count) for entry in renamed]
    both = _sums(emit, longer, 2 * count)
    return emit.slice(both, 1, 0, count), emit.slice(both, 1, count, 2 * count)


def _as_targets(entry: AttributeProto) -> AttributeProto:
    made = AttributeProto()
    made.CopyFrom(entry)
    if entry.name.startswith("class_"):
        made.name = entry.name.replace("class_", "target_", 1)
    return made


def _with_counts(entry: AttributeProto, count: int) -> AttributeProto:
    """Attributes with the weights of classes, and a weight of one for a counter of each class."""
    value = helper.get_attribute_value(entry)
    if entry.name == "target_weights_as_tensor":
        array = numpy_helper.to_array(value)
        doubled = np.concatenate([array, np.ones_like(array)])
        return helper.make_attribute(entry.name, numpy_helper.from_array(doubled))
    if entry.name == "target_weights":
        return helper.make_attribute(entry.name, [*value, *[1.0] * len(value)])
    if entry.name == "target_ids":
        return helper.make_attribute(entry.name, [*value, *(one + count for one in value)])
    if entry.name in ("target_treeids", "target_nodeids"):
        return helper.make_attribute(entry.name, [*value, *value])
    return entry


def _always_weigh(emit: Emitter, classes: Iterable[int]) -> bool:
    """Whether each of these classes has a weight in all leaves of some tree."""
    modes = np.array(emit.attribute("nodes_modes"))
    trees, leaves = np.unique(
        np.array(emit.attribute("nodes_treeids"))[modes == b"LEAF"], return_counts=True
    )
    of = {name: np.array(emit.attribute(f"class_{name}s")) for name in ("id", "treeid", "nodeid")}
    triples = np.unique(np.stack([of["id"], of["treeid"], of["nodeid"]]), axis=1)
    for name in classes:
        mine = triples[1][triples[0] == name]
        known, counts = np.unique(mine, return_counts=True)
        if not (counts == leaves[np.searchsorted(trees, known)]).any():
            return False
    return True


def _sums(emit: Emitter, attributes: Sequence[AttributeProto], targets: int) -> str:
    """A regressor with these attributes, in float32."""
    name, kind = emit.input(0), emit.dtype(emit.input(0))
    samples = emit.shape(name)[0]
    name = emit.cast(name, kind if kind == DOUBLE else FLOAT)
    (made,) = emit.several("TreeEnsembleRegressor", [name], 1, domain="ai.onnx.ml")
    node = emit.nodes[-1]
    node.attribute.extend(entry for entry in attributes if entry.name != "n_targets")
    node.attribute.append(helper.make_attribute("n_targets", targets))
    emit.graph.declare(made, FLOAT, (samples, targets))
    return made


def _kept(attributes: Sequence[AttributeProto]) -> list[AttributeProto]:
    """The attributes that describe the trees."""
    return [entry for entry in attributes if entry.name not in _AFTERWARDS]


def _base_values(emit: Emitter) -> np.ndarray:
    return _numbers(emit, "base_values")


def _weights(emit: Emitter) -> np.ndarray:
    return _numbers(emit, "class_weights")


def _numbers(emit: Emitter, name: str) -> np.ndarray:
    tensor = emit.attribute(f"{name}_as_tensor")
    return np.array(emit.attribute(name) or []) if tensor is None else numpy_helper.to_array(tensor)


_of_trees = partial(
    Operator, domain="ai.onnx.ml", types=("float32", "float64", "int32", "int64", "string")
)
OPERATORS = (
    _of_trees("TreeEnsembleRegressor", expand=tree_ensemble_regressor, convert=walked_down),
    _of_trees("TreeEnsembleClassifier", expand=tree_ensemble_classifier),
    _of_trees("TreeEnsemble", since=5, types=("float32",), expand=tree_ensemble),
)
