"""In the run worker: load a library, check what it computes, and time it.

Inputs and the expected outputs stay here for the task at hand. They are files for the worker
that comes after this one, should a candidate take it down.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .._tvm import tvm
from .check import compare
from .child import describe
from .signature import Signature, numpy_dtype, poisoned, seeded_inputs

MIN_REPEAT_MS = 15.0
REPEATS = (3, 3, 4)  # until settled
_SPREAD = 0.03
_SLOW = 3.0
_CLOSE = 1.3  # slower than that, no repeat makes it the best


load = tvm.runtime.load_module


@dataclass
class Bound:
    """A loaded library whose `compute` is bound to its tensors, weights packed."""

    library: Any
    arguments: list[Any]
    outputs: list[Any]

    def __call__(self) -> None:
        """Run once."""
        self.library["compute"](*self.arguments)

    def times(self, number: int, repeat: int) -> list[float]:
        """Seconds a run, averaged over `number` runs, `repeat` times."""
        timer = self.library.time_evaluator("compute", tvm.cpu(), number=number, repeat=repeat)
        return [float(seconds) for seconds in timer(*self.arguments).results]


def reference(payload: dict[str, Any]) -> dict[str, Any]:
    """Run the library of a reference and write its outputs to the payload's "expected".

    Where most of what it computes from signed inputs is NaN, the inputs are made positive.
    """
    for positive in (False, True):
        bound = bind(load(payload["path"]), payload, positive)
        bound()
        outputs = [output.numpy() for output in bound.outputs]
        if not any(_mostly_nan(output) for output in outputs):
            break
    raw = {f"o{at}": np.frombuffer(o.tobytes(), np.uint8) for at, o in enumerate(outputs)}
    with Path(payload["expected"]).open("wb") as file:
        np.savez(file, positive=np.array(positive), **raw)
    return {"positive": positive}


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """Check a candidate and time it: {"seconds", "error", "message", "errors"}.

    payload: "path", "steps", "signature", "seed", "expected" and "best" (seconds, or None).
    """
    try:
        library = load(payload["path"])
    except Exception as error:  # noqa: BLE001 - what the loader raises differs by what is wrong
        return outcome("load", describe(error))
    bound, found = verdict(library, payload)
    if not found["error"]:
        found["seconds"] = _measure(bound, payload["best"])
    return found


def verdict(library: Any, payload: dict[str, Any]) -> tuple[Bound, dict[str, Any]]:
    """The library bound to its tensors, and whether what it computes is right."""
    positive, expected = _expected(payload["expected"], json.dumps(payload["signature"]))
    bound = bind(library, payload, positive)
    bound()
    ok, worst, relative = _check(bound.outputs, expected, payload["signature"]["reduction"])
    errors = {"max_abs_err": worst, "max_rel_err": relative}
    if ok:
        return bound, outcome("", "", errors)
    message = f"differs by {worst:.3g}, {relative:.3g} of the largest magnitude"
    return bound, outcome("wrong-output", message, errors)


def _measure(bound: Bound, best: float | None) -> list[float]:
    """Repeats until they agree, or show that it cannot be the best; one where it is far slower."""
    first = _clock(bound)  # the one before woke the threads and met cold caches
    if best is not None and first > _SLOW * best:
        return [first]
    (estimate,) = bound.times(1, 1) if first * 1e3 < MIN_REPEAT_MS else (first,)
    number = max(1, round(MIN_REPEAT_MS / 1e3 / max(estimate, 1e-7)))
    seconds: list[float] = []
    for repeat in REPEATS:
        seconds += bound.times(number, repeat)
        if _spread(seconds) <= _SPREAD or (best is not None and min(seconds) > _CLOSE * best):
            break
    return seconds


def _spread(seconds: list[float]) -> float:
    cut = len(seconds) // 4
    middle = sorted(seconds)[cut : len(seconds) - cut]
    return (middle[-1] - middle[0]) / median(seconds)


def _clock(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def bind(library: Any, payload: dict[str, Any], positive: bool) -> Bound:
    """Allocate and pack. Its outputs are poisoned."""
    spec = payload["signature"]
    inputs = _inputs(json.dumps(spec), payload["seed"], positive)
    for at in spec["outputs"]:
        inputs[at].copyfrom(poisoned(tuple(spec["shapes"][at]), numpy_dtype(spec["dtypes"][at])))
    made: list[Any] = []
    for step in payload["steps"]:
        made += [tvm.runtime.empty(buffer["shape"], buffer["dtype"]) for buffer in step["makes"]]
        places = {"task": inputs, "made": made}
        arguments = [places[kind][at] for kind, at in step["arguments"]]
        if step is not payload["steps"][-1]:
            library[step["function"]](*arguments)
    return Bound(library, arguments, [inputs[at] for at in spec["outputs"]])


@lru_cache(maxsize=1)
def _inputs(spec: str, seed: int, positive: bool) -> list[Any]:
    arrays = seeded_inputs(Signature.from_json(json.loads(spec)), seed, positive)
    return [tvm.runtime.tensor(array) for array in arrays]


@lru_cache(maxsize=1)
def _expected(path: str, spec: str) -> tuple[bool, list[np.ndarray]]:
    signature = Signature.from_json(json.loads(spec))
    with np.load(path, allow_pickle=False) as file:
        outputs = [
            file[f"o{k}"].view(numpy_dtype(signature.dtypes[at])).reshape(signature.shapes[at])
            for k, at in enumerate(signature.outputs)
        ]
        return bool(file["positive"]), outputs


def _check(
    outputs: list[Any], expected: list[np.ndarray], reduction: int
) -> tuple[bool, float, float]:
    compared = [compare(o.numpy(), e, reduction) for o, e in zip(outputs, expected, strict=True)]
    return (
        all(ok for ok, _, _ in compared),
        max(worst for _, worst, _ in compared),
        max(relative for _, _, relative in compared),
    )


def _mostly_nan(output: np.ndarray) -> bool:
    if output.dtype == np.bool_ or np.issubdtype(output.dtype, np.integer) or not output.size:
        return False
    return float(np.isnan(output.astype(np.float32)).mean()) > 0.5


def outcome(error: str, message: str, errors: dict[str, float] | None = None) -> dict[str, Any]:
    """The answer about a candidate, as yet without times."""
    return {"seconds": [], "error": error, "message": message, "errors": errors}
