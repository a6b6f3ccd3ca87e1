"""GroupQueryAttention of com.microsoft: a decoder's, with the caches of its keys and values.

A cache comes in and goes out whole. How much of it is filled is known at run time: for each sample,
the number of its keys minus one. Rows beyond are zeros, as in ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .appended import append, is_kept
from .attention import rotate
from .attention_core import INT64, Sizes, as_bias, join_heads, scores, split_heads, weighted
from .emitter import Emitter
from .operator import contrib

_INPUTS = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length",
           "cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink", "k_scale",
           "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens")  # fmt: skip
_REFUSED = ("k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens")
_HINT = "export the model with a cache of floats, and without fusing norms into the attention"


@dataclass(frozen=True)
class _Cache:
    """The keys before and after a call. before: how many come in. rows: how many go out.

    filled: (batch, 1, 1, 1), how many of the incoming ones count; empty if none do.
    """

    before: int
    rows: int
    filled: str


def group_query_attention(emit: Emitter) -> list[str]:
    """Causal attention of tokens to a cache and to themselves; heads may share keys."""
    _check(emit)
    query, key, value = _projected(emit)
    sizes = _sizes(emit)
    cache = _cache(emit, sizes)
    if emit.attribute("do_rotary", 0):
        query, key = (_turned(emit, name, sizes, cache) for name in (query, key))
    keys, values = (_appended(emit, name, at, sizes, cache)
                    for name, at in ((key, "past_key"), (value, "past_value")))  # fmt: skip
    kind = emit.dtype(emit.input(0))
    found = scores(
        emit, query, _used(emit, keys, sizes, cache), sizes, kind=kind,
        scale=emit.attribute("scale", 0.0) or sizes.width**-0.5,
        cap=emit.attribute("softcap", 0.0), bias=_bias(emit, sizes, cache, kind),
        hidden=_hidden(emit, sizes, cache), sink=_sink(emit, sizes, kind),
    )  # fmt: skip
    result = weighted(emit, found.weights, _used(emit, values, sizes, cache), sizes)
    return [join_heads(emit, result), keys, values]


def _given(emit: Emitter, name: str) -> str:
    return emit.input(_INPUTS.index(name))


def _check(emit: Emitter) -> None:
    """Refuse what ONNX Runtime supports only on GPUs, or computes differently."""
    if found := next((name for name in _REFUSED if _given(emit, name)), None):
        raise emit.refuse(f"its input {found} is not supported: {_HINT}")
    if emit.attribute("sliding_window_cache", 0):
        raise emit.refuse("a cache that drops keys (sliding_window_cache) is not supported")


def _projected(emit: Emitter) -> list[str]:
    """Queries, keys and values, (batch, heads, tokens, width), given separately or packed."""
    heads, shared = emit.attribute("num_heads"), emit.attribute("kv_num_heads")
    parts, counts = [emit.input(at) for at in range(3)], (heads, shared, shared)
    if not parts[1]:
        width = emit.shape(parts[0])[2] // sum(counts)
        ends = [int(end) * width for end in np.cumsum(counts)]
        starts = [0, *ends[:-1]]
        parts = [emit.slice(parts[0], 2, *bounds) for bounds in zip(starts, ends, strict=True)]
    return [split_heads(emit, name, count) for name, count in zip(parts, counts, strict=True)]


def _sizes(emit: Emitter) -> Sizes:
    heads, shared = emit.attribute("num_heads"), emit.attribute("kv_num_heads")
    batch, tokens, width = emit.shape(emit.input(0))
    width //= heads if emit.input(1) else heads + 2 * shared
    if emit.input(1) and emit.shape(emit.input(1))[1] != tokens:
        raise emit.refuse("it is compiled for as many keys as queries")
    total = emit.graph.value(_given(emit, "total_sequence_length"))
    if total is None:
        raise emit.refuse("its total_sequence_length must follow from the shapes of inputs")
    return Sizes(batch, heads, shared, tokens, int(total.item()), width, width)


def _cache(emit: Emitter, sizes: Sizes) -> _Cache:
    past, total = _given(emit, "past_key"), sizes.keys
    before = emit.shape(past)[2] if past else 0
    if total == sizes.queries:  # ONNX Runtime recognises the first tokens of a sequence by this
        return _Cache(before, max(before, total), "")
    if sizes.batch > 1 and sizes.queries > 1:
        raise emit.refuse("several tokens after a past are compiled for one sample, as they are "
                          "in ONNX Runtime: give batch or tokens the size 1")  # fmt: skip
    count = emit.cast(_given(emit, "seqlens_k"), INT64)
    filled = emit("Add", count, emit.constant(1 - sizes.queries, INT64))
    known = emit.known(filled, min(before, total - sizes.queries) + 1)
    return _Cache(before, max(before, total), emit.reshape(known, -1, 1, 1, 1))


def _turned(emit: Emitter, tokens: str, sizes: Sizes, cache: _Cache) -> str:
    """Queries or keys, rotated by the angles of their positions."""
    tables = [_given(emit, "cos_cache"), _given(emit, "sin_cache")]
    places = _given(emit, "position_ids")
    if not places:
        places = emit.constant(np.arange(sizes.queries)[None], INT64)
        if cache.filled:
            places = emit("Add", emit.reshape(cache.filled, -1, 1), places)
    angles = [emit.looked_up(table, places, INT64) for table in tables]
    size = 2 * emit.shape(tables[0])[1]
    interleaved = bool(emit.attribute("rotary_interleaved", 0))
    return rotate(emit, tokens, sizes.width, angles, size=size, interleaved=interleaved)


def _appended(emit: Emitter, new: str, past: str, sizes: Sizes, cache: _Cache) -> str:
    """The cache after a call: the rows that were filled, then the new rows, then zeros."""
    if cache.filled and is_kept(emit, _given(emit, past)):
        return append(emit, _given(emit, past), new, emit.reshape(cache.filled, -1), 2)
    kind = emit.dtype(emit.input(0))
    if not cache.filled:
        return _padded(emit, new, cache.rows - sizes.queries, sizes, kind)
    old = _padded(emit, _given(emit, past), cache.rows - cache.before, sizes, kind)
    rows = emit.constant(np.arange(cache.rows).reshape(1, 1, -1, 1), INT64)
    behind = emit("Sub", rows, cache.filled)
    nothing = emit.constant(0, INT64)
    if sizes.queries > 1:  # then the batch is one sample
        last = emit.constant(sizes.queries - 1, INT64)
        places = emit("Min", emit("Max", emit.reshape(behind, -1), nothing), last)
        new = emit("Gather", new, places, axis=2)
    fresh = emit("Less", behind, emit.constant(sizes.queries, INT64))
    after = emit("Where", fresh, new, emit.constant(0, kind))
    return emit("Where", emit("Less", behind, nothing), old, after)


def _padded(emit: Emitter, name: str, rows: int, sizes: Sizes, kind: int) -> str:
    """A cache with so many more rows, of zeros."""
    if not rows:
        return name
    shape = sizes.batch, sizes.key_heads, rows, sizes.width
    emit.room_for(*shape)
    return emit("Concat", name, emit.constant(np.zeros(shape), kind), axis=2)


def _used(emit: Emitter, cached: str, sizes: Sizes, cache: _Cache) -> str:
    """The rows of a cache that any query may see."""
    return cached if cache.rows == sizes.keys else emit.slice(cached, 2, 0, sizes.keys)


def _bias(emit: Emitter, sizes: Sizes, cache: _Cache, kind: int) -> str:
    """The bias that is given, plus one that hides later keys and those before the window."""
    extra = _given(emit, "attention_bias")
    hidden = as_bias(emit, _seen(emit, sizes, cache), kind, -np.inf)
    return emit("Add", extra, hidden) if extra else hidden


def _seen(emit: Emitter, sizes: Sizes, cache: _Cache) -> str:
    """The keys that each query may see, broadcast to (batch, heads, queries, keys)."""
    keys = emit.constant(np.arange(sizes.keys), INT64)
    own = emit.constant(np.arange(sizes.queries)[:, None], INT64)
    own = emit("Add", cache.filled, own) if cache.filled else own
    window = emit.attribute("local_window_size", -1)
    if not emit.attribute("causal", 1):
        return emit("Less", keys, _counts(emit))
    seen = emit("Not", emit("Greater", keys, own))
    if _differ(sizes, cache):
        seen = emit("And", seen, emit("Less", keys, _counts(emit)))
    if window < 0:
        return seen
    first = emit("Sub", own, emit.constant(window, INT64))
    return emit("And", seen, emit("Greater", keys, first))


def _differ(sizes: Sizes, cache: _Cache) -> bool:
    """Whether samples may have different numbers of first tokens."""
    return sizes.batch > 1 and not cache.filled


def _hidden(emit: Emitter, sizes: Sizes, cache: _Cache) -> str:
    """The queries whose window begins behind the last key; empty if every query sees a key."""
    window = emit.attribute("local_window_size", -1)
    if window < 0 or not emit.attribute("causal", 1) or not _differ(sizes, cache):
        return ""
    first = emit.constant(np.arange(sizes.queries)[:, None] - window + 1, INT64)
    return emit("Not", emit("Less", first, _counts(emit)))


def _counts(emit: Emitter) -> str:
    """The number of keys of each sample, (batch, 1, 1, 1)."""
    count = emit.reshape(emit.cast(_given(emit, "seqlens_k"), INT64), -1, 1, 1, 1)
    return emit("Add", count, emit.constant(1, INT64))


def _sink(emit: Emitter, sizes: Sizes, kind: int) -> str:
    """The logits of the key that has no value; empty if there is none."""
    shape = sizes.batch, sizes.heads, sizes.queries, 1
    if sink := _given(emit, "head_sink"):
        by_head = emit.reshape(sink, 1, sizes.heads, 1, 1)
        return emit("Expand", by_head, emit.constant(shape, INT64))
    if not emit.attribute("smooth_softmax", 0):
        return ""
    emit.room_for(*shape)
    return emit.constant(np.zeros(shape), kind)


_TYPES = ("float32", "float16", "bfloat16", "int32", "int64")
OPERATORS = (contrib("GroupQueryAttention", types=_TYPES, expand=group_query_attention),)
