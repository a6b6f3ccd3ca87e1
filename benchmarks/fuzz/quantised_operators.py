"""Operators on integers in random quantised graphs: each is a segment of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from benchmarks.fuzz.quantised_graphs import BYTES, MICROSOFT, Graph, RefusedError, Steps
from benchmarks.fuzz.quantised_steps import window

_MOST_STEPS = 1 << 30  # beyond int32, sums and products in ONNX Runtime wrap around
_MOST_FACTOR = 1e38  # in float32; beyond it the factor is infinite, and a zero sum becomes NaN


def operator(made: Graph, newest: Steps) -> None:
    """Add a random operator on integers."""
    if newest.kind not in BYTES:
        raise RefusedError
    made.segments[-1].read.append(newest)
    made.chance.choice(_OPERATORS)(made, newest)


def _ends(made: Graph, x: Steps) -> list[str]:
    return [x.name, *made.range_of(x)]


def _ending(made: Graph, x: Steps, reach: float) -> Steps:
    return made.steps(reach, kinds=(x.kind,))


def _reach(made: Graph, x: Steps) -> float:
    values = made.values[x.name].astype(np.float64)
    return float(np.abs((values - x.zero) * x.scale).max(initial=0))


def _q_function(made: Graph, x: Steps) -> None:
    op, reach = made.chance.choice((("QLinearSigmoid", 1.0), ("QLinearLeakyRelu", _reach(made, x))))
    to = _ending(made, x, reach)
    made.note(made.add(op, [*_ends(made, x), *made.range_of(to)], MICROSOFT), to)
    made.segments[-1].off = 1


def _q_softmax(made: Graph, x: Steps) -> None:
    to = _ending(made, x, 1.0)
    given = [*_ends(made, x), *made.range_of(to)]
    how = {"axis": made.chance.randrange(-1, len(made.shape(x.name))), "opset": made.opset}
    made.note(made.add("QLinearSoftmax", given, MICROSOFT, **how), to)
    made.segments[-1].off = 1


def _q_mean(made: Graph, x: Steps) -> None:
    """Pool over all positions, or over windows.

    Images smaller than a window are left out: there ONNX Runtime ends the process.
    """
    if len(made.shape(x.name)) != 4 or min(made.shape(x.name)) < 3:
        raise RefusedError
    to, last = _ending(made, x, _reach(made, x)), made.chance.randrange(2)
    given = [*_ends(made, x), *made.range_of(to)]
    if made.chance.random() < 0.5:
        name = made.add("QLinearGlobalAveragePool", given, MICROSOFT, channels_last=last)
    else:
        made.tell_apart(to, _reach(made, x))
        how = {"count_include_pad": made.chance.randrange(2), **window(made)}
        name = made.add("QLinearAveragePool", given, MICROSOFT, channels_last=last, **how)
        made.segments[-1].off = 1
    made.note(name, to)


def _second(made: Graph, x: Steps) -> Steps:
    """A random tensor of the same type."""
    found = [*made.inputs, *(one for part in made.segments for one in part.made)]
    chosen = made.chance.choice([one for one in found if one.kind == x.kind])
    made.segments[-1].read.append(chosen)
    return chosen


def _q_pair(made: Graph, x: Steps) -> None:
    y = _second(made, x)
    op, reach = made.chance.choice((
        ("QLinearAdd", _reach(made, x) + _reach(made, y)),
        ("QLinearMul", _reach(made, x) * _reach(made, y)),
    ))  # fmt: skip
    to = _ending(made, x, reach)
    if reach / to.scale > _MOST_STEPS:
        raise RefusedError(op)
    given = [*_ends(made, x), *_ends(made, y), *made.range_of(to)]
    made.note(made.add(op, given, MICROSOFT), to)


def _q_concat(made: Graph, x: Steps) -> None:
    y = _second(made, x)
    to = _ending(made, x, max(_reach(made, x), _reach(made, y)))
    axis = made.chance.randrange(len(made.shape(x.name)))
    given = [*made.range_of(to), *_ends(made, x), *_ends(made, y)]
    made.note(made.add("QLinearConcat", given, MICROSOFT, axis=axis), to)


def _summed(made: Graph, x: Steps, count: float) -> Steps:
    """The steps of sums of so many products; RefusedError where their factor exceeds float32."""
    to = _ending(made, x, _reach(made, x) * math.sqrt(count))
    if x.scale / to.scale > _MOST_FACTOR:
        raise RefusedError(f"sums in steps of {x.scale} as steps of {to.scale}")
    return to


def _q_weight(made: Graph, x: Steps, shape: tuple[int, ...], axis: int) -> list[str]:
    """A weight, its scales and zero points."""
    each = made.chance.random() < 0.6
    scale = made.rng().uniform(0.001, 0.02, shape[axis] if each else ()).astype(np.float32)
    zero = 0 if each else made.chance.choice((0, 0, 5))
    kind = TensorProto.INT8
    ends = made.constant(scale, np.float32), made.constant(np.full(scale.shape, zero), np.int8)
    return [made.bytes(kind, *shape), *ends]


def _q_conv(made: Graph, x: Steps) -> None:
    shape, chance = made.shape(x.name), made.chance
    if len(shape) != 4:
        raise RefusedError
    group = chance.choice([g for g in (1, 1, 2, shape[1]) if shape[1] % g == 0])
    wide = group * chance.choice((1, 2, 3, 8))
    weight = _q_weight(made, x, (wide, shape[1] // group, 2, 3), 0)
    to = _summed(made, x, shape[1] / group * 6)
    bias = [made.constant(made.rng().integers(-3000, 3000, wide), np.int32)]
    given = [*_ends(made, x), *weight, *made.range_of(to), *bias[: chance.randrange(2)]]
    name = made.add("QLinearConv", given, pads=[chance.randrange(2) for _ in range(4)], group=group)
    made.note(name, to)


def _q_product(made: Graph, x: Steps) -> None:
    shape = made.shape(x.name)
    if not shape:
        raise RefusedError("a number has no rows")
    weight = _q_weight(made, x, (shape[-1], made.chance.choice((1, 3, 8))), 1)
    to = _summed(made, x, shape[-1])
    made.note(made.add("QLinearMatMul", [*_ends(made, x), *weight, *made.range_of(to)]), to)


def _q_gemm(made: Graph, x: Steps) -> None:
    shape, chance = made.shape(x.name), made.chance
    wide, turn = chance.choice((1, 3, 8)), chance.randrange(2)
    weight = _q_weight(made, x, (wide, shape[-1]) if turn else (shape[-1], wide), 1 - turn)
    to = _summed(made, x, shape[-1])
    bias = made.constant(made.rng().integers(-3000, 3000, wide), np.int32)
    bias = chance.choice((bias, ""))
    given = [*_ends(made, x), *weight, bias, *made.range_of(to)]
    how = {"transB": turn, "alpha": chance.choice((1.0, 1.0, 0.7))}
    made.note(made.add("QGemm", given, MICROSOFT, **how), to)
    made.segments[-1].off = 1


_OPERATORS: tuple[Callable[[Graph, Steps], None], ...] = (
    _q_function, _q_function, _q_softmax, _q_mean, _q_mean, _q_pair, _q_pair, _q_concat, _q_conv,
    _q_product, _q_gemm,
)  # fmt: skip
