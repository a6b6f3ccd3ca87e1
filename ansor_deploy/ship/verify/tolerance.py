"""Decide when an output is right: when it is as near to the oracle's as float32 itself allows.

The oracle itself shows how near that is: it runs again with every arithmetic result off by some
roundings (`model/graph/noise.py`). An element may differ by FACTOR times the distance that noise
moved it, or moved nine of ten elements beside it. "Beside" means along the axis where that distance
is least, so that scores are judged as scores even if pixels are in the same tensor. An element that
is off by no more than TIGHT times the noise of a result of the usual size beside it is right, and
the noisy runs are not needed.

Decisions (which of two values is larger, which step is nearer) make results jump. A jump shows how
far apart two right values are, not how errors grow: a movement larger than JUMP times the noise
counts twice, not FACTOR times. Jumps are rare in most outputs. So some more elements may differ:
twice as many as one noisy run has beyond the bounds that the other runs give, and by no more than
twice as much. Where the order of rows is such a decision, any order is right (`row_order.py`).

A quantised network decides at every tensor which step is nearer, as does one that rounds rows of
matmuls, and one different decision moves everything after it by steps. There the oracle's own runs,
fused or not, differ from each other as far as a right program differs from the oracle, and at other
elements. So the whole output may be off by twice as much, in its root mean square and its largest
element, and an element may always be off by one step of its own scale.

NaN must meet NaN, and an infinity the same infinity, unless a noisy run differs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...model.graph.noise import NOISE

if TYPE_CHECKING:
    from ...request import Tolerance

FACTOR = 8.0
JUMP = 512  # times the noise of a result: relative 1e-3 in float32, the whole value in float16
_TWICE = 2.0
TIGHT = 2  # times the noise of a result: relative 4e-6 in float32
_FLOOR = 1  # times the noise of a result: the bound of an element that noise does not move
_SHARE = 0.9  # of the elements beside one
_FEWEST = 16  # elements that are needed to say how far noise moves those beside them
_KINDS = {"float32": 1, "float16": 10, "float64": 11, "bfloat16": 16}  # numbers of ONNX's types
_STEP = ("int8", "uint8")  # quantised types, in which rounding decides between neighbours
# The bounds where the oracle cannot run with noise: relative to the output's largest element, and
# to each element. By ONNX's numbers of types.
_PLAIN = {1: (1e-4, 1e-3), 10: (1e-2, 1e-2), 11: (1e-9, 1e-7), 16: (1e-2, 1e-2)}


@dataclass(frozen=True)
class Verdict:
    """The verdict on an output a, by the oracle's e.

    abs_err: the largest |a - e|; infinite where one is NaN or infinite and the other is not.
    rel_err: the same relative to the output's scale, its largest finite |e|. allowed: the bound of
    the element that is worst relative to its bound. at: the place of that element.
    """

    ok: bool
    abs_err: float = 0.0
    rel_err: float = 0.0
    allowed: float = 0.0
    at: tuple[int, ...] = ()


def judge(
    actual: np.ndarray,
    expected: np.ndarray,
    samples: Sequence[np.ndarray] = (),
    given: Tolerance | None = None,
    usual: np.ndarray | None = None,
    step: float | None = None,
) -> Verdict:
    """Whether an output is right. Its shape and dtype must be those of the expected one.

    samples: the oracle's outputs with noise; empty where it did not run with noise. given: the
    difference that the user allows. usual: the output on ordinary inputs, where these inputs are
    not: then an element counts as at least as large as usual, and elements that noise moves by a
    thousandth of the scale are not judged. step: the distance of neighbouring numbers in an output
    of a quantised network; None for other networks.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return Verdict(ok=False, abs_err=np.inf, rel_err=np.inf)
    if expected.size == 0:
        return Verdict(ok=True)
    words = _Words(actual, expected, usual, step)
    if given is not None:
        return words.verdict(given.atol + given.rtol * words.sizes)
    noisy = [one for one in samples if one.shape == expected.shape]
    return words.verdict_beside(noisy) if noisy else words.verdict(words.tight)


def plainly(actual: np.ndarray, expected: np.ndarray) -> Verdict:
    """As `judge`, where the oracle cannot run with noise."""
    verdict = judge(actual, expected)
    if verdict.ok or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return verdict
    words = _Words(actual, expected)
    return words.verdict(words.plain)


def compare(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    """(right, abs_err, rel_err) of an output, judged as by `plainly`."""
    verdict = plainly(actual, expected)
    return verdict.ok, verdict.abs_err, verdict.rel_err


class _Words:
    """An output and the expected one as float64, with the bounds that follow from these alone."""

    def __init__(
        self,
        actual: np.ndarray,
        expected: np.ndarray,
        usual: np.ndarray | None = None,
        step: float | None = None,
    ) -> None:
        name = expected.dtype.name
        self.kind = _KINDS.get(name, 0)
        self.whole = not self.kind
        self.a, self.e = _wide(actual), _wide(expected)
        # A float64 holds no integer beyond 2**53 exactly.
        self.hidden = self.whole & (self.a == self.e) & (actual != expected)
        self.sizes = np.abs(_finite(self.e))
        self.usual = None if usual is None else np.abs(_finite(_wide(usual)))
        self.quantised = step is not None
        self.step = 1.0 if name in _STEP else step or 0.0
        largest = self.sizes if self.usual is None else np.append(self.sizes, self.usual)
        self.scale = float(largest.max()) or 1.0
        self._tiny = 1e-37 if self.kind else 0.0

    @property
    def tight(self) -> np.ndarray:
        """The bound, float64 of the output's shape, below which the oracle need not run again."""
        return np.zeros(self.e.shape) if self.whole else self._of(TIGHT)

    @property
    def plain(self) -> np.ndarray:
        """The bound, float64 of the output's shape, where the oracle cannot run with noise."""
        whole, each = _PLAIN.get(self.kind, (0.0, 0.0))
        return np.asarray(whole * self.scale + each * self.sizes + self.step)

    def _of(self, times: float) -> np.ndarray:
        sizes = np.maximum(self.sizes, level(self.sizes))
        if self.usual is not None:
            sizes = np.maximum(sizes, level(self.usual))
        return times * NOISE.get(self.kind, 0.0) * sizes + self._tiny

    def verdict(self, bound: np.ndarray, classes: np.ndarray | None = None) -> Verdict:
        """Whether each element is within its bound.

        bound: float64, of the output's shape. classes: bool, of the same shape: the elements that
        must agree in being a number, NaN or an infinity; all by default.
        """
        error, other = self._errors()
        other = other if classes is None else other & classes
        over = other | (error > bound)
        error = np.where(other, np.inf, error)
        with np.errstate(over="ignore", invalid="ignore"):  # some bounds are infinite
            times = np.where(over, error / (bound + 1e-300), 0)
        worst = np.unravel_index(np.argmax(times), over.shape)
        shown = worst if over.any() else np.unravel_index(np.argmax(error), error.shape)
        largest = float(error.max())
        place = tuple(map(int, shown))
        return Verdict(
            not bool(over.any()), largest, largest / self.scale, float(bound[shown]), place
        )

    def verdict_beside(self, samples: Sequence[np.ndarray]) -> Verdict:
        """Whether it differs no more than the oracle with noise does. samples: as in `judge`."""
        samples = [_wide(one) for one in samples]
        moves = np.abs(np.stack([_finite(one) - _finite(self.e) for one in samples]))
        stable = np.all([_class(one) == _class(self.e) for one in samples], axis=0)
        bound = self._bound(moves)
        verdict = self.verdict(bound, stable)
        if np.isinf(verdict.abs_err) or (verdict.ok and not self.quantised):
            return verdict
        error, _ = self._errors()
        if self.quantised and self.usual is None:
            return replace(verdict, ok=self._is_as_near(error, moves))
        most, largest = self._jumps(moves)
        beyond = np.maximum(error - bound, 0)
        is_jump = np.count_nonzero(beyond) <= 2 * most and beyond.max() <= 2 * largest
        ok = bool(is_jump) or (self.quantised and self._is_as_near(error, moves))
        return Verdict(ok, verdict.abs_err, verdict.rel_err, verdict.allowed, verdict.at)

    def _is_as_near(self, error: np.ndarray, moves: np.ndarray) -> bool:
        """Whether the whole output is no further from the oracle than the oracle's runs differ.

        One element in sixteen may be off by a step even where noise does not move the oracle.
        """
        own = float(np.sqrt(np.mean(np.square(moves), axis=tuple(range(1, moves.ndim)))).max())
        off = float(np.sqrt(np.mean(np.square(error))))
        near = off <= _TWICE * own + self.step / 4 + self._tiny
        return near and float(error.max()) <= _TWICE * float(moves.max()) + self.step + self._tiny

    def _bound(self, moves: np.ndarray) -> np.ndarray:
        """The bound of each element. moves: float64 [samples, *shape], how far noise moved it."""
        largest = moves.max(axis=0)
        moved = np.maximum(largest, level(largest))
        jump = np.maximum(_TWICE * moved, FACTOR * self._of(JUMP))
        bound = np.minimum(FACTOR * moved, jump) + self._of(_FLOOR) + self.step
        if self.usual is not None:
            bound = np.where(bound > 1e-3 * self.scale, np.inf, bound)
        return bound

    def _jumps(self, moves: np.ndarray) -> tuple[int, float]:
        """Jumps of one sample beyond the bounds by the others: how many at most, and how large."""
        most, largest = 0, 0.0
        for at in range(len(moves)):
            others = np.delete(moves, at, axis=0)
            if len(others):
                beyond = np.maximum(moves[at] - self._bound(others), 0)
                most = max(most, np.count_nonzero(beyond))
                largest = max(largest, float(beyond.max()))
        return most, largest

    def _errors(self) -> tuple[np.ndarray, np.ndarray]:
        """|a - e| of elements of the same class, and which elements are of different classes."""
        other = _class(self.a) != _class(self.e)
        error = np.abs(_finite(self.a) - _finite(self.e))
        return np.where(self.hidden, 1.0, error), other


def level(values: np.ndarray) -> np.ndarray:
    """The 0.9 quantile of the values beside each element, along the axis where that is least.

    values: float64 of any shape, which is also the result's.
    """
    least = np.quantile(values, _SHARE)
    for axis, extent in enumerate(values.shape):
        if extent > 1 and values.size // extent >= _FEWEST:
            rest = tuple(other for other in range(values.ndim) if other != axis)
            least = np.minimum(least, np.quantile(values, _SHARE, axis=rest, keepdims=True))
    return np.broadcast_to(least, values.shape)


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0.0)


def _class(values: np.ndarray) -> np.ndarray:
    """The class of each element: 0 for a number, 1 for NaN, 2 and 3 for infinities."""
    return np.select([np.isnan(values), values == np.inf, values == -np.inf], [1, 2, 3], 0)
