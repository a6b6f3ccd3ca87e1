"""The run worker times several libraries of one task in turns, and a reference kernel.

A machine's speed changes from one minute to the next. Times taken in turns can be compared; times
taken one after another may not be comparable.
"""

import json
from functools import lru_cache
from typing import Any

from .check import Expected
from .runner import Bound, bind, checked, machine_of, recheck

TURNS = 9
SLOT_SECONDS = 8e-3  # how long a library runs in one turn
PULSES = 5
PULSE_SECONDS, WAKING_SECONDS = 2e-3, 6e-3


def head_to_head(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Check and time several libraries. Returns {"seconds", "error", "message", "errors"} for each.

    payload: "candidates" ({"path", "steps"} each), "signature", "seed", "room" and "expected", and
    "machine" as for `runner.run`. The k-th times of all libraries are from the same turn.
    """
    found = [checked({**payload, **one}) for one in payload["candidates"]]
    times = iter(in_turns([bound for bound, _ in found if bound]))
    answers = []
    for bound, answer in found:
        if bound:
            bound.clock()  # all libraries share the tensors: fill them with this one's outputs
            answers.append(recheck(bound, {**answer, "seconds": next(times)}))
        else:
            answers.append(answer)
    return answers


def in_turns(bound: list[Bound]) -> list[list[float]]:
    """Seconds a run of each library in each turn."""
    numbers = [max(1, round(SLOT_SECONDS / min(one.times(1, 3)))) for one in bound]
    times: list[list[float]] = [[] for _ in bound]
    for turn in range(TURNS):
        order = range(len(bound)) if turn % 2 else reversed(range(len(bound)))
        for at in order:
            times[at] += bound[at].times(numbers[at], 1)
    return times


def pulse(payload: dict[str, Any]) -> float:
    """Seconds of the reference kernel: the least of a few times, each long enough to be accurate.

    payload: "path", "steps", "signature", "seed", and "machine" as for `runner.run`.
    """
    bound = _kernel(json.dumps(payload))
    once = min(bound.times(1, 2))
    # A worker that has slept is slow at first, while its threads wake and the clock rises.
    once = min(bound.times(max(1, round(WAKING_SECONDS / once)), 1))
    return min(bound.times(max(1, round(PULSE_SECONDS / once)), PULSES))


@lru_cache(maxsize=1)
def _kernel(payload: str) -> Bound:
    spec = json.loads(payload)
    bound = bind(machine_of(spec).load(spec["path"]), spec, positive=False)
    bound.clock()
    a, b, c = (one.array for one in (*bound.reads, *bound.outputs))
    if not Expected(a @ b, len(b)).compare(c)[0]:
        raise ValueError("the product of two matrices is wrong")
    in_turns([bound])  # a fresh process is slow until its threads have found their cores
    return bound
