"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np

from .coupling import coupled
from .emitter import Emitter
from .operator import Operator
from .scores import (
    FLOAT,
    INT64,
    class_labels,
    either,
    first_of_largest,
    labels,
    linear,
    opposite,
    paired,
    rows,
    transformed,
)

_UNLIKELY = 1e-7  # the least probability of a class of a pair
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def linear_classifier(emit: Emitter) -> list[str]:
    """The class with the largest score; with one score, the second class if it is positive."""
    names, intercepts = class_labels(emit, "classlabels_ints"), _floats(emit, "intercepts")
    name, count = rows(emit), max(1, len(intercepts))
    scores = linear(emit, name, _floats(emit, "coefficients").reshape(count, -1), intercepts)
    if count > 1:
        label = labels(emit, names, first_of_largest(emit, scores))
        return [label, transformed(emit, scores, count)]
    if len(names) != 2:
        raise emit.refuse("one score is compiled for two classes only")
    label = either(emit, emit("Greater", scores, emit.constant(0.0)), names)
    return [label, paired(emit, scores)]


def linear_regressor(emit: Emitter) -> str:
    """X @ coefficients^T + intercepts."""
    count, intercepts = emit.attribute("targets", 1), _floats(emit, "intercepts")
    bias = intercepts if len(intercepts) == count else ()
    weights = _floats(emit, "coefficients").reshape(count, -1)
    return transformed(emit, linear(emit, rows(emit), weights, bias), count)


def svm_regressor(emit: Emitter) -> str:
    """The sum of kernels with support vectors; its sign if there is one class."""
    weights, rho = _floats(emit, "coefficients"), _floats(emit, "rho")[:1]
    name, count = rows(emit), emit.attribute("n_supports", 0)
    if count:
        vectors = _floats(emit, "support_vectors").reshape(count, -1)
        name = _kernel(emit, name, vectors)
    result = linear(emit, name, weights[None], rho)
    if not emit.attribute("one_class", 0):
        return result
    inside = emit("Greater", result, emit.constant(0.0))
    return emit("Where", inside, emit.constant(1.0), emit.constant(-1.0))


def svm_classifier(emit: Emitter) -> list[str]:
    """The class with the most votes among classifiers of pairs of classes; the scores."""
    names = class_labels(emit, "classlabels_ints")
    if len(names) < 2:
        raise emit.refuse("it is compiled for two classes or more")
    counts = emit.attribute("vectors_per_class") or []
    return _by_votes(emit, names, counts) if any(counts) else _by_planes(emit, names)


def _by_planes(emit: Emitter, names: Sequence[int]) -> list[str]:
    """A linear score for each class."""
    weights = _floats(emit, "coefficients").reshape(len(names), -1)
    bias = np.repeat(_floats(emit, "rho")[:1], len(names))
    scores = linear(emit, rows(emit), weights, bias)
    label = labels(emit, names, first_of_largest(emit, scores))
    # With two classes, ONNX Runtime takes the second for the positive one.
    if len(names) == 2:
        top = emit.reduce("ReduceMax", scores, 1)
        positive = (weights >= 0).all()
        op, least = ("GreaterOrEqual", 0.5) if positive else ("Greater", 0.0)
        second = emit(op, emit.reshape(top, -1), emit.constant(least))
        label = emit("Where", second, emit.constant(names[1], INT64), label)
    return [label, transformed(emit, scores, len(names))]


def _by_votes(emit: Emitter, names: Sequence[int], counts: Sequence[int]) -> list[str]:
    """A score for each pair of classes; with two classes, one for each class."""
    vectors = _floats(emit, "support_vectors").reshape(sum(counts), -1)
    pairs = list(combinations(range(len(names)), 2))
    weights = _of_pairs(_floats(emit, "coefficients").reshape(len(names) - 1, -1), counts, pairs)
    kernels = _kernel(emit, rows(emit), vectors)
    scores = linear(emit, kernels, weights, _floats(emit, "rho")[: len(pairs)])
    won = emit.cast(emit("Greater", scores, emit.constant(0.0)), FLOAT)
    votes = np.zeros((2, len(pairs), len(names)))  # for a pair's second class, then for its first
    for at, pair in enumerate(pairs):
        votes[[1, 0], at, pair] = 1
    total = linear(emit, won, (votes[1] - votes[0]).T, votes[0].sum(0))
    label = labels(emit, names, first_of_largest(emit, total))
    if emit.attribute("prob_a"):
        return [label, transformed(emit, _probabilities(emit, scores, len(names)), len(names))]
    if len(names) > 2:
        return [label, transformed(emit, scores, len(pairs))]
    is_plain = emit.attribute("post_transform", "NONE") == "NONE"
    return [label, opposite(emit, scores) if is_plain else paired(emit, scores)]


def _probabilities(emit: Emitter, scores: str, classes: int) -> str:
    """The probability of each class by Platt's method, from that of each pair's first class."""
    slope, offset = (emit.constant(_floats(emit, f"prob_{one}")) for one in "ab")
    against = emit("Sigmoid", emit("Add", emit("Mul", scores, slope), offset))
    first = emit("Sub", emit.constant(1.0), against)
    bounds = emit.constant(_UNLIKELY), emit.constant(np.float32(1) - np.float32(_UNLIKELY))
    shape = emit.shape(emit.input(0))
    clipped = emit("Min", emit("Max", first, bounds[0]), bounds[1])
    return coupled(emit, clipped, shape[0] if len(shape) > 1 else 1, classes)


def _of_pairs(
    given: np.ndarray, counts: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """The weights of all vectors for each pair of classes.

    given: for each vector, its weights against the other classes, in their order.
    """
    ends = np.cumsum(counts)
    parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    weights = np.zeros((len(pairs), given.shape[1]), np.float32)
    for at, (one, other) in enumerate(pairs):
        weights[at, parts[one]] = given[other - 1, parts[one]]
        weights[at, parts[other]] = given[one, parts[other]]
    return weights


def _kernel(emit: Emitter, name: str, vectors: np.ndarray) -> str:
    """The kernel of each sample with each vector, (samples, vectors)."""
    kind = emit.attribute("kernel_type", "LINEAR")
    gamma, offset, degree = (*(emit.attribute("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    if kind not in _KERNELS:
        raise emit.refuse(f"its kernel {kind} is not known")
    if kind == "RBF":
        apart = emit("Sub", emit.unsqueeze(name, 1), emit.constant(vectors[None]))
        square = emit.reshape(emit.reduce("ReduceSum", emit("Mul", apart, apart), 2), 0, -1)
        return emit("Exp", emit("Mul", square, emit.constant(-gamma)))
    if kind == "LINEAR":
        return linear(emit, name, vectors, ())
    inner = linear(emit, name, gamma * vectors, [offset] * len(vectors))
    return emit("Tanh", inner) if kind == "SIGMOID" else emit("Pow", inner, emit.constant(degree))


def _floats(emit: Emitter, name: str) -> np.ndarray:
    return np.array(emit.attribute(name) or [], np.float32)


# The types of ONNX Runtime. Labels may be text that nobody reads.
_TYPES = ("float32", "float64", "int32", "int64", "string")
_learned = partial(Operator, domain="ai.onnx.ml", types=_TYPES)
OPERATORS = (
    _learned("LinearClassifier", expand=linear_classifier),
    _learned("LinearRegressor", types=("float32",), expand=linear_regressor),
    _learned("SVMClassifier", expand=svm_classifier),
    _learned("SVMRegressor", types=("float32",), expand=svm_regressor),
)
