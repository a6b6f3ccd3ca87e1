"""A candidate on a GPU: machine code and launches, run only by NVIDIA's driver.

Timed calls are recorded once and then started by the driver, so that the time of short kernels is
not that of their launches by the host. The clock is the GPU's own: it stops when the GPU has
finished.
"""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.cuda import Memory, Recording, driver
from ..runtime.gpu_code import GpuKernel, Launch

_BYTES = 1 << 16  # bytes of the guard on each side of a tensor
_GUARD = 0x7F
_MOST_RECORDED = 128  # most recorded calls: as many as there may be copies of weights
_turns = count()  # continues from one candidate to the next, since all share the copies


@dataclass(frozen=True)
class Tensor:
    """A tensor on the GPU: its address, and the memory that it keeps alive."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    memory: Memory = field(repr=False)


class Guarded:
    """The same as `guarded.Guarded`, in the GPU's memory."""

    def __init__(self, array: np.ndarray) -> None:
        image = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._dtype, self._shape, self.size = array.dtype, array.shape, image.size
        self._image = image.tobytes()
        self._memory = Memory(self.size + 2 * _BYTES)
        place = self._memory.address + _BYTES
        self.tensor = Tensor(place, array.shape, str(array.dtype), self._memory)
        self.restore()

    @property
    def array(self) -> np.ndarray:
        """A copy of the tensor's present contents."""
        return np.frombuffer(self._inside(), self._dtype).reshape(self._shape)

    def restore(self) -> None:
        """Write the array and the guards again."""
        guard = bytes([_GUARD]) * _BYTES
        self._memory.send(guard + self._image + guard)

    def keep(self) -> None:
        """Make the tensor's present contents the array."""
        self._image = bytes(self._inside())

    def guards_unchanged(self) -> bool:
        """Whether nothing was written on either side of the tensor."""
        guard = bytes([_GUARD]) * _BYTES
        places = (0, _BYTES + self.size)
        return all(self._memory.fetch(place, _BYTES) == guard for place in places)

    def unchanged(self) -> bool:
        """Whether nothing was written on either side, nor to the tensor."""
        return self.guards_unchanged() and self._inside() == self._image

    def _inside(self) -> bytearray:
        return self._memory.fetch(_BYTES, self.size)


class Block:
    """The same as `cold_weights.Block`, in the GPU's memory."""

    def __init__(self, size: int, values: np.ndarray) -> None:
        self._memory, content = Memory(size), values.tobytes()
        for start in range(0, size, len(content)):
            self._memory.send(content[: size - start], start)

    def tensor(self, place: int, like: Tensor) -> Tensor:
        """A tensor at a place of the block, with the shape and type of another."""
        return Tensor(self._memory.address + place, like.shape, like.dtype, self._memory)


class _Code:
    """A loaded program, with the memory of its buffers."""

    def __init__(self, kernel: GpuKernel) -> None:
        self._driver, self._launches = driver(), kernel.launches
        module = self._driver.load(kernel.cubin)
        self._functions = [
            self._driver.function(module, one.name) if one.grid else None for one in kernel.launches
        ]
        self.buffers = [Memory(size) for size in kernel.workspace]

    def launch(self, tensors: Sequence[Tensor], stream: ctypes.c_void_p) -> None:
        """Start the launches of one call, in order, without the checks of the host."""
        for function, launch, addresses in self._each(tensors):
            if function is not None:
                self._driver.launch(function, launch.grid, launch.block, addresses, stream)

    def check(self, tensors: Sequence[Tensor]) -> None:
        """IndexError where the previous call has found an index out of range."""
        places = {one.address: one for one in self.buffers}
        for function, launch, (address, *_) in self._each(tensors):
            if function is None and any(places[address].fetch(0, 4)):
                raise IndexError(launch.name)

    def _each(
        self, tensors: Sequence[Tensor]
    ) -> Iterator[tuple[ctypes.c_void_p | None, Launch, list[int]]]:
        places = [*(one.address for one in tensors), *(one.address for one in self.buffers)]
        for function, launch in zip(self._functions, self._launches, strict=True):
            yield function, launch, [places[at] for at in launch.arguments]


class Library:
    """The functions of a candidate, by their names."""

    def __init__(self, path: Path) -> None:
        kernels = GpuKernel.from_library(path.read_bytes())
        self.code = {name: _Code(kernel) for name, kernel in kernels.items()}

    def __getitem__(self, name: str) -> Callable[..., None]:
        return partial(self._run, self.code[name])

    def _run(self, code: _Code, *tensors: Tensor) -> None:
        code.launch(tensors, ctypes.c_void_p())
        driver().synchronize()
        code.check(tensors)


def load(path: str | Path) -> Library:
    """The library of a candidate; CudaError where the GPU cannot load it."""
    return Library(Path(path))


def limit(_size: int) -> None:
    """Do nothing: the driver maps memory of any size, and the GPU's own size limits it."""


def second(array: np.ndarray) -> Tensor:
    """A tensor with a copy of the values."""
    return Guarded(array).tensor


def poison(library: Library) -> None:
    """Fill the memory of a call's temporary buffers."""
    for code in library.code.values():
        for buffer in code.buffers:
            buffer.fill(_GUARD)


def times(
    library: Library,
    arguments: Sequence[Tensor],
    cold: Sequence[Sequence[Tensor]],
    number: int,
    repeat: int,
) -> list[float]:
    """The same as `on_cpu.times`: seconds a call, by the GPU's clock."""
    calls, recorded = cold or [arguments], min(number, _MOST_RECORDED)
    first = next(_turns) * recorded % len(calls)
    with Recording() as recording:
        for call in islice(cycle(calls), first, first + recorded):
            library.code["compute"].launch(call, recording.stream)
    found = recording.times(math.ceil(number / recorded), repeat)
    return [seconds / recorded for seconds in found]


def gpu(_payload: dict[str, Any]) -> dict[str, Any]:
    """A description of the GPU: the fields of `cuda.Gpu`."""
    return asdict(driver().gpu())
