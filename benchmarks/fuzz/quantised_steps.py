"""Float steps between the conversions of random quantised graphs.

A step adds nodes to the last segment. Where two right results may round differently, it marks the
segment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from benchmarks.fuzz.quantised_graphs import Graph, RefusedError

_EXACT = ("Abs", "Neg", "Relu", "Identity")
_SMOOTH = ("Elu", "Erf", "HardSigmoid", "HardSwish", "LeakyRelu", "Sigmoid", "Softplus", "Tanh")


def _other(made: Graph, x: str) -> str:
    """The float values of a random tensor, which need not have the same shape."""
    found = [*made.inputs, *(one for part in made.segments for one in part.made)]
    chosen = made.chance.choice(found)
    made.numbers(chosen)
    return made.segments[-1].nodes[-1].output[0]


def _inexact(made: Graph, name: str) -> str:
    made.segments[-1].off = 1
    return name


def _unary(made: Graph, x: str) -> str:
    return made.add(made.chance.choice(_EXACT), [x])


def _smooth(made: Graph, x: str) -> str:
    return _inexact(made, made.add(made.chance.choice(_SMOOTH), [x]))


def _clip(made: Graph, x: str) -> str:
    reach = float(np.abs(made.values[x]).max(initial=0))
    chance = made.chance
    low, high = sorted(chance.uniform(-reach, reach) for _ in "ab")
    low, high = chance.choice(((low, high), (0, 6), (0, high), (low, 0)))
    ends = [made.constant(one, np.float32) for one in (low, high)]
    return made.add("Clip", [x, *chance.choice((ends, ends, ends[:1], ["", ends[1]]))])


def _number(made: Graph, x: str) -> str:
    """Combine the tensor with a constant."""
    op = made.chance.choice(("Add", "Mul", "Sub", "Div", "Max", "Min"))
    value = made.constant(made.chance.choice((0.5, 2, 3, -1, 0.1)), np.float32)
    pair = [x, value] if op == "Div" or made.chance.random() < 0.7 else [value, x]
    return _inexact(made, made.add(op, pair))


def _vector(made: Graph, x: str) -> str:
    """Combine the tensor with a number for each element of the last axis, or for each channel."""
    shape = made.shape(x)
    if len(shape) < 2:
        raise RefusedError
    weights = made.weights(*made.chance.choice((shape[-1:], (shape[1], *[1] * len(shape[2:])))))
    return _inexact(made, made.add(made.chance.choice(("Add", "Mul")), [x, weights]))


def _gate(made: Graph, x: str) -> str:
    """A tensor times a function of itself, or plus it."""
    inner = made.add(made.chance.choice(_SMOOTH), [x])
    pair = made.chance.choice(((x, inner), (inner, x)))
    return _inexact(made, made.add(made.chance.choice(("Mul", "Add")), pair))


def _pair(made: Graph, x: str) -> str:
    op = made.chance.choice(("Add", "Mul", "Sub", "Max", "Min"))
    return _inexact(made, made.add(op, [x, _other(made, x)]))


def _concat(made: Graph, x: str) -> str:
    axis = made.chance.randrange(len(made.shape(x)))
    parts = made.chance.choice(([x, _other(made, x)], [x, x], [_other(made, x), x]))
    return made.add("Concat", parts, axis=axis)


def _transpose(made: Graph, x: str) -> str:
    order = list(range(len(made.shape(x))))
    return made.add("Transpose", [x], perm=made.chance.sample(order, len(order)))


def _reshape(made: Graph, x: str) -> str:
    shape = made.shape(x)
    kinds = [
        lambda: made.add("Flatten", [x], axis=made.chance.randrange(len(shape) + 1)),
        lambda: made.add("Unsqueeze", [x, made.constant([0])]),
        lambda: made.add("Reshape", [x, made.constant([0, -1])]),
        lambda: made.add("Squeeze", [x]),
    ]
    return made.chance.choice(kinds)()


def _slice(made: Graph, x: str) -> str:
    axis = made.chance.randrange(len(made.shape(x)))
    extent = made.shape(x)[axis]
    begin = made.chance.randrange(extent)
    step = made.chance.choice((1, 1, 2, -1))
    end = -(1 << 40) if step < 0 else extent
    return made.add("Slice", [x, *(made.constant([one]) for one in (begin, end, axis, step))])


def _split(made: Graph, x: str) -> str:
    axis = made.chance.randrange(len(made.shape(x)))
    extent = made.shape(x)[axis]
    if extent < 2:
        raise RefusedError
    sizes = made.constant([extent // 2, extent - extent // 2])
    return made.chance.choice(made.several("Split", [x, sizes], 2, axis=axis))


def _pad(made: Graph, x: str) -> str:
    rank = len(made.shape(x))
    pads = made.constant([made.chance.choice((0, 0, 1, 2)) for _ in range(2 * rank)])
    mode = made.chance.choice(("constant", "constant", "constant", "edge", "reflect"))
    value = made.constant(made.chance.choice((0, 0, 1.5, -3e30)), np.float32)
    given = [x, pads] + [value] * (mode == "constant" and made.chance.random() < 0.7)
    return made.add("Pad", given, mode=mode)


def _gather(made: Graph, x: str) -> str:
    axis = made.chance.randrange(len(made.shape(x)))
    extent = made.shape(x)[axis]
    at = [made.chance.randrange(-extent, extent) for _ in range(made.chance.randint(1, 4))]
    return made.add("Gather", [x, made.constant(at)], axis=axis)


def _repeat(made: Graph, x: str) -> str:
    shape = made.shape(x)
    if made.chance.random() < 0.5:
        return made.add("Tile", [x, made.constant([made.chance.randint(1, 2) for _ in shape])])
    return made.add("Expand", [x, made.constant([2, *shape])])


def _resize(made: Graph, x: str) -> str:
    """Double height and width, halve them, or triple the height."""
    rank, chance = len(made.shape(x)), made.chance
    if rank != 4:
        raise RefusedError
    mode = chance.choice(("nearest", "nearest", "linear"))
    way = chance.choice(("asymmetric", "half_pixel", "align_corners"))
    scales = made.constant([1, 1, *chance.choice(((2, 2), (3, 1), (0.5, 0.5)))], np.float32)
    name = made.add("Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=way)
    return name if mode == "nearest" else _inexact(made, name)


def window(made: Graph) -> dict[str, Any]:
    """The attributes of a pool's window."""
    chance = made.chance
    kernel = [chance.choice((1, 2, 3)) for _ in "hw"]
    pads = [chance.randrange(min(k, 2)) for k in (*kernel, *kernel)]
    return {
        "kernel_shape": kernel,
        "pads": pads,
        "strides": [chance.choice((1, 1, 2)) for _ in "hw"],
    }


def _pool(made: Graph, x: str) -> str:
    op = made.chance.choice(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    how = {} if op.startswith("Global") else window(made)
    if op == "AveragePool":
        how["count_include_pad"] = made.chance.randrange(2)
    name = made.add(op, [x], **how)
    return _inexact(made, name) if "Average" in op else name


def _reduce(made: Graph, x: str) -> str:
    rank = len(made.shape(x))
    axes = sorted(made.chance.sample(range(rank), made.chance.randint(1, rank)))
    op = made.chance.choice(("ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin"))
    keep = made.chance.randrange(2)
    if made.opset < 18:
        return _inexact(made, made.add(op, [x], axes=axes, keepdims=keep))
    return _inexact(made, made.add(op, [x, made.constant(axes)], keepdims=keep))


def _blocks(made: Graph, x: str) -> str:
    if made.chance.random() < 0.5:
        return made.add("DepthToSpace", [x], blocksize=2)
    return made.add("SpaceToDepth", [x], blocksize=2)


def _weight(made: Graph, shape: tuple[int, ...], axis: int) -> tuple[str, np.ndarray]:
    """A dequantised weight, and its scales: one, or one for each index of an axis."""
    chance = made.chance
    kind = chance.choice((TensorProto.INT8, TensorProto.INT8, TensorProto.INT8, TensorProto.UINT8))
    each = chance.random() < 0.6
    scale = made.rng().uniform(0.001, 0.02, shape[axis] if each else ()).astype(np.float32)
    if each and chance.random() < 0.1:
        scale[0] = chance.choice((1e-40, 1e-30, 0))
    dtype = np.int8 if kind == TensorProto.INT8 else np.uint8
    origin = chance.choice((0, 0, 0, 3, 127)) if dtype == np.int8 else chance.choice((128, 0, 255))
    zero = made.constant(np.full(scale.shape, origin), dtype)
    names = [made.bytes(kind, *shape), made.constant(scale, np.float32), zero]
    if origin == 0 and chance.random() < 0.3:
        names.pop()
    if chance.random() < 0.15:
        names[0] = _from_floats(made, shape, names[1:], axis)
    return made.add("DequantizeLinear", names, axis=axis), scale


def _from_floats(made: Graph, shape: tuple[int, ...], ends: list[str], axis: int) -> str:
    """A weight that the model has as float32, and quantises itself."""
    numbers = made.constant(made.rng().standard_normal(shape) * 0.5, np.float32)
    return made.add("QuantizeLinear", [numbers, *ends], axis=axis)


def _bias(made: Graph, x: str, count: int, scale: np.ndarray) -> list[str]:
    """No bias, a float32 one, or an integer one with the scale of the sums or another."""
    how = made.chance.choice(("none", "float", "whole", "other"))
    if how == "none":
        return []
    if how == "float":
        return [made.weights(count)]
    node = next(n for n in made.segments[-1].nodes if n.op_type == "DequantizeLinear")
    given = made.values[node.input[1]]
    scales = made.constant(scale * given * (1 if how == "whole" else 3), np.float32)
    data = made.constant(made.rng().integers(-3000, 3000, count), np.int32)
    return [made.add("DequantizeLinear", [data, scales], axis=0)]


def _conv(made: Graph, x: str) -> str:
    shape, chance = made.shape(x), made.chance
    if len(shape) not in (3, 4):
        raise RefusedError
    rank, depth = len(shape) - 2, shape[1]
    group = chance.choice([g for g in (1, 1, 2, depth) if depth % g == 0])
    wide = group * chance.choice((1, 2, 3, 8))
    side = [chance.choice((1, 2, 3)) for _ in range(rank)]
    weight, scale = _weight(made, (wide, depth // group, *side), 0)
    how: dict[str, Any] = {"pads": [chance.randrange(2) for _ in range(2 * rank)], "group": group}
    how |= {"strides": [chance.choice((1, 1, 2)) for _ in range(rank)]}
    bias = _bias(made, x, wide, scale)
    return _inexact(made, made.add("Conv", [x, weight, *bias], **how))


def _conv_transpose(made: Graph, x: str) -> str:
    shape, chance = made.shape(x), made.chance
    if len(shape) != 4:
        raise RefusedError
    group = chance.choice([g for g in (1, 1, 2) if shape[1] % g == 0])
    wide = chance.choice((1, 2, 3, 8))
    weight, scale = _weight(made, (shape[1], wide, 2, 3), 1)
    bias = _bias(made, x, wide * group, scale if scale.size == 1 else np.tile(scale, group))
    return _inexact(
        made, made.add("ConvTranspose", [x, weight, *bias], strides=[2, 2], group=group)
    )


def _gemm(made: Graph, x: str) -> str:
    shape, chance = made.shape(x), made.chance
    if len(shape) != 2:
        raise RefusedError
    wide, turns = chance.choice((1, 2, 3, 8, 17)), [chance.randrange(2) for _ in "ab"]
    sides = (shape[0] if turns[0] else shape[1], wide)
    weight, scale = _weight(made, sides[::-1] if turns[1] else sides, 0 if turns[1] else 1)
    bias = _bias(made, x, wide, scale)
    alpha = chance.choice((1.0, 1.0, 1.0, 0.5))
    how: dict[str, Any] = {"transA": turns[0], "transB": turns[1], "alpha": alpha}
    return _inexact(made, made.add("Gemm", [x, weight, *bias], **how))


def _mat_mul(made: Graph, x: str) -> str:
    wide = made.chance.choice((1, 2, 3, 8, 17))
    weight, _ = _weight(made, (made.shape(x)[-1], wide), made.chance.randrange(2))
    return _inexact(made, made.add("MatMul", [x, weight]))


def _product(made: Graph, x: str) -> str:
    """The product of two activations, or of one with itself."""
    other = _other(made, x)
    order = list(range(len(made.shape(other))))
    turned = made.add("Transpose", [other], perm=[*order[:-2], *order[:-3:-1]])
    return _inexact(made, made.add("MatMul", [x, turned]))


def _float_island(made: Graph, x: str) -> str:
    if made.chance.random() < 0.5:
        return _inexact(made, made.add("Softmax", [x], axis=-1))
    scale = made.weights(made.shape(x)[-1])
    return _inexact(made, made.add("LayerNormalization", [x, scale], axis=-1))


Step = Callable[[Graph, str], str]
STEPS: tuple[Step, ...] = (
    *(_unary, _smooth, _smooth, _clip, _clip, _number, _vector, _gate, _pair, _pair, _concat),
    *(_concat, _transpose, _reshape, _reshape, _slice, _split, _pad, _pad, _gather, _repeat),
    *(_resize, _pool, _pool, _reduce, _blocks, _float_island),
    *(_conv, _conv, _conv, _conv_transpose, _gemm, _gemm, _mat_mul, _product),
)
