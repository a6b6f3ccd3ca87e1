"""NVIDIA's driver through ctypes: memory of the first GPU, loaded code, and the GPU's clock.

Only CUDA's driver (libcuda.so.1) is needed, and it is loaded at first use. A call that it refuses
raises a `CudaError`. After some errors, such as an access beyond all memory, the driver refuses
every call until the process ends.
"""

import ctypes
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import AnsorError

_LIBRARY = "libcuda.so.1"
_NAME_CHARS = 256
# The driver's numbers of device attributes: multiprocessors, and parts of the compute capability.
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76
_BLOCKING = 0  # flags of a stream
_RELAXED = 2  # the mode of a capture: other calls of the process are not restricted


class CudaError(RuntimeError):
    """The driver refuses a call; the message is the driver's."""


@dataclass(frozen=True)
class Gpu:
    """A GPU. arch: such as "sm_90". sms: how many multiprocessors. driver: its CUDA version."""

    name: str
    arch: str
    sms: int
    driver: str


class Driver:
    """The driver. The first GPU's context is current in the thread that creates this object."""

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise AnsorError(
                f"there is no NVIDIA driver here ({_LIBRARY} cannot be loaded)",
                "use a machine with an NVIDIA GPU and its driver",
            ) from error
        self.call("cuInit", 0)
        self._device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self._device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; CudaError where it refuses, or is too old to have it."""
        try:
            status = getattr(self._lib, name)(*arguments)
        except AttributeError:
            raise CudaError(f"the NVIDIA driver is too old: it lacks {name}") from None
        if status != 0:
            raise CudaError(f"{name}: {self._words(status)}")

    def gpu(self) -> Gpu:
        """The first GPU."""
        name, version = ctypes.create_string_buffer(_NAME_CHARS), ctypes.c_int()
        self.call("cuDeviceGetName", name, _NAME_CHARS, self._device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = divmod(version.value, 1000)
        arch = f"sm_{self._attribute(_MAJOR)}{self._attribute(_MINOR)}"
        words = name.value.decode(errors="replace")
        return Gpu(words, arch, self._attribute(_MULTIPROCESSORS), f"{major}.{minor // 10}")

    def synchronize(self) -> None:
        """Wait for everything that was launched; CudaError where any of it failed."""
        self.call("cuCtxSynchronize")

    def load(self, code: bytes) -> ctypes.c_void_p:
        """A module of machine code."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        """A kernel of a module."""
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def launch(
        self,
        function: ctypes.c_void_p,
        grid: Sequence[int],
        block: Sequence[int],
        addresses: Sequence[int],
        stream: ctypes.c_void_p,
    ) -> None:
        """Launch a kernel on a stream. addresses: the kernel's arguments."""
        values = (ctypes.c_uint64 * len(addresses))(*addresses)
        size, first = ctypes.sizeof(ctypes.c_uint64), ctypes.addressof(values)
        given = (ctypes.c_void_p * len(addresses))(
            *(first + at * size for at in range(len(addresses)))
        )
        self.call("cuLaunchKernel", function, *grid, *block, 0, stream, given, None)

    def stream(self) -> ctypes.c_void_p:
        """A new stream."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), _BLOCKING)
        return made

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value

    def _words(self, status: int) -> str:
        text = ctypes.c_char_p()
        with suppress(AttributeError):
            self._lib.cuGetErrorString(status, ctypes.byref(text))
        return (text.value or b"an error that the driver has no words for").decode()


@cache
def driver() -> Driver:
    """The driver of this process. AnsorError where there is none, CudaError where it has no GPU."""
    return Driver()


class Memory:
    """Bytes of the GPU's memory, freed with the last reference. address: as an integer."""

    def __init__(self, size: int) -> None:
        self.size, place = size, ctypes.c_uint64()
        driver().call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(1, size)))
        self.address = place.value
        weakref.finalize(self, _release, self.address).atexit = False

    def send(self, content: bytes, offset: int = 0) -> None:
        """Copy bytes to this offset of the memory."""
        place = ctypes.c_uint64(self.address + offset)
        driver().call("cuMemcpyHtoD_v2", place, content, ctypes.c_size_t(len(content)))

    def fetch(self, offset: int, size: int) -> bytearray:
        """A copy of `size` bytes of the memory, from this offset."""
        made = bytearray(size)
        if size:
            place = ctypes.c_uint64(self.address + offset)
            to = (ctypes.c_char * size).from_buffer(made)
            driver().call("cuMemcpyDtoH_v2", to, place, ctypes.c_size_t(size))
        return made

    def fill(self, value: int) -> None:
        """Set every byte of the memory."""
        place = ctypes.c_uint64(self.address)
        driver().call("cuMemsetD8_v2", place, ctypes.c_ubyte(value), ctypes.c_size_t(self.size))


def _release(address: int) -> None:
    with suppress(CudaError):  # the process may have ruined its context
        driver().call("cuMemFree_v2", ctypes.c_uint64(address))


class Recording:
    """Everything launched on a stream in a `with` block, to be run again as a whole.

    stream: the one to launch on. The driver starts the recorded kernels itself, one after the
    other, so that the time of a short kernel is not the host's time to launch it.
    """

    def __init__(self) -> None:
        self._driver, self.stream = driver(), driver().stream()
        self._graph, self._whole = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self) -> "Recording":  # noqa: PYI034 - Self is newer than Python 3.10
        self._driver.call("cuStreamBeginCapture_v2", self.stream, _RELAXED)
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.call("cuStreamEndCapture", self.stream, ctypes.byref(self._graph))

    def times(self, runs: int, repeat: int) -> list[float]:
        """Seconds of the whole recording, averaged over `runs` runs, measured `repeat` times."""
        call, made = self._driver.call, ctypes.byref(self._whole)
        call("cuGraphInstantiateWithFlags", made, self._graph, ctypes.c_uint64(0))
        try:
            self._run(1)
            return [self._timed(runs) / runs for _ in range(repeat)]
        finally:
            for name, one in (("cuGraphExecDestroy", self._whole), ("cuGraphDestroy", self._graph)):
                with suppress(CudaError):
                    call(name, one)
            with suppress(CudaError):
                call("cuStreamDestroy_v2", self.stream)

    def _run(self, runs: int) -> None:
        for _ in range(runs):
            self._driver.call("cuGraphLaunch", self._whole, self.stream)

    def _timed(self, runs: int) -> float:
        begun, ended = ctypes.c_void_p(), ctypes.c_void_p()
        call, milliseconds = self._driver.call, ctypes.c_float()
        for one in (begun, ended):
            call("cuEventCreate", ctypes.byref(one), 0)
        call("cuEventRecord", begun, self.stream)
        self._run(runs)
        call("cuEventRecord", ended, self.stream)
        call("cuEventSynchronize", ended)
        call("cuEventElapsedTime", ctypes.byref(milliseconds), begun, ended)
        for one in (begun, ended):
            call("cuEventDestroy_v2", one)
        return milliseconds.value / 1e3
