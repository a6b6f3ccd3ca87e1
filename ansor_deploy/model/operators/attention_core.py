"""Attention as two matrix products with a softmax between them, which rules schedule well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from .emitter import Emitter

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass(frozen=True)
class Sizes:
    """The sizes of one attention. heads, key_heads: of queries, and of keys and values.

    queries, keys: their numbers. width: of a query and of a key. value: the width of a value.
    """

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    value: int


@dataclass(frozen=True)
class Scores:
    """Names of the logits, raw, after the cap, and after the bias, and of the probabilities."""

    raw: str
    capped: str
    biased: str
    weights: str


def split_heads(emit: Emitter, name: str, heads: int) -> str:
    """(batch, tokens, heads * width) --> (batch, heads, tokens, width)."""
    return emit("Transpose", emit.reshape(name, 0, 0, heads, -1), perm=[0, 2, 1, 3])


def join_heads(emit: Emitter, name: str) -> str:
    """(batch, heads, tokens, width) --> (batch, tokens, heads * width)."""
    return emit.reshape(emit("Transpose", name, perm=[0, 2, 1, 3]), 0, 0, -1)


def scores(
    emit: Emitter,
    query: str,
    key: str,
    sizes: Sizes,
    *,
    kind: int,
    scale: float,
    bias: str = "",
    hidden: str = "",
    cap: float = 0.0,
    precision: int = 0,
    sink: str = "",
) -> Scores:
    """The attention weights: softmax(scale * query @ key^T + bias).

    query: (batch, heads, queries, width). key: (batch, key heads, keys, width); each key head
    serves several heads. kind: their element type. bias, hidden: broadcast to the logits;
    hidden is true for a row whose keys are all masked, and that row becomes zero. cap: limits
    the logits to cap * tanh(logits / cap). precision: the type of the softmax, if it is another
    one. sink: (batch, heads, queries, 1), the logits of a key that all queries attend to and
    that has no value.
    """
    scaled = emit("Mul", query, emit.constant(scale, kind))
    grouped = _grouped(emit, scaled, sizes)
    logits = emit("MatMul", grouped, emit("Transpose", key, perm=[0, 1, 3, 2]))
    raw = _ungrouped(emit, logits, sizes)
    capped = _capped(emit, raw, cap, kind) if cap else raw
    biased = emit("Add", capped, bias) if bias else capped
    wide = emit.cast(biased, precision) if precision and precision != kind else biased
    weights = _softmax(emit, wide, sink, sizes.keys)
    weights = emit.cast(weights, kind) if wide != biased else weights
    if hidden:
        weights = emit("Where", hidden, emit.constant(0, kind), weights)
    return Scores(raw, capped, biased, weights)


def _softmax(emit: Emitter, logits: str, sink: str, keys: int) -> str:
    if not sink:
        return emit("Softmax", logits, axis=3)
    every = emit("Softmax", emit("Concat", logits, sink, axis=3), axis=3)
    return emit.slice(every, 3, 0, keys)


def weighted(emit: Emitter, weights: str, value: str, sizes: Sizes) -> str:
    """Weights @ value, which is (batch, key heads, keys, value): (batch, heads, queries, value)."""
    result = emit("MatMul", _grouped(emit, weights, sizes), value)
    return _ungrouped(emit, result, sizes)


def causal(sizes: Sizes, offset: int) -> np.ndarray:
    """The keys that each query may see, (queries, keys): none that comes after it."""
    return np.tri(sizes.queries, sizes.keys, offset, dtype=np.bool_)


def as_bias(emit: Emitter, allowed: str, kind: int, masked: float) -> str:
    """A boolean mask as a term of the logits: 0 where true, `masked` elsewhere."""
    return emit("Where", allowed, emit.constant(0, kind), emit.constant(masked, kind))


def _capped(emit: Emitter, logits: str, cap: float, kind: int) -> str:
    limit = emit.constant(cap, kind)
    return emit("Mul", emit("Tanh", emit("Div", logits, limit)), limit)


def _grouped(emit: Emitter, name: str, sizes: Sizes) -> str:
    """The queries of all heads that share a key, as one matrix, so that no key is copied."""
    if sizes.heads == sizes.key_heads:
        return name
    rows = sizes.heads // sizes.key_heads * sizes.queries
    return emit.reshape(name, sizes.batch, sizes.key_heads, rows, -1)


def _ungrouped(emit: Emitter, name: str, sizes: Sizes) -> str:
    if sizes.heads == sizes.key_heads:
        return name
    return emit.reshape(name, sizes.batch, sizes.heads, sizes.queries, -1)
