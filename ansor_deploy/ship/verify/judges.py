"""Judge a library's outputs by the oracle's: which are right, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import UsageError, did_you_mean
from .row_order import in_order
from .tolerance import Verdict, judge, plainly
from .ways import SAMPLES

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from ...request import Tolerance
    from .oracle import Oracle

Arrays = Mapping[str, "np.ndarray"]
Tolerances = Mapping[str, "Tolerance"]  # by the name of an output; "" for all others


def check_named(allowed: Iterable[str], proto: onnx.ModelProto) -> None:
    """UsageError where a difference is allowed for an output that the model does not have."""
    known = {output.name for output in proto.graph.output}
    if unknown := next((name for name in allowed if name and name not in known), ""):
        hint = did_you_mean(unknown, known)
        raise UsageError(f"--rtol and --atol: there is no output {unknown!r}", hint)


def judge_outputs(
    actual: Arrays,
    expected: Arrays,
    oracle: Oracle,
    feed: dict[str, np.ndarray],
    allowed: Tolerances,
    usual: Arrays | None = None,
) -> dict[str, Verdict]:
    """Whether each output is right, by its name.

    actual, expected: by name, with the model's shapes and dtypes. feed: the inputs of both.
    allowed: the differences that the user allows. usual: the oracle's outputs on ordinary inputs,
    where the feed is not ordinary; such a feed has equal elements, so that noise is also drawn
    alike for these, if other noise does not explain a difference. The oracle runs with noise only
    where an output is not right without it. A quantised network may agree with either of the
    oracle's two ways to run it: fused, or node by node as written.
    """
    outputs = _Outputs(actual, expected, oracle, feed, allowed, usual)
    verdicts = outputs.judged([])
    if _are_right(verdicts):
        return verdicts
    second, samples = oracle.second(feed), list[Arrays]()
    for more in _noise(oracle, feed, equal=usual is not None):
        samples += [one for one in more if _are_as_large(one, expected)]
        if not samples and second is None:
            continue
        verdicts = outputs.judged_with_noise(samples, second)
        if _are_right(verdicts):
            return verdicts
    return verdicts if samples or second is not None else outputs.judged_plainly(verdicts)


def _noise(oracle: Oracle, feed: dict[str, np.ndarray], *, equal: bool) -> Iterator[list[Arrays]]:
    """The oracle's runs with noise, the first alone: each widens the bounds, and most need no more.

    equal: whether the feed has equal elements.
    """
    yield [*oracle.samples(feed, 1)]
    yield [*oracle.samples(feed, SAMPLES - 1)]
    if equal:
        yield [*oracle.alike(feed)]


def _are_right(verdicts: Mapping[str, Verdict]) -> bool:
    return all(verdict.ok for verdict in verdicts.values())


@dataclass(frozen=True)
class _Outputs:
    """Outputs to judge. The fields are the arguments of `judge_outputs`."""

    actual: Arrays
    expected: Arrays
    oracle: Oracle
    feed: dict[str, np.ndarray]
    allowed: Tolerances
    usual: Arrays | None

    def judged_with_noise(
        self, samples: Sequence[Arrays], second: Arrays | None
    ) -> dict[str, Verdict]:
        """The verdicts by runs with noise. second: the run of the model as it is written."""
        noisy, one = [*samples] if second is None else [*samples, second], self
        if self.usual is None and self.oracle.sorts:
            actual, noisy = in_order(self.actual, self.expected, noisy)
            one = replace(self, actual=actual)
        verdicts = one.judged(noisy)
        if second is None or _are_right(verdicts):
            return verdicts
        *noisy, other = noisy
        other = {name: other[name] for name in one.expected}
        others = replace(one, expected=other).judged([*noisy, one.expected])
        return others if _are_right(others) else verdicts

    def judged_plainly(self, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
        """The verdicts where the oracle does not run with noise. verdicts: by its only run."""
        return {
            name: verdicts[name] if verdicts[name].ok else plainly(self.actual[name], output)
            for name, output in self.expected.items()
        }

    def judged(self, noisy: Sequence[Arrays]) -> dict[str, Verdict]:
        """The verdicts by these other runs of the oracle."""
        usual, steps, allowed = self.usual, self.oracle.steps, self.allowed
        return {
            name: judge(
                self.actual[name],
                output,
                [sample[name] for sample in noisy],
                allowed.get(name, allowed.get("")),
                None if usual is None or usual[name].shape != output.shape else usual[name],
                None if steps is None else steps[name],
            )
            for name, output in self.expected.items()
        }


def _are_as_large(ones: Arrays, others: Arrays) -> bool:
    """Whether outputs have the same shapes as others: noise may change sizes that a run decides."""
    return all(ones[name].shape == other.shape for name, other in others.items())


def wrong_text(name: str, verdict: Verdict) -> str:
    """The message about a wrong output."""
    if math.isinf(verdict.abs_err):
        return f"output '{name}' has a NaN, an infinity or a number where another belongs"
    return (
        f"output '{name}' is off by {verdict.abs_err:.3g}, at {list(verdict.at)} by more than the "
        f"{verdict.allowed:.2g} that rounding explains"
    )
