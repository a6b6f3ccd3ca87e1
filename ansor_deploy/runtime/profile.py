"""Profile a library: time each kernel at its place in a running network.

The virtual machine reports which kernels a run calls, in which order and with which tensors. They
are called again one after another with the same tensors, and the clock is read between them: so
each kernel finds its activations as warm and its weights as cold as in a run. The rest of a run is
the time beyond its kernels, for the virtual machine and its memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from .functions import main_names, open_machine
from .model import Model
from .native import ffi, tensor

SECONDS = 1.0  # the time that a profile takes
FEWEST_TURNS = 4
BLOCK_SECONDS = 20e-3  # of kernels, or of whole runs, in a turn
FEWEST, MOST = 3, 100  # runs in a block, without the first, which is not counted
EMPTY_CALLS = 100  # in a block of empty calls, which measures the cost of a call
EMPTY_BLOCKS = 10
_WORK = ("flops", "bytes", "byte_products")  # of a task, in its manifest's entry
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Call:
    """A call of a kernel, as the virtual machine makes it. symbol: the name of its code."""

    symbol: str
    function: Any
    arguments: tuple[Any, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of its tensors."""
        tensors = (one for one in self.arguments if hasattr(one, "shape"))
        return tuple(tuple(map(int, one.shape)) for one in tensors)


@dataclass(frozen=True)
class KernelTime:
    """A call of a kernel in a run. name: that of its task or function. seconds: median of many.

    shapes: those of its arguments, the results last. task: the manifest's entry of the task that it
    computes; None for a kernel without a task. nodes: the model's nodes that it computes at this
    place, each with its name and operator; none where the manifest does not say.
    """

    symbol: str
    name: str
    seconds: float
    shapes: tuple[tuple[int, ...], ...]
    task: Mapping[str, Any] | None
    nodes: tuple[Mapping[str, str], ...] = ()

    @property
    def op(self) -> str:
        """The operator: the task's, or the kernel's own name."""
        return str((self.task or {}).get("op") or self.name)


@dataclass(frozen=True)
class Profile:
    """The profile of a run. seconds: median of a run. kernels: its kernel calls, in order."""

    seconds: float
    kernels: tuple[KernelTime, ...]

    @property
    def rest(self) -> float:
        """Seconds of a run outside its kernels; noise may make it negative."""
        return self.seconds - sum(one.seconds for one in self.kernels)


class Replay:
    """A function of a built library that can be run kernel by kernel and as a whole."""

    def __init__(self, path: Path, values: Iterable[np.ndarray], name: str = "main") -> None:
        """Load the library. values: the inputs, in order. name: that of the function."""
        self._inputs = [tensor(value) for value in values]
        self._main = open_machine(path, [name])[name]
        self.calls = _calls(open_machine(path, [name]), name, self._inputs)
        counts = {len(call.arguments): call for call in self.calls}
        empty = {count: _empty_call(call.arguments) for count, call in counts.items()}
        self._empty = [empty[len(call.arguments)] for call in self.calls]

    def result(self) -> Any:
        """The result of a run: a tensor, or an array of tensors."""
        return self._main(*self._inputs)

    def whole(self) -> float:
        """Seconds of a run."""
        started = time.perf_counter()
        self._main(*self._inputs)
        return time.perf_counter() - started

    def kernels(self) -> list[float]:
        """Seconds of each call of a kernel in one run, minus the time of a call from Python.

        At most half of the measured time is subtracted.
        """
        stamps, clock = [time.perf_counter()], time.perf_counter
        for call in self.calls:
            call.function(*call.arguments)
            stamps.append(clock())
        spent = (after - before for before, after in pairwise(stamps))
        return [max(one - empty, one / 2) for one, empty in zip(spent, self._empty, strict=True)]


def profile(model: Model, inputs: dict[str, np.ndarray], seconds: float = SECONDS) -> Profile:
    """Time a loaded library's kernels in place, in the inputs' shapes.

    UsageError where it does not take these shapes. Kernels and whole runs take turns, so that a
    drift of the machine's speed affects both alike.
    """
    return described(measure(model, inputs, seconds), model.manifest)


def measure(model: Model, inputs: Mapping[str, np.ndarray], seconds: float) -> dict[str, Any]:
    """The figures of a profile, in a form that a board can send."""
    at, given = model.arguments(inputs)
    replay = Replay(model.path, given, main_names(at + 1)[at])
    whole, kernels = _in_turns(replay, seconds)
    times = map(median, zip(*kernels, strict=True))
    calls = [
        {"symbol": call.symbol, "shapes": call.shapes, "seconds": taken}
        for call, taken in zip(replay.calls, times, strict=True)
    ]
    return {"seconds": median(whole), "calls": calls, "shape": at}


def described(figures: Mapping[str, Any], manifest: Mapping[str, Any]) -> Profile:
    """The profile of a library. figures: those of `measure`. manifest: the library's."""
    calls = map(_Described(manifest, figures["shape"]), figures["calls"])
    return Profile(figures["seconds"], tuple(calls))


def without_work(profile: Profile) -> Profile:
    """The profile without the FLOPs and bytes of its kernels, for a run that does less."""
    kernels = (replace(one, task=_timed_alone(one.task)) for one in profile.kernels)
    return replace(profile, kernels=tuple(kernels))


def _timed_alone(task: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return task and {key: value for key, value in task.items() if key not in _WORK}


def _in_turns(replay: Replay, seconds: float) -> tuple[list[float], list[list[float]]]:
    """Seconds of whole runs, and of the kernels of other runs."""
    whole: list[float] = []
    kernels: list[list[float]] = []
    end, turn = time.perf_counter() + seconds, 0
    while turn < FEWEST_TURNS or time.perf_counter() < end:
        kernels += _block(replay.kernels)
        whole += _block(replay.whole)
        turn += 1
    return whole, kernels


def _block(run: Callable[[], _Found]) -> list[_Found]:
    """The results of several runs, without the first, which finds other tensors in the caches."""
    run()
    found: list[_Found] = []
    end = time.perf_counter() + BLOCK_SECONDS
    while len(found) < FEWEST or (time.perf_counter() < end and len(found) < MOST):
        found.append(run())
    return found


def _calls(machine: Any, name: str, inputs: Sequence[Any]) -> list[Call]:
    """The kernel calls of one run, with the same tensors: so memory is reused as planned."""
    found: list[Call] = []

    def note(function: Any, symbol: str, before: bool, result: Any, *arguments: Any) -> int:
        if before and _is_kernel(symbol):
            found.append(Call(symbol, function, arguments))
        return 0

    machine["set_instrument"](ffi().convert(note))
    machine[name](*inputs)
    return found


def _is_kernel(symbol: str) -> bool:
    """Whether a symbol is a kernel, no builtin as "vm.builtin.reshape" and no graph function."""
    return "." not in symbol and not symbol.startswith("main")


def _empty_call(arguments: Sequence[Any]) -> float:
    """Seconds of a call from Python to a function that does almost nothing with its arguments."""
    nothing = ffi().get_global_func("vm.builtin.make_tuple")
    blocks = []
    for _ in range(EMPTY_BLOCKS):
        started = time.perf_counter()
        for _ in range(EMPTY_CALLS):
            nothing(*arguments)
        blocks.append(time.perf_counter() - started)
    return min(blocks) / EMPTY_CALLS


class _Described:
    """Turns timed calls into `KernelTime`s, with the manifest's entries of their kernels.

    The calls of a run must come in order. shape: which of the library's shapes the run has.
    """

    def __init__(self, manifest: Mapping[str, Any], shape: int) -> None:
        self._kernels = {one["symbol"]: one for one in manifest["kernels"]}
        self._tasks = {task["key"]: task for task in manifest["tasks"]}
        self._places = {
            key: iter([one["nodes"] for one in task["places"] if one["shape"] == shape])
            for key, task in self._tasks.items()
        }
        self._others = [one for one in manifest["others"] if one["shape"] == shape]

    def __call__(self, call: Mapping[str, Any]) -> KernelTime:
        symbol, shapes = call["symbol"], tuple(map(tuple, call["shapes"]))
        known = self._kernels.get(symbol, {"name": symbol, "task": None})
        task = self._tasks.get(known["task"])
        name = task["name"] if task else known["name"]
        nodes = next(self._places[task["key"]], ()) if task else self._next_of(symbol)
        return KernelTime(symbol, name, call["seconds"], shapes, task, tuple(nodes))

    def _next_of(self, symbol: str) -> Sequence[Mapping[str, str]]:
        """The nodes of the next call of a kernel without a task."""
        found = (one for one in self._others if symbol in one["kernels"])
        if (place := next(found, None)) is None:
            return ()
        self._others.remove(place)
        nodes: Sequence[Mapping[str, str]] = place["nodes"]
        return nodes
