"""Judge a library's outputs by the oracle's: which are right, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...errors import UsageError, did_you_mean
from .row_order import in_order
from .tolerance import Verdict, judge, plainly

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
    alike for these. The oracle runs with noise only where an output is not right without it. A
    quantised network may agree with either of the oracle's two ways to run it: fused, or node by
    node as written.
    """
    steps = oracle.steps
    verdicts = _judged(actual, expected, [], allowed, usual, steps)
    if all(verdict.ok for verdict in verdicts.values()):
        return verdicts
    samples = oracle.samples(feed) + (oracle.alike(feed) if usual is not None else [])
    noisy: list[Arrays] = [one for one in samples if _are_as_large(one, expected)]
    second = oracle.second(feed)
    noisy += [] if second is None else [second]
    if not noisy:
        return {
            name: verdicts[name] if verdicts[name].ok else plainly(actual[name], output)
            for name, output in expected.items()
        }
    if usual is None and oracle.sorts:
        actual, noisy = in_order(actual, expected, noisy)
    verdicts = _judged(actual, expected, noisy, allowed, usual, steps)
    if second is None or all(verdict.ok for verdict in verdicts.values()):
        return verdicts
    *noisy, other = noisy
    others = _judged(actual, other, [*noisy, expected], allowed, usual, steps)
    return others if all(verdict.ok for verdict in others.values()) else verdicts


def _are_as_large(ones: Arrays, others: Arrays) -> bool:
    """Whether outputs have the same shapes as others: noise may change sizes that a run decides."""
    return all(ones[name].shape == other.shape for name, other in others.items())


def _judged(
    actual: Arrays,
    expected: Arrays,
    noisy: Sequence[Arrays],
    allowed: Tolerances,
    usual: Arrays | None,
    steps: Mapping[str, float] | None,
) -> dict[str, Verdict]:
    return {
        name: judge(
            actual[name],
            output,
            [sample[name] for sample in noisy],
            allowed.get(name, allowed.get("")),
            None if usual is None or usual[name].shape != output.shape else usual[name],
            None if steps is None else steps[name],
        )
        for name, output in expected.items()
    }


def wrong_text(name: str, verdict: Verdict) -> str:
    """The message about a wrong output."""
    if math.isinf(verdict.abs_err):
        return f"output '{name}' has a NaN, an infinity or a number where another belongs"
    return (
        f"output '{name}' is off by {verdict.abs_err:.3g}, at {list(verdict.at)} by more than the "
        f"{verdict.allowed:.2g} that rounding explains"
    )
