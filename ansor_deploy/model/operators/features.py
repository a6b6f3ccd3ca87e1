"""Operators of ai.onnx.ml that prepare features for a model, or labels: numbers only."""

from __future__ import annotations

from functools import partial
from math import isnan
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .emitter import Emitter
from .operator import Operator

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
_NUMBERS = ("float32", "float64", "int32", "int64")
_TEXT = "text is not supported: encode it before the model"


def scaler(emit: Emitter) -> str:
    """Compute (x - offset) * scale, with one offset and scale or one for each feature."""
    kind = DOUBLE if emit.dtype(emit.input(0)) == DOUBLE else FLOAT
    offset, scale = (emit.constant(emit.attribute(name), kind) for name in ("offset", "scale"))
    moved = emit("Sub", emit.cast(emit.input(0), kind), offset)
    return emit.cast(emit("Mul", moved, scale), FLOAT)


def normalizer(emit: Emitter) -> str:
    """Divide each sample by its largest feature or by a norm, unless that is zero."""
    name, kind = emit.cast(emit.input(0), FLOAT), emit.attribute("norm", "MAX")
    last = len(emit.shape(emit.input(0))) - 1
    if kind == "L2":  # ONNX Runtime takes the root last
        square = emit("Mul", name, name)
        root = emit("Sqrt", _over(emit, square, emit.reduce("ReduceSum", square, last)))
        below = emit("Less", name, emit.constant(0.0))
        return emit("Where", below, emit("Neg", root), root)
    if kind == "L1":
        return _over(emit, name, emit.reduce("ReduceSum", emit("Abs", name), last))
    return _over(emit, name, emit.reduce("ReduceMax", name, last))


def _over(emit: Emitter, name: str, divisor: str) -> str:
    """A quotient; a divisor of zero is replaced by one."""
    nothing = emit("Equal", divisor, emit.constant(0.0))
    return emit("Div", name, emit("Where", nothing, emit.constant(1.0), divisor))


def feature_vectorizer(emit: Emitter) -> str:
    """All inputs as one row for each sample; each is cut, or padded with zeros, to its size."""
    parts = []
    for name, size in zip(emit.node.input, emit.attribute("inputdimensions"), strict=True):
        shape = emit.shape(name)
        batch = shape[0] if len(shape) > 1 else 1
        part = emit.reshape(emit.cast(name, FLOAT), batch, -1)
        known = int(np.prod(shape)) // batch
        part = emit.slice(part, 1, 0, size) if known > size else part
        if known < size:
            emit.room_for(batch, size)
            part = emit("Concat", part, emit.constant(np.zeros((batch, size - known))), axis=1)
        parts.append(part)
    return emit("Concat", *parts, axis=1)


def imputer(emit: Emitter) -> str:
    """Replace the value that stands for a missing one."""
    kind = emit.dtype(emit.input(0))
    many, one = ("imputed_value_floats", "replaced_value_float") if kind in (FLOAT, DOUBLE) else (
        "imputed_value_int64s", "replaced_value_int64")  # fmt: skip
    values = emit.attribute(many)
    if not values:
        raise emit.refuse(f"it has no {many}")
    values = values if len(values) == emit.shape(emit.input(0))[-1] else values[:1]
    missing = _is(emit, emit.input(0), emit.attribute(one, 0), kind)
    return emit("Where", missing, emit.constant(values, kind), emit.input(0))


def _is(emit: Emitter, name: str, value: float, kind: int) -> str:
    """Whether each element is a value, which may be NaN."""
    if isnan(value):
        return emit("IsNaN", name)
    return emit("Equal", name, emit.constant(value, kind))


def one_hot_encoder(emit: Emitter) -> str:
    """A one at the place of the category, along one more axis."""
    categories = emit.attribute("cats_int64s")
    if not categories:
        raise emit.refuse(_TEXT)
    name, rank = emit.cast(emit.input(0), INT64), len(emit.shape(emit.input(0)))
    found = emit("Equal", emit.unsqueeze(name, rank), emit.constant(categories, INT64))
    found = emit.cast(found, FLOAT)
    if emit.attribute("zeros", 1):
        return found
    unknown = emit("Sub", emit.constant(1.0), emit.reduce("ReduceSum", found, rank))
    return emit("Add", found, emit.cast(emit.known(emit.cast(unknown, INT64), 1), FLOAT))


def label_encoder(emit: Emitter) -> str:
    """The value of a key, or a default."""
    keys, values = _listed(emit, "keys"), _listed(emit, "values")
    if keys is None or values is None or len(keys) != len(values):
        raise emit.refuse(_TEXT)
    kind, name = emit.dtype(emit.input(0)), emit.input(0)
    emit.room_for(2, len(keys))
    wide = emit.unsqueeze(name, len(emit.shape(name)))
    same = emit("Equal", wide, emit.constant(keys, kind))
    if np.isnan(keys).any():
        both = emit("And", _is(emit, wide, np.nan, kind), emit.constant(np.isnan(keys), BOOL))
        same = emit("Or", same, both)
    places, none = emit.constant(np.arange(len(keys)), INT64), emit.constant(len(keys), INT64)
    first = emit.reduce("ReduceMin", emit("Where", same, places, none), len(emit.shape(name)))
    table = np.append(values, np.array(_default(emit, values.dtype)).astype(values.dtype))
    made = emit.constant(table, helper.np_dtype_to_tensor_dtype(table.dtype))
    return emit("Gather", made, emit.reshape(first, *emit.shape(name)))


def _listed(emit: Emitter, what: str) -> np.ndarray | None:
    """The keys or the values; None if they are text."""
    if (given := emit.attribute(f"{what}_tensor")) is not None:
        array = numpy_helper.to_array(given)
        return array.reshape(-1) if array.dtype.kind in "fi" else None
    for name, kind in ((f"{what}_int64s", np.int64), (f"{what}_floats", np.float32)):
        if given := emit.attribute(name):
            return np.array(given, kind)
    return None


def _default(emit: Emitter, dtype: np.dtype) -> Any:
    if (given := emit.attribute("default_tensor")) is not None:
        return numpy_helper.to_array(given).reshape(-1)[0]
    if dtype.kind == "f":
        return emit.attribute("default_float", -0.0)
    return emit.attribute("default_int64", -1)


_of_features = partial(Operator, domain="ai.onnx.ml", types=_NUMBERS)
OPERATORS = (
    _of_features("Scaler", expand=scaler),
    _of_features("Normalizer", expand=normalizer),
    _of_features("FeatureVectorizer", expand=feature_vectorizer),
    _of_features("Imputer", types=("float32", "int64"), expand=imputer),
    _of_features("OneHotEncoder", expand=one_hot_encoder),
    _of_features("LabelEncoder", types=(*_NUMBERS, "int16"), expand=label_encoder),
)
