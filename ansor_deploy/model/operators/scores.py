"""The outputs that a classifier of ai.onnx.ml makes from its scores, and their labels.

ONNX Runtime decides what the standard leaves open: a single score is not transformed, except by
PROBIT, and two classes have two scores even if only one was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from onnx import TensorProto

from .emitter import Emitter

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
_SMALLEST = 1e-7  # scores below it count as zero for SOFTMAX_ZERO
_WINITZKI = 0.147  # the constant of the approximation to the inverse of erf
_PI = 3.14159  # ONNX Runtime has no more digits there


def rows(emit: Emitter) -> str:
    """The first input as float32, a row for each sample."""
    name = emit.cast(emit.input(0), FLOAT)
    return emit.reshape(name, 1, -1) if len(emit.shape(emit.input(0))) == 1 else name


def linear(emit: Emitter, name: str, weights: np.ndarray, bias: Sequence[float]) -> str:
    """X @ weights^T + bias."""
    product = emit("MatMul", name, emit.constant(weights.T))
    return emit("Add", product, emit.constant(bias)) if any(bias) else product


def transformed(emit: Emitter, scores: str, count: int) -> str:
    """The scores, `count` for each sample, after the node's `post_transform`."""
    kind = emit.attribute("post_transform", "NONE")
    if kind == "PROBIT":
        return _probit(emit, scores)
    if kind == "NONE" or count == 1:
        return scores
    if kind == "LOGISTIC":
        return emit("Sigmoid", scores)
    if kind == "SOFTMAX":
        return emit("Softmax", scores, axis=1)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(emit, scores)
    raise emit.refuse(f"its post_transform {kind} is not known")


def paired(emit: Emitter, score: str) -> str:
    """Both classes' scores from that of the second, which is or becomes a probability."""
    kind = emit.attribute("post_transform", "NONE")
    if kind == "PROBIT":
        raise emit.refuse("PROBIT of one score for two classes is not supported")
    return opposite(emit, score) if kind == "LOGISTIC" else complement(emit, score)


def complement(emit: Emitter, score: str) -> str:
    """Both classes' scores from that of the second, which is a probability."""
    return emit("Concat", emit("Sub", emit.constant(1.0), score), score, axis=1)


def opposite(emit: Emitter, score: str) -> str:
    """Both classes' scores from that of the second, whose sign decides."""
    both = emit("Concat", emit("Neg", score), score, axis=1)
    is_logistic = emit.attribute("post_transform", "NONE") == "LOGISTIC"
    return emit("Sigmoid", both) if is_logistic else both


def labels(emit: Emitter, names: Sequence[int], index: str) -> str:
    """The label of each sample, by the index of its class."""
    return emit("Gather", emit.constant(names, INT64), index)


def first_of_largest(emit: Emitter, scores: str) -> str:
    """The class with the largest score, the first of equal ones."""
    return emit("ArgMax", scores, axis=1, keepdims=0)


def either(emit: Emitter, is_second: str, names: Sequence[int]) -> str:
    """One of two labels for each sample, (samples,), chosen by a column of booleans."""
    return labels(emit, names, emit.reshape(emit.cast(is_second, INT64), -1))


def class_labels(emit: Emitter, name: str) -> list[int]:
    """The labels as numbers; places instead if they are text that nobody reads."""
    texts = emit.attribute("classlabels_strings") or []
    label = emit.node.output[0]
    if texts and (label in emit.graph.output_names or label in emit.graph.consumers()):
        raise emit.refuse("its labels are text: train on numbers, or make its scores the output")
    return list(range(len(texts))) or [int(label) for label in emit.attribute(name) or []]


def _softmax_zero(emit: Emitter, scores: str) -> str:
    """Softmax, except that scores of zero stay close to zero."""
    top = emit.reduce("ReduceMax", scores, 1)
    counts = emit("Greater", emit("Abs", scores), emit.constant(_SMALLEST))
    powers = emit("Exp", emit("Sub", scores, top))
    total = emit.reduce("ReduceSum", emit("Where", counts, powers, emit.constant(0.0)), 1)
    small = emit("Mul", scores, emit("Exp", emit("Neg", top)))
    return emit("Div", emit("Where", counts, powers, small), total)


def _probit(emit: Emitter, scores: str) -> str:
    """Compute sqrt(2) * erfinv(2 * p - 1), by Winitzki's approximation."""
    signed = emit("Sub", emit("Mul", scores, emit.constant(2.0)), emit.constant(1.0))
    one = emit.constant(1.0)
    log = emit("Log", emit("Mul", emit("Sub", one, signed), emit("Add", one, signed)))
    half = emit("Mul", log, emit.constant(0.5))
    term = emit("Add", half, emit.constant(2 / (_PI * _WINITZKI)))
    square = emit("Sub", emit("Mul", term, term), emit("Mul", log, emit.constant(1 / _WINITZKI)))
    root = emit("Sqrt", emit("Sub", emit("Sqrt", square), term))
    below = emit("Less", signed, emit.constant(0.0))
    return emit("Mul", emit("Where", below, emit("Neg", root), root), emit.constant(sqrt(2)))
