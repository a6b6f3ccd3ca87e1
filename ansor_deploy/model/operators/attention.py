"""ONNX's own operators of transformers: Attention, RotaryEmbedding, CausalConvWithState."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .attention_core import (
    BOOL,
    FLOAT,
    INT64,
    Sizes,
    as_bias,
    join_heads,
    scores,
    split_heads,
    weighted,
)
from .emitter import Emitter
from .operator import Operator


@dataclass(frozen=True)
class _Mask:
    """A mask. bias: added to the logits. hidden: true for a row that can see no key."""

    bias: str = ""
    hidden: str = ""


def attention(emit: Emitter) -> list[str]:
    """Compute softmax(q @ k^T * scale + mask) @ v for each head; heads may share keys."""
    kind = emit.dtype(emit.input(0))
    packed = len(emit.shape(emit.input(0))) == 3
    query, key, value = (_headed(emit, index) for index in range(3))
    sizes, past = _sizes(emit)
    if past:
        key = emit("Concat", emit.input(4), key, axis=2)
        value = emit("Concat", emit.input(5), value, axis=2)
    mask = _mask(emit, sizes, past, kind)
    found = scores(
        emit, query, key, sizes, kind=kind, bias=mask.bias, hidden=mask.hidden,
        scale=emit.attribute("scale", 0) or sizes.width**-0.5,
        cap=emit.attribute("softcap", 0.0), precision=emit.attribute("softmax_precision", 0),
    )  # fmt: skip
    result = weighted(emit, found.weights, value, sizes)
    shown = (found.raw, found.capped, found.biased, found.weights)
    seen = shown[emit.attribute("qk_matmul_output_mode", 0)]
    return [join_heads(emit, result) if packed else result, key, value, seen]


def by_head(emit: Emitter) -> list[str]:
    """Queries as they are, keys and values as (batch, heads, tokens, width)."""
    return [emit.input(0), *(_headed(emit, index) for index in (1, 2))]


def _headed(emit: Emitter, index: int) -> str:
    name, heads = emit.input(index), emit.attribute("kv_num_heads" if index else "q_num_heads")
    return split_heads(emit, name, heads) if len(emit.shape(name)) == 3 else name


def _sizes(emit: Emitter) -> tuple[Sizes, int]:
    """The sizes, and how many keys come before the node's own."""
    (heads, queries, width), (key_heads, keys, _), (_, _, size) = (
        _extents(emit, index) for index in range(3)
    )
    past = emit.shape(emit.input(4))[2] if emit.input(4) else 0
    batch = emit.shape(emit.input(0))[0]
    return Sizes(batch, heads, key_heads, queries, past + keys, width, size), past


def _extents(emit: Emitter, index: int) -> tuple[int, int, int]:
    """Heads, tokens and width of an input."""
    shape = emit.shape(emit.input(index))
    if len(shape) == 4:
        return shape[1], shape[2], shape[3]
    heads = int(emit.attribute("kv_num_heads" if index else "q_num_heads"))
    return heads, shape[1], shape[2] // heads


def _mask(emit: Emitter, sizes: Sizes, past: int, kind: int) -> _Mask:
    """The given mask, causality, window and padding as one bias."""
    allowed = _allowed(emit, sizes, past)
    mask = _padded(emit, emit.input(3), sizes.keys, kind)
    if mask and emit.dtype(emit.input(3)) == BOOL:
        allowed, mask = (emit("And", allowed, mask) if allowed else mask), ""
    if allowed:
        bias = as_bias(emit, allowed, kind, -np.inf)
        mask = emit("Add", mask, bias) if mask else bias
    if not mask or _always_sees(emit, allowed, mask):
        return _Mask(mask)
    # The maximum of the bias would not tell: for a row of -inf, TVM's is a finite number.
    seen = emit.cast(emit("Greater", mask, emit.constant(-np.inf, kind)), FLOAT)
    return _Mask(mask, emit("Less", emit.reduce("ReduceMax", seen, -1), emit.constant(0.5)))


def _always_sees(emit: Emitter, allowed: str, mask: str) -> bool:
    """Whether it is known that every query sees a key."""
    known = emit.graph.value(allowed) if allowed and not emit.input(3) else None
    return known is not None and bool(known.any(axis=-1).all())


def _padded(emit: Emitter, mask: str, keys: int, kind: int) -> str:
    """The mask, extended to hide the keys beyond its end if it is shorter than there are keys."""
    if not mask or emit.shape(mask)[-1] in (1, keys):
        return mask
    shape = (*emit.shape(mask)[:-1], keys - emit.shape(mask)[-1])
    is_bool = emit.dtype(mask) == BOOL
    beyond = np.full(shape, False if is_bool else -np.inf)
    return emit("Concat", mask, emit.constant(beyond, BOOL if is_bool else kind), axis=-1)


def _allowed(emit: Emitter, sizes: Sizes, past: int) -> str:
    """The keys that each query may see by its position; empty if it may see all."""
    bounds = _bounds(emit)
    counts = emit.input(6)
    emit.room_for(sizes.keys, sizes.queries)
    distance = np.arange(sizes.keys) - np.arange(sizes.queries)[:, None]  # of a key behind a query
    if not counts:
        seen = [np.where(bound.upper, distance <= bound.at + past, distance >= bound.at + past)
                for bound in bounds]  # fmt: skip
        return emit.constant(np.logical_and.reduce(seen), BOOL) if seen else ""
    counts = emit.reshape(emit.known(emit.cast(counts, INT64), sizes.keys + 1), -1, 1, 1, 1)
    allowed = emit("Less", emit.constant(np.arange(sizes.keys), INT64), counts)
    before = emit("Sub", counts, emit.constant(sizes.queries, INT64))
    for bound in bounds:
        at = emit("Add", before, emit.constant(bound.at, INT64))
        op = "LessOrEqual" if bound.upper else "GreaterOrEqual"
        allowed = emit("And", allowed, emit(op, emit.constant(distance, INT64), at))
    return allowed


@dataclass(frozen=True)
class _Bound:
    """A limit on how far a key is behind its query: at most `at` if upper, else at least."""

    at: int
    upper: bool


def _bounds(emit: Emitter) -> list[_Bound]:
    left, right = emit.attribute("left_window_size", -1), emit.attribute("right_window_size", -1)
    bounds = [_Bound(0, upper=True)] if emit.attribute("is_causal", 0) else []
    bounds += [_Bound(right, upper=True)] if right >= 0 else []
    return bounds + ([_Bound(-left, upper=False)] if left >= 0 else [])


def rotary_embedding(emit: Emitter) -> str:
    """Rotate each token's pairs of numbers by the angles of its position."""
    name, cosine, sine, positions = map(emit.input, range(4))
    packed = len(emit.shape(name)) == 3
    tokens = split_heads(emit, name, emit.attribute("num_heads")) if packed else name
    heads = emit.attribute("num_heads", 0)
    width = emit.shape(name)[-1] // (heads if packed else 1)
    if positions:
        cosine, sine = (emit.looked_up(table, positions, INT64) for table in (cosine, sine))
    size = emit.attribute("rotary_embedding_dim", 0) or width
    interleaved = bool(emit.attribute("interleaved", 0))
    result = rotate(emit, tokens, width, (cosine, sine), size=size, interleaved=interleaved)
    return join_heads(emit, result) if packed else result


def rotate(
    emit: Emitter, tokens: str, width: int, angles: Iterable[str], *, size: int, interleaved: bool
) -> str:
    """(batch, heads, tokens, width) with its pairs rotated by angles of (batch, tokens, pairs).

    angles: their cosines and sines. size: how much of the width is rotated. interleaved: whether
    the numbers of a pair are neighbours, not half the size apart.
    """
    cosine, sine = (emit.unsqueeze(each, 1) for each in angles)
    turned = tokens if size == width else emit.slice(tokens, 3, 0, size)
    split = _interleaved if interleaved else _halved
    left, right = split(emit, turned, size)
    real = emit("Sub", emit("Mul", cosine, left), emit("Mul", sine, right))
    imaginary = emit("Add", emit("Mul", sine, left), emit("Mul", cosine, right))
    join = _paired if interleaved else _in_halves
    result = join(emit, real, imaginary, size)
    if size == width:
        return result
    return emit("Concat", result, emit.slice(tokens, 3, size, width), axis=3)


def _halved(emit: Emitter, name: str, size: int) -> tuple[str, str]:
    return emit.slice(name, 3, 0, size // 2), emit.slice(name, 3, size // 2, size)


def _interleaved(emit: Emitter, name: str, size: int) -> tuple[str, str]:
    return emit.slice(name, 3, 0, size, 2), emit.slice(name, 3, 1, size, 2)


def _in_halves(emit: Emitter, real: str, imaginary: str, _: int) -> str:
    return emit("Concat", real, imaginary, axis=3)


def _paired(emit: Emitter, real: str, imaginary: str, size: int) -> str:
    pair = emit("Concat", emit.unsqueeze(real, 4), emit.unsqueeze(imaginary, 4), axis=4)
    return emit.reshape(pair, 0, 0, 0, size)


def causal_conv_with_state(emit: Emitter) -> tuple[str, str]:
    """A causal depthwise convolution; the last inputs are the state for the next call."""
    name, weight, bias, past = map(emit.input, range(4))
    (batch, channels, length), reach = emit.shape(name), emit.shape(weight)[2] - 1
    kind = emit.dtype(name)
    if not reach:
        padded = name
    elif past:
        padded = emit("Concat", past, name, axis=2)
    else:
        before = emit.constant(np.zeros((batch, channels, reach)), kind)
        padded = emit("Concat", before, name, axis=2)
    result = emit("Conv", padded, weight, *([bias] if bias else []), group=channels)
    if emit.attribute("activation", "none") != "none":
        result = emit("Mul", result, emit("Sigmoid", result))
    return result, emit.slice(padded, 2, length, length + reach)


OPERATORS = (
    Operator("Attention", since=23, expand=attention),
    Operator("RotaryEmbedding", since=23, expand=rotary_embedding),
    Operator("CausalConvWithState", since=27, expand=causal_conv_with_state),
)
