"""The functions of a library as functions of arrays, with its weights and memory bound to them."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AnsorError
from ..system.machine_fault import raise_if_fault
from . import native
from .tensors import numpy_dtype

_CPU = 1  # DLPack's device type
_POOLED = 2  # the virtual machine's allocator that keeps memory for later calls

Into = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]


class OnGpu:
    """A tensor in a GPU's memory, with its shape, its NumPy type, and the runtime's tensor."""

    def __init__(self, given: Any) -> None:
        self.tensor = native.ffi().from_dlpack(given, require_contiguous=True)
        self.shape = tuple(self.tensor.shape)
        self.dtype = numpy_dtype(str(self.tensor.dtype))


ON_GPU: Callable[[Any], OnGpu] | None = OnGpu


def into_functions(
    path: Path, count: int, threads: int, code: int | None = None
) -> tuple[int, list[Into], Callable[[int], None]]:
    """The number of a library's code, its functions, one an interface, and a setter of its threads.

    The functions take inputs, and outputs to write to: arrays of the right shapes and types;
    outputs are contiguous, aligned, and share no memory with others. code: the number of the code
    to run; None for the best. threads, and errors: as in `open_machine`.
    """
    names = main_names(count)
    library, number, machine = _opened(path, names, threads, code)
    functions: list[Into] = [_InPlace(machine[f"{name}_into"]) for name in names]
    return number, functions, partial(native.use_threads, library)


def main_names(count: int) -> list[str]:
    """The names of a library's functions, one an interface."""
    return ["main", *(f"main_{number}" for number in range(1, count))]


def code_prefix(code: int) -> str:
    """The prefix of the names of a library's functions in its code with this number."""
    return f"code_{code}_" if code else ""


def open_machine(path: Path, names: Sequence[str], threads: int = 0) -> Any:
    """A library's virtual machine, with weights bound to these functions.

    threads: those of a call; 0 for as many as the target has cores. AnsorError where it cannot be
    loaded, DeviceError where the processor lacks features that its code needs.
    """
    return _opened(path, names, threads)[2]


def _opened(
    path: Path, names: Sequence[str], threads: int, code: int | None = None
) -> tuple[Any, int, Any]:
    """The library, the number of the code that runs, and the machine as in `open_machine`.

    code: the number of the code to run; None for the best.
    """
    try:
        library = native.load_module(path)
        number = native.choose_code(library, path, code)
        if threads:
            native.use_threads(library, threads)
        machine = library["vm_load_executable"]()
        machine["vm_initialization"](_CPU, 0, _POOLED)
        bind_weights(machine, partial(native.mapped, path), names, code_prefix(number))
        for name in names:
            machine[name]  # raises where there is no such function
    except (OSError, RuntimeError, AttributeError) as error:
        raise_if_fault(error)
        reason = str(error).strip().splitlines()[-1]
        raise AnsorError(
            f"cannot be loaded: {reason}",
            "it may be built for another machine: see `target` in its manifest",
            path,
        ) from error
    return library, number, machine


class _InPlace:
    """A function that reads and writes arrays in place; not for two threads at once."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._copies: dict[int, Any] = {}  # of the inputs that must be copied, by position

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        given, made = ([_borrowed(one) for one in some] for some in (inputs, outputs))
        if all(one is not None for one in (*given, *made)):
            self._function(*given, *made)
            return
        written = [
            native.empty(one.shape, str(one.dtype)) if lent is None else lent
            for one, lent in zip(outputs, made, strict=True)
        ]
        self._function(*map(self._input, range(len(inputs)), inputs, given), *written)
        for one, lent, tensor in zip(outputs, made, written, strict=True):
            if lent is None:
                native.copy_to(one, tensor)

    def _input(self, at: int, given: np.ndarray, lent: Any) -> Any:
        """The borrowed tensor, or a copy of the array in memory that is kept for the next call."""
        if lent is not None:
            return lent
        if at not in self._copies:
            self._copies[at] = native.empty(given.shape, str(given.dtype))
        native.fill(self._copies[at], given)
        return self._copies[at]


def _borrowed(values: Any) -> Any:
    return values.tensor if isinstance(values, OnGpu) else native.borrowed(values)


def bind_weights(
    machine: Any, block: Callable[[int], Any], functions: Sequence[str], prefix: str
) -> None:
    """Bind the last arguments of a virtual machine's functions: weights, and memory for tensors.

    block: makes a uint8 tensor of the block of weights, from its size in bytes
    (`codegen/memory/weights.py`). prefix: that of the functions in the chosen code; the bound ones
    have names without it.
    """
    memory = block(machine["weights_size"]())
    for name in functions:
        views = machine[f"{prefix}{name}_weights"](memory)
        for one in (name, f"{name}_into"):
            machine["save_function"](prefix + one, one, True, *views)
