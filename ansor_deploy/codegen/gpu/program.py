"""What a library for a GPU does in a run: kernels in order, each with the addresses that it takes.

    main(x):
        a = alloc_tensor(...)
        kernel_a(x, w, a)           -->     kernel_a: memory + 64, weights + 0, memory + 0
        b = alloc_tensor(...)               kernel_b: memory + 0, memory + 128
        kernel_b(a, b)
        return b

Both lie on the device. The weights are there once for all functions; the memory is of one run: its
tensors as they are planned, its inputs and outputs, and what kernels need beside.
`launcher.c` reads the words that `packed` writes, and has them as structures.
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

# Of an address: it lies in the memory of a run, and not among the weights.
IN_MEMORY = 1 << 63
_VERSION = 1
_HALVES = {"float16", "bfloat16"}
# What a function asks of its arguments before it begins; nothing, where shapes are known.
_CHECKS = re.compile(r"relax\.null_value|vm\.builtin\.(check_\w+|match_shape)")


@dataclass(frozen=True)
class Step:
    """One call of a kernel, by its symbol, with the addresses of its arguments."""

    kernel: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """A function of a library.

    inputs, outputs: address and bytes of each. size: of its memory, in bytes, without what kernels
    need beside.
    """

    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    size: int


def gpu_run(run: Stored, constants: Mapping[Slot, relax.Var], symbols: Mapping[str, str]) -> Run:
    """The steps of a function; ModelError if it is no list of kernels.

    constants: the variables of weights. symbols: of kernels, by the names of their functions.
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
            places[call.args[1]] = places[call.args[0]]  # it is sent from there
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
    """ModelError where a model has numbers that kernels for GPUs are not written for."""
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
    """Bytes that a kernel needs beside its arguments."""
    return sum(map(aligned, kernel.workspace))


def memory_bytes(runs: Iterable[Run], kernels: Mapping[str, GpuKernel]) -> int:
    """Device memory that any of the runs takes, without weights. kernels: by symbol."""
    return max((run.size + most_workspace([run], kernels) for run in runs), default=0)


def most_workspace(runs: Iterable[Run], kernels: Mapping[str, GpuKernel]) -> int:
    """The most bytes that a kernel of these runs needs beside its arguments."""
    return max((workspace(kernels[one.kernel]) for run in runs for one in run.steps), default=0)


def launches(run: Run, kernels: Mapping[str, GpuKernel]) -> list[tuple[str, Launch]]:
    """The launches of a run, with addresses for arguments, each after its kernel's symbol."""
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
    """The program of a library: words of 64 bits, then the code of kernels.

    kernels: by symbol. weights: their bytes. arch: as of a target's GPU.
    """
    made = _Packer(kernels)
    tables = [made.run(run) for run in runs]
    header = [_VERSION, weights, memory_bytes(runs, kernels)]
    return made.whole(header, arch, tables)


class _Packer:
    """Tables of words, and the bytes that they point to, from the beginning of the program."""

    def __init__(self, kernels: Mapping[str, GpuKernel]) -> None:
        self._kernels = kernels
        self._modules: dict[str, int] = {}
        self._launches: list[list[int]] = []
        self._words: list[int] = []  # of arguments, inputs and outputs
        self._content = bytearray()

    def run(self, run: Run) -> list[int]:
        """A run's words: its launches, inputs and outputs as (first, count) each."""
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
        """Everything, in the order in which the launcher's `program` has it."""
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
