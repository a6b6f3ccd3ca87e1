"""Compile kernels to object files, one by one, in parallel child processes with limits.

The cost of compiling a kernel is known only afterwards, and LLVM can neither be stopped from within
nor survive running out of memory. So each kernel is compiled in a warm child process that can be
killed. The child processes are started when needed, and kept for this process's next build.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ..._tvm import tvm
from ...errors import MachineError
from ...system import fence
from ...system.digest import sha256
from ...system.jobserver import threads
from ...system.worker import Worker, WorkerFailure
from ...target import Target
from .object_cache import ObjectCache

PROCESSOR_SECONDS = 30.0  # the limit of a kernel; those of the shipped rules take one at most
WALL_SECONDS = 10 * PROCESSOR_SECONDS  # a machine may be that busy, or a process may hang
KERNELS_PER_WORKER = 8  # starting a process takes as long as compiling so many small kernels
_COMPILES = "ansor_deploy.codegen.kernels.kernel"
_ENV = {"TVM_NUM_THREADS": "1", fence.VARIABLE: os.devnull}  # workers write to memory, not files
_spare: list[Worker] = []


# The attribute of a function that has the key of its task's workload. It is not part of the kernel.
TASK = "ansor.task"


@dataclass(frozen=True)
class Kernel:
    """A scheduled program, and the symbol of its code. program: a PrimFunc as TVM's JSON."""

    symbol: str
    program: str

    @classmethod
    def of(cls, func: Any, code: int = 0) -> Kernel:
        """The kernel of a PrimFunc, named after the digest of its program.

        code: the number of the library's code that it belongs to.
        """
        program = tvm.ir.save_json(func.without_attr(TASK).without_attr("global_symbol"))
        return cls(f"kernel_{sha256(program)[:16]}{f'_{code}' if code else ''}", program)


@dataclass(frozen=True)
class Refusal:
    """Why a kernel has no object file. cause: what was raised, with the frames where it was."""

    reason: str
    cause: Exception | None = None


def compile_kernels(
    kernels: Iterable[Kernel],
    target: Target,
    progress: Callable[[int, int], None] = lambda done, total: None,
    warn: Callable[[str], None] = lambda message: None,
) -> dict[str, bytes | Refusal]:
    """The bytes of each kernel's `CpuKernel` or `GpuKernel`, by its symbol, or why there is none.

    progress: called with how many kernels are done and how many there are. warn: called with a
    sentence where the cache cannot be written to. MachineError where this machine fails.
    """
    cache = ObjectCache(target, warn)
    made: dict[str, bytes | Refusal] = {}
    for kernel in (unique := set(kernels)):
        if (kept := cache.get(kernel.symbol, kernel.program)) is not None:
            made[kernel.symbol] = kept
    queue = [kernel for kernel in unique if kernel.symbol not in made]
    with closing(_compiled(queue, target)) as results:
        for kernel, result in results:
            made[kernel.symbol] = result
            if isinstance(result, bytes):
                cache.put(kernel.symbol, kernel.program, result)
            progress(len(made), len(unique))
    cache.trim()
    return made


def _compiled(
    kernels: Iterable[Kernel], target: Target
) -> Generator[tuple[Kernel, bytes | Refusal]]:
    """Object files as they are finished; the largest programs start first, as the slowest."""
    queue = sorted(kernels, key=lambda one: (-len(one.program), one.symbol))
    words = {"target": json.dumps(target.to_json()), "seconds": PROCESSOR_SECONDS}
    if not queue:
        return
    with _workers(len(queue)) as workers:
        idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in workers:
            idle.put(worker)
        yield from _side_by_side(queue, workers, lambda one: _compile(one, words, idle))


def _side_by_side(
    kernels: Sequence[Kernel], workers: Sequence[Worker], work: Callable[[Kernel], Any]
) -> Iterator[tuple[Kernel, Any]]:
    """The result of `work` for each kernel, as soon as it is there."""
    executor = ThreadPoolExecutor(len(workers), "ansor-deploy-compile")
    try:
        begun = {executor.submit(work, kernel): kernel for kernel in kernels}
        for future in as_completed(begun):
            yield begun[future], future.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _compile(kernel: Kernel, words: dict[str, Any], idle: SimpleQueue[Worker]) -> bytes | Refusal:
    worker = idle.get()
    payload = {**words, "symbol": kernel.symbol, "program": kernel.program}
    try:
        return base64.b64decode(worker.call(f"{_COMPILES}:compile_kernel", payload, WALL_SECONDS))
    except WorkerFailure as failure:
        if failure.kind == "timeout":
            raise MachineError(
                f"too busy: a kernel had less than {PROCESSOR_SECONDS:.0f} s of a processor in "
                f"{WALL_SECONDS:.0f} s",
                "end other programs; the same command resumes",
            ) from failure
        return Refusal(_reason(failure), failure)
    finally:
        idle.put(worker)


def _reason(failure: WorkerFailure) -> str:
    if failure.message.startswith("SIGXCPU"):
        return f"it takes the compiler more than {PROCESSOR_SECONDS:.0f} s"
    if failure.kind == "crash":
        return f"the compiler crashed or wanted too much memory: {failure.message}"
    return failure.message


@contextmanager
def _workers(jobs: int) -> Iterator[list[Worker]]:
    """Started workers for so many jobs, warm ones first; they are killed where the block fails."""
    wanted = min(len(os.sched_getaffinity(0)), -(-jobs // KERNELS_PER_WORKER))
    with threads(wanted) as width:
        taken = [_spare.pop() if _spare else Worker(_COMPILES, _ENV) for _ in range(width)]
        try:
            for worker in taken:  # here, since a child ends with the thread that started it
                worker.start()
            yield taken
        except BaseException:
            for worker in taken:
                worker.interrupt()
            raise
        _spare.extend(taken)
