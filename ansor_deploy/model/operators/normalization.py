"""Normalisations over the last axes: ONNX's, and those that ONNX Runtime's optimiser writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod

from onnx import TensorProto

from ..graph.graph import Shape, is_op
from .emitter import Emitter
from .long_sums import MANY, MANY_IN_ONE, in_turn
from .operator import Operator, contrib

FLOAT = TensorProto.FLOAT
_USUAL = 0.75  # the exponent of nearly all local response normalisations


def rms_normalization(emit: Emitter) -> str:
    """Compute x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on."""
    return _by_root_mean_square(emit, emit.input(0), emit.input(1))[0]


# ONNX Runtime writes it as if it were one of ONNX's own operators.
def simplified_layer_normalization(emit: Emitter) -> list[str]:
    """The operator that ONNX calls RMSNormalization."""
    return list(_by_root_mean_square(emit, emit.input(0), emit.input(1)))


def skip_simplified_layer_normalization(emit: Emitter) -> list[str]:
    """RMSNormalization over the last axis of a sum."""
    total = _skipped(emit, emit.input(3))
    result, deviation = _by_root_mean_square(emit, total, emit.input(2))
    return [result, "", deviation, total]


def skip_layer_normalization(emit: Emitter) -> list[str]:
    """LayerNormalization over the last axis of a sum."""
    total = _skipped(emit, emit.input(4))
    return [layer_norm(emit, total, emit.input(2), emit.input(3)), "", "", total]


def embed_layer_normalization(emit: Emitter) -> list[str]:
    """LayerNormalization of the sum of embeddings of words, positions and segments."""
    return _embedded(emit, emit.input(8), lambda name, _: name)


def quantised_embed_layer_normalization(emit: Emitter) -> list[str]:
    """EmbedLayerNormalization with tables of bytes, each with a scale and a zero point."""
    first = 2  # the first table; behind the tables come the mask, their scales and zero points

    def real(name: str, table: int) -> str:
        ends = emit.input(table - first + 8), emit.input(table - first + 13)
        return emit("DequantizeLinear", name, *ends)

    return _embedded(emit, "", real)


def _embedded(emit: Emitter, positions: str, real: Callable[[str, int], str]) -> list[str]:
    """The normalised sum, how many tokens count, and the sum.

    real: makes floats of rows that were taken from the input with this index.
    """
    ids, segments, words, places, kinds, gamma, beta, mask = (emit.input(at) for at in range(8))
    tokens, kind = emit.shape(ids)[1], emit.dtype(ids)
    place = emit.slice(places, 0, 0, tokens)
    if positions:
        place = emit.looked_up(places, positions, kind)
    total = emit("Add", real(emit.looked_up(words, ids, kind), 2), real(place, 3))
    if segments:
        total = emit("Add", total, real(emit.looked_up(kinds, segments, kind), 4))
    result = layer_norm(emit, total, real(gamma, 5), real(beta, 6))
    return [result, _length(emit, ids, mask), total]


def _length(emit: Emitter, ids: str, mask: str) -> str:
    """How many tokens of each sample are not padding."""
    if not mask:
        return emit.constant([0] * emit.shape(ids)[0], TensorProto.INT32)
    total = emit.reduce("ReduceSum", emit.cast(mask, TensorProto.INT32), 1)
    return emit.reshape(total, -1)


def _skipped(emit: Emitter, bias: str) -> str:
    """The sum of the layer's result, the skip connection, and the layer's bias."""
    total = emit("Add", emit.input(0), emit.input(1))
    return emit("Add", total, bias) if bias else total


def layer_norm(emit: Emitter, name: str, scale: str, bias: str) -> str:
    """(x - mean) / deviation * scale + bias over the last axis."""
    inputs = [name, scale, *([bias] if bias else [])]
    epsilon = emit.attribute("epsilon", 1e-12)
    return emit("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)


def layer_normalization(emit: Emitter) -> list[str] | None:
    """Write out LayerNormalization for opsets that lack it, or where mean or deviation is read.

    ONNX Runtime writes it into models of older opsets. TVM's converter drops the axes of the mean
    and the deviation.
    """
    if emit.graph.opset >= 17 and not (emit.wants(1) or emit.wants(2)):
        return None
    name, scale, bias = (emit.input(index) for index in range(3))
    axes = _axes(emit, name)
    wide = emit.cast(name, FLOAT)
    mean = emit.reduce("ReduceMean", wide, *axes)
    centred = emit("Sub", wide, mean)
    variance = emit.reduce("ReduceMean", emit("Mul", centred, centred), *axes)
    inverse = _inverse_root(emit, variance)
    narrow = emit.cast(emit("Mul", centred, inverse), emit.dtype(name))
    result = emit("Mul", narrow, scale)
    return [emit("Add", result, bias) if bias else result, mean, inverse]


def instance_normalization(emit: Emitter) -> str | None:
    """InstanceNormalization of many elements by means of means, which round less; None for few.

    Exporters write GroupNormalization as one whose channels are the groups of an image. The image
    is then normalised in its own shape, so that no reshape comes between other operators.
    """
    name, whole = emit.input(0), emit.shape(emit.input(0))
    if emit.dtype(name) != FLOAT:
        return None
    scale, bias = emit.input(1), emit.input(2)
    if image := _of_groups(emit, name, whole):
        scale, bias = (emit.reshape(one, -1, 1) for one in (scale, bias))
        made = _by_group(emit, image, emit.shape(image), whole[1], scale, bias)
        return emit.reshape(made, *whole)
    if prod(whole[2:]) < MANY:
        return None
    scale, bias = (emit.reshape(one, -1, *[1] * len(whole[2:])) for one in (scale, bias))
    return _by_mean(emit, name, whole, scale, bias, range(2, len(whole)))


def _of_groups(emit: Emitter, name: str, whole: Shape) -> str:
    """The image whose groups of channels were reshaped to rows; "" if there is none."""
    made = emit.graph.producers().get(name)
    if made is None or not is_op(made, "Reshape") or len(whole) != 3:
        return ""
    shape = emit.graph.shapes.get(made.input[0])
    fits = shape and len(shape) > 2 and shape[0] == whole[0] and shape[1] % whole[1] == 0
    return str(made.input[0]) if fits else ""


def _by_group(emit: Emitter, image: str, shape: Shape, groups: int, scale: str, bias: str) -> str:
    """An image with each group of its channels normalised, in its own shape.

    Means and variances of channels are put together for each group, so that passes over the image
    meet channels alone, in whichever order they lie. scale, bias: by group and channel of a group.
    """
    rank = len(shape)
    if groups == 1:
        scale, bias = (emit.reshape(one, -1, *[1] * (rank - 2)) for one in (scale, bias))
        return _by_mean(emit, image, shape, scale, bias, range(1, rank))
    sizes, kept = (shape[0], groups, shape[1] // groups), (*shape[:2], *[1] * (rank - 2))
    _, *known = _spread(emit, image, shape, range(2, rank))
    means, variances = (emit.reshape(one, *sizes) for one in known)
    _, mean, among = _spread(emit, means, sizes, [2])
    variance = emit("Add", emit.reduce("ReduceMean", variances, 2), among)
    factor = emit("Mul", _inverse_root(emit, variance), scale)
    offset = emit("Sub", bias, emit("Mul", mean, factor))
    each = emit.constant(sizes, TensorProto.INT64)
    factor, offset = (emit.reshape(emit("Expand", one, each), *kept) for one in (factor, offset))
    return emit("Add", emit("Mul", image, factor), offset)


def _by_mean(
    emit: Emitter, name: str, shape: Shape, scale: str, bias: str, axes: Sequence[int]
) -> str:
    """A tensor normalised over axes."""
    centred, _, variance = _spread(emit, name, shape, axes)
    factor = emit("Mul", _inverse_root(emit, variance), scale)
    return emit("Add", emit("Mul", centred, factor), bias)


def _spread(emit: Emitter, name: str, shape: Shape, axes: Sequence[int]) -> tuple[str, str, str]:
    """A tensor minus its mean over axes, that mean, and the variance; the axes stay."""
    mean = _mean(emit, name, shape, axes)
    centred = emit("Sub", name, mean)
    return centred, mean, _mean(emit, emit("Mul", centred, centred), shape, axes)


def _mean(emit: Emitter, name: str, shape: Shape, axes: Sequence[int]) -> str:
    """A mean over axes, which stay: of many elements by means of means."""
    if prod(shape[axis] for axis in axes) >= MANY_IN_ONE:
        return in_turn(emit, "ReduceMean", name, shape, axes)
    return emit.reduce("ReduceMean", name, *axes) if axes else name


def group_normalization(emit: Emitter) -> str:
    """The normalisation of groups of channels, with a scale and a bias for each channel.

    ONNX infers no shape for it, nor for anything behind it. Before opset 21, scales are per group.
    """
    name, groups = emit.input(0), emit.attribute("num_groups", 1)
    shape, kind = emit.shape(name), emit.dtype(name)
    scale, bias = (emit.reshape(emit.input(at), groups, -1) for at in (1, 2))
    normal = _by_group(emit, emit.cast(name, FLOAT), shape, groups, scale, bias)
    return emit.cast(normal, kind)


def local_response_normalization(emit: Emitter) -> str | None:
    """Divide x by (bias + alpha * mean of the squares of channels nearby) ** beta.

    TVM pools a transposed image, and its power calls a function for each element. None in opsets
    that do not broadcast.
    """
    if emit.graph.opset < 7:
        return None
    size, wide = emit.attribute("size"), emit.cast(emit.input(0), FLOAT)
    total = _sums_nearby(emit, emit("Mul", wide, wide), emit.shape(emit.input(0)), size)
    scaled = emit("Mul", total, emit.constant(emit.attribute("alpha", 1e-4) / size))
    base = emit("Add", scaled, emit.constant(emit.attribute("bias", 1.0)))
    divisor = _power(emit, base, emit.attribute("beta", _USUAL))
    return emit.cast(emit("Div", wide, divisor), emit.dtype(emit.input(0)))


def _sums_nearby(emit: Emitter, name: str, shape: Shape, size: int) -> str:
    """Sums of this many channels around each."""
    _, channels, *sides = shape
    before, behind = (0, (size - 1) // 2), (0, size // 2)
    padded = emit.pad(name, [*before, *(0 for _ in sides), *behind, *(0 for _ in sides)])
    parts = (emit.slice(padded, 1, at, at + channels) for at in range(size))
    return reduce(partial(emit, "Add"), parts)


def _power(emit: Emitter, name: str, exponent: float) -> str:
    """A power of positive numbers; the usual one by square roots, which are computed at once.

    Not so in `Pow` itself, which makes infinity of negative infinity, where roots make no number.
    """
    if exponent != _USUAL:
        return emit("Pow", name, emit.constant(exponent))
    root = emit("Sqrt", name)
    return emit("Mul", root, emit("Sqrt", root))


def _by_root_mean_square(emit: Emitter, name: str, scale: str) -> tuple[str, str]:
    """X / sqrt(mean(x * x) + epsilon) * scale in float32, and the factor of x before the scale."""
    kind = emit.dtype(emit.input(0))
    wide = emit.cast(name, FLOAT)
    mean = emit.reduce("ReduceMean", emit("Mul", wide, wide), *_axes(emit, emit.input(0)))
    inverse = _inverse_root(emit, mean)
    narrow = emit.cast(emit("Mul", wide, inverse), kind)
    return emit("Mul", narrow, scale), inverse


def _inverse_root(emit: Emitter, mean: str) -> str:
    epsilon = emit.constant(emit.attribute("epsilon", 1e-5))
    return emit("Reciprocal", emit("Sqrt", emit("Add", mean, epsilon)))


def _axes(emit: Emitter, name: str) -> range:
    rank = len(emit.shape(name))
    return range(emit.attribute("axis", -1) % rank, rank)


OPERATORS = (
    Operator("LRN", expand=local_response_normalization),
    Operator("RMSNormalization", since=23, expand=rms_normalization),
    Operator("SimplifiedLayerNormalization", expand=simplified_layer_normalization),
    contrib("SimplifiedLayerNormalization", expand=simplified_layer_normalization),
    contrib("SkipSimplifiedLayerNormalization", expand=skip_simplified_layer_normalization),
    contrib("SkipLayerNormalization", expand=skip_layer_normalization),
    contrib("EmbedLayerNormalization", expand=embed_layer_normalization),
    contrib("QEmbedLayerNormalization", expand=quantised_embed_layer_normalization),
    Operator("InstanceNormalization", expand=instance_normalization),
    Operator("LayerNormalization", expand=layer_normalization),
    Operator("GroupNormalization", since=18, expand=group_normalization),
)
