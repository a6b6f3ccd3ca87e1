"""The outputs of a library beside the oracle's: which are right, and what is wrong of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .row_order import in_order
from .tolerance import Verdict, judge, plainly

if TYPE_CHECKING:
    import numpy as np

    from ...request import Tolerance
    from .oracle import Oracle

Arrays = Mapping[str, "np.ndarray"]
Tolerances = Mapping[str, "Tolerance"]  # by the name of an output; "" for all others


def judge_outputs(
    actual: Arrays,
    expected: Arrays,
    oracle: Oracle,
    feed: dict[str, np.ndarray],
    allowed: Tolerances,
    usual: Arrays | None = None,
) -> dict[str, Verdict]:
    """Whether each output is right, by its name.

    actual, expected: by name, of the model's shapes and dtypes. feed: the inputs that they were
    made of. allowed: what the user lets outputs differ by. usual: the oracle's outputs on ordinary
    inputs, where these are others. The oracle runs with noise only where an output is not right
    without.
    """
    found = _judged(actual, expected, [], allowed, usual)
    if all(one.ok for one in found.values()):
        return found
    noisy: Sequence[Arrays] = oracle.samples(feed)
    if not noisy:
        return {
            name: found[name] if found[name].ok else plainly(actual[name], one)
            for name, one in expected.items()
        }
    if usual is None:
        actual, noisy = in_order(actual, expected, noisy)
    return _judged(actual, expected, noisy, allowed, usual)


def _judged(
    actual: Arrays,
    expected: Arrays,
    noisy: Sequence[Arrays],
    allowed: Tolerances,
    usual: Arrays | None,
) -> dict[str, Verdict]:
    return {
        name: judge(
            actual[name],
            one,
            [each[name] for each in noisy],
            allowed.get(name, allowed.get("")),
            None if usual is None else usual[name],
        )
        for name, one in expected.items()
    }


def wrong_text(name: str, verdict: Verdict) -> str:
    """What is wrong of an output, in words."""
    if math.isinf(verdict.abs_err):
        return f"output '{name}' has a NaN, an infinity or a number where another belongs"
    return (
        f"output '{name}' is off by {verdict.abs_err:.3g}, at {list(verdict.at)} by more than the "
        f"{verdict.allowed:.2g} that rounding explains"
    )
