"""Is a library right on edge values, too? Tried once it is right on ordinary numbers.

What two right programs make of an edge may differ, and a false alarm would refuse a good library.
So of each draw only that is compared with ONNX Runtime which hangs on no order of operations:

    zeros               floating outputs are as close as on ordinary inputs
    a NaN in each       an output of which ONNX Runtime's has a NaN has one
    infinities          floating outputs of which ONNX Runtime's stay finite are as close
    last index          floating outputs are as close
    beyond the last     the call is refused where ONNX Runtime refuses it

Errors are relative to what an output is on ordinary inputs, if that is larger. Whole numbers are
not compared: of equal values, rounding decides which is the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, UsageError, VerificationError
from .tolerance import compare

if TYPE_CHECKING:
    import onnx

    from .verify import Oracle, Runnable

Arrays = Mapping[str, np.ndarray]
# Whether an output is right, given the one expected, and the one on ordinary inputs.
Judge = Callable[[np.ndarray, np.ndarray, np.ndarray], bool]
# What makes another tensor of indices of one, but leaves the indices.
_MOVING = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def index_extents(proto: onnx.ModelProto) -> dict[str, int]:
    """By the name of an input of indices, the rows of the smallest constant that it looks into."""
    constants = {tensor.name: tensor.dims for tensor in proto.graph.initializer}
    comes_from = {value.name: value.name for value in proto.graph.input}
    found: dict[str, int] = {}
    for node in proto.graph.node:
        if node.op_type in _MOVING and node.input[0] in comes_from:
            comes_from[node.output[0]] = comes_from[node.input[0]]
        if node.op_type == "Gather" and node.input[0] in constants:
            source = comes_from.get(node.input[1], "")
            axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
            rows = constants[node.input[0]][axis]
            found[source] = min(rows, found.get(source, rows))
    return {name: rows for name, rows in found.items() if name}


def check_edges(
    model: Runnable, oracle: Oracle, feed: dict[str, np.ndarray], usual: Arrays
) -> None:
    """VerificationError where a library is wrong on edge values.

    feed: inputs on which it is right. usual: the outputs for these.
    """
    for name, judge, drawn in (*_floats(feed), *_indices(oracle.extents, feed)):
        try:
            expected = oracle.outputs(drawn)
        except ModelError:
            if name == _BEYOND:
                _check_refused(model, drawn)
            continue
        if name == _BEYOND:
            continue  # it is no index that ONNX Runtime minds
        actual = model(**drawn)
        wrong = [each for each in expected if not judge(actual[each], expected[each], usual[each])]
        if wrong:
            raise _wrong(name, f"output {wrong[0]} differs from {oracle.name}")


def _floats(feed: Arrays) -> Iterator[tuple[str, Judge, dict[str, np.ndarray]]]:
    names = [name for name, array in feed.items() if _is_float(array) and array.size]
    draws: list[tuple[str, Judge, Callable[[np.ndarray], Any]]] = [
        ("zeros", _close, np.zeros_like),
        ("a NaN", _keeps_nan, lambda array: _with(array, {array.size // 2: np.nan})),
        ("infinities", _close_if_finite, lambda array: _with(array, {-1: np.inf, 0: -np.inf})),
    ]
    for name, judge, draw in draws if names else ():
        yield name, judge, {**feed, **{each: draw(feed[each]) for each in names}}


_LAST, _BEYOND = "the last index of each table", "an index beyond a table"


def _indices(
    extents: Mapping[str, int], feed: Arrays
) -> Iterator[tuple[str, Judge, dict[str, np.ndarray]]]:
    known = {name: extent for name, extent in extents.items() if name in feed and feed[name].size}
    if not known:
        return
    last = {name: np.full_like(feed[name], extent - 1) for name, extent in known.items()}
    yield _LAST, _close, {**feed, **last}
    for name, extent in known.items():
        yield _BEYOND, _close, {**feed, name: _with(feed[name], {-1: extent})}


def _check_refused(model: Runnable, drawn: dict[str, np.ndarray]) -> None:
    try:
        model(**drawn)
    except UsageError:
        return
    raise _wrong(_BEYOND, "the library answers, and ONNX Runtime refuses")


def _wrong(draw: str, what: str) -> VerificationError:
    return VerificationError(
        f"on edge values ({draw}) {what}",
        "report the model; docs/edge_values.md has what is compared",
    )


def _is_float(array: np.ndarray) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _with(array: np.ndarray, values: Mapping[int, float]) -> np.ndarray:
    """A copy with other elements at places of the flat array."""
    made = array.copy()
    for place, value in values.items():
        made.reshape(-1)[place] = value
    return made


def _close(actual: np.ndarray, expected: np.ndarray, usual: np.ndarray) -> bool:
    if not _is_float(expected):
        return True
    beside = usual.reshape(-1)
    flat = (np.concatenate([one.reshape(-1), beside]) for one in (actual, expected))
    return actual.shape == expected.shape and compare(*flat)[0]


def _keeps_nan(actual: np.ndarray, expected: np.ndarray, _usual: np.ndarray) -> bool:
    has_nan = _is_float(expected) and bool(np.isnan(expected).any())
    return not has_nan or bool(np.isnan(actual).any())


def _close_if_finite(actual: np.ndarray, expected: np.ndarray, usual: np.ndarray) -> bool:
    finite = _is_float(expected) and bool(np.isfinite(expected).all())
    return not finite or _close(actual, expected, usual)
