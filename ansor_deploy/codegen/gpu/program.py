"""The program of a library for a GPU: for each run, kernels in order with their addresses.

    main(x):
        a = alloc_tensor(...)
        kernel_a(x, w, a)           -->     kernel_a: memory + 64, weights + 0, memory + 0
        b = alloc_tensor(...)               kernel_b: memory + 0, memory + 128
        kernel_b(a, b)
        return b

Weights and memory lie on the device. All functions share the weights; the memory belongs to one
run: first its planned tensors, then its inputs and outputs, then the workspace of kernels.
`launcher.c` reads the words that `packed` writes, and declares them as structures.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._tvm import collect, relax, tvm
from ...errors import ModelError
from ...runtime.gpu_code import GpuKernel, Launch
from ..memory.arena import aligned
from ..memory.storage import COPY, RESHAPE, Slot, Stored, bytes_of, is_call

# The bit of an address that lies in the memory of a run, not in the weights.
IN_MEMORY = 1 << 63
_VERSION = 1
_HALVES = {"float16", "bfloat16"}
# The calls by which a function checks its arguments before it begins. They run on the host.
_CHECKS = re.compile(r"relax\.null_value|vm\.builtin\.(check_\w+|match_shape)")


@dataclass(frozen=True)
class Step:
    """One call of a kernel, by its symbol, with the addresses of its arguments."""

    kernel: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """What a function of a library runs on the GPU.

    inputs, outputs: address and bytes of each. size: bytes of its memory, without the workspace of
    kernels.
    """

    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    size: int


def gpu_run(run: Stored, constants: Mapping[Slot, relax.Var], symbols: Mapping[str, str]) -> Run:
    """The run of a function; ModelError if it does anything but call kernels.

    constants: the places of weights and their variables. symbols: those of kernels, by the names of
    their functions.
    """
    places = {var: place.offset for place, var in constants.items()}
    places |= {var: IN_MEMORY | place.offset for place, var in run.views.items()}
    size = aligned(run.size)
    for var in (*run.inputs, *run.outputs):
        places[var] = IN_MEMORY | size
        size += aligned(bytes_of(var.ty))
    steps = []
    for binding in collect(run.body, relax.VarBinding):
        call = binding.value
        if is_call(call, RESHAPE):
            places[binding.var] = places[call.args[0]]
        elif is_call(call, COPY):
            places[call.args[1]] = places[call.args[0]]  # the output is read from there
        elif isinstance(call, relax.Call) and isinstance(call.op, tvm.ir.GlobalVar):
            arguments = tuple(places[one] for one in call.args)
            steps.append(Step(symbols[call.op.name_hint], arguments))
        elif not on_host(call):
            raise ModelError(
                f"a GPU cannot run this model: it asks the host while it runs ({_called(call)})",
                "build it for a CPU, such as --target host",
            )
    sent, given = (
        [(places[var], bytes_of(var.ty)) for var in some] for some in (run.inputs, run.outputs)
    )
    return Run(tuple(sent), tuple(given), tuple(steps), size)


def check_types(mod: tvm.IRModule) -> None:
    """ModelError where a model has element types that no kernel for GPUs supports."""
    for function in mod.functions.values():
        if not isinstance(function, relax.Function):
            continue
        values = [*function.params, *(one.var for one in collect(function.body, relax.VarBinding))]
        kinds = {str(getattr(one.ty, "dtype", "")) for one in values}
        if halves := sorted(kinds & _HALVES):
            raise ModelError(
                f"a GPU cannot run this model: it has types of 16 bits ({', '.join(halves)})",
                "convert it to float32, or build it for a CPU, such as --target host",
            )


def on_host(value: relax.Expr) -> bool:
    """Whether an expression checks the arguments of a function."""
    return _CHECKS.fullmatch(_called(value)) is not None


def _called(value: relax.Expr) -> str:
    op = getattr(value, "op", None)
    return str(getattr(op, "global_symbol", None) or getattr(op, "name", type(value).__name__))


def workspace(kernel: GpuKernel) -> int:
    """Bytes that a kernel needs besides its arguments."""
    return sum(map(aligned, kernel.workspace))


def memory_bytes(runs: Iterable[Run], kernels: Mapping[str, GpuKernel]) -> int:
    """Bytes of device memory, without weights, that are enough for any run. kernels: by symbol."""
    return max((run.size + most_workspace([run], kernels) for run in runs), default=0)


def most_workspace(runs: Iterable[Run], kernels: Mapping[str, GpuKernel]) -> int:
    """The most bytes that any kernel of these runs needs besides its arguments."""
    return max((workspace(kernels[one.kernel]) for run in runs for one in run.steps), default=0)


def launches(run: Run, kernels: Mapping[str, GpuKernel]) -> list[tuple[str, Launch]]:
    """The launches of a run, each with its kernel's symbol, and with addresses as arguments."""
    found = []
    for step in run.steps:
        kernel, offset = kernels[step.kernel], run.size
        places = list(step.arguments)
        for size in kernel.workspace:
            places.append(IN_MEMORY | offset)
            offset += aligned(size)
        for one in kernel.launches:
            given = tuple(places[at] for at in one.arguments)
            found.append((step.kernel, Launch(one.name, one.grid, one.block, given)))
    return found


def packed(runs: Sequence[Run], kernels: Mapping[str, GpuKernel], weights: int, arch: str) -> bytes:
    """The program of a library: 64-bit words, then the code of kernels.

    kernels: by symbol. weights: how many bytes they are. arch: the architecture of the target's
    GPU.
    """
    made = _Packer(kernels)
    tables = [made.run(run) for run in runs]
    header = [_VERSION, weights, memory_bytes(runs, kernels)]
    return made.whole(header, arch, tables)


class _Packer:
    """Builds the tables of words, and the content that these refer to by offsets."""

    def __init__(self, kernels: Mapping[str, GpuKernel]) -> None:
        self._kernels = kernels
        self._modules: dict[str, int] = {}
        self._launches: list[list[int]] = []
        self._words: list[int] = []  # addresses of arguments, and inputs and outputs
        self._content = bytearray()

    def run(self, run: Run) -> list[int]:
        """A run's words: (first, count) of its launches, of its inputs and of its outputs."""
        first = len(self._launches)
        for name, launch in launches(run, self._kernels):
            begins = self._add(launch.arguments)
            module = self._modules.setdefault(name, len(self._modules))
            where = [module, self._bytes(launch.name.encode() + b"\0")]
            sizes = [*launch.grid, *launch.block] or [0] * 6
            words = [*sizes, begins, len(launch.arguments)]
            self._launches.append([*where, *words])
        ends = [first, len(self._launches) - first]
        for places in (run.inputs, run.outputs):
            ends += [self._add([word for place in places for word in place]), len(places)]
        return ends

    def whole(self, header: Sequence[int], arch: str, runs: Sequence[Sequence[int]]) -> bytes:
        """The whole program, in the order of the launcher's structure `program`."""
        named = self._bytes(arch.encode() + b"\0")
        used = [self._kernels[name] for name in self._modules]
        modules = [[self._bytes(one.cubin), self._bytes(one.ptx + b"\0")] for one in used]
        tables = [modules, self._launches, runs]
        ends: list[int] = []
        at = len(header) + 3 + 2 * len(tables)
        for table in tables:
            ends += [at, len(table)]
            at += sum(map(len, table))
        content = at + len(self._words)
        words = [*header, named, at, content, *ends]
        words += [word for table in tables for row in table for word in row] + self._words
        return struct.pack(f"<{len(words)}Q", *words) + bytes(self._content)

    def _add(self, words: Iterable[int]) -> int:
        first = len(self._words)
        self._words += words
        return first

    def _bytes(self, content: bytes) -> int:
        self._content.extend(bytes(-len(self._content) % 64))
        first = len(self._content)
        self._content.extend(content)
        return first
