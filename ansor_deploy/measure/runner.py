"""The run worker loads a candidate, checks what it computes, and times it, without a compiler.

`on_cpu.py` runs it on a processor, `on_gpu.py` on a GPU. A payload's "machine" chooses one of the
two, and only that one is imported.

Inputs and expected outputs of the present task stay in memory. Expected outputs are also files, for
the next worker if a candidate crashes this one.

Outputs and workspaces are poisoned before every timing, and the outputs are compared again after
the last one, so that exactly what was timed is known to be right. The tensors that a candidate only
reads, and the memory around them, must be unchanged at that point. Calls are timed as a network
makes them: weights are cold (`cold_weights.py`), and inputs and outputs lie in memory that other
kernels have used since the last call.
"""

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime import tensors
from ..runtime.tensors import Signature
from ..system.child import describe
from ..system.machine_fault import about, raise_if_fault
from ..system.run_times import spread
from . import clock, cold_weights
from .check import Expected

MIN_REPEAT_MS = 5.0  # least time of a repeat; the best few are measured again, in turns
REPEATS = (1, 2, 3, 4)  # numbers of repeats, one after the other, until times are settled
_SPREAD = 0.03  # times with a smaller spread are settled
_SLOW = 3.0  # a candidate this many times slower than the best is far slower
_SHORT = 10e-3  # seconds: a shorter run is repeated before it is judged
_GLANCE = 1e-3  # seconds of that repetition
_MOST_ERROR = 1e300  # stands for infinity, which JSON does not have
_CLOSE = 1.3  # a candidate this many times slower than the best cannot become the best


@dataclass
class Bound:
    """A loaded library with the tensors for its `compute`; weights are packed.

    machine: the module that runs it. arguments: the tensors of a call. reads: tensors that it must
    not change. expected: the expected value of each output, where that is known. cold: arguments of
    timed calls, each with other tensors; empty where all calls have the same.
    """

    machine: Any
    library: Any
    arguments: list[Any]
    reads: list[Any]
    outputs: list[Any]
    expected: Sequence[Expected] = ()
    cold: Sequence[Sequence[Any]] = ()

    def clock(self) -> float:
        """Seconds of one run."""
        self._poison()
        started = time.perf_counter()
        self.library["compute"](*self.arguments)
        return time.perf_counter() - started

    def times(self, number: int, repeat: int) -> list[float]:
        """Seconds a run, averaged over `number` runs, `repeat` times."""
        self._poison()
        found: list[float] = self.machine.times(
            self.library, self.arguments, self.cold, number, repeat
        )
        return found

    def out_of_bounds(self) -> str:
        """The fault if anything but the outputs was written to; else ""."""
        if not all(read.unchanged() for read in self.reads):
            return "writes to its inputs or beside them"
        beside = not all(output.guards_unchanged() for output in self.outputs)
        return "writes beside its outputs" if beside else ""

    def _poison(self) -> None:
        for output in self.outputs:
            output.restore()
        self.machine.poison(self.library)


def machine_of(payload: dict[str, Any]) -> Any:
    """The module of the machine that runs a payload's libraries."""
    return importlib.import_module(f"{__package__}.on_{payload.get('machine', 'cpu')}")


def reference(payload: dict[str, Any]) -> dict[str, Any]:
    """Run the library of a reference and write its outputs to the payload's "expected".

    If most of an output is NaN with signed inputs, the inputs are made positive.
    """
    for positive in (False, True):
        bound = bind(machine_of(payload).load(payload["path"]), payload, positive)
        bound.clock()
        if fault := bound.out_of_bounds():
            raise ValueError(f"the program {fault}")
        outputs = [output.array for output in bound.outputs]
        if not any(_mostly_nan(output) for output in outputs):
            break
    with about(expected := Path(payload["expected"])):
        expected.write_bytes(tensors.to_bytes([np.array(positive), *outputs]))
    return {"positive": positive}


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """Check and time a candidate. Returns {"seconds", "error", "message", "errors", "clock" (MHz)}.

    payload: "machine" ("cpu" unless it is given), "path", "steps", "signature", "seed", "room"
    (bytes for copies of weights), "expected" and "best" (seconds, or None).
    """
    bound, found = checked(payload)
    if bound is None:
        return found
    (first,) = found["seconds"]
    if first >= _SHORT and _far_slower(first, payload["best"]):  # its outputs were right
        return found
    seconds = _measure(bound, first, payload["best"])
    if bound.cold:  # timed calls had random weights: compute the outputs of the true ones
        bound.clock()
    return recheck(bound, {**found, "seconds": seconds})


def checked(payload: dict[str, Any]) -> tuple[Bound | None, dict[str, Any]]:
    """Load and run the payload's library once. Returns it, or None if it is wrong, and the outcome.

    The outcome has the seconds of that run.
    """
    positive, expected = _expected(payload["expected"], Signature.from_json(payload["signature"]))
    try:
        library = machine_of(payload).load(payload["path"])
    except Exception as error:  # noqa: BLE001 - the loader raises different errors
        raise_if_fault(error)
        return None, outcome("load", describe(error))
    bound = bind(library, payload, positive, expected)
    seconds = bound.clock()
    fault, errors = _check(bound)
    if fault:
        return None, outcome("wrong-output", fault, errors)
    return bound, {**outcome("", "", errors), "seconds": [seconds]}


def recheck(bound: Bound, found: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a timed library, with the clock; an error if its outputs are wrong by now."""
    on_cpu = bound.machine.__name__.endswith("cpu")
    now = clock.megahertz() if on_cpu else 0
    fault, errors = _check(bound)
    if fault:
        return outcome("wrong-output", f"right at first; repeated, it {fault}", errors)
    return {**found, "errors": errors, "clock": now}


def _measure(bound: Bound, first: float, best: float | None) -> list[float]:
    """Seconds of repeats, until they agree or show that the candidate cannot be the best.

    A far slower candidate gets one repeat only. first: seconds of the first run.
    """
    estimate = first
    if first < _SHORT:  # a single short run mostly wakes threads and fills caches
        (estimate,) = bound.times(max(1, round(_GLANCE / bound.clock())), 1)
    if _far_slower(estimate, best):
        return [estimate]
    number = max(1, round(MIN_REPEAT_MS / 1e3 / max(estimate, 1e-7)))
    seconds: list[float] = []
    for repeat in REPEATS:
        seconds += bound.times(number, repeat)
        settled = len(seconds) > 1 and spread(seconds) <= _SPREAD
        if settled or (best is not None and min(seconds) > _CLOSE * best):
            break
    return seconds


def _far_slower(seconds: float, best: float | None) -> bool:
    return best is not None and seconds > _SLOW * best


def bind(
    library: Any, payload: dict[str, Any], positive: bool, expected: Sequence[Expected] = ()
) -> Bound:
    """Allocate tensors and pack weights. Packed weights are poisoned first, like outputs."""
    spec, machine = Signature.from_json(payload["signature"]), machine_of(payload)
    inputs = _inputs(machine, spec, payload["seed"], positive)
    machine.limit(sum(tensor.size for tensor in inputs))
    for tensor in inputs:  # the previous candidate may have failed halfway
        tensor.restore()
    made: list[Any] = []
    for step in payload["steps"]:
        made += [
            machine.Guarded(tensors.poisoned(b["shape"], tensors.numpy_dtype(b["dtype"])))
            for b in step["makes"]
        ]
        known = {"task": inputs, "made": made}
        arguments = [known[kind][at].tensor for kind, at in step["arguments"]]
        if step is not payload["steps"][-1]:
            library[step["function"]](*arguments)
    for tensor in made:
        tensor.keep()
    read = [tensor for at, tensor in enumerate(inputs) if at not in spec.outputs]
    outputs = [inputs[at] for at in spec.outputs]
    cold = _cold(arguments, spec, payload, positive) if payload.get("room") else []
    return Bound(machine, library, arguments, read + made, outputs, expected, cold)


def _cold(
    arguments: list[Any], spec: Signature, payload: dict[str, Any], positive: bool
) -> list[list[Any]]:
    """The arguments of calls as in a network: cold weights, and other tensors in turn."""
    places = list(enumerate(payload["steps"][-1]["arguments"]))
    weights = [place for place, (kind, at) in places if kind == "made" or at in spec.weights]
    machine, words = machine_of(payload), (payload["room"], spec.bound, payload["seed"])
    copies = cold_weights.with_copies(arguments, weights, *words, machine.Block)
    calls, others = copies or [arguments], _others(machine, spec, payload["seed"], positive)
    rest = {place: others[at] for place, (_, at) in places if place not in weights}
    return cold_weights.alternating(calls, rest)


@lru_cache(maxsize=1)
def _others(machine: Any, spec: Signature, seed: int, positive: bool) -> dict[int, Any]:
    """Second copies of the tensors that are no weights, by position."""
    inputs = enumerate(_inputs(machine, spec, seed, positive))
    return {at: machine.second(one.array) for at, one in inputs if at not in spec.weights}


@lru_cache(maxsize=1)
def _inputs(machine: Any, spec: Signature, seed: int, positive: bool) -> list[Any]:
    return [machine.Guarded(array) for array in tensors.seeded_arguments(spec, seed, positive)]


@lru_cache(maxsize=1)
def _expected(path: str, signature: Signature) -> tuple[bool, list[Expected]]:
    kinds = [(signature.shapes[at], signature.dtypes[at]) for at in signature.outputs]
    positive, *outputs = tensors.from_bytes(Path(path).read_bytes(), [((), "bool"), *kinds])
    return bool(positive), [Expected(output, signature.reduction) for output in outputs]


def _check(bound: Bound) -> tuple[str, dict[str, float]]:
    """The fault of the outputs, or of a write beside them, or ""; and the largest errors."""
    pairs = zip(bound.outputs, bound.expected, strict=True)
    compared = (right.compare(output.array) for output, right in pairs)
    fit, absolute, relative = zip(*compared, strict=True)
    largest = {"max_abs_err": max(absolute), "max_rel_err": max(relative)}
    errors = {name: min(error, _MOST_ERROR) for name, error in largest.items()}
    if all(fit):
        return bound.out_of_bounds(), errors
    return f"differs by {max(absolute):.3g}, {max(relative):.3g} of the largest magnitude", errors


def _mostly_nan(output: np.ndarray) -> bool:
    return bool(output.size) and float(np.isnan(output.astype(np.float32)).mean()) > 0.5


def outcome(error: str, message: str, errors: dict[str, float] | None = None) -> dict[str, Any]:
    """The answer about a candidate, without times."""
    return {"seconds": [], "error": error, "message": message, "errors": errors}
