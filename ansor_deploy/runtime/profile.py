"""The kernels of a library, each timed in its place in a running network.

The virtual machine says which kernels a run calls, in which order and with which tensors. They are
called again one after another with these very tensors, and the clock is read between two of them:
each finds its activations as warm and its weights as cold as a run leaves them. What a run takes
beyond its kernels, for the virtual machine and its memory, is the rest: together they are the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from .functions import main_names, open_machine
from .model import Model
from .native import ffi, tensor

SECONDS = 1.0  # that a profile takes
FEWEST_TURNS = 4
BLOCK_SECONDS = 20e-3  # of kernels, or of whole runs, in a turn
FEWEST, MOST = 3, 100  # runs in a block; one more, at its start, is not counted
EMPTY_CALLS, EMPTY_BLOCKS = 100, 10
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Call:
    """A call of a kernel, as the virtual machine makes it. symbol: the name of its code."""

    symbol: str
    function: Any
    arguments: tuple[Any, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of its tensors."""
        tensors = (one for one in self.arguments if hasattr(one, "shape"))
        return tuple(tuple(map(int, one.shape)) for one in tensors)


@dataclass(frozen=True)
class KernelTime:
    """A call of a kernel in a run. name: of what it computes. seconds: median of many.

    shapes: of its arguments, the results last. task: the manifest's entry of the task that it
    computes; None for a kernel that is no task's. nodes: of the model that it computes in this
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
    """A run of a library. seconds: median of a run. kernels: its calls, in their order."""

    seconds: float
    kernels: tuple[KernelTime, ...]

    @property
    def rest(self) -> float:
        """Seconds of a run that no kernel takes; noise may make it negative."""
        return self.seconds - sum(one.seconds for one in self.kernels)


class Replay:
    """A function of a built library, its kernels callable one by one and as a whole."""

    def __init__(self, path: Path, values: Iterable[np.ndarray], name: str = "main") -> None:
        """values: the inputs, in their order. name: of the function."""
        self._inputs = [tensor(value) for value in values]
        self._main = open_machine(path, [name])[name]
        self.calls = _calls(open_machine(path, [name]), name, self._inputs)
        counts = {len(call.arguments): call for call in self.calls}
        empty = {count: _empty_call(call.arguments) for count, call in counts.items()}
        self._empty = [empty[len(call.arguments)] for call in self.calls]

    def result(self) -> Any:
        """What a run gives: a tensor, or an array of them."""
        return self._main(*self._inputs)

    def whole(self) -> float:
        """Seconds of a run."""
        started = time.perf_counter()
        self._main(*self._inputs)
        return time.perf_counter() - started

    def kernels(self) -> list[float]:
        """Seconds of each call of a kernel in one run, without what a call from Python takes.

        But never less than half of the whole.
        """
        stamps, clock = [time.perf_counter()], time.perf_counter
        for call in self.calls:
            call.function(*call.arguments)
            stamps.append(clock())
        spent = (after - before for before, after in pairwise(stamps))
        return [max(one - empty, one / 2) for one, empty in zip(spent, self._empty, strict=True)]


def profile(model: Model, inputs: dict[str, np.ndarray], seconds: float = SECONDS) -> Profile:
    """Time a loaded library's kernels in place, in the shapes that the inputs have.

    UsageError where it has none such. Kernels and whole runs take turns, so that a drift of the
    machine's speed meets both alike.
    """
    return described(measure(model, inputs, seconds), model.manifest)


def measure(model: Model, inputs: Mapping[str, np.ndarray], seconds: float) -> dict[str, Any]:
    """A profile's figures, as a board can send them."""
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
    """The profile of a library. figures: of `measure`. manifest: what it says of the kernels."""
    calls = map(_Described(manifest, figures["shape"]), figures["calls"])
    return Profile(figures["seconds"], tuple(calls))


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
    """What each of several runs gives, but for the first: others' tensors were in the caches."""
    run()
    found: list[_Found] = []
    end = time.perf_counter() + BLOCK_SECONDS
    while len(found) < FEWEST or (time.perf_counter() < end and len(found) < MOST):
        found.append(run())
    return found


def _calls(machine: Any, name: str, inputs: Sequence[Any]) -> list[Call]:
    """The calls of one run, with the very tensors: each memory is used again as the plan says."""
    found: list[Call] = []

    def note(function: Any, symbol: str, before: bool, result: Any, *arguments: Any) -> int:
        if before and _is_kernel(symbol):
            found.append(Call(symbol, function, arguments))
        return 0

    machine["set_instrument"](ffi().convert(note))
    machine[name](*inputs)
    return found


def _is_kernel(symbol: str) -> bool:
    """Whether it is no builtin, such as "vm.builtin.reshape", and no function of the graph."""
    return "." not in symbol and not symbol.startswith("main")


def _empty_call(arguments: Sequence[Any]) -> float:
    """Seconds that a call from Python takes which does next to nothing with these arguments."""
    nothing = ffi().get_global_func("vm.builtin.make_tuple")
    blocks = []
    for _ in range(EMPTY_BLOCKS):
        started = time.perf_counter()
        for _ in range(EMPTY_CALLS):
            nothing(*arguments)
        blocks.append(time.perf_counter() - started)
    return min(blocks) / EMPTY_CALLS


class _Described:
    """A timed call with what the manifest says of its kernel.

    The calls of a run have to come in their order. shape: which of the library's several it has.
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
        """The nodes of a kernel that is no task's."""
        found = (one for one in self._others if symbol in one["kernels"])
        if (place := next(found, None)) is None:
            return ()
        self._others.remove(place)
        nodes: Sequence[Mapping[str, str]] = place["nodes"]
        return nodes
