"""Check a library on edge values, after it is right on ordinary inputs.

Two correct programs may differ on an edge, and a false alarm would refuse a good library. So each
set of inputs is compared with ONNX Runtime only in what does not depend on the order of operations:

    zeros               floating outputs are as close as on ordinary inputs
    a NaN in each       an output has a NaN where ONNX Runtime's has one
    infinities          floating outputs are as close where ONNX Runtime's are finite
    last index          floating outputs are as close
    beyond the last     the call is refused where ONNX Runtime refuses it

Most elements of such inputs are equal and are rounded alike, so that their errors do not vanish in
means: some of the oracle's noise is alike for them, too. Errors are relative to an output's size on
ordinary inputs, if that is larger. Elements that
rounding moves by a thousandth of that are not compared, nor are integers: among equal values,
rounding decides which is the largest. ONNX Runtime's recurrences and some of its activations turn
NaN into numbers: where it loses an input's NaN in an output, a NaN there after infinities is no
fault, nor is another number if a recurrence's NaN may have become an integer, or if elements are
compared with the largest of a window, which in ONNX Runtime may pass over a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError, UsageError, VerificationError
from ...runtime.out_of_range import COMPUTED
from .judges import Arrays, Tolerances, judge_outputs

if TYPE_CHECKING:
    import onnx

    from .oracle import Oracle
    from .verify import Runnable

# Operators that keep the values of an index tensor and change its shape or type alone.
_MOVING = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
# Operators that ONNX Runtime divides by the spread alone, which is zero if all elements are equal.
_ZERO_SPREAD = frozenset(("MeanVarianceNormalization",))
# Operators whose activations lose NaN in ONNX Runtime, and operators that make integers of numbers.
_RECURRENCES = ("DynamicQuantizeLSTM", "GRU", "LSTM", "RNN")
_ROUNDING = ("DynamicQuantizeLinear", "QuantizeLinear")
_COMPARING = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
# Operators that look up rows of a table, and their attribute of the axis.
_LOOKING = {"Gather": "axis", "GatherBlockQuantized": "gather_axis"}


def index_extents(proto: onnx.ModelProto) -> dict[str, int]:
    """For each input used as indices, by name: the rows of the smallest constant table indexed."""
    constants = {tensor.name: tensor.dims for tensor in proto.graph.initializer}
    comes_from = {value.name: value.name for value in proto.graph.input}
    extents: dict[str, int] = {}
    for node in proto.graph.node:
        if node.op_type in _MOVING and node.input[0] in comes_from:
            comes_from[node.output[0]] = comes_from[node.input[0]]
        if node.op_type in _LOOKING and node.input[0] in constants:
            source = comes_from.get(node.input[1], "")
            named = _LOOKING[node.op_type]
            axis = next((entry.i for entry in node.attribute if entry.name == named), 0)
            rows = constants[node.input[0]][axis]
            extents[source] = min(rows, extents.get(source, rows))
    return {name: rows for name, rows in extents.items() if name}


@dataclass(frozen=True)
class Usual:
    """The ordinary case. feed: ordinary inputs. outputs: the oracle's outputs for these."""

    oracle: Oracle
    feed: dict[str, np.ndarray]
    outputs: Arrays
    allowed: Tolerances


# Gives the names of wrong outputs, from the ordinary case, inputs, outputs and the oracle's.
Judge = Callable[["Usual", Arrays, Arrays, Arrays], list[str]]


def check_edges(model: Runnable, usual: Usual) -> None:
    """VerificationError where a library, right on ordinary inputs, is wrong on edge values."""
    for name, judge, drawn in (*_floats(usual), *_indices(usual.oracle.extents, usual.feed)):
        try:
            expected = usual.oracle.outputs(drawn)
        except ModelError:
            if name == _BEYOND:
                _check_refused(model, drawn)
            continue
        if name == _BEYOND:
            continue  # ONNX Runtime accepts this index
        try:
            actual = model(**drawn)
        except UsageError as error:
            if COMPUTED in error.text:
                continue  # zero for a speed, say, asks for more room than there is
            raise
        if wrong := judge(usual, drawn, actual, expected):
            raise _wrong(name, f"output {wrong[0]} differs from {usual.oracle.name}")


def _floats(usual: Usual) -> Iterator[tuple[str, Judge, dict[str, np.ndarray]]]:
    feed = usual.feed
    names = [name for name, array in feed.items() if _is_float(array) and array.size]

    def drawn(draw: Callable[[np.ndarray], Any]) -> dict[str, np.ndarray]:
        return {**feed, **{each: draw(feed[each]) for each in names}}

    if names and _ZERO_SPREAD.isdisjoint(node.op_type for node in usual.oracle.proto.graph.node):
        yield "zeros", _not_close, drawn(np.zeros_like)
    if names:
        nan = drawn(lambda array: _with(array, {array.size // 2: np.nan}))
        yield "a NaN", _loses_nan, nan
        infinite = drawn(lambda array: _with(array, {-1: np.inf, 0: -np.inf}))
        yield "infinities", partial(_not_close_if_finite, nan), infinite


_LAST, _BEYOND = "the last index of each table", "an index beyond a table"


def _indices(
    extents: Mapping[str, int], feed: Arrays
) -> Iterator[tuple[str, Judge, dict[str, np.ndarray]]]:
    known = {name: extent for name, extent in extents.items() if name in feed and feed[name].size}
    if not known:
        return
    last = {name: np.full_like(feed[name], extent - 1) for name, extent in known.items()}
    yield _LAST, _not_close, {**feed, **last}
    for name, extent in known.items():
        yield _BEYOND, _not_close, {**feed, name: _with(feed[name], {-1: extent})}


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
    """A copy with other elements at these places of the flat array."""
    changed = array.copy()
    for place, value in values.items():
        changed.reshape(-1)[place] = value
    return changed


def _not_close(usual: Usual, drawn: Arrays, actual: Arrays, expected: Arrays) -> list[str]:
    floats = {name: one for name, one in expected.items() if _is_float(one)}
    words = (usual.oracle, dict(drawn), usual.allowed, usual.outputs)
    return [name for name, one in judge_outputs(actual, floats, *words).items() if not one.ok]


def _loses_nan(usual: Usual, drawn: Arrays, actual: Arrays, expected: Arrays) -> list[str]:
    return [name for name, one in expected.items() if _has_nan(one) and not _has_nan(actual[name])]


def _not_close_if_finite(
    nan: Arrays, usual: Usual, drawn: Arrays, actual: Arrays, expected: Arrays
) -> list[str]:
    """As `_not_close`, for outputs expected to be finite. nan: the inputs with a NaN in each."""
    finite = {n: one for n, one in expected.items() if _is_float(one) and np.isfinite(one).all()}
    wrong = _not_close(usual, drawn, actual, finite)
    hidden = _hides_nan(usual.oracle.proto)
    if not any(hidden or _has_nan(actual[name]) for name in wrong):
        return wrong
    lost = _lost(usual, nan)
    return [n for n in wrong if not (hidden or _has_nan(actual[n])) or n not in lost]


def _hides_nan(proto: onnx.ModelProto) -> bool:
    """Whether a NaN that a recurrence makes may become an integer, or one of a window a choice."""
    known = {node.op_type for node in proto.graph.node}
    is_rounded = not (known.isdisjoint(_RECURRENCES) or known.isdisjoint(_ROUNDING))
    return is_rounded or _chooses_peaks(proto)


def _chooses_peaks(proto: onnx.ModelProto) -> bool:
    """Whether something is compared with the largest element of a window."""
    largest = set[str]()
    for node in proto.graph.node:
        moves = node.op_type in _MOVING and node.input[0] in largest
        if node.op_type == "MaxPool" or moves:
            largest.add(node.output[0])
        if node.op_type in _COMPARING and not largest.isdisjoint(node.input):
            return True
    return False


def _lost(usual: Usual, nan: Arrays) -> set[str]:
    """The outputs in which the oracle turns the NaN of one input, or of all, into numbers.

    nan: the inputs with a NaN in each. An input whose NaN does not change an output is not part of
    it.
    """
    kept = usual.oracle.outputs(dict(nan))
    lost = {name for name, one in kept.items() if not _has_nan(one)}
    for name in [name for name, array in nan.items() if _has_nan(array)]:
        for output, one in usual.oracle.outputs({**usual.feed, name: nan[name]}).items():
            if not (_has_nan(one) or np.array_equal(one, usual.outputs[output])):
                lost.add(output)
    return lost


def _has_nan(array: np.ndarray) -> bool:
    return _is_float(array) and bool(np.isnan(array).any())
