"""Attention of com.microsoft, in the plain forms that ONNX Runtime's optimiser writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from .attention import rotate
from .attention_core import (
    FLOAT,
    INT64,
    Scores,
    Sizes,
    as_bias,
    causal,
    join_heads,
    scores,
    split_heads,
    weighted,
)
from .emitter import Emitter
from .operator import contrib
from .quantization import by_column, parameter

_FLOATS_AND_COUNTS = ("float32", "float16", "int32")


@dataclass(frozen=True)
class _Heads:
    """Queries, keys and values by head, (batch, heads, tokens, width), and their sizes.

    past: how many of the keys come from earlier calls.
    """

    query: str
    key: str
    value: str
    sizes: Sizes
    past: int = 0


def attention(emit: Emitter) -> list[str]:
    """Self-attention; one matrix product gives queries, keys and values."""
    name, weights, bias, mask, past, extra = map(emit.input, range(6))
    merged = emit("MatMul", name, weights)
    merged = emit("Add", merged, bias) if bias else merged
    heads = _parted(emit, merged, emit.shape(weights)[1], past)
    return _attend(emit, heads, _bias(emit, heads, mask, extra))


def q_attention(emit: Emitter) -> list[str]:
    """Self-attention with quantised tokens and weights."""
    name, weights, bias, scale, w_scale, mask, zero, w_zero, past = map(emit.input, range(9))
    total = emit.cast(emit("MatMulInteger", name, weights, zero, w_zero), FLOAT)
    factor = emit("Mul", parameter(emit, scale), by_column(emit, w_scale))
    merged = emit("Add", emit("Mul", total, factor), bias)
    heads = _parted(emit, merged, emit.shape(weights)[1], past)
    return _attend(emit, heads, _bias(emit, heads, mask, ""))


def _parted(emit: Emitter, merged: str, width: int, past: str) -> _Heads:
    """Split (batch, tokens, queries + keys + values) by head, and put the past's keys before."""
    count = emit.attribute("num_heads")
    batch, tokens = emit.shape(emit.input(0))[:2]
    widths = emit.attribute("qkv_hidden_sizes") or [width // 3] * 3
    ends = np.cumsum(widths)
    query, key, value = (
        split_heads(emit, emit.slice(merged, 2, int(end - size), int(end)), count)
        for size, end in zip(widths, ends, strict=True)
    )
    before = emit.shape(past)[3] if past else 0
    if past:
        key, value = (_after(emit, past, at, name) for at, name in enumerate((key, value)))
    keys = before + tokens
    sizes = Sizes(batch, count, count, tokens, keys, widths[0] // count, widths[2] // count)
    return _Heads(query, key, value, sizes, before)


def _after(emit: Emitter, past: str, at: int, name: str) -> str:
    """Keys or values, appended to those of the past, (2, batch, heads, tokens, width)."""
    _, batch, heads, tokens, width = emit.shape(past)
    earlier = emit.reshape(emit.slice(past, 0, at, at + 1), batch, heads, tokens, width)
    return emit("Concat", earlier, name, axis=2)


def _attend(emit: Emitter, heads: _Heads, bias: str) -> list[str]:
    weights = _scores(emit, heads, bias).weights
    result = [join_heads(emit, weighted(emit, weights, heads.value, heads.sizes))]
    if emit.wants(1):
        pair = [emit.unsqueeze(name, 0) for name in (heads.key, heads.value)]
        result.append(emit("Concat", *pair, axis=0))
    return result


def _scores(emit: Emitter, heads: _Heads, bias: str) -> Scores:
    scale, kind = emit.attribute("scale", 0.0) or heads.sizes.width**-0.5, _kind(emit)
    return scores(emit, heads.query, heads.key, heads.sizes, kind=kind, scale=scale, bias=bias)


def _kind(emit: Emitter) -> int:
    """The type to compute in: that of the input, or float32 if the input is quantised."""
    kind = emit.dtype(emit.input(0))
    return FLOAT if kind in (TensorProto.INT8, TensorProto.UINT8) else kind


def _bias(emit: Emitter, heads: _Heads, mask: str, extra: str) -> str:
    """What is added to the logits: the given bias, the mask and causality."""
    kind = _kind(emit)
    low = emit.attribute("mask_filter_value", -10000.0)
    terms = [extra] if extra else []
    if mask:
        terms.append(as_bias(emit, _seen(emit, heads.sizes, mask), kind, low))
    if emit.attribute("unidirectional", 0):
        future = np.where(causal(heads.sizes, heads.past), 0, np.finfo(np.float32).min)
        least = np.finfo(np.float16).min if kind == TensorProto.FLOAT16 else -np.inf
        terms.append(emit.constant(np.maximum(future, least), kind))
    total = terms[0] if terms else ""
    for term in terms[1:]:
        total = emit("Add", total, term)
    return total


def _seen(emit: Emitter, sizes: Sizes, mask: str) -> str:
    """A mask in any of its forms as booleans that broadcast to (batch, heads, queries, keys)."""
    shape = emit.shape(mask)
    nothing = emit.constant(0, emit.dtype(mask))
    if shape == (sizes.batch, sizes.keys):
        return emit("Greater", emit.reshape(mask, sizes.batch, 1, 1, -1), nothing)
    if len(shape) == 3:
        return emit("Greater", emit.unsqueeze(mask, 1), nothing)
    if shape == (sizes.batch,):
        places = emit.constant(np.arange(sizes.keys), emit.dtype(mask))
        return emit("Less", places, emit.reshape(mask, sizes.batch, 1, 1, 1))
    raise emit.refuse(f"its mask of shape {shape} is not supported")


def multi_head_attention(emit: Emitter) -> list[str]:
    """Attention of projected queries, keys and values, each (batch, tokens, width)."""
    heads = _given(emit)
    bias = _bias(emit, heads, emit.input(4), emit.input(5))
    found = _scores(emit, heads, bias)
    result = join_heads(emit, weighted(emit, found.weights, heads.value, heads.sizes))
    return [result, heads.key, heads.value, found.biased]


def _given(emit: Emitter) -> _Heads:
    """The inputs of MultiHeadAttention by head: three inputs, or packed into fewer."""
    query, key, value = projected(emit)
    past_key, past_value = emit.input(6), emit.input(7)
    count = emit.attribute("num_heads")
    past = emit.shape(past_key)[2] if past_key else 0
    if past_key:
        key = emit("Concat", past_key, key, axis=2)
        value = emit("Concat", past_value, value, axis=2)
    shape, keys, values = (emit.shape(emit.input(at)) for at in range(3))
    size = values[3] if len(values) == 4 else values[2] // count
    new = keys[1 if len(keys) == 3 else 2]
    sizes = Sizes(shape[0], count, count, shape[1], past + new, shape[2] // count, size)
    return _Heads(split_heads(emit, query, count), key, value, sizes, past)


def projected(emit: Emitter) -> list[str]:
    """Queries as tokens, keys and values by head, all with their bias added."""
    parts, bias, count = (
        [emit.input(at) for at in range(3)],
        emit.input(3),
        emit.attribute("num_heads"),
    )
    shape = emit.shape(parts[0])
    if len(shape) != 3 or not all(parts):
        raise emit.refuse("its packed form is not supported")
    if len(emit.input(8)):
        raise emit.refuse("a cache that is written in place is not supported")
    if bias:
        width = shape[2]
        ends = [width, 2 * width, emit.shape(bias)[0]]
        starts = [0, *ends[:-1]]
        for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if len(emit.shape(parts[at])) == 3:
                parts[at] = emit("Add", parts[at], emit.slice(bias, 0, start, end))
    for at in (1, 2):
        if len(emit.shape(emit.input(at))) == 3:
            parts[at] = split_heads(emit, parts[at], count)
    return parts


def rotary_embedding(emit: Emitter) -> str:
    """ONNX's RotaryEmbedding, but with positions before the angles."""
    name, positions, cosine, sine = map(emit.input, range(4))
    shape = emit.shape(name)
    packed = len(shape) == 3
    turned = emit.attribute("rotary_embedding_dim", 0)
    heads = emit.attribute("num_heads", 0)
    if packed and not heads:
        heads = shape[2] // (2 * emit.shape(cosine)[1])
    if packed and turned and not emit.attribute("num_heads", 0):
        raise emit.refuse("rotary_embedding_dim needs num_heads")
    tokens = split_heads(emit, name, heads) if packed else name
    width = shape[2] // heads if packed else shape[3]
    places = _places(emit, positions, shape[1] if packed else shape[2])
    angles = [emit.looked_up(table, places, INT64) for table in (cosine, sine)]
    interleaved = bool(emit.attribute("interleaved", 0))
    result = rotate(emit, tokens, width, angles, size=turned or width, interleaved=interleaved)
    return join_heads(emit, result) if packed else result


def _places(emit: Emitter, positions: str, tokens: int) -> str:
    """Positions as (batch, tokens); a single number is that of the first token."""
    if len(emit.shape(positions)) == 2:
        return positions
    count = emit.constant(np.arange(tokens)[None], INT64)
    return emit("Add", emit.reshape(positions, 1, 1), count)


OPERATORS = (
    contrib("Attention", types=_FLOATS_AND_COUNTS, expand=attention),
    contrib("QAttention", types=("float32", "int32", "int8", "uint8"), expand=q_attention),
    contrib("MultiHeadAttention", types=_FLOATS_AND_COUNTS, expand=multi_head_attention),
    contrib("RotaryEmbedding", expand=rotary_embedding),
)
