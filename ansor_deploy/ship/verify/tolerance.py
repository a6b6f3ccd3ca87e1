"""When is an output right? When it is as near to the oracle's as float32 itself allows.

What that is, is asked of the oracle: it runs again with every result of arithmetic off by some
roundings (`model/graph/noise.py`). An element may differ by FACTOR times what it moved by, or what
nine of ten elements beside it moved by at most: beside it along the axis where that is least, so
that scores are judged as scores, though pixels lie in the same tensor. One that is off by no more
than TIGHT times the noise of a result, of the size that is usual beside it, is right without
asking.

Decisions (which of two values is larger, which step is nearer) jump, and a jump says how far apart
two right values are, not how fast they part: one that is larger than JUMP times the noise counts
twice, not FACTOR times. Jumps are rare in most outputs. So more elements may differ,
as many as twice those that one run of the oracle has beyond what the others allow, by no more than
twice as much; where the order of rows is such a decision, any will do (`row_order.py`).

A quantised network decides at every tensor which step is nearer, as does one that rounds rows of
products, and one decision that falls otherwise moves what hangs on it by steps. There the oracle
differs from itself, fused or not, as far as a right program from it, and at other elements: so the
whole output may be as far off as twice that, by its root mean square and its largest element, and
no element need be nearer than a step of its own scale.

NaN must meet NaN, and an infinity the same infinity, unless a run with noise has it otherwise.
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
JUMP = 512  # times the noise of a result: of float32 1e-3, of float16 all of it
_TWICE = 2.0
TIGHT = 2  # times as many epsilons as noise is: of float32 4e-6
_FLOOR = 1  # times, of an element that nothing moves
_SHARE = 0.9  # of the elements beside one
_FEWEST = 16  # elements that say what moves beside them
_KINDS = {"float32": 1, "float16": 10, "float64": 11, "bfloat16": 16}  # ONNX's numbers
_STEP = ("int8", "uint8")  # of a quantised value: rounding decides on one
# Where no oracle runs with noise: a share of the output's largest element, and one of each.
_PLAIN = {1: (1e-4, 1e-3), 10: (1e-2, 1e-2), 11: (1e-9, 1e-7), 16: (1e-2, 1e-2)}


@dataclass(frozen=True)
class Verdict:
    """An output beside the oracle's. abs_err: the largest |a - e|; infinite where classes differ.

    rel_err: of the output's scale, its largest finite |e|. allowed: of the element that is worst by
    what is allowed. at: its place.
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
    """Whether an output is right: of any shape and dtype, which must be the expected one's.

    samples: the oracle's outputs with noise; none where it was not asked. given: what the user
    allows. usual: the output on ordinary inputs, where these are others: then an element is as
    large as it usually is, and one that noise moves by a thousandth of the scale is not judged.
    step: of a quantised network's output, how far apart its numbers lie; None of other networks.
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
    """As `judge`, where the oracle cannot be asked what rounding moves."""
    verdict = judge(actual, expected)
    if verdict.ok or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return verdict
    words = _Words(actual, expected)
    return words.verdict(words.plain)


def compare(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    """(right, abs_err, rel_err) of an output, as `plainly`."""
    verdict = plainly(actual, expected)
    return verdict.ok, verdict.abs_err, verdict.rel_err


class _Words:
    """An output and the expected one as float64, and what bounds follow from these alone."""

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
        """float64, of the output's shape: what is right without asking the oracle any further."""
        return np.zeros(self.e.shape) if self.whole else self._of(TIGHT)

    @property
    def plain(self) -> np.ndarray:
        """float64, of the output's shape: what is right where the oracle cannot be asked."""
        whole, each = _PLAIN.get(self.kind, (0.0, 0.0))
        return np.asarray(whole * self.scale + each * self.sizes + self.step)

    def _of(self, times: float) -> np.ndarray:
        sizes = np.maximum(self.sizes, level(self.sizes))
        if self.usual is not None:
            sizes = np.maximum(sizes, level(self.usual))
        return times * NOISE.get(self.kind, 0.0) * sizes + self._tiny

    def verdict(self, bound: np.ndarray, classes: np.ndarray | None = None) -> Verdict:
        """Whether each element is within its bound.

        bound: float64, of the output's shape. classes: bool, likewise: whose class counts.
        """
        error, other = self._errors()
        other = other if classes is None else other & classes
        over = other | (error > bound)
        error = np.where(other, np.inf, error)
        with np.errstate(over="ignore", invalid="ignore"):  # of what is without bounds
            times = np.where(over, error / (bound + 1e-300), 0)
        worst = np.unravel_index(np.argmax(times), over.shape)
        shown = worst if over.any() else np.unravel_index(np.argmax(error), error.shape)
        largest = float(error.max())
        place = tuple(map(int, shown))
        return Verdict(
            not bool(over.any()), largest, largest / self.scale, float(bound[shown]), place
        )

    def verdict_beside(self, samples: Sequence[np.ndarray]) -> Verdict:
        """Whether it differs no more than the oracle with noise does. samples: as of `judge`."""
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
        """Whether it is no further from the oracle, on the whole, than that is from itself.

        An element in sixteen may be another step even where nothing moves the oracle.
        """
        own = float(np.sqrt(np.mean(np.square(moves), axis=tuple(range(1, moves.ndim)))).max())
        off = float(np.sqrt(np.mean(np.square(error))))
        near = off <= _TWICE * own + self.step / 4 + self._tiny
        return near and float(error.max()) <= _TWICE * float(moves.max()) + self.step + self._tiny

    def _bound(self, moves: np.ndarray) -> np.ndarray:
        """What each element may be off by. moves: float64 [samples, *shape]: what each did."""
        largest = moves.max(axis=0)
        moved = np.maximum(largest, level(largest))
        jump = np.maximum(_TWICE * moved, FACTOR * self._of(JUMP))
        bound = np.minimum(FACTOR * moved, jump) + self._of(_FLOOR) + self.step
        if self.usual is not None:
            bound = np.where(bound > 1e-3 * self.scale, np.inf, bound)
        return bound

    def _jumps(self, moves: np.ndarray) -> tuple[int, float]:
        """Of one sample beside the others: most elements beyond their bound, and by how much."""
        most, largest = 0, 0.0
        for at in range(len(moves)):
            others = np.delete(moves, at, axis=0)
            if len(others):
                beyond = np.maximum(moves[at] - self._bound(others), 0)
                most = max(most, np.count_nonzero(beyond))
                largest = max(largest, float(beyond.max()))
        return most, largest

    def _errors(self) -> tuple[np.ndarray, np.ndarray]:
        """|a - e| of elements of the same class, and which are of another."""
        other = _class(self.a) != _class(self.e)
        error = np.abs(_finite(self.a) - _finite(self.e))
        return np.where(self.hidden, 1.0, error), other


def level(values: np.ndarray) -> np.ndarray:
    """The 0.9 quantile of what lies beside each element: along the axis where that is least.

    values: float64 of any shape, which is the result's, too.
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
    """0 of a number, 1 of NaN, 2 and 3 of infinities."""
    return np.select([np.isnan(values), values == np.inf, values == -np.inf], [1, 2, 3], 0)
